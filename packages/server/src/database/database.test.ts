import { OpCode } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import {
  atEachStep,
  LeaderHistory,
  collect,
  DatabaseFixture,
  same,
  zxidOf,
} from './testing/database-fixture.ts'

describe('a role', () => {
  it('logs the bytes of its leader as they are', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 3)
    await rig.follow(leader.txns)
    const found = await collect(rig.vault.readHistory(0, zxidOf(1, 3)))
    expect(found).toEqual(leader.txns.map((txn) => expect.objectContaining(txn)))
    await rig.vault.close()
    const again = await DatabaseFixture.open(rig.disk)
    expect(again.vault.lastZxid).toBe(zxidOf(1, 3))
    expect(same(again.vault.tree, leader.tree)).toBe(true)
  })

  it('may append the next transaction only, under its own zxid', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 9)
    const writer = rig.writer()
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
    expect([writer.lastZxid, rig.durable, writer.pendingBytes]).toEqual([zxidOf(1, 2), zxidOf(1, 2), 0])
  })

  it('that ends has all of its appends on disk, and cannot append any more', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(1)
    const leader = new LeaderHistory().creates(1, 1, 5)
    const writer = rig.writer()
    for (const { zxid, payload } of leader.txns.slice(0, 4)) writer.appendPayload(zxid, payload)
    expect(writer.pendingBytes).toBeGreaterThan(200)
    const settled = rig.vault.endRole()
    expect(() => writer.appendPayload(zxidOf(1, 5), leader.txns[4]!.payload)).toThrow(
      'A role that has ended appends nothing to the log.',
    )
    await settled
    expect(writer.state).toBe('closed')
    expect(rig.vault.lastZxid).toBe(zxidOf(1, 4))
    await rig.crash(true)
    expect((await rig.open()).lastZxid).toBe(zxidOf(1, 4))
  })

  it('that ends leaves a tree with what was logged and never committed', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory()
    leader.write(zxidOf(1, 1), { type: OpCode.createSession, timeOut: 5000 }, 9n)
    leader.creates(1, 2, 5)
    leader.write(zxidOf(1, 6), { type: OpCode.createSession, timeOut: 6000 }, 10n)
    const writer = rig.writer()
    for (const { zxid, payload } of leader.txns) writer.appendPayload(zxid, payload)
    for (const { payload } of leader.txns.slice(0, 3)) rig.vault.apply(payload)
    await rig.vault.endRole([[9n, 5000]])
    expect(rig.vault.tree.lastZxid).toBe(zxidOf(1, 6))
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
    expect(rig.vault.sessions).toEqual(leader.sessions)
    expect(rig.lines).toContain('Applied what was logged and not yet committed when the role ended')
  })

  it('that lost appends to a full disk after they were applied leaves what the disk has', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 4)
    const writer = rig.writer()
    for (const { zxid, payload } of leader.txns.slice(0, 2)) writer.appendPayload(zxid, payload)
    await writer.flush()
    rig.disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    for (const { zxid, payload } of leader.txns.slice(2)) writer.appendPayload(zxid, payload)
    await writer.flush().catch(() => {})
    rig.disk.injectFault = undefined
    for (const { payload } of leader.txns) rig.vault.apply(payload)
    expect(rig.full).toBe(1)
    // Nobody is offered as history what is not there.
    expect([rig.vault.logRange.upTo, rig.vault.logRange.epochEnds]).toEqual([zxidOf(1, 2), [zxidOf(1, 2)]])
    await rig.vault.endRole()
    expect([rig.vault.lastZxid, rig.nodes()]).toEqual([zxidOf(1, 2), ['n100000001', 'n100000002']])
    await rig.follow(leader.txns.slice(2))
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
  })

  it('whose disk fails does not settle: the member must stop', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const writer = rig.writer()
    rig.disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    writer.appendPayload(zxidOf(1, 1), new LeaderHistory().create(zxidOf(1, 1)).payload)
    await expect(rig.vault.endRole()).rejects.toThrow('The transaction log cannot be written: EIO')
    expect(rig.fatal?.message).toMatch(/cannot be written/)
  })

  it('logs nothing of an epoch that was not accepted, for no start would believe it', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(1)
    const writer = rig.writer()
    const txn = new LeaderHistory().create(zxidOf(2, 1))
    expect(() => writer.appendPayload(txn.zxid, txn.payload)).toThrow(
      'A member logs only transactions of epochs that it has accepted.',
    )
  })

  it('begins only when the one before it is settled', async () => {
    const rig = await DatabaseFixture.open()
    rig.writer()
    expect(() => rig.writer()).toThrow('A role writes only once the role before it has ended.')
    expect(() => rig.vault.receiveSnapshot(5)).toThrow('Data are replaced only while no role writes.')
    await rig.vault.endRole()
    rig.writer()
  })

  it('hears of a transaction whose digest its tree does not have', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 3)
    rig.vault.apply(leader.txns[0]!.payload)
    // The tree lacks the second one.
    expect(() => rig.vault.apply(leader.txns[2]!.payload)).toThrow(
      'the data of this server differ from the ensemble',
    )
  })

  it('takes no snapshot that is ahead of the log', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 2)
    const writer = rig.writer()
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    for (const { zxid, payload } of leader.txns) {
      writer.appendPayload(zxid, payload)
      rig.vault.apply(payload)
    }
    // Only the write to the log, which is the first one, waits.
    rig.disk.beforeWrite = () => {
      rig.disk.beforeWrite = undefined
      return held
    }
    const flushed = writer.flush()
    while (rig.disk.beforeWrite !== undefined) await Promise.resolve()
    const taking = rig.vault.takeSnapshot([])
    const left = (): boolean => !rig.names().includes('snapshot.100000002')
    for (let i = 0; i < 2000 && left(); i++) await Promise.resolve()
    expect(rig.names()).not.toContain('snapshot.100000002')
    release()
    await Promise.all([flushed, taking])
    expect(rig.names()).toContain('snapshot.100000002')
  })
})

