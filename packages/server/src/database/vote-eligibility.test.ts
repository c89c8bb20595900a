import { MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { DivergedFilesError, SET_ASIDE } from '../persistence/index.ts'
import {
  crashAtEachStep,
  LeaderHistory,
  FOLDER,
  DatabaseFixture,
  treesEqual,
  zxidOf,
} from './testing/database-fixture.ts'

/** Returns four transactions; the digest of the last one is that of another tree than the first three make. */
function divergingTxns(): LeaderHistory['txns'] {
  const own = new LeaderHistory().createRange(1, 1, 3)
  const other = new LeaderHistory()
  for (let i = 1; i <= 3; i++) other.create(zxidOf(1, i), `/other-${i}`)
  return [...own.txns, other.create(zxidOf(1, 4), '/n4')]
}

/** Logs all four and applies all but the last, as a role does that ends before the last commit. */
async function logAll(fixture: DatabaseFixture): Promise<void> {
  await fixture.database.acceptEpoch(1)
  const writer = fixture.writer()
  for (const { zxid, payload } of divergingTxns()) {
    writer.appendPayload(zxid, payload)
    if (zxid !== zxidOf(1, 4)) fixture.database.apply(payload)
  }
  await writer.flush()
}

async function divergedMember(): Promise<DatabaseFixture> {
  const fixture = await DatabaseFixture.open()
  await logAll(fixture)
  await fixture.database.endRole()
  return fixture
}

const filesSetAside = (fixture: DatabaseFixture): string[] => fixture.fileNames(`${FOLDER}/${SET_ASIDE}`)

/** Receives and installs a snapshot of a leader of epoch 2. */
async function resync(fixture: DatabaseFixture): Promise<LeaderHistory> {
  const leader = new LeaderHistory().createRange(1, 1, 6)
  await fixture.database.acceptEpoch(2)
  await fixture.receiveFrom(leader)
  await fixture.database.installSnapshot()
  return leader
}

describe('a member whose log does not match its tree', () => {
  it('sets its files aside when its role ends, and is not eligible to vote', async () => {
    const fixture = await divergedMember()
    expect(fixture.database.isEligibleToVote).toBe(false)
    expect(fixture.database.isEligibleToVote).toBe(false)
    expect(fixture.database.isFullSyncRequested).toBe(true)
    expect(fixture.nodeNames()).toEqual([])
    expect(filesSetAside(fixture).map((name) => name.replace(/^\d+\./, ''))).toEqual(
      expect.arrayContaining(['log.100000001', 'snapshot.0']),
    )
    expect(fixture.logLines.join('\n')).toContain('it sets them aside')
    expect(fixture.fatal).toBe(undefined)
  })

  it('is not eligible after a restart', async () => {
    const fixture = await divergedMember()
    await fixture.database.close()
    const again = await DatabaseFixture.open(fixture.disk)
    expect([again.database.isEligibleToVote, again.database.isFullSyncRequested]).toEqual([false, true])
    expect(again.database.epochs.accepted).toBe(1)
  })

  it('is eligible again when it has installed a snapshot of a leader', async () => {
    const fixture = await divergedMember()
    const leader = await resync(fixture)
    expect(fixture.database).toMatchObject({
      isEligibleToVote: true,
      isFullSyncRequested: false,
      lastZxid: zxidOf(1, 6),
    })
    await fixture.database.close()
    const again = await DatabaseFixture.open(fixture.disk)
    expect(again.database.isEligibleToVote).toBe(true)
    expect(treesEqual(again.database.tree, leader.tree)).toBe(true)
    expect(filesSetAside(again).length).toBeGreaterThan(1)
  })

  it('is detected at a start too, where a standalone server stops', async () => {
    const fixture = await DatabaseFixture.open()
    await logAll(fixture)
    await fixture.database.close()
    await expect(new DatabaseFixture(fixture.disk.clone()).open(false)).rejects.toThrow(DivergedFilesError)
    const again = await DatabaseFixture.open(fixture.disk)
    expect(again.database.isEligibleToVote).toBe(false)
    expect(filesSetAside(again)).toHaveLength(2)
  })

  it('cannot be started as a standalone server, which would start empty', async () => {
    const fixture = await divergedMember()
    await fixture.database.close()
    await expect(new DatabaseFixture(fixture.disk).open(false)).rejects.toThrow('remove the file distrusted')
  })

  it('sets aside at its next start what a crash has left in place', async () => {
    const fixture = await DatabaseFixture.open()
    await fixture.runRole(new LeaderHistory().createRange(1, 1, 2).txns)
    await fixture.database.close()
    await fixture.disk.replaceFile(`${FOLDER}/distrusted`, new Uint8Array(0))
    const again = await DatabaseFixture.open(fixture.disk)
    expect([again.database.isEligibleToVote, again.nodeNames()]).toEqual([false, []])
    expect(filesSetAside(again)).toHaveLength(2)
  })

  it('starts without its folder of logs', async () => {
    const disk = await diskWithFolder(FOLDER)
    await disk.replaceFile(`${FOLDER}/distrusted`, new Uint8Array(0))
    for (const settings of [{}, { dataLogDir: '/logs' }]) {
      const fixture = await DatabaseFixture.open(disk.clone(), settings)
      expect([fixture.database.isEligibleToVote, fixture.nodeNames()]).toEqual([false, []])
    }
  })

  it('is never eligible without the data of a leader, at whatever step it crashes', async () => {
    const base = new MemoryDisk()
    const fixture = await DatabaseFixture.open(base)
    await logAll(fixture)
    await fixture.database.close()
    const steps = await crashAtEachStep(
      base,
      {},
      async (one) => resync(one).then(() => {}),
      async (after, what) => {
        const whole = after.database.lastZxid === zxidOf(1, 6)
        expect(after.database.isEligibleToVote && !whole, what).toBe(false)
      },
    )
    expect(steps).toBeGreaterThan(3)
  })
})

it('a tree that is wrong only in memory is loaded again, and the member stays eligible', async () => {
  const fixture = await DatabaseFixture.open()
  const leader = new LeaderHistory().createRange(1, 1, 3)
  await fixture.runRole(leader.txns)
  fixture.database.requestFullSync()
  const { tree } = fixture.database
  await fixture.database.endRole()
  expect(fixture.database.tree).not.toBe(tree)
  expect(fixture.database).toMatchObject({
    isEligibleToVote: true,
    isFullSyncRequested: true,
    lastZxid: zxidOf(1, 3),
  })
})

describe('a member without data, with db.autocreate=false', () => {
  const settings = { autoCreateDatabase: false }

  it('is not eligible until it has installed a snapshot of a leader', async () => {
    const fixture = await DatabaseFixture.open(new MemoryDisk(), settings)
    expect(fixture.database.isEligibleToVote).toBe(false)
    await fixture.database.close()
    const again = await DatabaseFixture.open(fixture.disk, settings)
    expect(again.database.isEligibleToVote).toBe(false)
    await resync(again)
    await again.database.close()
    expect((await DatabaseFixture.open(fixture.disk, settings)).database.isEligibleToVote).toBe(true)
  })

  it('is eligible if there is a file initialize, which is valid for one start', async () => {
    const disk = await diskWithFolder('/data')
    await disk.replaceFile('/data/initialize', new Uint8Array(0))
    const fixture = await DatabaseFixture.open(disk, settings)
    expect(fixture.database.isEligibleToVote).toBe(true)
    expect(await disk.exists('/data/initialize')).toBe(false)
    await fixture.database.close()
    // It has a snapshot of an empty tree now, which counts as data.
    expect((await DatabaseFixture.open(disk, settings)).database.isEligibleToVote).toBe(true)
  })

  it('is eligible also if that file is added before a later start', async () => {
    const fixture = await DatabaseFixture.open(new MemoryDisk(), settings)
    await fixture.database.close()
    await fixture.disk.replaceFile('/data/initialize', new Uint8Array(0))
    expect((await DatabaseFixture.open(fixture.disk, settings)).database.isEligibleToVote).toBe(true)
  })

  it('is eligible if it has data', async () => {
    const fixture = await DatabaseFixture.open()
    await fixture.runRole(new LeaderHistory().createRange(1, 1, 2).txns)
    await fixture.database.close()
    expect((await DatabaseFixture.open(fixture.disk, settings)).database.isEligibleToVote).toBe(true)
  })
})
