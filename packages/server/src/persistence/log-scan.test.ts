import { adler32, Writer } from '@zabra/protocol'
import type { MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { DamageError } from './errors.ts'
import { scanLog, type RawEntry, type ScanEnd, type ScanStart } from './log-scan.ts'
import { FOLDER, hexBytes } from './testing/log-fixture.ts'
import { writeEncodedEntry } from './txn-codec.ts'

const PATH = `${FOLDER}/log.1`
const HEADER = hexBytes('5a4b4c47 00000002 0000000000000000')
/** The bytes of an entry without its payload: checksum, length, end mark. */
const FRAME = 13

/** Returns the payload of a transaction: a header with its zxid, and content of any bytes but zero. */
function payload(zxid: number | bigint, length = 40): Uint8Array {
  const bytes = new Uint8Array(Math.max(length, 32)).fill(7)
  new DataView(bytes.buffer).setBigInt64(12, BigInt(zxid))
  return bytes.subarray(0, length)
}

function entry(zxid: number | bigint, length?: number): Uint8Array {
  const writer = new Writer()
  writeEncodedEntry(writer, payload(zxid, length))
  return writer.take()
}

const withoutMark = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, -1)
const zeros = (length: number): Uint8Array => new Uint8Array(length)

async function diskWith(...parts: readonly Uint8Array[]): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  await disk.replaceFile(PATH, new Uint8Array(Buffer.concat(parts)))
  return disk
}

/** Returns the offset and the length of each read of a disk, while it is read. */
function readsOf(disk: MemoryDisk): [offset: number, length: number][] {
  const reads: [number, number][] = []
  const openRead = disk.openRead.bind(disk)
  disk.openRead = async (path) => {
    const reader = await openRead(path)
    const read = reader.read.bind(reader)
    return Object.assign(reader, {
      read: (into: Uint8Array, offset: number) => {
        reads.push([offset, into.length])
        return read(into, offset)
      },
    })
  }
  return reads
}

/** Scans a log of these parts. Resolves to how the scan ended and the zxids that it visited. */
async function scan(...parts: readonly Uint8Array[]): Promise<ScanEnd & { readonly zxids: number[] }> {
  return scanFrom(undefined, ...parts)
}

async function scanFrom(
  from: ScanStart | undefined,
  ...parts: readonly Uint8Array[]
): Promise<ScanEnd & { readonly zxids: number[] }> {
  const zxids: number[] = []
  const end = await scanLog(await diskWith(...parts), PATH, ({ zxid }) => void zxids.push(zxid), from)
  return { ...end, zxids }
}

