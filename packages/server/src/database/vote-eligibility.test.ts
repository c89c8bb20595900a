import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { DivergedFilesError, SET_ASIDE } from '../persistence/index.ts'
import {
  atEachStep,
  LeaderHistory,
  FOLDER,
  DatabaseFixture,
  same,
  zxidOf,
} from './testing/database-fixture.ts'

/** Four transactions, of which the last one was foreseen for another tree than the first three make. */
function diverging(): LeaderHistory['txns'] {
  const own = new LeaderHistory().creates(1, 1, 3)
  const other = new LeaderHistory()
  for (let i = 1; i <= 3; i++) other.create(zxidOf(1, i), `/other-${i}`)
  return [...own.txns, other.create(zxidOf(1, 4), '/n4')]
}

/** Logs all and applies all but the last, as a role that ends before its commit comes. */
async function logAll(rig: DatabaseFixture): Promise<void> {
  await rig.vault.acceptEpoch(1)
  const writer = rig.writer()
  for (const { zxid, payload } of diverging()) {
    writer.appendPayload(zxid, payload)
    if (zxid !== zxidOf(1, 4)) rig.vault.apply(payload)
  }
  await writer.flush()
}

async function diverged(): Promise<DatabaseFixture> {
  const rig = await DatabaseFixture.open()
  await logAll(rig)
  await rig.vault.endRole()
  return rig
}

const asides = (rig: DatabaseFixture): string[] => rig.names(`${FOLDER}/${SET_ASIDE}`)

/** Brings everything, as a leader of epoch 2 does. */
async function resync(rig: DatabaseFixture): Promise<LeaderHistory> {
  const leader = new LeaderHistory().creates(1, 1, 6)
  await rig.vault.acceptEpoch(2)
  await rig.receive(leader)
  await rig.vault.installSnapshot()
  return leader
}

describe('a member whose log does not fit its tree', () => {
  it('sets all of it aside when its role ends, and votes no more', async () => {
    const rig = await diverged()
    expect(rig.vault.isEligibleToVote).toBe(false)
    expect([rig.vault.isEligibleToVote, rig.vault.isFullSyncRequested, rig.nodes()]).toEqual([
      false,
      true,
      [],
    ])
    expect(asides(rig).map((name) => name.replace(/^\d+\./, ''))).toEqual(
      expect.arrayContaining(['log.100000001', 'snapshot.0']),
    )
    expect(rig.lines.join('\n')).toContain('it sets them aside')
    expect(rig.fatal).toBe(undefined)
  })

  it('remembers it over starts', async () => {
    const rig = await diverged()
    await rig.vault.close()
    const again = await DatabaseFixture.open(rig.disk)
    expect([again.vault.isEligibleToVote, again.vault.isFullSyncRequested]).toEqual([false, true])
    expect(again.vault.epochs.accepted).toBe(1)
  })

  it('votes again when it has everything of a leader', async () => {
    const rig = await diverged()
    const leader = await resync(rig)
    expect([rig.vault.isEligibleToVote, rig.vault.isFullSyncRequested, rig.vault.lastZxid]).toEqual([
      true,
      false,
      zxidOf(1, 6),
    ])
    await rig.vault.close()
    const again = await DatabaseFixture.open(rig.disk)
    expect(again.vault.isEligibleToVote).toBe(true)
    expect(same(again.vault.tree, leader.tree)).toBe(true)
    expect(asides(again).length).toBeGreaterThan(1)
  })

  it('finds it out at the start too, where a server on its own stops', async () => {
    const rig = await DatabaseFixture.open()
    await logAll(rig)
    await rig.vault.close()
    await expect(new DatabaseFixture(rig.disk.clone()).open(false)).rejects.toThrow(DivergedFilesError)
    const again = await DatabaseFixture.open(rig.disk)
    expect(again.vault.isEligibleToVote).toBe(false)
    expect(asides(again)).toHaveLength(2)
  })

  it('is not started as a server on its own, which would begin with nothing', async () => {
    const rig = await diverged()
    await rig.vault.close()
    await expect(new DatabaseFixture(rig.disk).open(false)).rejects.toThrow('remove the file distrusted')
  })

  it('never comes back as one that may vote without the data of a leader, wherever its process ends', async () => {
    const base = new MemoryDisk()
    const rig = await DatabaseFixture.open(base)
    await logAll(rig)
    await rig.vault.close()
    const steps = await atEachStep(
      base,
      {},
      async (one) => resync(one).then(() => {}),
      async (after, what) => {
        const whole = after.vault.lastZxid === zxidOf(1, 6)
        expect(after.vault.isEligibleToVote && !whole, what).toBe(false)
      },
    )
    expect(steps).toBeGreaterThan(3)
  })
})

it('only a tree that went wrong in memory is loaded anew, and its member goes on voting', async () => {
  const rig = await DatabaseFixture.open()
  const leader = new LeaderHistory().creates(1, 1, 3)
  await rig.follow(leader.txns)
  rig.vault.requestFullSync()
  const { tree } = rig.vault
  await rig.vault.endRole()
  expect(rig.vault.tree).not.toBe(tree)
  expect([rig.vault.isEligibleToVote, rig.vault.isFullSyncRequested, rig.vault.lastZxid]).toEqual([
    true,
    true,
    zxidOf(1, 3),
  ])
})

describe('a member without data, with db.autocreate=false', () => {
  const settings = { autoCreateDatabase: false }

  it('does not vote until a leader has sent everything', async () => {
    const rig = await DatabaseFixture.open(new MemoryDisk(), settings)
    expect(rig.vault.isEligibleToVote).toBe(false)
    await rig.vault.close()
    const again = await DatabaseFixture.open(rig.disk, settings)
    expect(again.vault.isEligibleToVote).toBe(false)
    await resync(again)
    await again.vault.close()
    expect((await DatabaseFixture.open(rig.disk, settings)).vault.isEligibleToVote).toBe(true)
  })

  it('votes when there is a file initialize, which is good for one start', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data')
    await disk.replaceFile('/data/initialize', new Uint8Array(0))
    const rig = await DatabaseFixture.open(disk, settings)
    expect(rig.vault.isEligibleToVote).toBe(true)
    expect(await disk.exists('/data/initialize')).toBe(false)
    await rig.vault.close()
    // It has a snapshot of nothing now, and that is data.
    expect((await DatabaseFixture.open(disk, settings)).vault.isEligibleToVote).toBe(true)
  })

  it('votes also when that file comes later', async () => {
    const rig = await DatabaseFixture.open(new MemoryDisk(), settings)
    await rig.vault.close()
    await rig.disk.replaceFile('/data/initialize', new Uint8Array(0))
    expect((await DatabaseFixture.open(rig.disk, settings)).vault.isEligibleToVote).toBe(true)
  })

  it('with data votes as ever', async () => {
    const rig = await DatabaseFixture.open()
    await rig.follow(new LeaderHistory().creates(1, 1, 2).txns)
    await rig.vault.close()
    expect((await DatabaseFixture.open(rig.disk, settings)).vault.isEligibleToVote).toBe(true)
  })
})
