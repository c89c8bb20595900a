import { ProtocolError } from '@zabra/protocol'
import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { expect, it, vi } from 'vitest'
import { PeerConnection, type PeerConnectionOptions } from './peer-connection.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
/** Returns the 20 bytes of a packet of this type, in hexadecimal. */
const packet = (type: number): string =>
  `${type.toString(16).padStart(8, '0')}${'0'.repeat(16)}${'f'.repeat(16)}`

const hex = (data: Uint8Array): string => [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** A connection, and the raw connection at its other end. */
async function pair(options: Partial<PeerConnectionOptions> = {}) {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const chunks: string[] = []
  const lost: string[] = []
  let peer!: Connection
  await network.listen({ port: 1 }, (connection) => {
    peer = connection
    connection.setHandler({ data: (chunk) => chunks.push(hex(chunk)), drain() {}, closed() {} })
  })
  const connection = new PeerConnection({
    connection: await network.connect({ host: 'x', port: 1 }),
    clock,
    maxUnsentBytes: 1000,
    received() {},
    lost: (reason) => lost.push(reason),
    ...options,
  })
  return { clock, connection, peer, chunks, lost }
}

it('packets that are sent in one turn leave in one write', async () => {
  const { clock, connection, chunks } = await pair()
  for (const type of [1, 2, 3]) connection.send(type, 0)
  await clock.untilIdle()
  connection.send(4, 0)
  await clock.untilIdle()
  expect(chunks).toEqual([packet(1) + packet(2) + packet(3), packet(4)])
})

it('a flush waits for the input that is ready in this turn of the event loop, not only for microtasks', async () => {
  const { clock, connection, chunks } = await pair()
  vi.spyOn(clock, 'afterMicrotasks').mockImplementation(queueMicrotask)
  connection.send(1, 0)
  await Promise.resolve()
  await Promise.resolve()
  connection.send(2, 0)
  await clock.untilIdle()
  expect(chunks).toEqual([packet(1) + packet(2)])
})

it('packets are queued behind a stream, however many they are', async () => {
  const { clock, connection, chunks } = await pair({ maxUnsentBytes: 1 << 20 })
  connection.beginStream()
  for (let sent = 0; sent < 4000; sent++) connection.send(1, 0)
  await clock.untilIdle()
  connection.stream(Uint8Array.of(0xaa))
  await clock.untilIdle()
  connection.endStream()
  await clock.untilIdle()
  expect(chunks.join('')).toBe(`aa${packet(1).repeat(4000)}`)
})

it('a connection that has failed sends no queued packets', async () => {
  const { clock, connection, chunks } = await pair()
  connection.send(1, 0)
  connection.fail('enough')
  await clock.untilIdle()
  expect(chunks).toEqual([])
})

it('60,000 bytes are flushed at once', async () => {
  const { clock, connection, chunks } = await pair({ maxUnsentBytes: 1 << 20 })
  for (let sent = 0; sent < 4000; sent++) connection.send(1, 0)
  await clock.untilIdle()
  expect(chunks.map((chunk) => chunk.length / 2)).toEqual([60_000, 1000 * 20])
})

it('received bytes may be kept', async () => {
  const taken: Uint8Array[] = []
  const { clock, peer } = await pair({ received: (chunk) => taken.push(chunk) })
  const sent = text('as it was')
  peer.write(sent)
  await clock.untilIdle()
  sent.fill(0)
  expect(taken).toEqual([text('as it was')])
})

it('packets are sent after a stream', async () => {
  const { clock, connection, chunks } = await pair()
  connection.send(1, 0)
  connection.beginStream()
  connection.stream(Uint8Array.of(0xaa))
  connection.send(2, 0)
  await clock.untilIdle()
  connection.stream(Uint8Array.of(0xbb))
  await clock.untilIdle()
  connection.endStream()
  await clock.untilIdle()
  expect(chunks.join('')).toBe(`${packet(1)}aabb${packet(2)}`)
})

it('the connection fails when too many bytes are unsent', async () => {
  const { clock, connection, peer, lost } = await pair()
  peer.pause()
  for (let sent = 0; sent < 50; sent++) {
    connection.send(1, 0)
    await clock.untilIdle()
  }
  expect(lost).toEqual([])
  connection.send(1, 0)
  await clock.untilIdle()
  expect(lost).toEqual(['1020 bytes are not read by it'])
  expect(connection.isOpen).toBe(false)
})

it('a stream that the peer reads slowly does not count as unsent, neither during it nor behind it', async () => {
  const { clock, connection, peer, lost } = await pair()
  peer.pause()
  connection.beginStream()
  connection.stream(new Uint8Array(2000))
  for (let sent = 0; sent < 40; sent++) connection.send(1, 0)
  connection.endStream()
  await clock.untilIdle()
  for (let sent = 0; sent < 10; sent++) connection.send(1, 0)
  expect(lost).toEqual([])
  connection.send(1, 0)
  await clock.untilIdle()
  expect(lost).toEqual(['3020 bytes are not read by it'])
})

it('the connection fails when the peer is silent for the read timeout after its last byte', async () => {
  const { clock, connection, peer, lost } = await pair()
  connection.setReadTimeout(1000)
  clock.advance(900)
  peer.write(text('x'))
  await clock.untilIdle()
  clock.advance(999)
  await clock.untilIdle()
  expect(lost).toEqual([])
  clock.advance(1)
  await clock.untilIdle()
  expect(lost).toEqual(['it sent nothing for 1000 ms'])
})

it('after a long turn the received bytes are read before the read timeout is judged', async () => {
  const { clock, connection, peer, lost } = await pair()
  connection.setReadTimeout(1000)
  clock.advance(999)
  // The bytes have arrived when the timer runs, but no turn has read them.
  peer.write(text('x'))
  clock.advance(5)
  await clock.untilIdle()
  expect(lost).toEqual([])
})

it('the read timeout does not run while the connection is paused', async () => {
  const { clock, connection, lost } = await pair()
  connection.setReadTimeout(1000)
  connection.pause()
  clock.advance(5000)
  connection.resume()
  clock.advance(999)
  await clock.untilIdle()
  expect(lost).toEqual([])
  clock.advance(1)
  await clock.untilIdle()
  expect(lost).toHaveLength(1)
})

it('the connection fails at the first malformed bytes', async () => {
  const { clock, peer, lost } = await pair({
    received: () => {
      throw new ProtocolError('Expected sense', 0, 'x')
    },
  })
  peer.write(text('x'))
  await clock.untilIdle()
  expect(lost).toEqual(['Expected sense (reading x at offset 0)'])
})

it('closing sends the queued packets and does not report the connection as lost', async () => {
  const { clock, connection, chunks, lost } = await pair()
  connection.send(1, 0)
  connection.close()
  await clock.untilIdle()
  clock.advance(2000)
  await clock.untilIdle()
  expect(chunks).toEqual([packet(1)])
  expect(lost).toEqual([])
})

it('a process that stood still reads what its peer has sent meanwhile before it judges it silent', async () => {
  const { clock, connection, peer, lost } = await pair()
  connection.setReadTimeout(1000)
  peer.write(text('ping'))
  clock.standStill(60_000)
  await clock.untilIdle()
  expect(lost).toEqual([])
  clock.standStill(60_000)
  await clock.untilIdle()
  expect(lost).toEqual(['it sent nothing for 1000 ms'])
})

it('a connection reads again when each of two pauses has ended, and a timeout that is set meanwhile does not run', async () => {
  const received: number[] = []
  const { clock, connection, peer, lost } = await pair({ received: ({ length }) => received.push(length) })
  connection.pause()
  connection.pause()
  connection.setReadTimeout(1000)
  peer.write(text('x'))
  connection.resume()
  clock.advance(5000)
  await clock.untilIdle()
  expect([received, lost, connection.isPaused]).toEqual([[], [], true])
  connection.resume()
  await clock.untilIdle()
  expect([received, lost, connection.isPaused]).toEqual([[1], [], false])
  clock.advance(1000)
  await clock.untilIdle()
  expect(lost).toEqual(['it sent nothing for 1000 ms'])
})