describe('a scan of a log', () => {
  it('visits each entry with its zxid, offset, checksum and payload, and ends behind the last one', async () => {
    const zxids = [0, 1, 0x2_0000_0003, 0x1f_ffff_ffff_ffff]
    for (const padding of [0, 11, 12, 13, 100]) {
      const seen: (Omit<RawEntry, 'bytes' | 'start' | 'end'> & { readonly content: Uint8Array })[] = []
      const disk = await diskWith(HEADER, ...zxids.map((zxid) => entry(zxid)), zeros(padding))
      const end = await scanLog(disk, PATH, (one) => {
        const { zxid, offset, checksum } = one
        seen.push({ zxid, offset, checksum, content: one.bytes.slice(one.start, one.end) })
      })
      expect(seen).toEqual(
        zxids.map((zxid, i) => {
          const content = payload(zxid)
          return { zxid, offset: 16 + i * 53, checksum: adler32(content, 0, 40), content }
        }),
      )
      const size = 16 + 4 * 53 + padding
      expect(end).toEqual({ end: 228, size, entries: 4, isTorn: false, missingEndMark: undefined })
    }
  })

  it('reads a log that is longer than what it holds in memory', async () => {
    const zxids = Array.from({ length: 9 }, (_, i) => i + 1)
    const checksums: number[] = []
    const disk = await diskWith(HEADER, ...zxids.map((zxid) => entry(zxid, 300_000 + zxid)), zeros(2_000_000))
    const end = await scanLog(disk, PATH, ({ zxid, checksum, start, end: to }) => {
      checksums.push(checksum)
      expect(to - start).toBe(300_000 + zxid)
    })
    expect(checksums).toEqual(zxids.map((zxid) => adler32(payload(zxid, 300_000 + zxid), 0, 300_000 + zxid)))
    expect(end).toMatchObject({ end: 16 + 9 * (300_000 + FRAME) + 45, entries: 9, isTorn: false })
  })

  it('reads each byte once, wherever an entry crosses the end of what it holds in memory', async () => {
    const held = 1 << 20
    for (const crossing of [-2, -1, 0, 1, 2]) {
      const first = entry(1, held - HEADER.length - FRAME + crossing)
      const disk = await diskWith(HEADER, first, entry(2, held - FRAME), entry(3))
      const reads = readsOf(disk)
      const { entries, size, isTorn } = await scanLog(disk, PATH, () => {})
      expect([crossing, entries, isTorn]).toEqual([crossing, 3, false])
      expect(reads).toEqual([
        [0, held],
        [held, held],
        [2 * held, size - 2 * held],
      ])
    }
  })

  it('visits all entries that it holds in memory without a turn of the event loop or a microtask between', async () => {
    const events: string[] = []
    await scanLog(await diskWith(HEADER, entry(1), entry(2), entry(3)), PATH, ({ zxid }) => {
      events.push(`visit ${zxid}`)
      queueMicrotask(() => events.push('microtask'))
    })
    expect(events.slice(0, 4)).toEqual(['visit 1', 'visit 2', 'visit 3', 'microtask'])
  })

  it('stops where its visitor says so, and continues from there without a look at what is before', async () => {
    const disk = await diskWith(HEADER, entry(1), entry(2), entry(3))
    const { end, entries, isTorn } = await scanLog(disk, PATH, () => false)
    expect([end, entries, isTorn]).toEqual([16 + 53, 1, false])
    const reads = readsOf(disk)
    await scanLog(disk, PATH, () => {}, { offset: end, last: 1 })
    expect(reads).toEqual([[end, 2 * 53]])
    expect(await scanFrom({ offset: end, last: 1 }, HEADER, entry(1), entry(2), entry(3))).toMatchObject({
      zxids: [2, 3],
      entries: 2,
      end: 16 + 3 * 53,
    })
  })

  it('waits for each pause before it visits the next entry', async () => {
    const events: string[] = []
    const pause = (): Promise<void> | undefined => {
      events.push('pause')
      if (events.length > 2) return undefined
      return Promise.resolve().then(() => void events.push('continue'))
    }
    const disk = await diskWith(HEADER, entry(1), entry(2))
    await scanLog(disk, PATH, ({ zxid }) => void events.push(`visit ${zxid}`), undefined, pause)
    expect(events).toEqual(['visit 1', 'pause', 'continue', 'visit 2', 'pause'])
  })

  it('closes the file, whether or not it succeeds', async () => {
    for (const parts of [[HEADER], [hexBytes('ff'.repeat(16))]]) {
      const disk = await diskWith(...parts)
      const openRead = disk.openRead.bind(disk)
      let open = 0
      disk.openRead = async (path) => {
        const reader = await openRead(path)
        const close = reader.close.bind(reader)
        open++
        return Object.assign(reader, { close: () => (open--, close()) })
      }
      await scanLog(disk, PATH, () => {}).catch(() => {})
      expect(open).toBe(0)
    }
  })

  it('reports a file that becomes shorter meanwhile', async () => {
    const disk = await diskWith(HEADER, entry(1))
    const openRead = disk.openRead.bind(disk)
    disk.openRead = async (path) =>
      Object.assign(await openRead(path), { size: () => Promise.resolve(16 + 53 + 100) })
    await expect(scanLog(disk, PATH, () => {})).rejects.toThrow('the file became shorter while it was read')
  })
})

describe('the end mark of the last entry', () => {
  it.each([
    ['the end of the file', 0],
    ['zeros that were written ahead', 100],
  ])('may be missing before %s, and its offset is returned', async (_, padding) => {
    expect(await scan(HEADER, entry(1), withoutMark(entry(2)), zeros(padding))).toMatchObject({
      zxids: [1, 2],
      end: 16 + 53 + 52,
      entries: 2,
      isTorn: false,
      missingEndMark: 16 + 53 + 52,
    })
  })

  it.each([
    ['another byte', [hexBytes('43')], '0x43'],
    ['a zero before another entry', [zeros(1), entry(3)], '0x00'],
  ])('is not %s', async (_, rest, got) => {
    const scanning = scan(HEADER, entry(1), withoutMark(entry(2)), ...rest)
    await expect(scanning).rejects.toThrow(`Expected the end mark 0x42 of an entry, got ${got}`)
    await expect(scanning).rejects.toMatchObject({ offset: 16 + 53 + 52 })
    await expect(scanning).rejects.toThrow('transactions up to 0x1 are sound')
  })
})

