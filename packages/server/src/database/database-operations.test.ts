import { OpCode } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { holdWrites } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { createOf } from '../core/testing/create-of.ts'
import { SnapshotStream } from './snapshot-stream.ts'
import {
  DatabaseFixture,
  encodeTxn,
  FOLDER,
  LeaderHistory,
  treesEqual,
  zxidOf,
} from './testing/database-fixture.ts'

const INCOMING = /incoming/
const CAUGHT_UP = 'Applied what was logged and not yet committed when the role ended'

/** A member with three transactions and a session. */
async function member() {
  const fixture = await DatabaseFixture.accepting(9)
  const leader = new LeaderHistory()
  leader.write(zxidOf(1, 1), { type: OpCode.createSession, timeOut: 5000 }, 9n)
  leader.createRange(1, 2, 3)
  await fixture.runRole(leader.txns)
  return { fixture, leader, database: fixture.database }
}

/** Returns the files that lock the folders. */
const locks = ({ disk }: DatabaseFixture): string[] => disk.paths().filter((path) => path.includes('lock'))

const settled = async (): Promise<void> => {
  for (let i = 0; i < 1000; i++) await Promise.resolve()
}

describe('the database', () => {
  it('of a new member has no snapshot, votes, and asks for no full sync', async () => {
    const fixture = new DatabaseFixture()
    const database = await fixture.open()
    expect(database).toMatchObject({
      lackedSnapshot: true,
      isEligibleToVote: true,
      isFullSyncRequested: false,
      hasUninstalledTree: false,
      lastZxid: 0,
      log: undefined,
    })
    const again = await fixture.reopen()
    expect([again.lackedSnapshot, again.recoveryTimes.replayed]).toEqual([false, 0])
  })

  it('says how many transactions its recovery has replayed, and how long that took', async () => {
    const { fixture } = await member()
    const { recoveryTimes } = await fixture.reopen()
    expect(recoveryTimes).toEqual({ snapshotMs: 0, logMs: 0, replayed: 3 })
  })

  it('of a standalone server has no epochs, and may vote', async () => {
    const fixture = new DatabaseFixture()
    const database = await fixture.open(false)
    expect(() => database.epochs).toThrow('Only a member of an ensemble has epochs.')
    expect(database.isEligibleToVote).toBe(true)
    const writer = fixture.writer()
    const txn = new LeaderHistory().create(zxidOf(5, 1))
    writer.appendPayload(txn.zxid, txn.payload)
    await database.endRole()
    expect(database.lastZxid).toBe(zxidOf(5, 1))
  })

  it('shows the log of the role, and counts what it has appended', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    expect([database.log === writer, database.lastZxid]).toEqual([true, zxidOf(1, 3)])
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    expect([database.lastZxid, database.tree.lastZxid]).toEqual([zxidOf(1, 4), zxidOf(1, 3)])
    await database.endRole()
    expect([database.log, database.lastZxid]).toEqual([undefined, zxidOf(1, 4)])
  })

  it('knows the size of its newest snapshot', async () => {
    const { fixture, database } = await member()
    const first = database.snapshotBytes
    expect(first).toBe(await fixture.disk.size(`${FOLDER}/snapshot.0`))
    await database.takeSnapshot([])
    expect(database.snapshotBytes).toBeGreaterThan(first)
    await database.truncateTo(zxidOf(1, 2))
    expect(database.snapshotBytes).toBe(first)
  })

  it.each([
    [0, 4],
    [1, 8],
  ])(
    'makes a snapshot due after snapCount transactions, or that share (%d) of its nodes',
    async (share, most) => {
      // Nine nodes, four of them its own.
      const disk = new MemoryDisk()
      const fixture = await DatabaseFixture.open(disk, { snapCount: 4, snapTreeShare: share })
      const leader = new LeaderHistory().createRange(1, 1, 5)
      await fixture.runRole(leader.txns)
      await fixture.database.takeSnapshot([])
      await fixture.reopen()
      let due = 0
      const writer = fixture.database.openWriter({ ...fixture.events(), snapshotDue: () => void due++ })
      const txns: number[] = []
      for (let counter = 6; due === 0; counter++) {
        const { zxid, payload } = leader.create(zxidOf(1, counter))
        writer.appendPayload(zxid, payload)
        txns.push(counter)
      }
      // After a random number from half of the limit up to it.
      expect(txns.length).toBeGreaterThan(most / 2)
      expect(txns.length).toBeLessThanOrEqual(most + 1)
    },
  )

  it('counts the transactions of a role towards the next snapshot of the one after it', async () => {
    const fixture = await DatabaseFixture.open(new MemoryDisk(), { snapCount: 100, snapTreeShare: 0 })
    const leader = new LeaderHistory().createRange(1, 1, 120)
    await fixture.runRole(leader.txns.slice(0, 49))
    let due = 0
    const writer = fixture.database.openWriter({ ...fixture.events(), snapshotDue: () => void due++ })
    for (const { zxid, payload } of leader.txns.slice(49, 101)) writer.appendPayload(zxid, payload)
    expect(due).toBe(1)
  })
})

