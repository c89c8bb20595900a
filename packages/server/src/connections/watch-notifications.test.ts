import { EventType, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { NOTIFIED_PER_TURN } from './flush-queue.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'

const CHANGED = `event ${EventType.NodeDataChanged} /config`

/** A server with a node that very many clients watch, and whether it writes to some of them together. */
async function watched(
  count: number,
): Promise<{ world: TestServer; writer: RawClient; watchers: RawClient[] }> {
  const world = await TestServer.start({ maxClientCnxns: 0 })
  const writer = await world.client()
  writer.takeConnectResponse()
  writer.create(1, '/config')
  const watchers: RawClient[] = []
  for (let number = 0; number < count; number++) watchers.push(await world.open())
  for (const watcher of watchers) watcher.handshake()
  await world.untilIdle()
  for (const watcher of watchers) {
    watcher.takeConnectResponse()
    watcher.read(1, OpCode.exists, '/config', true)
  }
  await world.untilIdle()
  for (const client of [writer, ...watchers]) expect(client.takeReceived()).toEqual(['1:0'])
  return { world, writer, watchers }
}

/** Has a client note in `order` that it heard something, and do something then. */
const notes = (order: string[], client: RawClient, what: string, asks = (): void => {}): void =>
  client.connection.setHandler({
    data: () => {
      order.push(what)
      asks()
    },
    drain() {},
    closed() {},
  })

describe('more watchers than a server tells in one turn', () => {
  it('are all told of a change, in several turns, and another client is answered in between', async () => {
    const { world, writer, watchers } = await watched(4 * NOTIFIED_PER_TURN)
    const other = await world.client()
    other.takeConnectResponse()
    const order: string[] = []
    for (const [number, watcher] of watchers.entries())
      notes(order, watcher, 'told', () =>
        number === 0 ? other.read(1, OpCode.exists, '/config') : undefined,
      )
    notes(order, other, 'answered')
    notes(order, writer, 'written')
    // How many of them were written to together, in each turn, and by whom.
    const turns: number[] = []
    const callers = new Set<unknown>()
    const waiting = (): number => watchers.filter(({ connection }) => connection.pendingBytes > 0).length
    Object.assign(world.network, {
      together(this: unknown, action: () => void) {
        callers.add(this)
        const before = waiting()
        action()
        turns.push(waiting() - before)
      },
    })
    writer.set(2, '/config', 'new')
    await world.untilIdle()
    expect(turns.filter((told) => told > 0)).toEqual(Array(4).fill(NOTIFIED_PER_TURN))
    expect(callers).toEqual(new Set([world.network]))
    expect(order.filter((what) => what === 'told')).toHaveLength(watchers.length)
    expect(order.filter((what) => what !== 'told').sort()).toEqual(['answered', 'written'])
    expect(order.lastIndexOf('told')).toBeGreaterThan(order.indexOf('answered'))
  })

  it('are told before their connections are closed when the server stops', async () => {
    const { world, writer, watchers } = await watched(3 * NOTIFIED_PER_TURN)
    const release = world.blockDisk()
    writer.set(2, '/config', 'new')
    await world.untilIdle()
    const closed = world.server.close()
    release()
    await world.untilIdle()
    await closed
    for (const watcher of watchers)
      expect([watcher.takeReceived(), watcher.closed]).toEqual([[CHANGED], true])
    expect(writer.takeReceived()).toEqual(['2:0'])
  })

  it('hear of it before what they have asked for meanwhile', async () => {
    const { world, writer, watchers } = await watched(2 * NOTIFIED_PER_TURN)
    const last = watchers.at(-1)!
    writer.connection.setHandler({ data() {}, drain() {}, closed() {} })
    watchers[0]!.connection.setHandler({
      data: () => last.read(2, OpCode.getData, '/config'),
      drain() {},
      closed() {},
    })
    writer.set(2, '/config', 'new')
    await world.untilIdle()
    expect(last.takeReceived()).toEqual([CHANGED, '2:0'])
  })

  it('do not have those wait who are answered, who wrote it and who watch it themselves', async () => {
    const { world, writer, watchers } = await watched(4 * NOTIFIED_PER_TURN)
    const order: string[] = []
    const last = watchers.at(-1)!
    for (const watcher of watchers) notes(order, watcher, 'told')
    notes(order, watchers[0]!, 'told', () => last.read(2, OpCode.getData, '/config'))
    notes(order, writer, 'written')
    notes(order, last, 'told and answered')
    writer.set(2, '/config', 'new')
    await world.untilIdle()
    expect(order).toHaveLength(watchers.length + 1)
    expect(order.indexOf('written')).toBeLessThanOrEqual(NOTIFIED_PER_TURN)
    expect(order.indexOf('told and answered')).toBeLessThan(4 * NOTIFIED_PER_TURN - 1)
  })

  it('do not keep a server from telling the others when some of them are gone', async () => {
    const { world, writer, watchers } = await watched(2 * NOTIFIED_PER_TURN)
    const gone = watchers.slice(-300)
    watchers[0]!.connection.setHandler({
      data: () => gone.forEach(({ connection }) => connection.cut()),
      drain() {},
      closed() {},
    })
    writer.set(2, '/config', 'new')
    await world.untilIdle()
    for (const watcher of watchers.slice(1, -300)) expect(watcher.takeReceived()).toEqual([CHANGED])
    expect(world.server.stats().connections).toBe(watchers.length - 300 + 1)
  })
})
