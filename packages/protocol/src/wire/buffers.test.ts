import fc from 'fast-check'
import { expect, it } from 'vitest'
import { allocateBuffer, BufferPool } from './buffers.ts'
import { Writer } from './writer.ts'

/** As `toEqual`, which takes long for arrays of this size. */
const same = (one: Uint8Array, other: Uint8Array): boolean =>
  one.length === other.length && one.every((byte, at) => byte === other[at])

it('acquire returns a buffer of at least the size, and a released one again', () => {
  const pool = new BufferPool()
  for (const size of [0, 1, 511, 512, 513, 4096, 65_536, 65_537, 1 << 20]) {
    const buffer = pool.acquire(size)
    expect(buffer.bytes.length).toBeGreaterThanOrEqual(size)
    expect(buffer.view.buffer === buffer.bytes.buffer).toBe(true)
    pool.release(buffer)
    expect(pool.acquire(size) === buffer).toBe(size <= 65_536)
  }
})

it('BufferPool keeps 4 MiB of free buffers and drops the rest', () => {
  const pool = new BufferPool()
  for (let i = 0; i < 100; i++) pool.release(allocateBuffer(65_536))
  expect(pool.freeBytes).toBe(4 << 20)
  pool.acquire(65_536)
  expect(pool.freeBytes).toBe((4 << 20) - 65_536)
})

it('a full pool drops larger buffers for smaller ones', () => {
  const pool = new BufferPool()
  for (let i = 0; i < 100; i++) pool.release(allocateBuffer(65_536))
  const small = [allocateBuffer(512), allocateBuffer(512)]
  for (const buffer of small) pool.release(buffer)
  expect([pool.acquire(512), pool.acquire(512)].every((buffer) => small.includes(buffer))).toBe(true)
  expect(pool.freeBytes).toBe((4 << 20) - 65_536)
})

it('a full pool does not drop smaller buffers for larger ones', () => {
  const pool = new BufferPool()
  for (let i = 0; i < 8192; i++) pool.release(allocateBuffer(512))
  pool.release(allocateBuffer(1024))
  pool.release(allocateBuffer(512))
  expect(pool.freeBytes).toBe(4 << 20)
})

it('writers that share a pool write the same as writers without a pool', () => {
  const step = fc.record({
    writer: fc.nat(3),
    length: fc.oneof(fc.nat(40), fc.nat(3000), fc.constant(70_000)),
    next: fc.constantFrom('go on', 'go on', 'release', 'take', 'truncate'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const pool = new BufferPool()
      const shared = Array.from({ length: 4 }, () => new Writer(512, pool))
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
      // Buffers taken for good are not reused.
      expect(taken.every(({ bytes, was }) => same(bytes, was))).toBe(true)
    }),
    { seed: 11, numRuns: 200 },
  )
})

it('numbers can be written at any offset of claimed bytes', () => {
  const writer = new Writer(4, new BufferPool())
  writer.int(1)
  const at = writer.claim(8)
  writer.view.setInt32(at + 4, 7)
  writer.view.setInt32(at, 6)
  writer.int(2)
  expect([...writer.bytes()]).toEqual([0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 2])
})
