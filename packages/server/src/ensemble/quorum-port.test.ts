import { Writer } from '@zabra/protocol'
import {
  ManualClock,
  MemoryNetwork,
  NetworkError,
  silentLogger,
  type Connection,
  type Logger,
} from '@zabra/runtime'
import { expect, it } from 'vitest'
import { encodeLearnerInfo, PacketType, writePacket, type QuorumPacket } from '../core/zab/index.ts'
import { quorumPortDefaults, QuorumPort, type QuorumPortOptions } from './quorum-port.ts'

function packet(type: number, data: Uint8Array | null): Uint8Array {
  const writer = new Writer()
  writePacket(writer, type, 0, data)
  return writer.take()
}
const info = encodeLearnerInfo({ serverId: 2, protocolVersion: 0x10000, configVersion: 0 })
const followerInfo = packet(PacketType.followerInfo, info)

async function fixture(options: Partial<QuorumPortOptions> = {}) {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const lines: string[] = []
  const logger: Logger = {
    ...silentLogger,
    warn: (facts, sentence) => lines.push(`${sentence} ${JSON.stringify(facts)}`),
  }
  const identified: { packet: QuorumPacket; wire: Connection }[] = []
  const port = new QuorumPort({
    ...quorumPortDefaults,
    network,
    clock,
    logger,
    listen: [{ host: 'x', port: 1 }],
    identified: (first, wire) => {
      wire.setHandler({ data() {}, drain() {}, closed() {} })
      identified.push({ packet: first, wire })
    },
    ...options,
  })
  const dial = async (...bytes: Uint8Array[]) => {
    const wire = await network.connect({ host: 'x', port: 1 })
    const one = { wire, closed: false }
    wire.setHandler({ data() {}, drain() {}, closed: () => (one.closed = true) })
    for (const chunk of bytes) wire.write(chunk)
    await clock.untilIdle()
    return one
  }
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await clock.untilIdle()
  }
  return { clock, network, lines, identified, port, dial, advance }
}

it('a learner identifies itself with its first packet, in however many chunks it comes', async () => {
  const { port, dial, identified, clock } = await fixture()
  await port.open()
  await dial(followerInfo)
  const slow = await dial(followerInfo.slice(0, 7))
  slow.wire.write(followerInfo.slice(7))
  await clock.untilIdle()
  expect(identified.map((one) => one.packet.type)).toEqual([11, 11])
  expect(port.unidentified).toBe(0)
})

it('connections that do not identify themselves as learners are closed, with a bounded number of log lines', async () => {
  const { port, dial, identified, lines, advance } = await fixture()
  await port.open()
  const unidentified = [
    await dial(new TextEncoder().encode('GET / HTTP/1.1\r\nHost: x\r\n\r\n')),
    await dial(packet(PacketType.ack, null)),
    await dial(packet(PacketType.followerInfo, new Uint8Array(5000))),
    await dial(Uint8Array.of(...followerInfo, ...followerInfo)),
    await dial(new Uint8Array(64).fill(0xff)),
  ]
  expect(unidentified.map(({ closed }) => closed)).toEqual(unidentified.map(() => true))
  expect(identified).toEqual([])
  // One for each kind of reason: HTTP, and what is expected in place of an ACK, of a long packet, of two and of a negative length.
  expect(lines).toHaveLength(5)
  for (let i = 0; i < 50; i++) await dial(packet(PacketType.ack, null))
  expect(lines).toHaveLength(5)
  await advance(10_000)
  await dial(packet(PacketType.ack, null))
  expect(lines).toHaveLength(5 + 1)
  expect(lines.at(-1)).toContain('"others":50')
})

it('pending connections are bounded in number and time', async () => {
  const { port, dial, advance, identified } = await fixture({ maxUnidentified: 2 })
  await port.open()
  const [first, second, third] = [await dial(), await dial(), await dial()]
  expect([first, second, third].map(({ closed }) => closed)).toEqual([true, false, false])
  await dial(followerInfo)
  expect(identified).toHaveLength(1)
  await advance(5000)
  expect(third.closed).toBe(true)
  expect(port.unidentified).toBe(0)
})

it('opening retries while the port is taken, and rejects after the last attempt', async () => {
  const { port, network, advance } = await fixture()
  const other = await network.listen({ port: 1 }, () => {})
  let opened: unknown = 'not yet'
  port.open().then(
    () => (opened = true),
    (error: unknown) => (opened = error),
  )
  await advance(0)
  await advance(1000)
  expect(opened).toBe('not yet')
  await other.close()
  await advance(1000)
  expect(opened).toBe(true)
  await port.close()

  const taken = await fixture()
  await taken.network.listen({ port: 1 }, () => {})
  let failed: unknown
  taken.port.open().catch((error: unknown) => (failed = error))
  for (let attempt = 0; attempt < 3; attempt++) await taken.advance(1000)
  expect(failed).toBeInstanceOf(NetworkError)
})

it('closing the port closes its pending connections', async () => {
  const { port, dial, clock, network } = await fixture()
  await port.open()
  const one = await dial()
  await port.close()
  await clock.untilIdle()
  expect(one.closed).toBe(true)
  await expect(network.connect({ host: 'x', port: 1 })).rejects.toThrow('ECONNREFUSED')
})

it('the port listens on all of its addresses or on none', async () => {
  const { port, network } = await fixture({
    bindAttempts: 1,
    listen: [1, 2].map((at) => ({ host: 'x', port: at })),
  })
  const other = await network.listen({ port: 2 }, () => {})
  await expect(port.open()).rejects.toThrow('EADDRINUSE')
  await other.close()
  for (const at of [1, 2]) await network.listen({ port: at }, () => {})
})

it('a port that is closed while it opens or retries opens nothing more', async () => {
  const opening = await fixture()
  const opened = opening.port.open()
  await opening.port.close()
  await expect(opened).rejects.toThrow('closed while it opened')
  await opening.network.listen({ port: 1 }, () => {})

  const trying = await fixture()
  const other = await trying.network.listen({ port: 1 }, () => {})
  let failed: unknown
  trying.port.open().catch((error: unknown) => (failed = error))
  await trying.clock.untilIdle()
  await trying.port.close()
  await other.close()
  await trying.clock.untilIdle()
  expect(failed).toBeInstanceOf(NetworkError)
  expect(trying.clock.pendingTimers()).toEqual([])
  await trying.network.listen({ port: 1 }, () => {})
})

it('a pending connection that closes leaves no timer and no log line', async () => {
  const { port, dial, clock, lines, advance } = await fixture()
  await port.open()
  const one = await dial(followerInfo.slice(0, 7))
  expect(port.unidentified).toBe(1)
  one.wire.destroy()
  await clock.untilIdle()
  expect(port.unidentified).toBe(0)
  await advance(5000)
  expect(lines).toEqual([])
})
