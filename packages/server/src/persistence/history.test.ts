import { makeZxid, Writer } from '@zabra/protocol'
import type { MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { logName } from './file-names.ts'
import { isSuccessor, readLog, type RawTxn } from './history.ts'
import { writeLogHeader } from './log-format.ts'
import type { Pause } from './pause.ts'
import { createTxn, FOLDER, payloadOf, writeEntry } from './testing/log-fixture.ts'

/** Returns a disk with log files that hold these transactions, each of `size` bytes of data. */
async function diskWithLogs(files: readonly (readonly number[])[], size = 10): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  for (const zxids of files) {
    const writer = new Writer()
    writeLogHeader(writer)
    for (const zxid of zxids) writeEntry(writer, createTxn(zxid, size))
    disk.putFile(`${FOLDER}/${logName(zxids[0]!)}`, writer.take())
  }
  return disk
}

async function zxidsOf(disk: MemoryDisk, after: number, upTo: number, pause?: Pause): Promise<number[]> {
  const zxids: number[] = []
  for await (const { zxid, payload } of readLog(disk, FOLDER, after, upTo, pause)) {
    zxids.push(zxid)
    expect(payload.length).toBeGreaterThan(32)
  }
  return zxids
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at)
const [LAST, NEXT] = [makeZxid(1, 7), makeZxid(2, 1)]

it('the successor of a transaction has the next counter, or is the first of any later epoch', () => {
  expect(
    [LAST + 1, NEXT, makeZxid(5, 1), LAST, LAST + 2, makeZxid(2, 0), makeZxid(2, 2), makeZxid(1, 1)].map(
      (zxid) => isSuccessor(zxid, LAST),
    ),
  ).toEqual([true, true, true, false, false, false, false, false])
})

describe('readLog', () => {
  const files = [range(1, 4), range(5, 9), [10]]

  it('yields the transactions after one and up to another one, over several files', async () => {
    const disk = await diskWithLogs(files)
    for (let after = 0; after <= 10; after++)
      for (let upTo = after; upTo <= 11; upTo++)
        expect(await zxidsOf(disk, after, upTo)).toEqual(range(after + 1, Math.min(upTo, 10)))
  })

  it('yields payloads that the caller may keep', async () => {
    const disk = await diskWithLogs([range(1, 50)], 20_000)
    const kept: RawTxn[] = []
    for await (const txn of readLog(disk, FOLDER, 0, 50)) kept.push(txn)
    for (const { zxid, payload } of kept)
      expect(Buffer.compare(payload, payloadOf(createTxn(zxid, 20_000)))).toBe(0)
    expect(kept).toHaveLength(50)
  })

  it('opens no file before that of the first transaction, and none behind the last one', async () => {
    const disk = await diskWithLogs([range(1, 4), range(5, 9), range(10, 12), range(13, 20)])
    const opened: string[] = []
    const openRead = disk.openRead.bind(disk)
    disk.openRead = (path) => (opened.push(path), openRead(path))
    expect(await zxidsOf(disk, 5, 12)).toEqual(range(6, 12))
    expect(opened).toEqual([`${FOLDER}/log.5`, `${FOLDER}/log.a`])
    opened.length = 0
    expect(await zxidsOf(disk, 4, 9)).toEqual(range(5, 9))
    expect(opened).toEqual([`${FOLDER}/log.1`, `${FOLDER}/log.5`])
  })

  it('reads nothing behind the last one, which may be written meanwhile', async () => {
    const disk = await diskWithLogs([range(1, 9)])
    const path = `${FOLDER}/log.1`
    const bytes = await disk.readFile(path)
    const { length } = payloadOf(createTxn(1, 10))
    // The entries are of one length: the sixth is damaged.
    const damaged = bytes.slice()
    damaged[16 + 5 * (length + 13) + 20]! ^= 1
    disk.putFile(path, damaged)
    expect(await zxidsOf(disk, 2, 5)).toEqual([3, 4, 5])
    expect(await zxidsOf(disk, 5, 5)).toEqual([])
    await expect(zxidsOf(disk, 2, 6)).rejects.toMatchObject({ name: 'DamageError', file: path })
  })

  it('yields each transaction once, where files repeat some', async () => {
    const disk = await diskWithLogs([range(1, 6), range(4, 9), [8, 9, 10]])
    expect(await zxidsOf(disk, 0, 10)).toEqual(range(1, 10))
    expect(await zxidsOf(disk, 4, 10)).toEqual(range(5, 10))
    const twice = await diskWithLogs([[1, 2, 2, 3, 1, 2, 3, 4]])
    expect(await zxidsOf(twice, 0, 4)).toEqual([1, 2, 3, 4])
    expect(await zxidsOf(twice, 1, 4)).toEqual([2, 3, 4])
  })

  it('leaves to the caller whether the first one follows, and rejects where one is missing behind it', async () => {
    const disk = await diskWithLogs([
      [3, 4],
      [6, 7],
    ])
    expect(await zxidsOf(disk, 0, 5)).toEqual([3, 4])
    await expect(zxidsOf(disk, 0, 7)).rejects.toMatchObject({
      name: 'DamageError',
      file: `${FOLDER}/log.6`,
      offset: 16,
      message: expect.stringContaining('Expected transaction 0x5 or the first of a later epoch, got 0x6'),
    })
    expect(await zxidsOf(disk, 4, 7)).toEqual([6, 7])
    const epochs = await diskWithLogs([[LAST - 1, LAST, NEXT, NEXT + 1], [makeZxid(9, 1)]])
    expect(await zxidsOf(epochs, LAST - 2, makeZxid(9, 1))).toEqual([
      LAST - 1,
      LAST,
      NEXT,
      NEXT + 1,
      makeZxid(9, 1),
    ])
  })

  it('holds about 256 KiB of a file at a time, and reads the rest when it is asked for', async () => {
    const size = 9000
    const disk = await diskWithLogs([range(1, 100)], size)
    let paused = 0
    // Not after the last entry of a part.
    const pause = (): undefined => void paused++
    const entries = readLog(disk, FOLDER, 0, 100, pause)
    const atOnce = Math.ceil(2 ** 18 / payloadOf(createTxn(1, size)).length)
    for (let at = 1; at <= 100; at++) {
      expect((await entries.next()).value).toMatchObject({ zxid: at })
      const parts = Math.ceil(at / atOnce)
      expect(paused).toBe(Math.min(parts * atOnce, 100) - parts)
    }
    expect((await entries.next()).done).toBe(true)
  })

  it('pauses between entries, also between those that are not asked for', async () => {
    const disk = await diskWithLogs([range(1, 20)])
    let paused = 0
    await zxidsOf(disk, 15, 18, () => void paused++)
    expect(paused).toBe(17)
  })

  it('ends where the log does, or is empty', async () => {
    expect(await zxidsOf(await diskWithLogs([range(3, 5)]), 5, 9)).toEqual([])
    expect(await zxidsOf(await diskWithLogs([]), 0, 9)).toEqual([])
  })
})
