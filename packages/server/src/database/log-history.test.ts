import { ManualClock, MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import type { Zxid } from '../core/types.ts'
import { LogRange, type RawTxn } from '../persistence/index.ts'
import { logName } from '../persistence/file-names.ts'
import { LogHistory } from './log-history.ts'
import { collect, DatabaseFixture, FOLDER, LeaderHistory, zxidOf as z } from './testing/database-fixture.ts'

const SMALL = { txnLogSizeLimitBytes: 600 }

/**
 * Opens a folder in which Apache ZooKeeper had logged 1:1 to 1:5 when it received a snapshot of everything that `leader` had, and then the
 * transactions that `write` returns.
 */
async function leftByApache(leader: LeaderHistory, write: () => readonly RawTxn[]): Promise<DatabaseFixture> {
  const fixture = await DatabaseFixture.accepting(9, new MemoryDisk(), SMALL)
  await fixture.runRole(new LeaderHistory().createRange(1, 1, 5).txns)
  await fixture.database.close()
  const other = await DatabaseFixture.accepting(9)
  await other.receiveFrom(leader)
  await other.database.installSnapshot()
  await other.runRole(write())
  await other.database.takeSnapshot([])
  await other.database.close()
  for (const name of other.fileNames())
    if (/^(?:log|snapshot)\./.test(name))
      fixture.disk.putFile(`${FOLDER}/${name}`, await other.disk.readFile(`${FOLDER}/${name}`))
  await fixture.open()
  return fixture
}

describe('hasLogAfter', () => {
  /** Returns whether a server has the log after a zxid, whose range begins after `rangeAfter`, with these files. */
  function has(after: Zxid, rangeAfter: Zxid, ...files: Zxid[]): Promise<boolean> {
    const disk = new MemoryDisk()
    disk.putFile('/log/acceptedEpoch', new Uint8Array())
    for (const first of files) disk.putFile(`/log/${logName(first)}`, new Uint8Array())
    const folders = { logs: '/log', snapshots: '/log' }
    const source = { disk, clock: new ManualClock(), folders }
    return new LogHistory(source, new LogRange(rangeAfter), 0).hasLogAfter(after)
  }

  it.each([
    [true, 'a transaction of its oldest file', z(1, 5), 0, [z(1, 5), z(1, 9)]],
    [true, 'the transaction before its oldest file', z(1, 4), 0, [z(1, 5)]],
    [true, 'the end of the epoch before its oldest file', z(1, 9), 0, [z(2, 1)]],
    [false, 'a transaction whose files were purged', z(1, 3), 0, [z(1, 5), z(1, 9)]],
    [false, 'a transaction before the snapshot of its leader', z(1, 5), z(1, 6), []],
    [true, 'the transaction of the snapshot of its leader', z(1, 6), z(1, 6), []],
    [true, 'a later transaction than its own', z(3, 1), 0, [z(1, 1)]],
  ] as const)(
    'says %s to whether a server has the log after %s',
    async (expected, _, after, rangeAfter, files) => {
      expect(await has(after, rangeAfter, ...files)).toBe(expected)
    },
  )
})

describe('the log before the snapshot from which a server has started', () => {
  /** Returns a member that has started from a snapshot of a history and has several log files before it. */
  async function restarted(leader: LeaderHistory): Promise<DatabaseFixture> {
    const fixture = await DatabaseFixture.accepting(9, new MemoryDisk(), SMALL)
    await fixture.runRole(leader.txns)
    await fixture.database.takeSnapshot([])
    await fixture.reopen()
    await fixture.runRole([leader.create(leader.txns.at(-1)!.zxid + 1)])
    return fixture
  }

  const read = async ({ database }: DatabaseFixture, after: Zxid): Promise<number[]> =>
    (await collect(database.readHistory(after, database.lastZxid))).map(({ zxid }) => zxid)

  it('can be read once it was found to lead to the snapshot, and the range for learners stays', async () => {
    const fixture = await restarted(new LeaderHistory().createRange(1, 1, 30))
    const { database } = fixture
    expect(fixture.fileNames().filter((name) => name.startsWith('log')).length).toBeGreaterThan(3)
    expect(await database.hasLogAfter(z(1, 12))).toBe(true)
    expect(database.logRange.after).toBe(z(1, 30))
    expect(await read(fixture, z(1, 12))).toEqual(Array.from({ length: 19 }, (_, i) => z(1, 13 + i)))
    // Earlier ones may be missing.
    await expect(read(fixture, z(1, 11))).rejects.toMatchObject({ name: 'DamageError' })
    expect(await database.hasLogAfter(z(1, 0))).toBe(true)
    expect(await read(fixture, z(1, 0))).toHaveLength(31)
  })

  it('is read once to find that, in slices', async () => {
    const { database, disk, clock } = await restarted(new LeaderHistory().createRange(1, 1, 30))
    let now = 0
    clock.monotonic = () => now++
    const turns = clock.turns
    let opened = 0
    const openRead = disk.openRead.bind(disk)
    disk.openRead = (path) => {
      opened++
      return openRead(path)
    }
    expect(await database.hasLogAfter(z(1, 12))).toBe(true)
    expect(opened).toBeGreaterThan(2)
    expect(clock.turns).toBeGreaterThan(turns)
    opened = 0
    expect(await database.hasLogAfter(z(1, 20))).toBe(true)
    expect(opened).toBe(0)
  })

  it('is not read beyond damage or a missing file', async () => {
    const fixture = await restarted(new LeaderHistory().createRange(1, 1, 30))
    const { database, disk } = fixture
    const [, second] = fixture.fileNames().filter((name) => name.startsWith('log'))
    const path = `${FOLDER}/${second}`
    const whole = await disk.readFile(path)
    const broken = whole.slice()
    broken[60]! ^= 1
    disk.putFile(path, broken)
    expect(await database.hasLogAfter(z(1, 1))).toBe(false)
    await disk.remove(path)
    expect(await database.hasLogAfter(z(1, 1))).toBe(false)
    expect(await database.hasLogAfter(z(1, 20))).toBe(true)
    await expect(read(fixture, z(1, 1))).rejects.toMatchObject({ name: 'DamageError' })
  })

  it('is not read beyond the begin of an epoch, although nothing seems to be missing (disk-format H1)', async () => {
    // Apache ZooKeeper leaves 1:4 and 1:5, which were never committed, when a leader of epoch 2 sends it a snapshot.
    const leader = new LeaderHistory().createRange(1, 1, 3)
    leader.tree.lastZxid = z(2, 0)
    const fixture = await leftByApache(leader, () => leader.createRange(2, 1, 9).txns.slice(3))
    expect(fixture.fileNames()).toEqual(expect.arrayContaining(['log.100000001', 'log.200000001']))
    expect(fixture.database.logRange.after).toBe(z(2, 9))
    const openRead = fixture.disk.openRead.bind(fixture.disk)
    let opened = 0
    fixture.disk.openRead = (path) => {
      opened++
      return openRead(path)
    }
    expect(await fixture.database.hasLogAfter(z(1, 3))).toBe(false)
    // A long log would be read in vain.
    expect(opened).toBe(0)
    await expect(read(fixture, z(1, 3))).rejects.toMatchObject({ name: 'DamageError' })
    expect(await fixture.database.hasLogAfter(z(2, 0))).toBe(true)
    expect(await read(fixture, z(2, 0))).toHaveLength(9)
  })

  /** Returns the history of three leaders, the second of which has proposed nothing, and a member that has started from a snapshot of it. */
  async function restartedInThird() {
    const leader = new LeaderHistory().createRange(1, 1, 12).createRange(3, 1, 4)
    const fixture = await restarted(leader)
    expect(fixture.database.logRange.after).toBe(z(3, 4))
    return fixture
  }

  it('is read beyond the begin of an epoch that this server has seen', async () => {
    const fixture = await restartedInThird()
    expect(await fixture.database.hasLogAfter(z(1, 8))).toBe(true)
    expect(await read(fixture, z(1, 8))).toEqual([
      ...Array.from({ length: 4 }, (_, i) => z(1, 9 + i)),
      ...Array.from({ length: 5 }, (_, i) => z(3, 1 + i)),
    ])
    expect(fixture.database.logRange.after).toBe(z(3, 4))
    // Also after another restart, from a snapshot of the same epoch.
    await fixture.database.takeSnapshot([])
    await fixture.reopen()
    expect(fixture.database.logRange.after).toBe(z(3, 5))
    expect(await fixture.database.hasLogAfter(z(1, 0))).toBe(true)
    expect(await fixture.database.hasLogAfter(z(1, 12))).toBe(true)
  })

  it('is not read beyond the begin of an epoch where that followed another transaction than in the files', async () => {
    for (const text of ['3 10000000b\n', '3 10000000d\n', '2 10000000c\n', '', 'damaged']) {
      const fixture = await restartedInThird()
      fixture.disk.putFile(`${FOLDER}/zabra.epochs`, new TextEncoder().encode(text))
      expect(await fixture.database.hasLogAfter(z(1, 8)), text).toBe(false)
      expect(await fixture.database.hasLogAfter(z(3, 1))).toBe(true)
    }
  })

  it('is not read beyond a snapshot that Apache ZooKeeper received within the epoch', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 8)
    const fixture = await leftByApache(leader, () => [leader.create(z(1, 9))])
    expect(await fixture.database.hasLogAfter(z(1, 3))).toBe(false)
    expect(await fixture.database.hasLogAfter(z(1, 8))).toBe(true)
  })

  it('is forgotten when a leader replaces the data', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 30)
    const fixture = await restarted(leader)
    const { database } = fixture
    expect(await database.hasLogAfter(z(1, 12))).toBe(true)
    const reading = database.readHistory(z(1, 12), z(1, 31))
    leader.createRange(1, 32, 40)
    await fixture.receiveFrom(leader)
    await database.installSnapshot()
    await fixture.runRole([leader.create(z(1, 41))])
    expect(await database.hasLogAfter(z(1, 12))).toBe(false)
    expect(await database.hasLogAfter(z(1, 40))).toBe(true)
    await expect(collect(reading)).rejects.toMatchObject({ name: 'DamageError' })
  })

  it('is kept by a purge while it is read', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 30)
    const fixture = await restarted(leader)
    const { database } = fixture
    for (let counter = 32; counter <= 34; counter++) {
      await fixture.runRole([leader.create(z(1, counter))])
      await database.takeSnapshot([])
    }
    const reading = database.readHistory(z(1, 12), z(1, 34))
    await database.purge(3)
    const looking = database.hasLogAfter(z(1, 12))
    await reading.return?.()
    await database.purge(3)
    expect(await looking).toBe(true)
    await database.purge(3)
    expect(await database.hasLogAfter(z(1, 12))).toBe(false)
  })
})

