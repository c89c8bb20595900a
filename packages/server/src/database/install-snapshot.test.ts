import { OPEN_ACL_UNSAFE, OpCode, Writer } from '@zabra/protocol'
import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { createOf } from '../core/testing/create-of.ts'
import { Tree } from '../core/tree/index.ts'
import {
  crashAtEachStep,
  LeaderHistory,
  collect,
  FOLDER,
  DatabaseFixture,
  treesEqual,
  zxidOf,
} from './testing/database-fixture.ts'
import { SnapshotStream } from './snapshot-stream.ts'

const bytesOf = (chunks: readonly Uint8Array[]): Uint8Array => Uint8Array.from(chunks.flatMap((c) => [...c]))
const text = (bytes: Uint8Array): string => new TextDecoder('latin1').decode(bytes)

/** Returns a member with a history whose last transaction was never committed. */
async function member(disk = new MemoryDisk(), settings = {}): Promise<DatabaseFixture> {
  const fixture = await DatabaseFixture.open(disk, { txnLogSizeLimitBytes: 600, ...settings })
  await fixture.database.acceptEpoch(2)
  const leader = new LeaderHistory().createRange(1, 1, 8)
  await fixture.runRole(leader.txns.slice(0, 4))
  await fixture.database.setCurrentEpoch(1)
  await fixture.database.takeSnapshot([])
  await fixture.runRole(leader.txns.slice(4, 6))
  await fixture.database.takeSnapshot([])
  await fixture.runRole([...leader.txns.slice(6), leader.create(zxidOf(2, 1), '/uncommitted')])
  return fixture
}
/** Returns the history of that member. */
const oldHistory = (): LeaderHistory => {
  const old = new LeaderHistory().createRange(1, 1, 8)
  old.create(zxidOf(2, 1), '/uncommitted')
  return old
}

/** Returns the history of the next leader. */
function successor(): LeaderHistory {
  const leader = new LeaderHistory().createRange(1, 1, 6)
  leader.write(zxidOf(3, 1), { type: OpCode.createSession, timeOut: 7000 }, 77n)
  return leader
}

