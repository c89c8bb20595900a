import { adler32 } from '@zabra/protocol'
import { MemoryDisk, SeededRandom, type ByteTransform, type DiskReader } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { ByteStream, FileChunks, type ChunkSource } from './byte-stream.ts'

const PATH = '/snapshot.1'
const sample = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 8)) & 255)

/** Supplies chunks of the given lengths, each in the same array, as a file does. */
class Chunks implements ChunkSource {
  #at = 0
  readonly #bytes: Uint8Array
  readonly #lengths: number[]
  readonly #array: Uint8Array

  constructor(bytes: Uint8Array, lengths: readonly number[]) {
    this.#bytes = bytes
    this.#lengths = [...lengths]
    this.#array = new Uint8Array(Math.max(...lengths))
  }

  async next(): Promise<Uint8Array | undefined> {
    const length = this.#lengths.shift()
    if (length === undefined) return undefined
    this.#array.fill(255)
    this.#array.set(this.#bytes.subarray(this.#at, this.#at + length))
    this.#at += length
    return this.#array.subarray(0, length)
  }
}

describe('ByteStream', () => {
  const streamOf = (bytes: Uint8Array, lengths: readonly number[]): ByteStream =>
    new ByteStream(new Chunks(bytes, lengths), PATH, 'Do something')

  it('has all bytes in order, their position and their checksum, in chunks of any lengths', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = new SeededRandom(seed)
      const lengths = Array.from({ length: 1 + random.below(12) }, () => random.below(60))
      const bytes = sample(lengths.reduce((sum, length) => sum + length, 0))
      const stream = streamOf(bytes, lengths)
      let at = 0
      while (!(await stream.isAtEnd())) {
        expect(at).toBeLessThan(bytes.length)
        const wanted = Math.min(1 + random.below(90), bytes.length - at)
        const held = stream.unread().length
        expect(stream.readerIfAvailable(wanted) !== undefined).toBe(held >= wanted)
        const reader = await stream.require(wanted)
        expect(reader).toBe(stream.reader)
        expect(stream.position).toBe(at)
        expect(stream.readerIfAvailable(wanted)).toBe(reader)
        const { offset } = reader
        expect(Buffer.compare(stream.unread().subarray(0, wanted), bytes.subarray(at, at + wanted))).toBe(0)
        expect(stream.view.getUint8(offset)).toBe(bytes[at])
        expect(stream.bytes[offset + wanted - 1]).toBe(bytes[at + wanted - 1])
        reader.offset += wanted
        at += wanted
        if (random.below(3) === 0) expect(stream.checksum()).toBe(adler32(bytes, 0, at))
      }
      expect([at, stream.position, stream.unread().length]).toEqual([bytes.length, bytes.length, 0])
      expect(stream.checksum()).toBe(adler32(bytes, 0, bytes.length))
    }
  })

  it('says where it ends before what is required', async () => {
    const stream = streamOf(sample(50), [20, 30])
    const reader = await stream.require(45)
    reader.offset += 45
    expect(await stream.fillUpTo(6)).toBe(5)
    await expect(stream.require(6)).rejects.toMatchObject({
      name: 'DamageError',
      file: PATH,
      offset: 45,
      message: expect.stringContaining('Expected 6 more bytes, got the end of the snapshot after 5'),
      action: 'Do something.',
    })
    expect((await stream.require(5)).remaining).toBe(5)
    const cause = new Error('the cause')
    expect(stream.damage('Expected another byte', cause)).toMatchObject({ offset: 45, cause })
  })

  it('looks at the next number without taking it', async () => {
    const stream = streamOf(Uint8Array.of(0, 0, 1, 2, 5), [5])
    const reader = await stream.require(5)
    expect([reader.peekInt(), reader.peekInt(), reader.offset]).toEqual([258, 258, 0])
  })

  it('keeps the array of its window while the bytes fit, and else doubles it', async () => {
    const stream = streamOf(sample(1420), [100, 100, 20, 150, 1000, 50])
    const lengths: number[] = []
    for (const wanted of [100, 110, 150, 900, 160]) {
      const reader = await stream.require(wanted)
      reader.offset += wanted
      lengths.push(stream.bytes.length)
    }
    expect(lengths).toEqual([100, 200, 200, 1010, 1010])
  })

  it('asks for no chunk that it does not need, and for none behind the end', async () => {
    let asked = 0
    const chunks = new Chunks(sample(30), [10, 10, 10])
    const stream = new ByteStream({ next: () => (asked++, chunks.next()) }, PATH, '')
    await stream.require(10)
    expect(asked).toBe(1)
    await stream.fillUpTo(15)
    expect(asked).toBe(2)
    expect([await stream.fillUpTo(100), asked]).toEqual([30, 4])
    expect([await stream.fillUpTo(100), asked]).toEqual([30, 4])
  })
})

