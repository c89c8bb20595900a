import { OPEN_ACL_UNSAFE, OpCode, Writer } from '@zabra/protocol'
import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import {
  atEachStep,
  LeaderHistory,
  collect,
  FOLDER,
  DatabaseFixture,
  same,
  zxidOf,
} from './testing/database-fixture.ts'
import { SnapshotStream } from './snapshot-stream.ts'

const bytesOf = (chunks: readonly Uint8Array[]): Uint8Array => Uint8Array.from(chunks.flatMap((c) => [...c]))
const text = (bytes: Uint8Array): string => new TextDecoder('latin1').decode(bytes)

/** A member with a history of its own, of which the end was never committed. */
async function member(disk = new MemoryDisk(), settings = {}): Promise<DatabaseFixture> {
  const rig = await DatabaseFixture.open(disk, { txnLogSizeLimitBytes: 600, ...settings })
  await rig.vault.acceptEpoch(2)
  const leader = new LeaderHistory().creates(1, 1, 8)
  await rig.follow(leader.txns.slice(0, 4))
  await rig.vault.setCurrentEpoch(1)
  await rig.vault.takeSnapshot([])
  await rig.follow(leader.txns.slice(4, 6))
  await rig.vault.takeSnapshot([])
  await rig.follow([...leader.txns.slice(6), leader.create(zxidOf(2, 1), '/uncommitted')])
  return rig
}
const OLD = (): LeaderHistory => {
  const old = new LeaderHistory().creates(1, 1, 8)
  old.create(zxidOf(2, 1), '/uncommitted')
  return old
}

/** What the next leader has. */
function successor(): LeaderHistory {
  const leader = new LeaderHistory().creates(1, 1, 6)
  leader.write(zxidOf(3, 1), { type: OpCode.createSession, timeOut: 7000 }, 77n)
  return leader
}