describe('the snapshot at the begin of the range', () => {
  const factsOf = ({ tree }: LeaderHistory) => ({
    zxid: tree.lastZxid,
    nodes: tree.nodeCount,
    digest: tree.digest,
  })

  it('is that of the leader, also after a restart, until a start from a later one', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 5)
    await fixture.receiveFrom(leader)
    await fixture.database.installSnapshot()
    const received = { file: 'snapshot.100000005', ...factsOf(leader) }
    expect(fixture.database.baseSnapshot).toEqual(received)
    await fixture.runRole([leader.create(z(1, 6))])
    await fixture.reopen()
    expect(fixture.database.baseSnapshot).toEqual(received)
    await fixture.database.takeSnapshot([])
    expect(fixture.database.baseSnapshot).toEqual(received)
    await fixture.reopen()
    expect(fixture.database.baseSnapshot).toEqual({ file: 'snapshot.100000006', ...factsOf(leader) })
  })

  it('is none where the tree changed while it was written', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 5)
    await fixture.runRole(leader.txns)
    const writer = fixture.writer()
    const taking = fixture.database.takeSnapshot([])
    const { zxid, payload } = leader.create(z(1, 6))
    writer.appendPayload(zxid, payload)
    fixture.database.apply(payload)
    await taking
    await fixture.database.endRole()
    await fixture.reopen()
    expect(fixture.database.logRange.after).toBe(z(1, 5))
    expect(fixture.database.baseSnapshot).toBeUndefined()
  })

  it('is the one before transactions that are cut off', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 3)
    await fixture.runRole(leader.txns)
    await fixture.database.takeSnapshot([])
    const facts = factsOf(leader)
    await fixture.runRole([leader.create(z(1, 4))])
    await fixture.database.takeSnapshot([])
    await fixture.reopen()
    expect(fixture.database.baseSnapshot).toMatchObject({ zxid: z(1, 4) })
    expect(await fixture.database.truncateTo(z(1, 3))).toEqual({ isExact: true })
    expect(fixture.database.baseSnapshot).toEqual({ file: 'snapshot.100000003', ...facts })
  })
})