describe('FileChunks', () => {
  const CHUNK = 1 << 19

  /** A file whose reads are counted, and wait for `release` where they are held. */
  function fileOf(bytes: Uint8Array, failAt = Infinity) {
    const reads: (readonly [position: number, room: number])[] = []
    let waiting: (() => void) | undefined
    const control = { reads, isHeld: false, release: () => waiting?.() }
    const file: DiskReader = {
      size: () => Promise.resolve(bytes.length),
      close: () => Promise.resolve(),
      async read(into, position) {
        reads.push([position, into.length])
        if (control.isHeld) await new Promise<void>((resolve) => (waiting = resolve))
        if (position >= failAt) throw new Error(`No sector at ${position}`)
        const part = bytes.subarray(position, position + into.length)
        into.set(part)
        return part.length
      },
    }
    return Object.assign(control, { file })
  }

  async function all(chunks: FileChunks): Promise<Uint8Array[]> {
    const found: Uint8Array[] = []
    for (let part = await chunks.next(); part !== undefined; part = await chunks.next())
      found.push(part.slice())
    return found
  }

  it.each([0, 1, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK - 5])(
    'reads a file of %i bytes once, each chunk while the one before is parsed',
    async (length) => {
      const bytes = sample(length)
      const { file, reads } = fileOf(bytes)
      const chunks = new FileChunks(file, PATH, undefined)
      const first = (await chunks.next())!
      expect(reads).toHaveLength(length < CHUNK ? 1 : 2)
      const parts = [first.slice(), ...(await all(chunks))]
      expect(Buffer.compare(Buffer.concat(parts), bytes)).toBe(0)
      const room = Math.min(CHUNK, length + 1)
      expect(reads).toEqual(
        Array.from({ length: Math.floor(length / CHUNK) + 1 }, (_, at) => [at * CHUNK, room]),
      )
      expect(await chunks.next()).toBeUndefined()
      await chunks.drain()
    },
  )

  it('pauses before each chunk', async () => {
    let pauses = 0
    const chunks = new FileChunks(fileOf(sample(CHUNK + 5)).file, PATH, undefined, () => void pauses++)
    expect(await all(chunks)).toHaveLength(2)
    expect(pauses).toBe(3)
  })

  it('rejects the call that needs a chunk which cannot be read, and no other', async () => {
    const { file } = fileOf(sample(3 * CHUNK), 2 * CHUNK)
    const chunks = new FileChunks(file, PATH, undefined)
    expect(await chunks.next()).toHaveLength(CHUNK)
    expect(await chunks.next()).toHaveLength(CHUNK)
    await chunks.drain()
    await expect(chunks.next()).rejects.toThrow(`No sector at ${2 * CHUNK}`)
  })

  it('has no read in flight once it is drained', async () => {
    const held = fileOf(sample(3 * CHUNK))
    const chunks = new FileChunks(held.file, PATH, undefined)
    await chunks.drain()
    held.isHeld = false
    const first = chunks.next()
    await first
    await chunks.drain()
    held.isHeld = true
    const second = chunks.next()
    await second
    let isDrained = false
    const draining = chunks.drain().then(() => (isDrained = true))
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    expect(isDrained).toBe(false)
    held.release()
    await draining
  })

  it('decompresses parts of 16 KiB, and what the end of the file adds', async () => {
    const written: number[] = []
    const doubling: ByteTransform = {
      write: (part) => (written.push(part.length), Promise.resolve(Uint8Array.from([...part, ...part]))),
      end: () => Promise.resolve(Uint8Array.of(7, 8)),
    }
    const bytes = sample(40_000)
    const parts = await all(new FileChunks(fileOf(bytes).file, PATH, doubling))
    expect(written).toEqual([16_384, 16_384, 7232])
    expect(parts.map(({ length }) => length)).toEqual([32_768, 32_768, 14_466])
    expect([...parts[2]!.subarray(7230)].slice(0, 4)).toEqual([
      bytes[39_998],
      bytes[39_999],
      bytes[32_768],
      bytes[32_769],
    ])
    expect([...parts[2]!.subarray(-2)]).toEqual([7, 8])
  })

  it('decompresses a file that ends with a chunk, and an empty one', async () => {
    const written: number[] = []
    const plain: ByteTransform = {
      write: (part) => (written.push(part.length), Promise.resolve(part.slice())),
      end: () => Promise.resolve(Uint8Array.of(9)),
    }
    const whole = await all(new FileChunks(fileOf(sample(CHUNK)).file, PATH, plain))
    expect(written).toEqual(Array.from({ length: 32 }, () => 16_384))
    expect(whole.at(-1)).toEqual(Uint8Array.of(9))
    expect(whole).toHaveLength(33)
    expect(await all(new FileChunks(fileOf(new Uint8Array(0)).file, PATH, plain))).toEqual([Uint8Array.of(9)])
    expect(written).toHaveLength(32)
  })

  it.each(['write', 'end'] as const)(
    'says which file cannot be decompressed, where %s fails',
    async (call) => {
      const cause = new Error('incorrect header check')
      const fails: ByteTransform = {
        write: (part) => (call === 'write' ? Promise.reject(cause) : Promise.resolve(part)),
        end: () => Promise.reject(cause),
      }
      await expect(all(new FileChunks(fileOf(sample(70)).file, PATH, fails))).rejects.toMatchObject({
        name: 'DamageError',
        file: PATH,
        offset: 70,
        message: expect.stringContaining('Expected a compressed stream that can be decompressed'),
        action: 'An older snapshot is tried if there is one.',
        cause,
      })
    },
  )
})

it('a file that gzip has made a thousand times smaller is decompressed in parts of 17 MB at most', async () => {
  const size = 40 << 20
  const disk = new MemoryDisk()
  disk.putFile('/snapshot.1.gz', new Uint8Array(gzipSync(new Uint8Array(size))))
  const chunks = new FileChunks(
    await disk.openRead('/snapshot.1.gz'),
    '/snapshot.1.gz',
    nodeCompression.gunzip(),
  )
  const lengths: number[] = []
  for (let chunk = await chunks.next(); chunk !== undefined; chunk = await chunks.next())
    lengths.push(chunk.length)
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(size)
  expect(Math.max(...lengths)).toBeLessThan(17_000_000)
})