describe('a snapshot from the leader', () => {
  it('takes the place of tree and files when it is adopted, and older files are set aside', async () => {
    const rig = await member()
    await rig.vault.acceptEpoch(3)
    const leader = successor()
    await rig.receive(leader)
    expect([rig.vault.hasUninstalledTree, rig.vault.tree.lastZxid, rig.vault.lastZxid]).toEqual([
      true,
      zxidOf(3, 1),
      zxidOf(2, 1),
    ])
    expect(rig.vault.sessions).toEqual(new Map([[77n, 7000]]))
    rig.vault.apply(leader.create(zxidOf(3, 2)).payload)
    await rig.vault.installSnapshot()
    await rig.vault.setCurrentEpoch(3)
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
    expect(rig.names().filter((name) => /^(log|snapshot)/.test(name))).toEqual([
      `snapshot.${zxidOf(3, 2).toString(16)}`,
    ])
    const aside = rig.names(`${FOLDER}/set-aside`)
    expect(aside).toContain('1.snapshot.100000006')
    expect(aside).toContain('2.log.100000007')
    await rig.crash(true)
    await rig.open()
    expect([rig.vault.lastZxid, rig.vault.epochs.current, rig.vault.hasUninstalledTree]).toEqual([
      zxidOf(3, 2),
      3,
      false,
    ])
    expect(rig.vault.sessions).toEqual(new Map([[77n, 7000]]))
    await rig.follow([leader.create(zxidOf(3, 3))])
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
  })

  it('that did not come whole leaves the old tree and the old files', async () => {
    const rig = await member()
    const names = rig.names()
    const bytes = bytesOf(await collect(new SnapshotStream(successor().tree, [], rig.clock)))
    const sink = rig.vault.receiveSnapshot(zxidOf(3, 1))
    await sink.write(bytes.subarray(0, 300))
    const { tree } = rig.vault
    sink.abort()
    await expect(sink.write(bytes)).rejects.toThrow('is written one call at a time')
    await rig.vault.endRole()
    expect([rig.vault.tree, rig.vault.hasUninstalledTree, rig.names()]).toEqual([tree, false, names])
    expect(same(tree, OLD().tree)).toBe(true)
  })

  it('that came whole and was not adopted when the role ended is dropped: the old data are loaded again', async () => {
    const rig = await member()
    const leader = successor()
    await rig.receive(leader)
    rig.vault.apply(leader.create(zxidOf(3, 2)).payload)
    await rig.vault.endRole()
    expect([rig.vault.lastZxid, rig.vault.hasUninstalledTree]).toEqual([zxidOf(2, 1), false])
    expect(same(rig.vault.tree, OLD().tree)).toBe(true)
    expect(() => rig.writer()).not.toThrow()
  })

  it('must be adopted before a role writes, or an epoch becomes current', async () => {
    const rig = await member()
    await rig.receive(successor())
    expect(() => rig.writer()).toThrow('A role writes only behind a history that is on disk.')
    expect(() => rig.vault.setCurrentEpoch(2)).toThrow('The history of an epoch is durable before')
    await expect(rig.vault.takeSnapshot([])).rejects.toThrow('is written by installing it')
  })

  it('interrupted at any step of its adoption leaves the old history or the new one, whole', async () => {
    for (const settings of [{}, { dataLogDir: '/logs' }, { snapshotCompression: 'gz' as const }]) {
      const base = await member(new MemoryDisk(), settings)
      await base.vault.close()
      const seen = new Set<string>()
      const leader = successor()
      leader.create(zxidOf(3, 2))
      const steps = await atEachStep(
        base.disk,
        { txnLogSizeLimitBytes: 600, ...settings },
        async (rig) => {
          await rig.vault.acceptEpoch(3)
          await rig.receive(leader)
          await rig.vault.installSnapshot()
          await rig.vault.setCurrentEpoch(3)
        },
        async (rig, what) => {
          const isNew = rig.vault.lastZxid === zxidOf(3, 2)
          const expected = isNew ? leader : OLD()
          seen.add(isNew ? `new ${rig.vault.epochs.current}` : `old ${rig.vault.epochs.current}`)
          expect([what, same(rig.vault.tree, expected.tree)]).toEqual([what, true])
          expect([what, rig.vault.epochs.accepted >= rig.vault.epochs.current]).toEqual([what, true])
          expect([what, rig.names().filter((name) => /incoming|writing|replacement/.test(name))]).toEqual([
            what,
            [],
          ])
        },
      )
      expect(steps).toBeGreaterThan(15)
      // A start raises the epoch that a crash left behind the data.
      expect([...seen].toSorted()).toEqual(['new 3', 'old 2'])
    }
  })

  it('of the zxid that the old history has takes its place all the same', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(2)
    await rig.follow(new LeaderHistory().creates(1, 1, 4).txns)
    await rig.vault.takeSnapshot([])
    const other = new LeaderHistory().creates(1, 1, 3)
    other.create(zxidOf(1, 4), '/other')
    await rig.receive(other)
    await rig.vault.installSnapshot()
    await rig.vault.close()
    await rig.open()
    expect(rig.nodes()).toContain('other')
    expect(rig.names(`${FOLDER}/set-aside`)).toContain('1.snapshot.100000004')
  })

  it('keeps files of the last times only', async () => {
    const rig = await member()
    await rig.vault.acceptEpoch(3)
    const leader = successor()
    for (let counter = 2; counter < 9; counter++) {
      await rig.receive(leader)
      await rig.vault.installSnapshot()
      await rig.follow([leader.create(zxidOf(3, counter))])
    }
    const numbers = new Set(rig.names(`${FOLDER}/set-aside`).map((name) => name.split('.')[0]))
    expect(numbers.size).toBeLessThanOrEqual(6)
  })

  it('may come cut anywhere, and leaves what follows it to the next reader', async () => {
    const leader = successor()
    const rig = await DatabaseFixture.open()
    const bytes = bytesOf(await collect(new SnapshotStream(leader.tree, leader.sessions, rig.clock)))
    const random = new SeededRandom(11)
    for (let run = 0; run < 40; run++) {
      const sink = rig.vault.receiveSnapshot(zxidOf(3, 1))
      let at = 0
      const all = new Uint8Array(bytes.length + 30)
      all.set(bytes)
      while (!sink.isComplete) {
        const part = all.subarray(at, at + 1 + random.below(run === 0 ? 1 : 400))
        at += await sink.write(part)
      }
      expect([run, at, sink.received]).toEqual([run, bytes.length, bytes.length])
      expect(same(rig.vault.tree, leader.tree)).toBe(true)
    }
  })

  it('that is none is refused, wherever it stops to be one, and nothing changes', async () => {
    const leader = successor()
    const rig = await member()
    const { tree } = rig.vault
    const bytes = bytesOf(await collect(new SnapshotStream(leader.tree, leader.sessions, rig.clock)))
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
      const sink = rig.vault.receiveSnapshot(zxidOf(3, 1))
      await expect(sink.write(breaks(bytes.slice()))).rejects.toThrow(message)
      expect(sink.isComplete).toBe(false)
      expect(rig.vault.tree).toBe(tree)
    }
    // Random damage either is noticed or changes a value; it never does anything else.
    const random = new SeededRandom(12)
    for (let run = 0; run < 300; run++) {
      const copy = bytes.slice()
      copy[random.below(copy.length)] = random.below(256)
      const sink = rig.vault.receiveSnapshot(zxidOf(3, 1))
      const error: unknown = await sink.write(copy).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (error !== undefined) expect([run, (error as Error).name]).toEqual([run, 'DamageError'])
      sink.abort()
    }
  })

  it('without the access list of a node is not kept', async () => {
    const rig = await DatabaseFixture.open()
    await rig.vault.acceptEpoch(3)
    const leader = successor()
    const stream = new SnapshotStream(leader.tree, [], rig.clock)
    // It comes behind the tables, with a list that they do not have.
    const acl = [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }]
    const txn = leader.write(zxidOf(3, 2), {
      type: OpCode.create,
      path: '/late',
      data: null,
      acl,
      ephemeral: false,
      parentCVersion: 7,
    })
    const bytes = bytesOf(await collect(stream))
    await rig.vault.receiveSnapshot(zxidOf(3, 1)).write(bytes)
    await expect(rig.vault.installSnapshot()).rejects.toThrow('Expected the access list of /late')
    // The transaction that follows sets it.
    rig.vault.apply(txn.payload)
    await rig.vault.installSnapshot()
    expect(rig.vault.tree.aclOf(rig.vault.tree.find('/late'))).toEqual(acl)
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
  })
})

