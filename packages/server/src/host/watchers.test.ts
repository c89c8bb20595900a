import { EventType, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { TOLD_IN_A_TURN } from './dirty.ts'
import { World, type RawClient } from './testdata/world.ts'

const CHANGED = `event ${EventType.NodeDataChanged} /config`

/** A server with a node that very many clients watch, and whether it writes to some of them together. */
async function watched(count: number): Promise<{ world: World; writer: RawClient; watchers: RawClient[] }> {
  const world = await World.start({ maxClientCnxns: 0 })
  const writer = await world.client()
  writer.greeting()
  writer.create(1, '/config')
  const watchers: RawClient[] = []
  for (let number = 0; number < count; number++) watchers.push(await world.open())
  for (const watcher of watchers) watcher.handshake()
  await world.settle()
  for (const watcher of watchers) {
    watcher.greeting()
    watcher.look(1, OpCode.exists, '/config', true)
  }
  await world.settle()
  for (const client of [writer, ...watchers]) expect(client.heard()).toEqual(['1:0'])
  return { world, writer, watchers }
}

/** Has a client note in `order` that it heard something, and do something then. */
const notes = (order: string[], client: RawClient, what: string, asks = (): void => {}): void =>
  client.connection.listen({
    data: () => {
      order.push(what)
      asks()
    },
    drain() {},
    closed() {},
  })

describe('more watchers than a server tells in one turn', () => {
  it('are all told of a change, in several turns, and another client is answered in between', async () => {
    const { world, writer, watchers } = await watched(4 * TOLD_IN_A_TURN)
    const other = await world.client()
    other.greeting()
    const order: string[] = []
    for (const [number, watcher] of watchers.entries())
      notes(order, watcher, 'told', () =>
        number === 0 ? other.look(1, OpCode.exists, '/config') : undefined,
      )
    notes(order, other, 'answered')
    notes(order, writer, 'written')
    // How many of them were written to together, in each turn, and by whom.
    const turns: number[] = []
    const callers = new Set<unknown>()
    const waiting = (): number => watchers.filter(({ connection }) => connection.waiting > 0).length
    Object.assign(world.network, {
      together(this: unknown, action: () => void) {
        callers.add(this)
        const before = waiting()
        action()
        turns.push(waiting() - before)
      },
    })
    writer.set(2, '/config', 'new')
    await world.settle()
    expect(turns.filter((told) => told > 0)).toEqual(Array(4).fill(TOLD_IN_A_TURN))
    expect(callers).toEqual(new Set([world.network]))
    expect(order.filter((what) => what === 'told')).toHaveLength(watchers.length)
    expect(order.filter((what) => what !== 'told').sort()).toEqual(['answered', 'written'])
    expect(order.lastIndexOf('told')).toBeGreaterThan(order.indexOf('answered'))
  })

  it('are told before their connections are closed when the server stops', async () => {
    const { world, writer, watchers } = await watched(3 * TOLD_IN_A_TURN)
    const release = world.holdDisk()
    writer.set(2, '/config', 'new')
    await world.settle()
    const closed = world.server.close()
    release()
    await world.settle()
    await closed
    for (const watcher of watchers) expect([watcher.heard(), watcher.closed]).toEqual([[CHANGED], true])
    expect(writer.heard()).toEqual(['2:0'])
  })

  it('hear of it before what they have asked for meanwhile', async () => {
    const { world, writer, watchers } = await watched(2 * TOLD_IN_A_TURN)
    const last = watchers.at(-1)!
    writer.connection.listen({ data() {}, drain() {}, closed() {} })
    watchers[0]!.connection.listen({
      data: () => last.look(2, OpCode.getData, '/config'),
      drain() {},
      closed() {},
    })
    writer.set(2, '/config', 'new')
    await world.settle()
    expect(last.heard()).toEqual([CHANGED, '2:0'])
  })

  it('do not have those wait who are answered, who wrote it and who watch it themselves', async () => {
    const { world, writer, watchers } = await watched(4 * TOLD_IN_A_TURN)
    const order: string[] = []
    const last = watchers.at(-1)!
    for (const watcher of watchers) notes(order, watcher, 'told')
    notes(order, watchers[0]!, 'told', () => last.look(2, OpCode.getData, '/config'))
    notes(order, writer, 'written')
    notes(order, last, 'told and answered')
    writer.set(2, '/config', 'new')
    await world.settle()
    expect(order).toHaveLength(watchers.length + 1)
    expect(order.indexOf('written')).toBeLessThanOrEqual(TOLD_IN_A_TURN)
    expect(order.indexOf('told and answered')).toBeLessThan(4 * TOLD_IN_A_TURN - 1)
  })

  it('do not keep a server from telling the others when some of them are gone', async () => {
    const { world, writer, watchers } = await watched(2 * TOLD_IN_A_TURN)
    const gone = watchers.slice(-300)
    watchers[0]!.connection.listen({
      data: () => gone.forEach(({ connection }) => connection.cut()),
      drain() {},
      closed() {},
    })
    writer.set(2, '/config', 'new')
    await world.settle()
    for (const watcher of watchers.slice(1, -300)) expect(watcher.heard()).toEqual([CHANGED])
    expect(world.server.stats().connections).toBe(watchers.length - 300 + 1)
  })
})
