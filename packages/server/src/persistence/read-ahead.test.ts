import type { DiskReader } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { ReadAheadFile } from './read-ahead.ts'

const MIB = 1 << 20

function fileOf(bytes: Uint8Array, failAt = Infinity) {
  let reading = 0
  const reader: DiskReader = {
    async read(into, position) {
      reading++
      await new Promise(setImmediate)
      reading--
      if (position >= failAt) throw new Error(`No sector at ${position}`)
      const part = bytes.subarray(position, position + into.length)
      into.set(part)
      return part.length
    },
    size: () => Promise.resolve(bytes.length),
    close: () => Promise.resolve(),
  }
  return { reader, reading: () => reading }
}

const ALL = new Uint8Array(7 * MIB).map((_, i) => (i * 31 + (i >> 11) + (i >> 20)) & 255)
/** Returns bytes of which no two chunks are equal. */
const sample = (length: number): Uint8Array => ALL.subarray(0, length)

it('readFrom returns the bytes of the file, whatever part of the last chunk the caller still needs', async () => {
  const bytes = sample(5 * MIB + 77)
  const file = new ReadAheadFile(fileOf(bytes).reader)
  let at = 0
  let window: Uint8Array = new Uint8Array(0)
  let base = 0
  for (const [step, needed] of [
    [0, 16],
    [MIB - 10, 20],
    [MIB, 100],
    [5000, 2 * MIB],
    [2 * MIB, 10],
    [900_000, 120_000],
  ] as const) {
    at += step
    window = await file.readFrom(
      at,
      needed,
      window.subarray(Math.min(window.length, at - base)),
      bytes.length,
    )
    base = at
    expect(window.length).toBeGreaterThanOrEqual(Math.min(needed, bytes.length - at))
    expect(Buffer.compare(window, bytes.subarray(at, at + window.length))).toBe(0)
  }
})

it('forEachChunk passes every byte from an offset on, in order', async () => {
  const bytes = sample(3 * MIB + 5)
  const file = new ReadAheadFile(fileOf(bytes).reader)
  await file.readFrom(0, 16, new Uint8Array(0), bytes.length)
  const seen = new Uint8Array(bytes.length - 1000)
  await file.forEachChunk(1000, bytes.length, (chunk, at) => seen.set(chunk, at - 1000))
  expect(Buffer.compare(seen, bytes.subarray(1000))).toBe(0)
  await file.forEachChunk(bytes.length, bytes.length, () => expect.fail('there is no chunk after the end'))
})

it('readFrom returns what is left of a file that became shorter', async () => {
  const bytes = sample(MIB + 50)
  const file = new ReadAheadFile(fileOf(bytes).reader)
  const first = await file.readFrom(0, 16, new Uint8Array(0), 3 * MIB)
  const second = await file.readFrom(MIB - 5, 100, first.subarray(MIB - 5), 3 * MIB)
  expect(second.length).toBe(55)
})

it('a failed read rejects the call that needs the chunk, and nothing else', async () => {
  const bytes = sample(3 * MIB)
  const { reader, reading } = fileOf(bytes, MIB)
  const file = new ReadAheadFile(reader)
  const first = await file.readFrom(0, 16, new Uint8Array(0), bytes.length)
  expect(first.length).toBe(MIB)
  await expect(file.readFrom(MIB, 16, new Uint8Array(0), bytes.length)).rejects.toThrow('No sector')
  const other = new ReadAheadFile(reader)
  await other.readFrom(0, 16, new Uint8Array(0), bytes.length)
  expect(reading()).toBe(1)
  await other.drain()
  expect(reading()).toBe(0)
  // The read fails while no call needs it, as during the parsing of the chunk before.
  const last = new ReadAheadFile(reader)
  await last.readFrom(0, 16, new Uint8Array(0), bytes.length)
  while (reading() > 0) await new Promise(setImmediate)
  await new Promise(setImmediate)
  await last.drain()
})

it('a chunk that is not needed after all does not overwrite a later one, however slow its read is', async () => {
  const bytes = sample(6 * MIB)
  let count = 0
  let finished = 0
  const { reader } = fileOf(bytes)
  const file = new ReadAheadFile({
    ...reader,
    async read(into, position) {
      const turns = ++count === 2 ? 50 : 1
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
      const read = await reader.read(into, position)
      finished++
      return read
    },
  })
  await file.readFrom(0, 16, new Uint8Array(0), bytes.length)
  // An entry that is longer than a chunk.
  const long = await file.readFrom(MIB, 2 * MIB, new Uint8Array(0), bytes.length)
  while (finished < 4) await new Promise(setImmediate)
  const next = await file.readFrom(MIB + long.length, 16, new Uint8Array(0), bytes.length)
  expect(Buffer.compare(long, bytes.subarray(MIB, 3 * MIB))).toBe(0)
  expect(Buffer.compare(next, bytes.subarray(3 * MIB, 4 * MIB))).toBe(0)
  const far = await file.readFrom(5 * MIB, 16, new Uint8Array(0), bytes.length)
  expect(Buffer.compare(far, bytes.subarray(5 * MIB))).toBe(0)
  await file.drain()
})

