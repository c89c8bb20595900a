import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { createOf } from '../core/testing/create-of.ts'
import type { Zxid } from '../core/types.ts'
import { LogRange, type RawTxn } from '../persistence/index.ts'
import { LogCursor } from './log-cursor.ts'

import {
  LeaderHistory,
  collect,
  FOLDER,
  DatabaseFixture,
  treesEqual,
  zxidOf,
} from './testing/database-fixture.ts'

const SMALL = { txnLogSizeLimitBytes: 600 }

async function member(
  leader: LeaderHistory,
  settings: Parameters<typeof DatabaseFixture.open>[1] = SMALL,
): Promise<DatabaseFixture> {
  const fixture = await DatabaseFixture.accepting(9, new MemoryDisk(), settings)
  await fixture.runRole(leader.txns)
  return fixture
}

describe('LogCursor', () => {
  /** Reads the transactions after 1:1 up to a point from a log that holds some. Resolves to their zxids. */
  async function read(counters: readonly number[], upTo: number, onEnd = (): void => {}): Promise<number[]> {
    async function* log(): AsyncGenerator<RawTxn, void, undefined> {
      for (const counter of counters) yield { zxid: zxidOf(1, counter), payload: new Uint8Array(0) }
    }
    const bounds = { begin: () => 0, range: new LogRange(0), folder: FOLDER, upTo }
    const cursor = new LogCursor(zxidOf(1, 1), () => Promise.resolve(log()), bounds, onEnd)
    return (await collect(cursor)).map(({ zxid }) => zxid)
  }

  it('ends at its bound and releases the files, as it does when it rejects or is left', async () => {
    let ended = 0
    const onEnd = (): void => void ended++
    expect(await read([2, 3], zxidOf(1, 3), onEnd)).toEqual([zxidOf(1, 2), zxidOf(1, 3)])
    expect(ended).toBe(1)
    await read([3], zxidOf(1, 3), onEnd).catch(() => {})
    expect(ended).toBe(2)
    const bounds = { begin: () => 0, range: new LogRange(0), folder: FOLDER, upTo: 0 }
    const unread = new LogCursor(0, () => Promise.reject(new Error('Not read')), bounds, onEnd)
    expect(await unread.return()).toEqual({ done: true, value: undefined })
    expect(ended).toBe(3)
  })

  it.each([
    ['the first transaction is missing', [3], '0x100000001, got 0x100000003'],
    ['a transaction is missing in the middle', [2, 4], '0x100000002, got 0x100000004'],
    ['the last transaction is missing', [2, 3], '0x100000003, got 0x100000004'],
  ])('sends nothing that follows a gap: %s', async (_, counters, message) => {
    const reading = read(counters, zxidOf(1, 4))
    await expect(reading).rejects.toThrow(`Expected the transaction after ${message}`)
    await expect(reading).rejects.toMatchObject({
      name: 'DamageError',
      action: 'Send the learner a snapshot.',
    })
  })
})