describe('the header of a log', () => {
  it('alone makes a log without entries', async () => {
    expect(await scan(HEADER)).toMatchObject({ end: 16, entries: 0, isTorn: false })
  })

  it('may be missing where the file is empty, which is no torn write', async () => {
    expect(await scan()).toMatchObject({ end: 0, size: 0, entries: 0, isTorn: false })
  })

  it.each([
    ['one byte', '5a'],
    ['seven bytes', '5a4b4c47000000'],
    ['fifteen bytes, with any id of a database', '5a4b4c470000000201020304050607'],
    ['zeros', '00'.repeat(16)],
    ['two bytes and zeros', `5a4b${'00'.repeat(100)}`],
  ])('is cut short by a crash where there are %s', async (_, bytes) => {
    expect(await scan(hexBytes(bytes))).toMatchObject({ end: 0, entries: 0, isTorn: true })
  })

  it.each([
    ['another magic number', `5a4b4c48 00000002${'00'.repeat(8)}`],
    ['another version', `5a4b4c47 00000003${'00'.repeat(8)}`],
    ['another first byte in a short file', '5b'],
    ['another eighth byte in a short file', '5a4b4c4700000003'],
  ])('is refused with %s', async (_, bytes) => {
    const scanning = scan(hexBytes(bytes))
    await expect(scanning).rejects.toThrow('Expected the header of a transaction log')
    await expect(scanning).rejects.toThrow('In this file no transaction is sound before it')
  })
})

describe('an entry', () => {
  it.each([
    ['of 31 bytes', entry(1, 31), 'Expected an entry of at least 32 bytes, got 31'],
    ['with a negative zxid', entry(-1), 'Expected a zxid with an epoch below 2^21'],
    ['with a zxid from 2^53 on', entry(2n ** 53n), 'Expected a zxid with an epoch below 2^21'],
  ])('%s is refused', async (_, bytes, message) => {
    await expect(scan(HEADER, bytes)).rejects.toThrow(message)
    await expect(scan(HEADER, bytes)).rejects.toThrow('In this file no transaction is sound before it')
  })

  it('of 32 bytes is the shortest', async () => {
    expect((await scan(HEADER, entry(1, 32))).zxids).toEqual([1])
  })

  it.each([
    ['no length', '00000000 00000001 00000000'],
    ['a negative length', '00000000 00000001 ffffffff'],
  ])('with %s is a torn write, although the checksum of no bytes matches', async (_, head) => {
    expect(await scan(HEADER, entry(1), hexBytes(head))).toMatchObject({
      zxids: [1],
      end: 16 + 53,
      isTorn: true,
    })
  })

  it('is a torn write when the file ends inside it', async () => {
    for (const length of [1, 11, 12, 13, 51])
      expect(await scan(HEADER, entry(1), entry(2).subarray(0, length), zeros(5))).toMatchObject({
        zxids: [1],
        end: 16 + 53,
        isTorn: length > 7,
      })
  })

  it('is refused when the upper half of its checksum is set', async () => {
    const changed = entry(2).with(3, 1)
    await expect(scan(HEADER, entry(1), changed)).rejects.toThrow(DamageError)
    await expect(scan(HEADER, entry(1), changed)).rejects.toMatchObject({ offset: 16 + 53 })
  })

  const junk = hexBytes('00000000 01020304 00000003 010203 00')
  it.each([
    ['of a later transaction', 6],
    ['of the transaction that would be next', 4],
  ])('%s behind bytes that are none is not skipped', async (_, zxid) => {
    const scanning = scan(HEADER, entry(3), entry(1), junk, entry(zxid))
    await expect(scanning).rejects.toThrow(`a whole entry follows at byte ${16 + 2 * 53 + junk.length}`)
    await expect(scanning).rejects.toThrow('transactions up to 0x3 are sound')
    await expect(scanning).rejects.toThrow('zabra log --repair --force')
  })

  it('that an earlier use of the file has left behind a torn write does not count', async () => {
    const torn = hexBytes('00000000 01020304 00000400')
    const stale = [torn, zeros(1100), entry(3)]
    const ended = { end: 16 + 53, entries: 1, isTorn: true }
    expect(await scan(HEADER, entry(3), ...stale)).toMatchObject(ended)
    expect(await scanFrom({ offset: 16, last: 3 }, HEADER, entry(2), ...stale)).toMatchObject(ended)
    await expect(scanFrom({ offset: 16, last: 2 }, HEADER, entry(2), ...stale)).rejects.toThrow('follows')
  })

  it('of zxid 0 is named as sound before bytes that are none', async () => {
    await expect(scan(HEADER, entry(0), entry(1).with(20, 9))).rejects.toThrow(
      'up to 0x0 are sound before it',
    )
  })

  it('of zxid 0 behind bytes that are none is not skipped', async () => {
    for (const from of [undefined, { offset: 16, last: -1 }])
      await expect(scanFrom(from, HEADER, junk, entry(0))).rejects.toThrow('a whole entry follows at byte 32')
  })
})