describe('a cut', () => {
  /** Ten transactions in logs of a few each, and snapshots between them. */
  async function member(
    snapshotsAt: number[],
    settings = {},
  ): Promise<{ rig: DatabaseFixture; leader: LeaderHistory }> {
    const rig = await DatabaseFixture.open(new MemoryDisk(), { txnLogSizeLimitBytes: 600, ...settings })
    const leader = new LeaderHistory()
    for (let counter = 1; counter <= 10; counter++) {
      await rig.follow([leader.create(zxidOf(1, counter))])
      if (snapshotsAt.includes(counter)) await rig.vault.takeSnapshot([])
    }
    return { rig, leader }
  }

  const upTo = (counter: number): LeaderHistory => new LeaderHistory().creates(1, 1, counter)

  it('ends the history exactly there, in memory and on disk, whatever snapshots there are', async () => {
    for (const at of [[], [4], [4, 8], [6], [6, 7, 10]]) {
      const { rig } = await member(at)
      expect(await rig.vault.truncateTo(zxidOf(1, 6))).toEqual({ exact: true })
      expect(rig.vault.lastZxid).toBe(zxidOf(1, 6))
      expect(same(rig.vault.tree, upTo(6).tree)).toBe(true)
      await rig.crash(true)
      await rig.open()
      expect([at, rig.vault.lastZxid]).toEqual([at, zxidOf(1, 6)])
      expect(same(rig.vault.tree, upTo(6).tree)).toBe(true)
      await rig.follow([upTo(6).create(zxidOf(2, 1))])
      expect(rig.vault.lastZxid).toBe(zxidOf(2, 1))
    }
  })

  it('removes the entry behind a snapshot to which it cuts (H2)', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 5)
    await rig.receive(leader)
    await rig.vault.installSnapshot()
    await rig.follow([leader.create(zxidOf(1, 6))])
    expect(await rig.vault.truncateTo(zxidOf(1, 5))).toEqual({ exact: true })
    expect(rig.nodes()).not.toContain('n100000006')
    await rig.vault.close()
    expect((await rig.open()).lastZxid).toBe(zxidOf(1, 5))
    expect(rig.nodes()).not.toContain('n100000006')
  })

  it('uses no snapshot whose writing ended later, though its name does not say so (H3)', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 600)
    await rig.follow(leader.txns)
    const writer = rig.writer()
    const entry = leader.create(zxidOf(1, 601))
    writer.appendPayload(entry.zxid, entry.payload)
    await writer.flush()
    // Applied between two slices: the snapshot is named 600 and has the 601st.
    const taking = rig.vault.takeSnapshot([])
    await whileWriting(rig)
    rig.vault.apply(entry.payload)
    await taking
    await rig.vault.endRole()
    expect(rig.names()).toContain(`snapshot.${zxidOf(1, 600).toString(16)}`)
    expect(await rig.vault.truncateTo(zxidOf(1, 600))).toEqual({ exact: true })
    expect(rig.nodes()).toHaveLength(600)
    expect(rig.names().filter((name) => name.startsWith('snapshot'))).toEqual(['snapshot.0'])
    await rig.vault.close()
    expect((await rig.open()).lastZxid).toBe(zxidOf(1, 600))
  })

  it('that cannot be exact changes nothing on disk or in memory', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 5)
    await rig.receive(leader)
    await rig.vault.installSnapshot()
    await rig.follow([leader.create(zxidOf(1, 6)), leader.create(zxidOf(1, 7))])
    const { tree } = rig.vault
    const paths = rig.names()
    for (const zxid of [zxidOf(1, 3), zxidOf(1, 9), zxidOf(2, 1), zxidOf(2, 0)]) {
      const result = await rig.vault.truncateTo(zxid)
      expect(result.exact).toBe(false)
      expect(result.reason).toMatch(/ends at 0x/)
    }
    expect([rig.vault.tree, rig.names()]).toEqual([tree, paths])
  })

  it('to the start of an epoch is exact when the first transaction of it was there', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(9)
    const leader = new LeaderHistory().creates(1, 1, 3).creates(2, 1, 2)
    await rig.follow(leader.txns)
    expect(await rig.vault.truncateTo(zxidOf(2, 0))).toEqual({ exact: true })
    expect([rig.vault.lastZxid, rig.nodes().length]).toEqual([zxidOf(2, 0), 3])
    await rig.follow([upTo(3).create(zxidOf(2, 1))])
    await rig.vault.close()
    expect((await rig.open()).lastZxid).toBe(zxidOf(2, 1))
  })

  it('interrupted at any step leaves a start that has all that is wanted, and no holes', async () => {
    for (const settings of [{}, { dataLogDir: '/logs' }]) {
      const { rig } = await member([4, 7, 8], settings)
      await rig.vault.close()
      const steps = await atEachStep(
        rig.disk,
        { txnLogSizeLimitBytes: 600, ...settings },
        async ({ vault }) => void (await vault.truncateTo(zxidOf(1, 6))),
        async ({ vault }, what) => {
          const counter = vault.lastZxid - zxidOf(1, 0)
          expect([what, counter >= 6 && counter <= 10]).toEqual([what, true])
          expect([what, same(vault.tree, upTo(counter).tree)]).toEqual([what, true])
          // And what was begun can be ended.
          expect([what, await vault.truncateTo(zxidOf(1, 6))]).toEqual([what, { exact: true }])
        },
      )
      expect(steps).toBeGreaterThan(10)
    }
  })
})

/** Until a snapshot has its file. */
async function whileWriting({ disk }: DatabaseFixture): Promise<void> {
  while (!disk.paths().some((path) => path.includes('writing.'))) await Promise.resolve()
}