it('a chunk is valid while its visitor runs, also when the next one is read immediately', async () => {
  const bytes = sample(4 * MIB)
  const { reader } = fileOf(bytes)
  const file = new ReadAheadFile({
    ...reader,
    async read(into, position) {
      into.set(bytes.subarray(position, position + into.length))
      return reader.read(into, position)
    },
  })
  const wrong: number[] = []
  await file.forEachChunk(0, bytes.length, (chunk, at) => {
    if (Buffer.compare(chunk, bytes.subarray(at, at + chunk.length)) !== 0) wrong.push(at)
  })
  expect(wrong).toEqual([])
})

/** Returns a file of some bytes, and the reads of it so far. */
function recordedFileOf(bytes: Uint8Array) {
  const { reader } = fileOf(bytes)
  const reads: (readonly [position: number, length: number])[] = []
  const file = new ReadAheadFile({
    ...reader,
    read: (into, position) => (reads.push([position, into.length]), reader.read(into, position)),
  })
  return { file, reads }
}

it('readFrom reads each byte once, a chunk ahead, and nothing behind the end', async () => {
  const size = 3 * MIB + 5
  const bytes = sample(size)
  const { file, reads } = recordedFileOf(bytes)
  const none = new Uint8Array(0)
  let window = await file.readFrom(0, 16, none, size)
  expect([window.length, reads]).toEqual([
    MIB,
    [
      [0, MIB],
      [MIB, MIB],
    ],
  ])
  window = await file.readFrom(MIB - 10, MIB + 10, window.subarray(MIB - 10), size)
  expect([window.length, reads.slice(2)]).toEqual([MIB + 10, [[2 * MIB, MIB]]])
  window = await file.readFrom(2 * MIB, 5, none, size)
  expect([window.length, reads.slice(3)]).toEqual([MIB, [[3 * MIB, 5]]])
  window = await file.readFrom(3 * MIB, 5, none, size)
  expect([window.length, reads.length]).toEqual([5, 4])
  await file.drain()
})

it('readFrom reads again what a chunk ahead does not hold, or does not follow', async () => {
  const size = 6 * MIB
  const bytes = sample(size)
  const { reader, reading } = fileOf(bytes)
  const reads: (readonly [position: number, length: number])[] = []
  const file = new ReadAheadFile({
    ...reader,
    read: (into, position) => (reads.push([position, into.length]), reader.read(into, position)),
  })
  const none = new Uint8Array(0)
  await file.readFrom(0, 16, none, size)
  // One byte more than the chunk ahead has.
  const long = await file.readFrom(MIB, MIB + 1, none, size)
  expect([long.length, reads.slice(2)]).toEqual([
    MIB + 1,
    [
      [MIB, MIB + 1],
      [2 * MIB + 1, MIB],
    ],
  ])
  const other = await file.readFrom(2 * MIB, 16, none, size)
  expect([other.length, reads.slice(4)]).toEqual([
    MIB,
    [
      [2 * MIB, MIB],
      [3 * MIB, MIB],
    ],
  ])
  // A file that is shorter than it was has no chunk ahead: the caller must find out first.
  await file.drain()
  expect([(await file.readFrom(size - 4, 100, none, size + 100)).length, reading()]).toEqual([4, 0])
})

it('forEachChunk reads a chunk ahead while one is visited', async () => {
  const bytes = sample(3 * MIB)
  const { reader, reading } = fileOf(bytes)
  const file = new ReadAheadFile(reader)
  await file.readFrom(0, 16, new Uint8Array(0), bytes.length)
  const seen: number[][] = []
  await file.forEachChunk(5, bytes.length, (chunk, at) => seen.push([at, chunk.length, reading()]))
  expect(seen).toEqual([
    [5, MIB, 1],
    [MIB + 5, MIB, 1],
    [2 * MIB + 5, MIB - 5, 0],
  ])
})

it('reads no byte behind the end, and whole chunks of a file that grows', async () => {
  const bytes = sample(3 * MIB)
  const { file, reads } = recordedFileOf(bytes)
  const none = new Uint8Array(0)
  await file.readFrom(MIB - 4, 2, none, MIB)
  expect(reads.splice(0)).toEqual([[MIB - 4, 4]])
  await file.forEachChunk(5, MIB + 105, () => {})
  expect(reads.splice(0)).toEqual([
    [5, MIB],
    [MIB + 5, 100],
  ])
  const { file: grown, reads: readsOfGrown } = recordedFileOf(bytes)
  await grown.readFrom(0, 16, none, MIB + 100)
  await grown.readFrom(2 * MIB, 16, none, 3 * MIB)
  await grown.readFrom(0, 16, none, 3 * MIB)
  expect(readsOfGrown).toEqual([
    [0, MIB],
    [MIB, 100],
    [2 * MIB, MIB],
    [0, MIB],
    [MIB, MIB],
  ])
  await grown.drain()
})
