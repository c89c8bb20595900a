import { ProtocolError } from '@zabra/protocol'
import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { expect, it, vi } from 'vitest'
import { PeerConnection, type PeerConnectionOptions } from './peer-connection.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
/** The bytes of a packet of a type, in hexadecimal: 20 of them. */
const packet = (type: number): string =>
  `${type.toString(16).padStart(8, '0')}${'0'.repeat(16)}${'f'.repeat(16)}`

const hex = (data: Uint8Array): string => [...data].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** A wire, and the other end in the hands of the test. */
async function pair(options: Partial<PeerConnectionOptions> = {}) {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const chunks: string[] = []
  const lost: string[] = []
  let other!: Connection
  await network.listen({ port: 1 }, (wire) => {
    other = wire
    wire.setHandler({ data: (chunk) => chunks.push(hex(chunk)), drain() {}, closed() {} })
  })
  const wire = new PeerConnection({
    connection: await network.connect({ host: 'x', port: 1 }),
    clock,
    maxUnsentBytes: 1000,
    received() {},
    lost: (reason) => lost.push(reason),
    ...options,
  })
  return { clock, wire, other, chunks, lost }
}

it('sends what is sent in one turn in one write', async () => {
  const { clock, wire, chunks } = await pair()
  for (const type of [1, 2, 3]) wire.send(type, 0)
  await clock.untilIdle()
  wire.send(4, 0)
  await clock.untilIdle()
  expect(chunks).toEqual([packet(1) + packet(2) + packet(3), packet(4)])
})

it('waits for what other input that is ready brings about, and not for promises alone', async () => {
  const { clock, wire, chunks } = await pair()
  vi.spyOn(clock, 'afterMicrotasks').mockImplementation(queueMicrotask)
  wire.send(1, 0)
  await Promise.resolve()
  await Promise.resolve()
  wire.send(2, 0)
  await clock.untilIdle()
  expect(chunks).toEqual([packet(1) + packet(2)])
})

it('keeps packets back while a stream is on its way, however many they are', async () => {
  const { clock, wire, chunks } = await pair({ maxUnsentBytes: 1 << 20 })
  wire.beginStream()
  for (let sent = 0; sent < 4000; sent++) wire.send(1, 0)
  await clock.untilIdle()
  wire.stream(Uint8Array.of(0xaa))
  await clock.untilIdle()
  wire.endStream()
  await clock.untilIdle()
  expect(chunks.join('')).toBe(`aa${packet(1).repeat(4000)}`)
})

it('sends nothing more of what was collected once the other side is given up', async () => {
  const { clock, wire, chunks } = await pair()
  wire.send(1, 0)
  wire.fail('enough')
  await clock.untilIdle()
  expect(chunks).toEqual([])
})

it('sends 64 KiB at once, whatever else is to come', async () => {
  const { clock, wire, chunks } = await pair({ maxUnsentBytes: 1 << 20 })
  for (let sent = 0; sent < 4000; sent++) wire.send(1, 0)
  await clock.untilIdle()
  // The network hands on 64 KiB at a time, and the first write had one packet that was cut by that.
  expect(chunks.map((chunk) => chunk.length / 2)).toEqual([65_536, 3277 * 20 - 65_536, 723 * 20])
})

it('hands over bytes that stay as they are', async () => {
  const taken: Uint8Array[] = []
  const { clock, other } = await pair({ received: (chunk) => taken.push(chunk) })
  const sent = text('as it was')
  other.write(sent)
  await clock.untilIdle()
  sent.fill(0)
  expect(taken).toEqual([text('as it was')])
})

it('keeps packets back while a stream is on its way', async () => {
  const { clock, wire, chunks } = await pair()
  wire.send(1, 0)
  wire.beginStream()
  wire.stream(Uint8Array.of(0xaa))
  wire.send(2, 0)
  await clock.untilIdle()
  wire.stream(Uint8Array.of(0xbb))
  await clock.untilIdle()
  wire.endStream()
  await clock.untilIdle()
  expect(chunks.join('')).toBe(`${packet(1)}aabb${packet(2)}`)
})

it('gives up whoever takes too little of what is sent', async () => {
  const { clock, wire, other, lost } = await pair()
  other.pause()
  for (let sent = 0; sent < 50; sent++) {
    wire.send(1, 0)
    await clock.untilIdle()
  }
  expect(lost).toEqual([])
  wire.send(1, 0)
  expect(lost).toEqual(['1020 bytes wait for it to take them'])
  expect(wire.isOpen).toBe(false)
})

it('gives up whoever is silent, from the last byte on', async () => {
  const { clock, wire, other, lost } = await pair()
  wire.setReadTimeout(1000)
  clock.advance(900)
  other.write(text('x'))
  await clock.untilIdle()
  clock.advance(999)
  await clock.untilIdle()
  expect(lost).toEqual([])
  clock.advance(1)
  await clock.untilIdle()
  expect(lost).toEqual(['nothing came from it for 1000 ms'])
})

it('reads what has come before it takes a long turn of its own for silence', async () => {
  const { clock, wire, other, lost } = await pair()
  wire.setReadTimeout(1000)
  clock.advance(999)
  // The bytes are there when the timer runs, and nobody had a turn to read them.
  other.write(text('x'))
  clock.advance(5)
  await clock.untilIdle()
  expect(lost).toEqual([])
})

it('expects nothing while it is paused', async () => {
  const { clock, wire, lost } = await pair()
  wire.setReadTimeout(1000)
  wire.pause()
  clock.advance(5000)
  wire.resume()
  clock.advance(999)
  await clock.untilIdle()
  expect(lost).toEqual([])
  clock.advance(1)
  await clock.untilIdle()
  expect(lost).toHaveLength(1)
})

it('ends with the first bytes that cannot be read', async () => {
  const { clock, other, lost } = await pair({
    received: () => {
      throw new ProtocolError('Expected sense', 0, 'x')
    },
  })
  other.write(text('x'))
  await clock.untilIdle()
  expect(lost).toEqual(['Expected sense (reading x at offset 0)'])
})

it('sends its last packets when it is closed, and tells nobody', async () => {
  const { clock, wire, chunks, lost } = await pair()
  wire.send(1, 0)
  wire.close()
  await clock.untilIdle()
  clock.advance(2000)
  await clock.untilIdle()
  expect(chunks).toEqual([packet(1)])
  expect(lost).toEqual([])
})