describe('a snapshot received from a leader', () => {
  it('replaces tree and files when it is installed, and older files are set aside', async () => {
    const fixture = await member()
    await fixture.database.acceptEpoch(3)
    const leader = successor()
    await fixture.receiveFrom(leader)
    expect(fixture.database.hasUninstalledTree).toBe(true)
    expect(fixture.database.tree.lastZxid).toEqual(zxidOf(3, 1))
    expect(fixture.database.lastZxid).toEqual(zxidOf(2, 1))
    expect(fixture.database.sessions).toEqual(new SessionMap([[77n, 7000]]))
    fixture.database.apply(leader.create(zxidOf(3, 2)).payload)
    await fixture.database.installSnapshot()
    await fixture.database.setCurrentEpoch(3)
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
    expect(fixture.fileNames().filter((name) => /^(log|snapshot)/.test(name))).toEqual([
      `snapshot.${zxidOf(3, 2).toString(16)}`,
    ])
    const aside = fixture.fileNames(`${FOLDER}/set-aside`)
    expect(aside).toContain('1.snapshot.100000006')
    expect(aside).toContain('2.log.100000007')
    await fixture.crash(true)
    await fixture.open()
    expect(fixture.database.lastZxid).toEqual(zxidOf(3, 2))
    expect(fixture.database.epochs.current).toBe(3)
    expect(fixture.database.hasUninstalledTree).toBe(false)
    expect(fixture.database.sessions).toEqual(new SessionMap([[77n, 7000]]))
    await fixture.runRole([leader.create(zxidOf(3, 3))])
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
  })

  it('leaves the old tree and the old files when it is aborted', async () => {
    const fixture = await member()
    const names = fixture.fileNames()
    const bytes = bytesOf(await collect(new SnapshotStream(successor().tree, [], fixture.clock)))
    const sink = fixture.database.receiveSnapshot(zxidOf(3, 1))
    await sink.write(bytes.subarray(0, 300))
    const { tree } = fixture.database
    sink.abort()
    await expect(sink.write(bytes)).rejects.toThrow('is written one call at a time')
    await fixture.database.endRole()
    expect(fixture.database.tree).toEqual(tree)
    expect(fixture.database.hasUninstalledTree).toBe(false)
    expect(fixture.fileNames()).toEqual(names)
    expect(treesEqual(tree, oldHistory().tree)).toBe(true)
  })

  it('is dropped when the role ends before it is installed; the old data are loaded again', async () => {
    const fixture = await member()
    const leader = successor()
    await fixture.receiveFrom(leader)
    fixture.database.apply(leader.create(zxidOf(3, 2)).payload)
    await fixture.database.endRole()
    expect(fixture.database).toMatchObject({ lastZxid: zxidOf(2, 1), hasUninstalledTree: false })
    expect(treesEqual(fixture.database.tree, oldHistory().tree)).toBe(true)
    expect(() => fixture.writer()).not.toThrow()
  })

  it('must be installed before a role writes and before its epoch becomes current', async () => {
    const fixture = await member()
    await fixture.receiveFrom(successor())
    expect(() => fixture.writer()).toThrow('A role writes only after a history that is on disk.')
    expect(() => fixture.database.setCurrentEpoch(2)).toThrow('The history of an epoch is durable before')
    await expect(fixture.database.takeSnapshot([])).rejects.toThrow('is written by installing it')
  })

  it('leaves the complete old or the complete new history when installing it crashes at any step', async () => {
    for (const settings of [{}, { dataLogDir: '/logs' }, { snapshotCompression: 'gz' as const }]) {
      const base = await member(new MemoryDisk(), settings)
      await base.database.close()
      const seen = new Set<string>()
      const leader = successor()
      leader.create(zxidOf(3, 2))
      const steps = await crashAtEachStep(
        base.disk,
        { txnLogSizeLimitBytes: 600, ...settings },
        async (fixture) => {
          await fixture.database.acceptEpoch(3)
          await fixture.receiveFrom(leader)
          await fixture.database.installSnapshot()
          await fixture.database.setCurrentEpoch(3)
        },
        async (fixture, what) => {
          const isNew = fixture.database.lastZxid === zxidOf(3, 2)
          const expected = isNew ? leader : oldHistory()
          seen.add(
            isNew ? `new ${fixture.database.epochs.current}` : `old ${fixture.database.epochs.current}`,
          )
          expect([what, treesEqual(fixture.database.tree, expected.tree)]).toEqual([what, true])
          expect(what).toEqual(what)
          expect(fixture.database.epochs.accepted >= fixture.database.epochs.current).toBe(true)
          expect(what).toEqual(what)
          expect(fixture.fileNames().filter((name) => /incoming|writing|replacement/.test(name))).toEqual([])
        },
      )
      expect(steps).toBeGreaterThan(15)
      // The start raises a current epoch that a crash left behind the history.
      expect([...seen].toSorted()).toEqual(['new 3', 'old 2'])
    }
  })

  it('replaces the old history also when both end at the same zxid', async () => {
    const fixture = await DatabaseFixture.accepting(2)
    await fixture.runRole(new LeaderHistory().createRange(1, 1, 4).txns)
    await fixture.database.takeSnapshot([])
    const other = new LeaderHistory().createRange(1, 1, 3)
    other.create(zxidOf(1, 4), '/other')
    await fixture.receiveFrom(other)
    await fixture.database.installSnapshot()
    await fixture.reopen()
    expect(fixture.nodeNames()).toContain('other')
    expect(fixture.fileNames(`${FOLDER}/set-aside`)).toContain('1.snapshot.100000004')
  })

  it('leaves at most six sets of files set aside', async () => {
    const fixture = await member()
    await fixture.database.acceptEpoch(3)
    const leader = successor()
    for (let counter = 2; counter < 9; counter++) {
      await fixture.receiveFrom(leader)
      await fixture.database.installSnapshot()
      await fixture.runRole([leader.create(zxidOf(3, counter))])
    }
    const numbers = new Set(fixture.fileNames(`${FOLDER}/set-aside`).map((name) => name.split('.')[0]))
    expect(numbers.size).toBeLessThanOrEqual(6)
  })

  it('may be received in pieces of any size, and does not consume the bytes after it', async () => {
    const leader = successor()
    const fixture = await DatabaseFixture.open()
    const bytes = bytesOf(await collect(new SnapshotStream(leader.tree, leader.sessions, fixture.clock)))
    const random = new SeededRandom(11)
    for (let run = 0; run < 40; run++) {
      const sink = fixture.database.receiveSnapshot(zxidOf(3, 1))
      let at = 0
      const all = new Uint8Array(bytes.length + 30)
      all.set(bytes)
      while (!sink.isComplete) {
        const part = all.subarray(at, at + 1 + random.below(run === 0 ? 1 : 400))
        at += await sink.write(part)
      }
      expect([run, at, sink.received]).toEqual([run, bytes.length, bytes.length])
      expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
    }
  })

  it('is rejected where it is malformed, and nothing changes', async () => {
    const leader = successor()
    const fixture = await member()
    const { tree } = fixture.database
    const bytes = bytesOf(await collect(new SnapshotStream(leader.tree, leader.sessions, fixture.clock)))
    const broken: [RegExp, (copy: Uint8Array) => Uint8Array][] = [
      [/number of sessions, got -/, (copy) => copy.fill(0xff, 0, 4)],
      [/the signature BenWasHere, got "BenWasHerX"/, (copy) => copy.fill(0x58, copy.length - 1)],
      [
        /the signature BenWasHere, got a string of 9 bytes/,
        (copy) => copy.fill(9, copy.length - 11, copy.length - 10),
      ],
      [/Expected a length, got/, (copy) => copy.fill(0x7f, rootAt(copy), rootAt(copy) + 4)],
      [/Expected the parent of/, (copy) => withoutParent(copy)],
    ]
    for (const [message, breaks] of broken) {
      const sink = fixture.database.receiveSnapshot(zxidOf(3, 1))
      await expect(sink.write(breaks(bytes.slice()))).rejects.toThrow(message)
      expect(sink.isComplete).toBe(false)
      expect(fixture.database.tree).toBe(tree)
    }
    // Random corruption either is detected or changes a value; it never causes another error.
    const random = new SeededRandom(12)
    for (let run = 0; run < 300; run++) {
      const copy = bytes.slice()
      copy[random.below(copy.length)] = random.below(256)
      const sink = fixture.database.receiveSnapshot(zxidOf(3, 1))
      const error: unknown = await sink.write(copy).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (error !== undefined) expect([run, (error as Error).name]).toEqual([run, 'DamageError'])
      sink.abort()
    }
  })

  it('is not installed while a node has no access control list', async () => {
    const fixture = await DatabaseFixture.accepting(3)
    const leader = successor()
    const stream = new SnapshotStream(leader.tree, [], fixture.clock)
    // The node is created after the tables, with a list that they do not contain.
    const acl = [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }]
    const txn = leader.write(zxidOf(3, 2), createOf('/late', { acl, parentCVersion: 7 }))
    const bytes = bytesOf(await collect(stream))
    await fixture.database.receiveSnapshot(zxidOf(3, 1)).write(bytes)
    await expect(fixture.database.installSnapshot()).rejects.toThrow('Expected the access list of /late')
    // The transaction after the stream sets it.
    fixture.database.apply(txn.payload)
    await fixture.database.installSnapshot()
    expect(fixture.database.tree.aclOf(fixture.database.tree.find('/late'))).toEqual(acl)
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
  })
})