describe('readHistory', () => {
  it('returns the transactions between any two points, over files and epochs', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 9).createRange(2, 1, 7).createRange(4, 1, 3)
    const fixture = await member(leader)
    expect(fixture.fileNames().filter((name) => name.startsWith('log')).length).toBeGreaterThan(2)
    const points = [
      0,
      zxidOf(1, 1),
      zxidOf(1, 9),
      zxidOf(2, 0),
      zxidOf(2, 3),
      zxidOf(2, 7),
      zxidOf(3, 0),
      zxidOf(4, 0),
      zxidOf(4, 3),
    ]
    for (const after of points) {
      for (const upTo of points.filter((point) => point >= after)) {
        const found = await collect(fixture.database.readHistory(after, upTo))
        const expected = leader.txns.filter(({ zxid }) => zxid > after && zxid <= upTo)
        expect(found.map(({ zxid }) => zxid)).toEqual(expected.map(({ zxid }) => zxid))
        expect(found.map(({ payload }) => payload)).toEqual(expected.map(({ payload }) => payload))
      }
    }
  })

  it('is bounded by logRange, which has the ends of epochs and the number of bytes', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 9).createRange(2, 1, 7)
    const fixture = await member(leader)
    const { after, upTo, epochEnds } = fixture.database.logRange
    expect({ after, upTo, epochEnds }).toEqual({
      after: 0,
      upTo: zxidOf(2, 7),
      epochEnds: [zxidOf(1, 9), zxidOf(2, 7)],
    })
    expect(fixture.database.logRange.bytesAfter(zxidOf(1, 3))).toBeGreaterThan(13 * 40)
    expect(fixture.database.snapshotBytes).toBe(
      fixture.disk.paths().length > 0 ? await fixture.disk.size(`${FOLDER}/snapshot.0`) : -1,
    )
    await fixture.database.truncateTo(zxidOf(2, 2))
    expect(fixture.database.logRange.epochEnds).toEqual([zxidOf(1, 9), zxidOf(2, 2)])
    await fixture.reopen()
    expect(fixture.database.logRange).toMatchObject({
      after: 0,
      upTo: zxidOf(2, 2),
      epochEnds: [zxidOf(1, 9), zxidOf(2, 2)],
    })
  })

  it('waits until transactions are durable, and reads while the log grows', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 300)
    const fixture = await DatabaseFixture.accepting(1, new MemoryDisk(), SMALL)
    const writer = fixture.writer()
    for (const { zxid, payload } of leader.txns.slice(0, 100)) writer.appendPayload(zxid, payload)
    const reading = fixture.database.readHistory(zxidOf(1, 50), zxidOf(1, 100))
    const found: number[] = []
    let next = 100
    for await (const { zxid } of reading) {
      found.push(zxid)
      const txn = leader.txns[next++]!
      writer.appendPayload(txn.zxid, txn.payload)
    }
    expect(found).toEqual(Array.from({ length: 50 }, (_, i) => zxidOf(1, 51 + i)))
  })

  it('rejects transactions before the snapshot that was loaded (disk-format H1)', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 9)
    const fixture = await member(leader)
    await fixture.database.takeSnapshot([])
    await fixture.runRole([leader.create(zxidOf(1, 10))])
    await fixture.reopen()
    expect(fixture.database.logRange.after).toBe(zxidOf(1, 9))
    await expect(collect(fixture.database.readHistory(zxidOf(1, 8), zxidOf(1, 10)))).rejects.toThrow(
      'Send the learner a snapshot.',
    )
    expect(await collect(fixture.database.readHistory(zxidOf(1, 9), zxidOf(1, 10)))).toHaveLength(1)
  })

  it('rejects transactions that a snapshot of the leader rolled back (disk-format H1)', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 3)
    const fixture = await member(new LeaderHistory().createRange(1, 1, 5))
    leader.createRange(2, 1, 4)
    await fixture.receiveFrom(leader)
    await fixture.database.installSnapshot()
    await fixture.runRole([leader.create(zxidOf(2, 5))])
    expect(fixture.database.logRange.after).toBe(zxidOf(2, 4))
    await expect(collect(fixture.database.readHistory(zxidOf(1, 3), zxidOf(2, 5)))).rejects.toThrow(
      'Send the learner a snapshot.',
    )
    expect(fixture.fileNames().filter((name) => name.startsWith('log'))).toEqual(['log.200000005'])
  })

  it('rejects at corruption and at gaps', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 30)
    const fixture = await member(leader)
    const logs = fixture.fileNames().filter((name) => name.startsWith('log'))
    const path = `${FOLDER}/${logs[2]}`
    const whole = await fixture.disk.readFile(path)
    const broken = whole.slice()
    broken[60]! ^= 1
    fixture.disk.putFile(path, broken)
    const found: number[] = []
    const reading = async (): Promise<void> => {
      for await (const { zxid } of fixture.database.readHistory(0, zxidOf(1, 30))) found.push(zxid)
    }
    await expect(reading()).rejects.toMatchObject({ name: 'DamageError' })
    expect(found.length).toBeGreaterThan(2)
    await fixture.disk.remove(path)
    await expect(reading()).rejects.toThrow(/Expected transaction .* or the first of a later epoch/)
    fixture.disk.putFile(path, whole)
    await reading()
  })

  it('closes a file only when no read of it is in flight', async () => {
    const leader = new LeaderHistory()
    const fixture = await DatabaseFixture.accepting(1)
    for (let counter = 1; counter <= 8; counter++)
      leader.write(zxidOf(1, counter), createOf(`/n${counter}`, { data: new Uint8Array(400_000) }))
    await fixture.runRole(leader.txns)
    const { disk } = fixture
    const openRead = disk.openRead.bind(disk)
    const readingAtClose: number[] = []
    disk.openRead = async (path) => {
      const reader = await openRead(path)
      let reading = 0
      return {
        ...reader,
        read: async (into, position) => {
          reading++
          for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
          reading--
          return reader.read(into, position)
        },
        close: async () => void readingAtClose.push(reading),
      }
    }
    expect(await collect(fixture.database.readHistory(0, zxidOf(1, 1)))).toHaveLength(1)
    expect(readingAtClose).toEqual([0])
  })
})