describe('a snapshot of the database', () => {
  it('does not wait for a log that is durable, or of a role that has ended', async () => {
    const { fixture, database } = await member()
    expect((await database.takeSnapshot([])).lastZxid).toBe(zxidOf(1, 3))
    fixture.writer()
    expect((await database.takeSnapshot([])).lastZxid).toBe(zxidOf(1, 3))
  })

  it('is not taken when what it holds cannot become durable', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    database.apply(payload)
    fixture.disk.injectFault = (_, path) => (path.includes('/log.') ? { code: 'ENOSPC' } : undefined)
    await expect(database.takeSnapshot([])).rejects.toThrow('ENOSPC')
    expect(fixture.fileNames().filter((name) => name.startsWith('snapshot'))).toEqual(['snapshot.0'])
    fixture.disk.injectFault = undefined
  })

  it('of a tree that shows the first zxid of an epoch waits for no transaction', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    fixture.disk.injectFault = (_, path) => (path.includes('/log.') ? { code: 'ENOSPC' } : undefined)
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    await expect(writer.flush()).rejects.toThrow('ENOSPC')
    database.tree.lastZxid = zxidOf(2, 0)
    expect((await database.takeSnapshot([])).file).toBe('snapshot.200000000')
    fixture.disk.injectFault = undefined
  })

  it('is taken when the role ends before the log is durable, which makes it so', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    fixture.disk.beforeWrite = () => {
      fixture.disk.beforeWrite = undefined
      return held
    }
    writer.appendPayload(zxid, payload)
    database.apply(payload)
    const flushed = writer.flush().catch(() => {})
    await settled()
    const taking = database.takeSnapshot([])
    await settled()
    const ended = database.endRole()
    await settled()
    release()
    expect((await taking).file).toBe('snapshot.100000004')
    await Promise.all([flushed, ended])
  })

  it('is streamed with the sessions of the database, unless others are given', async () => {
    const { database } = await member()
    const bytesOf = async (...given: Parameters<typeof database.streamSnapshot>) => {
      const source = database.streamSnapshot(...given)
      expect(source.zxid).toBe(zxidOf(1, 3))
      const { value } = (await source.chunks.next()) as { value: Uint8Array }
      // The number of sessions, and the timeout of the first.
      const view = new DataView(value.buffer, value.byteOffset)
      return [view.getInt32(0), view.getInt32(12)]
    }
    expect([await bytesOf(), await bytesOf([[1n, 7000]])]).toEqual([
      [1, 5000],
      [1, 7000],
    ])
  })

  it('is aborted by its signal', async () => {
    const { database } = await member()
    const signal = AbortSignal.abort(new Error('stopping'))
    await expect(database.takeSnapshot([], signal)).rejects.toThrow('stopping')
  })
})

