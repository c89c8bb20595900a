import fc from 'fast-check'
import { expect, it } from 'vitest'
import { allocateBuffer, BufferPool } from './buffer-pool.ts'
import { Writer } from './writer.ts'

/** As `toEqual`, which takes long for arrays of this size. */
const same = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, at) => byte === other[at])

it('gives a room of at least the size that is asked for, and the same one again once it is given back', () => {
  const rooms = new BufferPool()
  for (const size of [0, 1, 511, 512, 513, 4096, 65_536, 65_537, 1 << 20]) {
    const room = rooms.acquire(size)
    expect(room.bytes.length).toBeGreaterThanOrEqual(size)
    expect(room.view.buffer === room.bytes.buffer).toBe(true)
    rooms.release(room)
    expect(rooms.acquire(size) === room).toBe(size <= 65_536)
  }
})

it('keeps 4 MiB of rooms and drops the rest', () => {
  const rooms = new BufferPool()
  for (let i = 0; i < 100; i++) rooms.release(allocateBuffer(65_536))
  expect(rooms.freeBytes).toBe(4 << 20)
  rooms.acquire(65_536)
  expect(rooms.freeBytes).toBe((4 << 20) - 65_536)
})

it('drops larger rooms for smaller ones when it is full, so that many large replies at once cost small ones nothing later', () => {
  const rooms = new BufferPool()
  for (let i = 0; i < 100; i++) rooms.release(allocateBuffer(65_536))
  const small = [allocateBuffer(512), allocateBuffer(512)]
  for (const room of small) rooms.release(room)
  expect([rooms.acquire(512), rooms.acquire(512)].every((room) => small.includes(room))).toBe(true)
  expect(rooms.freeBytes).toBe((4 << 20) - 65_536)
})

it('does not drop smaller rooms for larger ones', () => {
  const rooms = new BufferPool()
  for (let i = 0; i < 8192; i++) rooms.release(allocateBuffer(512))
  rooms.release(allocateBuffer(1024))
  rooms.release(allocateBuffer(512))
  expect(rooms.freeBytes).toBe(4 << 20)
})

it('has writers that share rooms write what writers with arrays of their own do', () => {
  const step = fc.record({
    writer: fc.nat(3),
    length: fc.oneof(fc.nat(40), fc.nat(3000), fc.constant(70_000)),
    next: fc.constantFrom('go on', 'go on', 'release', 'take', 'truncate'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const rooms = new BufferPool()
      const shared = Array.from({ length: 4 }, () => new Writer(512, rooms))
      const plain = Array.from({ length: 4 }, () => new Writer(64))
      const taken: { readonly bytes: Uint8Array; readonly was: Uint8Array }[] = []
      for (const [index, { writer, length, next }] of steps.entries()) {
        const [one, other] = [shared[writer]!, plain[writer]!]
        const bytes = new Uint8Array(length).fill(index + 1)
        for (const each of [one, other]) {
          each.int(index)
          each.raw(bytes)
        }
        expect(same(one.bytes(), other.bytes())).toBe(true)
        if (next === 'take') {
          taken.push({ bytes: one.take(), was: other.take() })
        } else if (next === 'release') {
          one.release()
          other.reset()
        } else if (next === 'truncate') {
          one.truncate(2)
          other.truncate(2)
        }
      }
      // What was handed over for good is nobody's room.
      expect(taken.every(({ bytes, was }) => same(bytes, was))).toBe(true)
    }),
    { seed: 11, numRuns: 200 },
  )
})

it('lets numbers be put where they belong in bytes that are claimed', () => {
  const writer = new Writer(4, new BufferPool())
  writer.int(1)
  const at = writer.claim(8)
  writer.view.setInt32(at + 4, 7)
  writer.view.setInt32(at, 6)
  writer.int(2)
  expect([...writer.bytes()]).toEqual([0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 2])
})