describe('purge', () => {
  it('keeps the files of an open cursor, and no older ones', async () => {
    const leader = new LeaderHistory()
    const fixture = await member(leader)
    for (let counter = 1; counter <= 25; counter++) {
      await fixture.runRole([leader.create(zxidOf(1, counter))])
      if (counter % 5 === 0) await fixture.database.takeSnapshot([])
    }
    const reading = fixture.database.readHistory(zxidOf(1, 3), zxidOf(1, 25))
    expect((await reading.next()).value).toMatchObject({ zxid: zxidOf(1, 4) })
    expect(await fixture.database.purge(3)).toEqual(['snapshot.0', 'log.100000001', 'log.100000002'])
    expect(await collect(reading)).toHaveLength(21)
    expect(await fixture.database.purge(3)).toContain('log.100000003')
    expect(fixture.fileNames()).not.toContain('snapshot.100000005')
  })

  it('ends the range from which learners are brought up to date where the oldest log begins', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 3).createRange(2, 1, 6)
    const fixture = await DatabaseFixture.accepting(9)
    const { database } = fixture
    const ranges: (readonly Zxid[])[] = []
    for (const [at, txn] of leader.txns.entries()) {
      await fixture.runRole([txn])
      await database.takeSnapshot([])
      if (at < 5) continue
      await database.purge(3)
      const { after, epochEnds } = database.logRange
      ranges.push([after, ...epochEnds])
      expect(await collect(database.readHistory(after, txn.zxid))).toHaveLength(3)
    }
    expect(ranges).toEqual([
      [zxidOf(1, 3), zxidOf(2, 3)],
      [zxidOf(2, 1), zxidOf(2, 4)],
      [zxidOf(2, 2), zxidOf(2, 5)],
      [zxidOf(2, 3), zxidOf(2, 6)],
    ])
  })

  it('takes the rest of an epoch with it, so that nothing is read after a transaction in the middle of it', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 5).createRange(2, 1, 3)
    const fixture = await DatabaseFixture.accepting(9)
    await fixture.runRole(leader.txns.slice(0, 5))
    for (const txn of leader.txns.slice(5)) {
      await fixture.runRole([txn])
      await fixture.database.takeSnapshot([])
    }
    expect(await fixture.database.purge(3)).toContain('log.100000001')
    expect(await fixture.database.hasLogAfter(zxidOf(1, 3))).toBe(false)
    const reading = fixture.database.readHistory(zxidOf(1, 3), zxidOf(2, 3))
    await expect(collect(reading)).rejects.toMatchObject({ name: 'DamageError' })
    expect(await fixture.database.hasLogAfter(zxidOf(1, 5))).toBe(true)
    expect(await collect(fixture.database.readHistory(zxidOf(1, 5), zxidOf(2, 3)))).toHaveLength(3)
  })

  it('does not count a compressed snapshot that cannot be decompressed to its end', async () => {
    for (const snapshotCompression of ['gz', 'snappy'] as const) {
      const leader = new LeaderHistory()
      const fixture = await member(leader, { ...SMALL, snapshotCompression })
      for (let counter = 1; counter <= 3; counter++) {
        await fixture.runRole([leader.create(zxidOf(1, counter))])
        await fixture.database.takeSnapshot([])
      }
      const newest = `${FOLDER}/snapshot.100000003.${snapshotCompression}`
      const whole = await fixture.disk.readFile(newest)
      fixture.disk.putFile(newest, whole.subarray(0, whole.length >> 1))
      expect(await fixture.database.purge(3)).toEqual([])
      fixture.disk.putFile(newest, whole)
      expect(await fixture.database.purge(3)).toContain(`snapshot.0.${snapshotCompression}`)
    }
  })

  it('removes nothing while a new tree is not installed, because a crash would need the old files', async () => {
    const leader = new LeaderHistory()
    const fixture = await member(leader)
    for (let counter = 1; counter <= 25; counter++) {
      await fixture.runRole([leader.create(zxidOf(1, counter))])
      if (counter % 5 === 0) await fixture.database.takeSnapshot([])
    }
    await fixture.receiveFrom(leader)
    expect(await fixture.database.purge(3)).toEqual([])
  })
})

describe('opening a database', () => {
  it('rejects a gap between epochs, which remains of an older history leave', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 3)
    const fixture = await member(new LeaderHistory().createRange(1, 1, 5))
    await fixture.database.close()
    const other = await DatabaseFixture.open()
    leader.createRange(2, 1, 4)
    await other.receiveFrom(leader)
    await other.database.acceptEpoch(2)
    await other.database.installSnapshot()
    await other.runRole([leader.create(zxidOf(2, 5))])
    await other.database.close()
    // The files that Apache ZooKeeper leaves after a SNAP, without the snapshot.
    fixture.disk.putFile(`${FOLDER}/log.200000005`, await other.disk.readFile(`${FOLDER}/log.200000005`))
    await expect(fixture.open()).rejects.toThrow('transactions are missing')
    fixture.disk.putFile(
      `${FOLDER}/snapshot.200000004`,
      await other.disk.readFile(`${FOLDER}/snapshot.200000004`),
    )
    await fixture.open()
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
  })

  it('does not read or write epochs for a standalone server', async () => {
    const fixture = new DatabaseFixture()
    await fixture.open(false)
    expect(fixture.fileNames()).toEqual(['snapshot.0'])
    expect(() => fixture.database.epochs).toThrow('Only a member of an ensemble has epochs.')
    await fixture.reopen()
    expect(fixture.fileNames()).toEqual(['acceptedEpoch', 'currentEpoch', 'snapshot.0'])
  })
})