describe('a replacement of all data', () => {
  /** A tree that an operator restores. */
  const restored = (): LeaderHistory => new LeaderHistory().createRange(4, 1, 2)

  it('is written while a role goes on, and replaces tree, sessions and files once it has ended', async () => {
    const { fixture, database } = await member()
    fixture.writer()
    const { tree } = restored()
    const prepared = await database.prepareReplacement(tree)
    expect([prepared.tree, fixture.fileNames().filter((name) => INCOMING.test(name)).length]).toEqual([
      tree,
      1,
    ])
    await expect(database.installReplacement(prepared)).rejects.toThrow(
      'Data are replaced only while no role writes.',
    )
    await database.endRole([[9n, 5000]])
    database.requestFullSync()
    await database.installReplacement(prepared)
    expect(database).toMatchObject({
      tree,
      sessions: new SessionMap(),
      lastZxid: zxidOf(4, 2),
      hasUninstalledTree: false,
      isFullSyncRequested: false,
    })
    expect([database.logRange.after, database.logRange.upTo]).toEqual([zxidOf(4, 2), zxidOf(4, 2)])
    expect(database.snapshotBytes).toBe(await fixture.disk.size(`${FOLDER}/snapshot.400000002`))
    expect(fixture.fileNames().filter((name) => /^(log|snap)/.test(name))).toEqual(['snapshot.400000002'])
    const again = await fixture.reopen()
    expect([treesEqual(again.tree, tree), again.sessions.size]).toEqual([true, 0])
  })

  it('is rejected, and changes nothing, when its file is gone', async () => {
    const { fixture, leader, database } = await member()
    const prepared = await database.prepareReplacement(restored().tree)
    await database.discardReplacement(prepared)
    // Nothing is left to remove.
    await database.discardReplacement(prepared)
    expect(fixture.fileNames().filter((name) => INCOMING.test(name))).toEqual([])
    await expect(database.installReplacement(prepared)).rejects.toThrow(
      /^Expected the data of the replacement in \/data\/version-2\/.*snapshot\.400000002.*, got no such file\. Try again\.$/,
    )
    expect([treesEqual(database.tree, leader.tree), database.hasUninstalledTree]).toEqual([true, false])
  })

  it('works on a standalone server, too', async () => {
    const fixture = new DatabaseFixture()
    const database = await fixture.open(false)
    await database.installReplacement(await database.prepareReplacement(restored().tree))
    expect(database.lastZxid).toBe(zxidOf(4, 2))
  })

  it('aborts a snapshot of the data before', async () => {
    const { fixture, database } = await member()
    const prepared = await database.prepareReplacement(restored().tree)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    fixture.disk.beforeWrite = () => held
    const taking = database.takeSnapshot([])
    const aborted = expect(taking).rejects.toThrow('The data are being replaced')
    await settled()
    const installing = database.installReplacement(prepared)
    await settled()
    fixture.disk.beforeWrite = undefined
    release()
    await aborted
    await installing
    expect(fixture.fileNames().filter((name) => name.startsWith('snap'))).toEqual(['snapshot.400000002'])
  })
})

