import { ProtocolError } from '@zabra/protocol'
import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { QuorumWire, type QuorumWireOptions } from './quorum-wire.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)

/** A wire, and the other end in the hands of the test. */
async function pair(options: Partial<QuorumWireOptions> = {}) {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const chunks: string[] = []
  const lost: string[] = []
  let other!: Connection
  await network.listen({ port: 1 }, (wire) => {
    other = wire
    wire.listen({ data: (chunk) => chunks.push(new TextDecoder().decode(chunk)), drain() {}, closed() {} })
  })
  const wire = new QuorumWire({
    wire: await network.connect({ host: 'x', port: 1 }),
    clock,
    maxUnsentBytes: 1000,
    took() {},
    lost: (reason) => lost.push(reason),
    ...options,
  })
  return { clock, wire, other, chunks, lost }
}

it('sends what is sent in one turn in one write', async () => {
  const { clock, wire, chunks } = await pair()
  for (const packet of ['a', 'b', 'c']) wire.send(text(packet))
  await clock.settle()
  wire.send(text('d'))
  await clock.settle()
  expect(chunks).toEqual(['abc', 'd'])
})

it('keeps packets back while a stream is on its way', async () => {
  const { clock, wire, chunks } = await pair()
  wire.send(text('before '))
  wire.beginStream()
  wire.stream(text('stream '))
  wire.send(text('behind'))
  await clock.settle()
  wire.stream(text('more '))
  await clock.settle()
  wire.endStream()
  await clock.settle()
  expect(chunks.join('')).toBe('before stream more behind')
})

it('gives up whoever takes too little of what is sent', async () => {
  const { clock, wire, other, lost } = await pair()
  other.pause()
  for (let sent = 0; sent < 10; sent++) {
    wire.send(new Uint8Array(100))
    await clock.settle()
  }
  expect(lost).toEqual([])
  wire.send(new Uint8Array(1))
  expect(lost).toEqual(['1001 bytes wait for it to take them'])
  expect(wire.isOpen).toBe(false)
})

it('gives up whoever is silent, from the last byte on', async () => {
  const { clock, wire, other, lost } = await pair()
  wire.expect(1000)
  clock.advance(900)
  other.write(text('x'))
  await clock.settle()
  clock.advance(999)
  await clock.settle()
  expect(lost).toEqual([])
  clock.advance(1)
  await clock.settle()
  expect(lost).toEqual(['nothing came from it for 1000 ms'])
})

it('reads what has come before it takes a long turn of its own for silence', async () => {
  const { clock, wire, other, lost } = await pair()
  wire.expect(1000)
  clock.advance(999)
  // The bytes are there when the timer runs, and nobody had a turn to read them.
  other.write(text('x'))
  clock.advance(5)
  await clock.settle()
  expect(lost).toEqual([])
})

it('expects nothing while it is paused', async () => {
  const { clock, wire, lost } = await pair()
  wire.expect(1000)
  wire.pause()
  clock.advance(5000)
  wire.resume()
  clock.advance(999)
  await clock.settle()
  expect(lost).toEqual([])
  clock.advance(1)
  await clock.settle()
  expect(lost).toHaveLength(1)
})

it('ends with the first bytes that cannot be read', async () => {
  const { clock, other, lost } = await pair({
    took: () => {
      throw new ProtocolError('Expected sense', 0, 'x')
    },
  })
  other.write(text('x'))
  await clock.settle()
  expect(lost).toEqual(['Expected sense (reading x at offset 0)'])
})

it('sends its last packets when it is closed, and tells nobody', async () => {
  const { clock, wire, chunks, lost } = await pair()
  wire.send(text('last'))
  wire.close()
  await clock.settle()
  clock.advance(2000)
  await clock.settle()
  expect(chunks).toEqual(['last'])
  expect(lost).toEqual([])
})
