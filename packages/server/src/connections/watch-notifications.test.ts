import { EventType, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import { NOTIFIED_PER_TURN } from './flush-queue.ts'

const DATA_CHANGED = `event ${EventType.NodeDataChanged} /config`

/** Starts a server with the znode /config, a client that may write it, and `count` clients that watch it. */
async function watched(count: number) {
  const fixture = await TestServer.start({ maxClientCnxns: 0 })
  const writer = await fixture.connect()
  writer.create(1, '/config')
  const watchers: RawClient[] = []
  for (let number = 0; number < count; number++) watchers.push(await fixture.open())
  for (const watcher of watchers) watcher.handshake()
  await fixture.untilIdle()
  for (const watcher of watchers) {
    watcher.takeConnectResponse()
    watcher.read(1, OpCode.exists, '/config', true)
  }
  await fixture.untilIdle()
  for (const client of [writer, ...watchers]) expect(client.takeReceived()).toEqual(['1:0'])
  return { fixture, writer, watchers }
}

/** Appends `label` to `order` whenever bytes arrive at the client, then calls `onData`. */
const recordData = (order: string[], client: RawClient, label: string, onData = (): void => {}): void =>
  client.connection.setHandler({
    data: () => {
      order.push(label)
      onData()
    },
    drain() {},
    closed() {},
  })

describe('a change with more watchers than a server notifies in one turn', () => {
  it('reaches all of them in several turns, and another client gets its reply in between', async () => {
    const { fixture, writer, watchers } = await watched(4 * NOTIFIED_PER_TURN)
    const other = await fixture.connect()
    const order: string[] = []
    for (const [number, watcher] of watchers.entries())
      recordData(order, watcher, 'event', () =>
        number === 0 ? other.read(1, OpCode.exists, '/config') : undefined,
      )
    recordData(order, other, 'reply')
    recordData(order, writer, 'written')
    const notifiedPerTurn: number[] = []
    const notified = (): number => watchers.filter(({ connection }) => connection.pendingBytes > 0).length
    const immediate = fixture.clock.immediate.bind(fixture.clock)
    fixture.clock.immediate = (action) =>
      immediate(() => {
        const before = notified()
        action()
        notifiedPerTurn.push(notified() - before)
      })
    writer.set(2, '/config', 'new')
    await fixture.untilIdle()
    // The commit flushes the first slice; each later slice has a turn of its own.
    expect(notifiedPerTurn.filter((count) => count > 0)).toEqual(Array(3).fill(NOTIFIED_PER_TURN))
    expect(order.filter((label) => label === 'event')).toHaveLength(watchers.length)
    expect(order.filter((label) => label !== 'event').sort()).toEqual(['reply', 'written'])
    expect(order.lastIndexOf('event')).toBeGreaterThan(order.indexOf('reply'))
  })

  it('reaches all of them before a stopping server closes their connections', async () => {
    const { fixture, writer, watchers } = await watched(3 * NOTIFIED_PER_TURN)
    const release = fixture.blockDisk()
    writer.set(2, '/config', 'new')
    await fixture.untilIdle()
    const closed = fixture.server.close()
    release()
    await fixture.untilIdle()
    await closed
    for (const watcher of watchers)
      expect([watcher.takeReceived(), watcher.closed]).toEqual([[DATA_CHANGED], true])
    expect(writer.takeReceived()).toEqual(['2:0'])
  })

  it('reaches a watcher before the reply to a request that the watcher sends meanwhile', async () => {
    const { writer, watchers } = await watched(2 * NOTIFIED_PER_TURN)
    const last = watchers.at(-1)!
    writer.connection.setHandler({ data() {}, drain() {}, closed() {} })
    watchers[0]!.connection.setHandler({
      data: () => last.read(2, OpCode.getData, '/config'),
      drain() {},
      closed() {},
    })
    writer.set(2, '/config', 'new')
    expect(await last.received()).toEqual([DATA_CHANGED, '2:0'])
  })

  it('delays neither the reply to its writer nor a reply to one of its watchers', async () => {
    const { fixture, writer, watchers } = await watched(4 * NOTIFIED_PER_TURN)
    const order: string[] = []
    const last = watchers.at(-1)!
    for (const watcher of watchers) recordData(order, watcher, 'event')
    recordData(order, watchers[0]!, 'event', () => last.read(2, OpCode.getData, '/config'))
    recordData(order, writer, 'written')
    recordData(order, last, 'event and reply')
    writer.set(2, '/config', 'new')
    await fixture.untilIdle()
    expect(order).toHaveLength(watchers.length + 1)
    expect(order.indexOf('written')).toBeLessThanOrEqual(NOTIFIED_PER_TURN)
    expect(order.indexOf('event and reply')).toBeLessThan(4 * NOTIFIED_PER_TURN - 1)
  })

  it('reaches the other watchers when some disconnect before their turn', async () => {
    const { fixture, writer, watchers } = await watched(2 * NOTIFIED_PER_TURN)
    const leaving = watchers.slice(-NOTIFIED_PER_TURN / 2)
    watchers[0]!.connection.setHandler({
      data: () => leaving.forEach(({ connection }) => connection.cut()),
      drain() {},
      closed() {},
    })
    writer.set(2, '/config', 'new')
    await fixture.untilIdle()
    for (const watcher of watchers.slice(1, -leaving.length))
      expect(watcher.takeReceived()).toEqual([DATA_CHANGED])
    expect(fixture.server.stats().connections).toBe(watchers.length - leaving.length + 1)
  })
})