describe('a member that requests a full sync', () => {
  it('reports the request and votes with its own data until a snapshot is installed', async () => {
    const fixture = await member()
    await fixture.database.acceptEpoch(3)
    fixture.database.requestFullSync()
    expect(fixture.database).toMatchObject({ isFullSyncRequested: true, lastZxid: zxidOf(2, 1) })
    await fixture.database.endRole()
    expect(fixture.database).toMatchObject({ isFullSyncRequested: true, lastZxid: zxidOf(2, 1) })
    await fixture.receiveFrom(successor())
    await fixture.database.installSnapshot()
    expect(fixture.database).toMatchObject({ lastZxid: zxidOf(3, 1), isFullSyncRequested: false })
  })

  it('builds a history from an empty tree and installs it', async () => {
    const fixture = await member()
    await fixture.database.acceptEpoch(3)
    fixture.database.requestFullSync()
    fixture.database.startEmptyTree()
    const leader = successor()
    for (const { payload } of leader.txns) fixture.database.apply(payload)
    expect(fixture.database.lastZxid).toBe(zxidOf(2, 1))
    await fixture.database.installSnapshot()
    await fixture.reopen()
    expect(treesEqual(fixture.database.tree, leader.tree)).toBe(true)
  })
})

describe('SnapshotStream', () => {
  it('has the bytes of Apache ZooKeeper: tables, nodes, end, signature (disk-format 7.10)', async () => {
    const tree = new Tree({ digest: true, extendedTypes: false })
    const [bytes] = await collect(new SnapshotStream(tree, [[0x55n, 4000]], new DatabaseFixture().clock))
    const w = new Writer(512)
    w.int(1)
    w.long(0x55n)
    w.int(4000)
    w.int(1)
    w.long(1n)
    w.int(1)
    w.int(1)
    w.string('world')
    w.string('anyone')
    const begin = w.take()
    expect(bytes!.subarray(0, begin.length)).toEqual(begin)
    // The root: empty path, empty data, the open list, a stat of zeros.
    const root = bytes!.subarray(begin.length, begin.length + 76)
    expect([...root.subarray(0, 16)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, ...Array<number>(8).fill(255)])
    expect(root.subarray(16).every((byte) => byte === 0)).toBe(true)
    expect(text(bytes!.subarray(-19))).toBe('\0\0\0\x01/\0\0\0\x0aBenWasHere')
  })

  it('of a changing tree, with the transactions after it, gives several receivers the tree of the leader', async () => {
    const random = new SeededRandom(21)
    for (let run = 0; run < 30; run++) {
      const leader = new LeaderHistory()
      leader.createRange(1, 1, 900)
      const members = await Promise.all([
        DatabaseFixture.open(),
        DatabaseFixture.open(),
        DatabaseFixture.open(),
      ])
      const streams = members.map((fixture) =>
        fixture.database
          .acceptEpoch(1)
          .then(() => new SnapshotStream(leader.tree, leader.sessions, fixture.clock)),
      )
      const sources = await Promise.all(streams)
      const sinks = members.map(({ database }, i) => database.receiveSnapshot(sources[i]!.zxid))
      const from = leader.txns.length
      while (sinks.some(({ isComplete: complete }) => !complete)) {
        for (const [i, source] of sources.entries()) {
          if (random.below(3) === 0) change(leader, random)
          const { done, value } = await source.next()
          if (done !== true) await sinks[i]!.write(value)
        }
      }
      for (const { database } of members) {
        for (const { payload } of leader.txns.slice(from)) database.apply(payload)
        expect([run, treesEqual(database.tree, leader.tree)]).toEqual([run, true])
        await database.installSnapshot()
      }
    }
  })

  it('makes one chunk in a turn of the event loop, of at most 500 nodes, or 64 KiB and one node', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 3000)
    const fixture = new DatabaseFixture()
    const chunks = await collect(new SnapshotStream(leader.tree, [], fixture.clock))
    expect(chunks.length).toBeGreaterThan(5)
    expect(fixture.clock.turns).toBeGreaterThanOrEqual(chunks.length - 1)
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan((1 << 16) + 200)
  })

  it('releases the tree when its consumer stops early', async () => {
    const leader = new LeaderHistory().createRange(1, 1, 3000)
    const stream = new SnapshotStream(leader.tree, [], new DatabaseFixture().clock)
    for await (const chunk of stream) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })
})

