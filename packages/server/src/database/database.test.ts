import { OpCode } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import {
  crashAtEachStep,
  LeaderHistory,
  collect,
  DatabaseFixture,
  treesEqual,
  zxidOf,
} from './testing/database-fixture.ts'

/** Has a role apply four transactions, of which a full disk has lost the last two. The disk is still full. */
async function loseAppends(): Promise<{ readonly fixture: DatabaseFixture; readonly leader: LeaderHistory }> {
  const fixture = await DatabaseFixture.accepting(9)
  const leader = new LeaderHistory().createRange(1, 1, 4)
  const writer = fixture.writer()
  for (const { zxid, payload } of leader.txns.slice(0, 2)) writer.appendPayload(zxid, payload)
  await writer.flush()
  fixture.disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
  for (const { zxid, payload } of leader.txns.slice(2)) writer.appendPayload(zxid, payload)
  await writer.flush().catch(() => {})
  for (const { payload } of leader.txns) fixture.database.apply(payload)
  return { fixture, leader }
}

describe('a role that uses the database', () => {
  it('logs the payloads of its leader byte for byte', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 3)
    await fixture.runRole(leader.txns)
    const found = await collect(fixture.database.readHistory(0, zxidOf(1, 3)))
    expect(found).toEqual(leader.txns.map((txn) => expect.objectContaining(txn)))
    await fixture.database.close()
    const again = await DatabaseFixture.open(fixture.disk)
    expect(again.database.lastZxid).toBe(zxidOf(1, 3))
    expect(treesEqual(again.database.tree, leader.tree)).toBe(true)
  })

  it('can append only the next transaction, with the zxid that its payload has', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 9)
    const writer = fixture.writer()
    writer.appendPayload(zxidOf(1, 1), leader.txns[0]!.payload)
    expect(() => writer.appendPayload(zxidOf(1, 2), leader.txns[2]!.payload)).toThrow(
      'Expected the transaction 0x100000002, got 0x100000003',
    )
    expect(() => writer.appendPayload(zxidOf(1, 3), leader.txns[2]!.payload)).toThrow(
      'Expected the zxid 0x100000002 or one of a later epoch, got 0x100000003',
    )
    expect(() => writer.appendPayload(zxidOf(1, 1), leader.txns[0]!.payload)).toThrow(RangeError)
    expect(() => writer.appendPayload(zxidOf(1, 2), new Uint8Array(20))).toThrow('got 20 bytes')
    writer.appendPayload(zxidOf(1, 2), leader.txns[1]!.payload)
    await writer.flush()
    expect(writer.lastZxid).toEqual(zxidOf(1, 2))
    expect(fixture.durableZxid).toEqual(zxidOf(1, 2))
    expect(writer.pendingBytes).toBe(0)
  })

  it('has all of its appends on disk when it has ended, and cannot append any more', async () => {
    const fixture = await DatabaseFixture.accepting(1)
    const leader = new LeaderHistory().createRange(1, 1, 5)
    const writer = fixture.writer()
    for (const { zxid, payload } of leader.txns.slice(0, 4)) writer.appendPayload(zxid, payload)
    expect(writer.pendingBytes).toBeGreaterThan(200)
    const settled = fixture.database.endRole()
    expect(() => writer.appendPayload(zxidOf(1, 5), leader.txns[4]!.payload)).toThrow(
      'A role that has ended appends nothing to the log.',
    )
    await settled
    expect(writer.state).toBe('closed')
    expect(fixture.database.lastZxid).toBe(zxidOf(1, 4))
    await fixture.crash(true)
    expect((await fixture.open()).lastZxid).toBe(zxidOf(1, 4))
  })

  it('leaves a tree with transactions that were logged and not committed', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory()
    leader.write(zxidOf(1, 1), { type: OpCode.createSession, timeOut: 5000 }, 9n)
    leader.createRange(1, 2, 5)
    leader.write(zxidOf(1, 6), { type: OpCode.createSession, timeOut: 6000 }, 10n)
    const writer = fixture.writer()
    for (const { zxid, payload } of leader.txns) writer.appendPayload(zxid, payload)
    for (const { payload } of leader.txns.slice(0, 3)) fixture.database.apply(payload)
    await fixture.database.endRole([[9n, 5000]])
    expect(fixture.database.tree.lastZxid).toBe(zxidOf(1, 6))
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
    expect(fixture.database.sessions).toEqual(leader.sessions)
    expect(fixture.logLines).toContain('Applied what was logged and not yet committed when the role ended')
  })

  it('leaves the history of the disk when a full disk has lost appends that were applied', async () => {
    const { fixture, leader } = await loseAppends()
    fixture.disk.injectFault = undefined
    expect(fixture.diskFullCount).toBe(1)
    // The range that learners may read ends at the last durable transaction.
    expect(fixture.database.logRange.upTo).toEqual(zxidOf(1, 2))
    expect(fixture.database.logRange.epochEnds).toEqual([zxidOf(1, 2)])
    await fixture.database.endRole()
    expect(fixture.database.lastZxid).toEqual(zxidOf(1, 2))
    expect(fixture.nodeNames()).toEqual(['n100000001', 'n100000002'])
    await fixture.runRole(leader.txns.slice(2))
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
  })

  it('leaves the history of the disk when the disk was still full at the first attempt to load it', async () => {
    const { fixture, leader } = await loseAppends()
    fixture.disk.injectFault = (call) => (call === 'open' ? { code: 'ENOSPC' } : undefined)
    await expect(fixture.database.endRole()).rejects.toThrow('ENOSPC')
    fixture.disk.injectFault = undefined
    await fixture.database.endRole()
    expect(fixture.database.lastZxid).toEqual(zxidOf(1, 2))
    await fixture.runRole(leader.txns.slice(2))
    expect((await fixture.open()).lastZxid).toBe(zxidOf(1, 4))
  })

  it('rejects endRole when the disk fails, so that the member stops', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const writer = fixture.writer()
    fixture.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    writer.appendPayload(zxidOf(1, 1), new LeaderHistory().create(zxidOf(1, 1)).payload)
    await expect(fixture.database.endRole()).rejects.toThrow('The transaction log cannot be written: EIO')
    expect(fixture.fatal?.message).toMatch(/cannot be written/)
  })

  it('cannot append transactions of an epoch that was not accepted, since the next start would reject them', async () => {
    const fixture = await DatabaseFixture.accepting(1)
    const writer = fixture.writer()
    const txn = new LeaderHistory().create(zxidOf(2, 1))
    expect(() => writer.appendPayload(txn.zxid, txn.payload)).toThrow(
      'A member logs only transactions of epochs that it has accepted.',
    )
  })

  it('can open a writer only when the role before it has ended', async () => {
    const fixture = await DatabaseFixture.open()
    fixture.writer()
    expect(() => fixture.writer()).toThrow('A role writes only once the role before it has ended.')
    expect(() => fixture.database.receiveSnapshot(5)).toThrow('Data are replaced only while no role writes.')
    await fixture.database.endRole()
    fixture.writer()
  })

  it('gets a DivergenceError when the tree lacks the digest of a transaction', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 3)
    fixture.database.apply(leader.txns[0]!.payload)
    // The tree lacks the second one.
    expect(() => fixture.database.apply(leader.txns[2]!.payload)).toThrow(
      'the data of this server differ from the ensemble',
    )
  })

  it('takes a snapshot that gets its name only when the log is durable up to it', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 2)
    const writer = fixture.writer()
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    for (const { zxid, payload } of leader.txns) {
      writer.appendPayload(zxid, payload)
      fixture.database.apply(payload)
    }
    // Only the first write, which is the log's, is delayed.
    fixture.disk.beforeWrite = () => {
      fixture.disk.beforeWrite = undefined
      return held
    }
    const flushed = writer.flush()
    while (fixture.disk.beforeWrite !== undefined) await Promise.resolve()
    const taking = fixture.database.takeSnapshot([])
    const left = (): boolean => !fixture.fileNames().includes('snapshot.100000002')
    for (let i = 0; i < 2000 && left(); i++) await Promise.resolve()
    expect(fixture.fileNames()).not.toContain('snapshot.100000002')
    release()
    await Promise.all([flushed, taking])
    expect(fixture.fileNames()).toContain('snapshot.100000002')
  })
})