describe('the end of a role', () => {
  it('takes over the sessions that the role has kept', async () => {
    const { fixture, database } = await member()
    fixture.writer()
    const sessions = new SessionMap([[11n, 7000]])
    await database.endRole(sessions)
    expect(database.sessions).toEqual(sessions)
    expect(database.sessions).not.toBe(sessions)
  })

  it('keeps the sessions of the database where the role has kept none, and applies nothing that it has', async () => {
    const { fixture, leader, database } = await member()
    await fixture.runRole([leader.create(zxidOf(1, 4))])
    expect(database.sessions).toEqual(new SessionMap([[9n, 5000]]))
    expect(fixture.logLines).not.toContain(CAUGHT_UP)
  })

  it('loads the files again when the log has lost what the tree has, and went on with other transactions', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    const lost = new LeaderHistory()
    for (const { zxid, payload } of leader.txns) lost.replay(zxid, payload)
    fixture.disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    const { payload } = lost.create(zxidOf(1, 4), '/lost')
    writer.appendPayload(zxidOf(1, 4), payload)
    database.apply(payload)
    await expect(writer.flush()).rejects.toThrow('ENOSPC')
    fixture.disk.injectFault = undefined
    fixture.clock.advance(1000)
    for (let i = 0; i < 100 && writer.state !== 'open'; i++) await settled()
    const other = leader.create(zxidOf(1, 4))
    writer.appendPayload(other.zxid, other.payload)
    await writer.flush()
    await database.endRole()
    expect([database.tree.has('/lost'), treesEqual(database.tree, leader.tree)]).toEqual([false, true])
  })

  it('ends a role whose log looks for space on a full disk', async () => {
    const { fixture, leader, database } = await member()
    const { disk } = fixture
    const writer = fixture.writer()
    disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    await expect(writer.flush()).rejects.toThrow('ENOSPC')
    disk.injectFault = undefined
    const release = holdWrites(disk)
    fixture.clock.advance(1000)
    await settled()
    const isProbing = () => disk.paths().some((path) => path.endsWith('space-probe.tmp'))
    expect(isProbing()).toBe(true)
    // Another removal of the file comes before this one.
    let isHeld = true
    disk.remove = async (path) => {
      while (isHeld && path.endsWith('space-probe.tmp') && isProbing()) await settled()
      return MemoryDisk.prototype.remove.call(disk, path)
    }
    const ended = database.endRole()
    await settled()
    release()
    for (let i = 0; i < 10; i++) await settled()
    isHeld = false
    await ended
    expect(database.lastZxid).toBe(zxidOf(1, 3))
  })

  it('rejects when the log cannot be read, and where data of a standalone server differ', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    fixture.disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    await expect(database.endRole()).rejects.toThrow('EIO')
    fixture.disk.injectFault = undefined
    const standalone = new DatabaseFixture()
    await standalone.open(false)
    const other = new LeaderHistory().createRange(1, 1, 2)
    const log = standalone.writer()
    log.appendPayload(
      zxidOf(1, 1),
      encodeTxn({
        header: { sessionId: 1n, cxid: 1, zxid: zxidOf(1, 1), time: 1 },
        txn: createOf('/other'),
        digest: undefined,
      }),
    )
    log.appendPayload(zxidOf(1, 2), other.txns[1]!.payload)
    await expect(standalone.database.endRole()).rejects.toThrow('differ from the ensemble')
  })

  it('without a log keeps the tree', async () => {
    const { leader, database } = await member()
    const { tree } = database
    database.apply(leader.create(zxidOf(1, 4)).payload)
    await database.endRole()
    expect([database.tree === tree, tree.lastZxid]).toEqual([true, zxidOf(1, 4)])
  })

  it('loads the files again when the tree has a transaction that the log lacks', async () => {
    const { fixture, leader, database } = await member()
    fixture.writer()
    database.apply(leader.create(zxidOf(1, 4)).payload)
    await database.endRole()
    expect(database).toMatchObject({ hasUninstalledTree: false, isFullSyncRequested: false })
    expect(database.tree.lastZxid).toBe(zxidOf(1, 3))
    expect(fixture.logLines).toContain(
      'Loading the data again, because the role ended before they were correct and complete',
    )
  })

  it('keeps a tree that only shows the first zxid of an epoch', async () => {
    const { fixture, database } = await member()
    fixture.writer()
    const { tree } = database
    tree.lastZxid = zxidOf(2, 0)
    await database.endRole()
    expect(database.tree).toBe(tree)
  })

  it('loads the files again when the tree was found to be wrong, once', async () => {
    const { fixture, leader, database } = await member()
    fixture.writer()
    database.requestFullSync()
    const { tree } = database
    await database.endRole()
    expect(database.tree).not.toBe(tree)
    expect([treesEqual(database.tree, leader.tree), database.isFullSyncRequested]).toEqual([true, true])
    const loaded = database.tree
    await database.endRole()
    expect(database.tree).toBe(loaded)
  })

  it('sets data aside that differ from those of the leader', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    // The leader of this transaction had another node.
    leader.tree.apply({ sessionId: 1n, cxid: 1, zxid: zxidOf(1, 4), time: 1 }, createOf('/other'))
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    await database.endRole()
    expect([database.isFullSyncRequested, database.isEligibleToVote]).toEqual([true, false])
    expect(fixture.logLines).toContain('The data of this server are not those of its leader')
  })

  it('revokes the log and aborts a snapshot that is received at once', async () => {
    const { fixture, leader, database } = await member()
    const sink = database.receiveSnapshot(zxidOf(1, 5))
    void database.endRole()
    await expect(sink.write(new Uint8Array(1))).rejects.toThrow('until it is complete')
    const writer = fixture.writer()
    const ended = database.endRole()
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    expect(() => writer.appendPayload(zxid, payload)).toThrow('A role that has ended')
    await ended
  })
})