/** Deletes or creates a random node, or changes its access control list. */
function change(leader: LeaderHistory, random: SeededRandom): void {
  const zxid = leader.tree.lastZxid + 1
  const path = `/n${zxidOf(1, 1 + random.below(900)).toString(16)}`
  const kind = random.below(3)
  if (!leader.tree.has(path) || kind === 0) leader.create(zxid)
  else if (kind === 1) leader.write(zxid, { type: OpCode.delete, path })
  else {
    const { aversion } = leader.tree.statOf(leader.tree.find(path))
    leader.write(zxid, { type: OpCode.setACL, path, acl: OPEN_ACL_UNSAFE, version: aversion + 1 })
  }
}

/** Returns the offset of the root: after the sessions and the access control lists. */
function rootAt(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  let at = 4 + view.getInt32(0) * 12
  let lists = view.getInt32(at)
  for (at += 4; lists > 0; lists--) {
    let entries = view.getInt32(at + 8)
    for (at += 12; entries > 0; entries--) {
      at += 4
      for (let strings = 0; strings < 2; strings++) at += 4 + view.getInt32(at)
    }
  }
  return at
}

/** Changes the path of the first node below the root so that its parent does not exist. */
function withoutParent(bytes: Uint8Array): Uint8Array {
  const at = rootAt(bytes) + 76
  bytes[at + 6] = 0x2f
  return bytes
}