describe('truncateTo', () => {
  /** Returns a member with ten transactions, in logs of a few each, and snapshots at the given counters. */
  async function member(snapshotsAt: number[], settings = {}) {
    const fixture = await DatabaseFixture.open(new MemoryDisk(), { txnLogSizeLimitBytes: 600, ...settings })
    const leader = new LeaderHistory()
    for (let counter = 1; counter <= 10; counter++) {
      await fixture.runRole([leader.create(zxidOf(1, counter))])
      if (snapshotsAt.includes(counter)) await fixture.database.takeSnapshot([])
    }
    return { fixture, leader }
  }

  const upTo = (counter: number): LeaderHistory => new LeaderHistory().createRange(1, 1, counter)

  it('ends the history at the zxid, in memory and on disk, whatever snapshots exist', async () => {
    for (const at of [[], [4], [4, 8], [6], [6, 7, 10]]) {
      const { fixture } = await member(at)
      expect(await fixture.database.truncateTo(zxidOf(1, 6))).toEqual({ isExact: true })
      expect(fixture.database.lastZxid).toBe(zxidOf(1, 6))
      expect(treesEqual(fixture.database.tree, upTo(6).tree)).toBe(true)
      await fixture.crash(true)
      await fixture.open()
      expect([at, fixture.database.lastZxid]).toEqual([at, zxidOf(1, 6)])
      expect(treesEqual(fixture.database.tree, upTo(6).tree)).toBe(true)
      await fixture.runRole([upTo(6).create(zxidOf(2, 1))])
      expect(fixture.database.lastZxid).toBe(zxidOf(2, 1))
    }
  })

  it('removes the log entry after a snapshot of the zxid (disk-format H2)', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 5)
    await fixture.receiveFrom(leader)
    await fixture.database.installSnapshot()
    await fixture.runRole([leader.create(zxidOf(1, 6))])
    expect(await fixture.database.truncateTo(zxidOf(1, 5))).toEqual({ isExact: true })
    expect(fixture.nodeNames()).not.toContain('n100000006')
    expect((await fixture.reopen()).lastZxid).toBe(zxidOf(1, 5))
    expect(fixture.nodeNames()).not.toContain('n100000006')
  })

  it('ignores a snapshot whose writing ended above the zxid, though its name does not show it (disk-format H3)', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 600)
    await fixture.runRole(leader.txns)
    const writer = fixture.writer()
    const entry = leader.create(zxidOf(1, 601))
    writer.appendPayload(entry.zxid, entry.payload)
    await writer.flush()
    // Applied between two slices: the snapshot is named after the 600th transaction and contains the 601st.
    const taking = fixture.database.takeSnapshot([])
    await whileWriting(fixture)
    fixture.database.apply(entry.payload)
    await taking
    await fixture.database.endRole()
    expect(fixture.fileNames()).toContain(`snapshot.${zxidOf(1, 600).toString(16)}`)
    expect(await fixture.database.truncateTo(zxidOf(1, 600))).toEqual({ isExact: true })
    expect(fixture.nodeNames()).toHaveLength(600)
    expect(fixture.fileNames().filter((name) => name.startsWith('snapshot'))).toEqual(['snapshot.0'])
    expect((await fixture.reopen()).lastZxid).toBe(zxidOf(1, 600))
  })

  it('changes nothing on disk or in memory when it cannot be exact', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 5)
    await fixture.receiveFrom(leader)
    await fixture.database.installSnapshot()
    await fixture.runRole([leader.create(zxidOf(1, 6)), leader.create(zxidOf(1, 7))])
    const { tree } = fixture.database
    const paths = fixture.fileNames()
    for (const zxid of [zxidOf(1, 3), zxidOf(1, 9), zxidOf(2, 1), zxidOf(2, 0)]) {
      const result = await fixture.database.truncateTo(zxid)
      expect(result.isExact).toBe(false)
      expect(result.reason).toMatch(/ends at 0x/)
    }
    expect([fixture.database.tree, fixture.fileNames()]).toEqual([tree, paths])
  })

  it('is exact for the start of an epoch if the first transaction of the epoch was there', async () => {
    const fixture = await DatabaseFixture.accepting(9)
    const leader = new LeaderHistory().createRange(1, 1, 3).createRange(2, 1, 2)
    await fixture.runRole(leader.txns)
    expect(await fixture.database.truncateTo(zxidOf(2, 0))).toEqual({ isExact: true })
    expect([fixture.database.lastZxid, fixture.nodeNames().length]).toEqual([zxidOf(2, 0), 3])
    await fixture.runRole([upTo(3).create(zxidOf(2, 1))])
    expect((await fixture.reopen()).lastZxid).toBe(zxidOf(2, 1))
  })

  it('leaves everything up to the zxid without gaps when it crashes at any step', async () => {
    for (const settings of [{}, { dataLogDir: '/logs' }]) {
      const { fixture } = await member([4, 7, 8], settings)
      await fixture.database.close()
      const steps = await crashAtEachStep(
        fixture.disk,
        { txnLogSizeLimitBytes: 600, ...settings },
        async ({ database }) => void (await database.truncateTo(zxidOf(1, 6))),
        async ({ database }, what) => {
          const counter = database.lastZxid - zxidOf(1, 0)
          expect([what, counter >= 6 && counter <= 10]).toEqual([what, true])
          expect([what, treesEqual(database.tree, upTo(counter).tree)]).toEqual([what, true])
          // The truncation can be repeated.
          expect([what, await database.truncateTo(zxidOf(1, 6))]).toEqual([what, { isExact: true }])
        },
      )
      expect(steps).toBeGreaterThan(10)
    }
  })
})

/** Waits until the file of a snapshot exists. */
async function whileWriting({ disk }: DatabaseFixture): Promise<void> {
  while (!disk.paths().some((path) => path.includes('writing.'))) await Promise.resolve()
}