describe('receiving a snapshot', () => {
  it('says how many of its nodes have come', async () => {
    const { fixture, database } = await member()
    const { tree } = new LeaderHistory().createRange(4, 1, 2000)
    const sink = database.receiveSnapshot(tree.lastZxid)
    const { nodes, chunks } = new SnapshotStream(tree, [], fixture.clock)
    expect(nodes).toBe(tree.nodeCount)
    const { value } = (await chunks.next()) as { value: Uint8Array }
    await sink.write(value)
    expect(database.receivedNodes).toBeGreaterThan(400)
    expect(database.receivedNodes).toBeLessThan(nodes / 2)
    await chunks.return?.()
  })

  it('aborts the one before', async () => {
    const { database } = await member()
    const first = database.receiveSnapshot(zxidOf(2, 1))
    database.receiveSnapshot(zxidOf(2, 1))
    await expect(first.write(new Uint8Array(1))).rejects.toThrow('until it is complete')
  })

  it('ends when the database is closed', async () => {
    const { database } = await member()
    const sink = database.receiveSnapshot(zxidOf(2, 1))
    await database.close()
    await expect(sink.write(new Uint8Array(1))).rejects.toThrow('until it is complete')
  })

  it('installs only data of an epoch that is accepted', async () => {
    const fixture = await DatabaseFixture.accepting(3)
    await fixture.receiveFrom(new LeaderHistory().createRange(4, 1, 2))
    await expect(fixture.database.installSnapshot()).rejects.toThrow(
      'A member installs only data of an epoch that it has accepted.',
    )
    await fixture.database.acceptEpoch(4)
    await fixture.database.installSnapshot()
    expect(fixture.logLines.filter((line) => line === 'The data of the leader are on disk').length).toBe(1)
    await fixture.database.installSnapshot()
    expect(fixture.logLines.filter((line) => line === 'The data of the leader are on disk').length).toBe(1)
  })
})

describe('closing the database', () => {
  it('makes appends durable and unlocks the folders, once', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    expect(database.close()).toBe(database.close())
    await database.close()
    expect([writer.state, locks(fixture)]).toEqual(['closed', []])
    expect((await fixture.open()).lastZxid).toBe(zxidOf(1, 4))
  })

  it('unlocks the folders also when the log cannot be written', async () => {
    const { fixture, leader, database } = await member()
    const writer = fixture.writer()
    const { zxid, payload } = leader.create(zxidOf(1, 4))
    writer.appendPayload(zxid, payload)
    fixture.disk.injectFault = (call, path) =>
      path.includes('/log.') && call !== 'read' ? { code: 'EIO' } : undefined
    expect(locks(fixture).length).toBe(1)
    await database.close().catch(() => {})
    expect(locks(fixture)).toEqual([])
    fixture.disk.injectFault = undefined
    expect((await fixture.open()).lastZxid).toBe(zxidOf(1, 3))
  })

  it('aborts a snapshot in progress', async () => {
    const { fixture, database } = await member()
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    fixture.disk.beforeWrite = () => held
    const taking = database.takeSnapshot([])
    const aborted = expect(taking).rejects.toThrow('The data are being replaced')
    await settled()
    const closed = database.close()
    await settled()
    fixture.disk.beforeWrite = undefined
    release()
    await Promise.all([aborted, closed])
  })
})