describe('a member that asks for everything', () => {
  it('says so, and votes with what it has until new data are adopted', async () => {
    const rig = await member()
    await rig.vault.acceptEpoch(3)
    rig.vault.requestFullSync()
    expect([rig.vault.isFullSyncRequested, rig.vault.lastZxid]).toEqual([true, zxidOf(2, 1)])
    await rig.vault.endRole()
    expect([rig.vault.isFullSyncRequested, rig.vault.lastZxid]).toEqual([true, zxidOf(2, 1)])
    await rig.receive(successor())
    await rig.vault.installSnapshot()
    expect([rig.vault.lastZxid, rig.vault.isFullSyncRequested]).toEqual([zxidOf(3, 1), false])
  })

  it('takes a history from its beginning the same way', async () => {
    const rig = await member()
    await rig.vault.acceptEpoch(3)
    rig.vault.requestFullSync()
    rig.vault.startEmptyTree()
    const leader = successor()
    for (const { payload } of leader.txns) rig.vault.apply(payload)
    expect(rig.vault.lastZxid).toBe(zxidOf(2, 1))
    await rig.vault.installSnapshot()
    await rig.vault.close()
    await rig.open()
    expect(same(rig.vault.tree, leader.tree)).toBe(true)
  })
})

describe('a stream of the tree', () => {
  it('has the bytes of Apache ZooKeeper: tables, nodes, end, signature', async () => {
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
    // The root: no path, no data, the open list, a stat of zeros.
    const root = bytes!.subarray(begin.length, begin.length + 76)
    expect([...root.subarray(0, 16)]).toEqual([0, 0, 0, 0, 0, 0, 0, 0, ...Array<number>(8).fill(255)])
    expect(root.subarray(16).every((byte) => byte === 0)).toBe(true)
    expect(text(bytes!.subarray(-19))).toBe('\0\0\0\x01/\0\0\0\x0aBenWasHere')
  })

  it('goes on while the tree changes, several at once, and gives with what follows the tree that there is', async () => {
    const random = new SeededRandom(21)
    for (let run = 0; run < 30; run++) {
      const leader = new LeaderHistory()
      leader.creates(1, 1, 900)
      const rigs = await Promise.all([DatabaseFixture.open(), DatabaseFixture.open(), DatabaseFixture.open()])
      const streams = rigs.map((rig) =>
        rig.vault.acceptEpoch(1).then(() => new SnapshotStream(leader.tree, leader.sessions, rig.clock)),
      )
      const sources = await Promise.all(streams)
      const sinks = rigs.map(({ vault }, i) => vault.receiveSnapshot(sources[i]!.zxid))
      const from = leader.txns.length
      while (sinks.some(({ isComplete: complete }) => !complete)) {
        for (const [i, source] of sources.entries()) {
          if (random.below(3) === 0) change(leader, random)
          const { done, value } = await source.next()
          if (done !== true) await sinks[i]!.write(value)
        }
      }
      for (const { vault } of rigs) {
        for (const { payload } of leader.txns.slice(from)) vault.apply(payload)
        expect([run, same(vault.tree, leader.tree)]).toEqual([run, true])
        await vault.installSnapshot()
      }
    }
  })

  it('makes one chunk in a turn, of no more than a few hundred nodes or 64 KiB and one node', async () => {
    const leader = new LeaderHistory().creates(1, 1, 3000)
    const rig = new DatabaseFixture()
    const chunks = await collect(new SnapshotStream(leader.tree, [], rig.clock))
    expect(chunks.length).toBeGreaterThan(5)
    expect(rig.clock.turns).toBeGreaterThanOrEqual(chunks.length - 1)
    expect(Math.max(...chunks.map(({ length }) => length))).toBeLessThan((1 << 16) + 200)
  })

  it('that is left lets go of the tree', async () => {
    const leader = new LeaderHistory().creates(1, 1, 3000)
    const stream = new SnapshotStream(leader.tree, [], new DatabaseFixture().clock)
    for await (const chunk of stream) {
      expect(chunk.length).toBeGreaterThan(0)
      break
    }
    expect(await stream.next()).toEqual({ done: true, value: undefined })
  })
})

/** Removes, changes or creates something. */
function change(leader: LeaderHistory, random: SeededRandom): void {
  const zxid = leader.tree.lastZxid + 1
  const path = `/n${zxidOf(1, 1 + random.below(900)).toString(16)}`
  const facts = leader.tree.nodeInfo(path)
  const kind = random.below(3)
  if (facts === undefined || kind === 0) leader.create(zxid)
  else if (kind === 1) leader.write(zxid, { type: OpCode.delete, path })
  else leader.write(zxid, { type: OpCode.setACL, path, acl: OPEN_ACL_UNSAFE, version: facts.aversion + 1 })
}

/** Where the root begins: behind one session and the tables. */
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

/** The first node below the root gets a longer way to it. */
function withoutParent(bytes: Uint8Array): Uint8Array {
  const at = rootAt(bytes) + 76
  bytes[at + 6] = 0x2f
  return bytes
}
