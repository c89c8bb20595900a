import { DiskError } from '@zabra/runtime'
import { countOpen } from '@zabra/testkit'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Catalog, ensureLineage, LARGE_BYTES, openPiece, readSmall } from './catalog.ts'
import { TargetError } from './errors.ts'
import { manifestName, type Manifest } from './manifest.ts'
import { parseKey } from './sealing.ts'
import { logBetween, snapshotAt, storeWith } from './testing/manifests.ts'

const HOUR = 3_600_000

async function catalogOf(...manifests: readonly Manifest[]): Promise<Catalog> {
  return Catalog.read((await storeWith(...manifests)).store)
}

describe('a catalog', () => {
  it('has the backups of its target in their order, and what is wrong with the others', async () => {
    const early = [snapshotAt(10), snapshotAt(20, { exactAt: 21 }), logBetween(10, 20), logBetween(15, 30)]
    const { store, write, put } = await storeWith(logBetween(20, 30), ...early.toReversed())
    await put(snapshotAt(40, { lineage: '1'.repeat(32) }))
    await write('manifest/log-1.json', '{}')
    await write('manifest/notes.txt', 'Not a manifest')
    const catalog = await Catalog.read(store)
    expect(catalog.lineage).toBe('0'.repeat(32))
    expect(catalog.snapshots).toEqual(early.slice(0, 2))
    // Of two that end alike the one that begins earlier comes last: the next part goes on from it. Their manifests have one name.
    expect(catalog.logs.map(({ after, upTo }) => [after, upTo])).toEqual([
      [10, 20],
      [15, 30],
    ])
    expect(catalog.bad.map(({ name }) => name).toSorted()).toEqual([
      'manifest/log-1.json',
      manifestName(snapshotAt(40)),
    ])
    const foreign = catalog.bad.find(({ name }) => name === manifestName(snapshotAt(40)))!
    expect(foreign.error.message).toBe(
      `${manifestName(snapshotAt(40))} belongs to the backups of another target (${'1'.repeat(32)}). Move it away.`,
    )
  })

  it('names a thousand of its bad manifests', async () => {
    const { store, write } = await storeWith()
    for (let i = 0; i < 1001; i++) await write(`manifest/log-${i}.json`, '')
    expect((await Catalog.read(store)).bad).toHaveLength(1000)
  })

  it('leaves out a manifest that was removed since it was listed', async () => {
    const { store } = await storeWith(snapshotAt(1), snapshotAt(2))
    const list = store.target.list.bind(store.target)
    store.target.list = async (folder) => {
      const names = await list(folder)
      await store.target.remove(manifestName(snapshotAt(1)))
      return names
    }
    const { snapshots, bad } = await Catalog.read(store)
    expect([snapshots, bad]).toEqual([[snapshotAt(2)], []])
  })

  it('is not read where the target fails', async () => {
    const { store, disk } = await storeWith(snapshotAt(1))
    const failing = [(): Error => new TargetError('503'), (): Error => new DiskError('EIO', 'EIO', '/backup')]
    const openRead = disk.openRead.bind(disk)
    for (const [index, error] of failing.entries()) {
      disk.openRead = (path) => (path.endsWith('.json') ? Promise.reject(error()) : openRead(path))
      await expect(Catalog.read(store), String(index)).rejects.toThrow(error().message)
    }
    disk.openRead = () => Promise.reject(new DiskError('EIO', 'EIO', '/backup'))
    await expect(Catalog.read(store)).rejects.toThrow('EIO')
  })

  it('reads no manifest again that an earlier one of the same target has', async () => {
    const { store, disk, put, write } = await storeWith(snapshotAt(1), logBetween(1, 5))
    const known = await Catalog.read(store)
    await put(snapshotAt(2))
    const opened: string[] = []
    const openRead = disk.openRead.bind(disk)
    disk.openRead = (path) => (opened.push(path.slice('/backup/'.length)), openRead(path))
    const next = await Catalog.read(store, known)
    expect(opened).toEqual(['lineage', manifestName(snapshotAt(2))])
    expect([next.snapshots, next.logs]).toEqual([[snapshotAt(1), snapshotAt(2)], [logBetween(1, 5)]])
    await write('lineage', `${'1'.repeat(32)}\n`)
    expect((await Catalog.read(store, next)).bad).toHaveLength(3)
  })

  it('of the newest manifests has one of each kind, and reads no other', async () => {
    const { store, disk } = await storeWith(
      ...[9, 0x1f, 0x100].flatMap((zxid) => [snapshotAt(zxid), logBetween(zxid, zxid + 5)]),
    )
    const opened: string[] = []
    const openRead = disk.openRead.bind(disk)
    disk.openRead = (path) => (opened.push(path), openRead(path))
    const { snapshots, logs } = await Catalog.readNewest(store)
    expect([snapshots, logs]).toEqual([[snapshotAt(0x100)], [logBetween(0x100, 0x105)]])
    expect(opened).toHaveLength(3)
    expect((await Catalog.readNewest((await storeWith()).store)).end).toBeUndefined()
  })

  it('is after each change what a reader finds, in whatever order backups come and go', async () => {
    const snapshot = fc
      .record({ zxid: fc.nat(6), more: fc.nat(2) })
      .map(({ zxid, more }) => snapshotAt(zxid, { exactAt: zxid + more, time: more }))
    const log = fc
      .record({ after: fc.nat(6), length: fc.integer({ min: 1, max: 3 }), isMerged: fc.boolean() })
      .map(({ after, length, isMerged }) =>
        logBetween(after, after + length, isMerged ? { merged: true } : { time: length }),
      )
    const backup = fc
      .tuple(fc.option(snapshot), fc.option(log))
      .map((both) => both.filter((one) => one !== null))
    const change = fc.record({ added: backup, removed: fc.nat(3) })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 8 }), async (changes) => {
        const { store, put } = await storeWith()
        let known = await Catalog.read(store)
        for (const { added, removed } of changes) {
          await put(...added)
          known = known.with(added)
          const gone = [...known.snapshots, ...known.logs].slice(removed, removed + 1)
          for (const one of gone) await store.target.remove(manifestName(one))
          known = known.with([], gone)
        }
        const found = await Catalog.read(store)
        const names = ({ snapshots, logs }: Catalog): string[] =>
          [...snapshots, ...logs]
            .map((one) => `${manifestName(one)} ${one.piece.name} ${one.time}`)
            .toSorted()
        expect(names(known)).toEqual(names(found))
        const seen = ({ snapshots, logs, gaps, end }: Catalog) => [
          snapshots.map(({ zxid, exactAt }) => [zxid, exactAt]),
          logs.map(({ after, upTo }) => [after, upTo]),
          gaps,
          end?.upTo,
        ]
        expect(seen(known)).toEqual(seen(found))
        for (const one of known.snapshots) expect(known.chainOf(one).upTo).toBe(found.chainOf(one).upTo)
      }),
      { numRuns: 200 },
    )
  })

  it('of a target without a lineage has that of the first backup', async () => {
    const { store } = await storeWith()
    await store.target.remove('lineage')
    const empty = await Catalog.read(store)
    expect(empty.lineage).toBeUndefined()
    expect(empty.with([snapshotAt(1)]).lineage).toBe('0'.repeat(32))
    expect(empty.with([]).lineage).toBeUndefined()
  })
})

describe('the chain of a snapshot', () => {
  it('has as few parts of the log as there are, up to the first gap', async () => {
    const parts: [number, number][] = [
      [0, 30],
      [0, 10],
      [10, 20],
      [20, 40],
      [30, 35],
      [40, 41],
      [43, 60],
    ]
    const catalog = await catalogOf(snapshotAt(5), ...parts.map(([after, upTo]) => logBetween(after, upTo)))
    const { logs, upTo } = catalog.chainOf(catalog.snapshots[0]!)
    expect(logs.map(({ after, upTo: end }) => [after, end])).toEqual([
      [0, 30],
      [20, 40],
      [40, 41],
    ])
    expect(upTo).toBe(41)
  })

  it('has no part of the log that a longer one makes needless', async () => {
    const catalog = await catalogOf(snapshotAt(5), logBetween(4, 10), logBetween(5, 30))
    expect(catalog.newestChain().logs).toEqual([logBetween(5, 30)])
  })

  it('is the snapshot alone where no log follows it', async () => {
    for (const log of [logBetween(6, 9), logBetween(1, 5)]) {
      const catalog = await catalogOf(snapshotAt(5), log)
      expect(catalog.newestChain()).toEqual({ snapshot: snapshotAt(5), logs: [], upTo: 5 })
    }
  })

  it('to a transaction begins with the newest snapshot that is exact by then, and reaches it', async () => {
    const catalog = await catalogOf(
      snapshotAt(5, { exactAt: 8 }),
      logBetween(5, 10),
      snapshotAt(20),
      logBetween(20, 30),
      snapshotAt(40, { exactAt: 42 }),
    )
    const begin = (zxid: number): number => catalog.chainTo(zxid).snapshot.zxid
    expect([8, 10, 20, 30].map(begin)).toEqual([5, 5, 20, 20])
    for (const zxid of [7, 11, 19, 31, 42])
      expect(() => begin(zxid), String(zxid)).toThrow(
        `Expected a backup that holds 0x${zxid.toString(16)}, got those of 0x8 to 0xa, 0x14 to 0x1e, 0x2a to 0x2a.`,
      )
    const empty = await catalogOf()
    expect(() => empty.chainTo(1)).toThrow('Expected a backup that holds 0x1, got none.')
  })

  it('that is newest needs a snapshot: else the error names a bad manifest', async () => {
    const { store, write } = await storeWith(logBetween(1, 2))
    expect(() => Catalog.prototype.newestChain.call({ snapshots: [], bad: [] })).toThrow(
      'Expected a backup in the target, got none. Make one with zabra backup now.',
    )
    await write('manifest/snapshot-1.json', 'x')
    const catalog = await Catalog.read(store)
    expect(() => catalog.newestChain()).toThrow('manifest/snapshot-1.json is damaged')
  })
})

describe('the end of a target', () => {
  it('is that of the log, unless a snapshot is exact only after it', async () => {
    const log = logBetween(1, 9)
    expect((await catalogOf(log)).end).toEqual(log)
    expect((await catalogOf(log, snapshotAt(5, { exactAt: 9 }))).end).toEqual(log)
    expect((await catalogOf(log, snapshotAt(5, { exactAt: 10 }))).end).toEqual({
      upTo: 10,
      beforeLast: 10,
      lastChecksum: undefined,
    })
    expect((await catalogOf(snapshotAt(5))).end?.upTo).toBe(5)
    expect((await catalogOf()).end).toBeUndefined()
  })
})

describe('the small parts of the log at the end of a target', () => {
  const unmerged = async (...logs: readonly ReturnType<typeof logBetween>[]) =>
    (await catalogOf(...logs)).unmerged.map(({ upTo }) => upTo)

  it('follow each other, after the last one that is large or merged', async () => {
    expect(await unmerged()).toEqual([])
    expect(await unmerged(logBetween(1, 2), logBetween(2, 3), logBetween(2, 4))).toEqual([2, 3, 4])
    expect(await unmerged(logBetween(1, 2), logBetween(3, 4), logBetween(4, 5))).toEqual([4, 5])
    for (const large of [{ merged: true }, { bytes: LARGE_BYTES }] as const)
      expect(await unmerged(logBetween(1, 2), logBetween(2, 3, large), logBetween(3, 4))).toEqual([4])
    expect(await unmerged(logBetween(1, 2), logBetween(2, 3, { bytes: LARGE_BYTES - 1 }))).toEqual([2, 3])
    expect(await unmerged(logBetween(1, 2, { merged: true }))).toEqual([])
  })
})

describe('the parts of the log that a merged one replaces', () => {
  it('can go an hour after it was written, where it has all that they have', async () => {
    const catalog = await catalogOf(
      logBetween(0, 1),
      logBetween(5, 20, { merged: true, time: 1000 }),
      logBetween(5, 10),
      logBetween(10, 20),
      logBetween(19, 21),
      logBetween(25, 28),
      logBetween(30, 40, { merged: true, time: 2000 }),
      logBetween(32, 40),
    )
    const replaced = (now: number): number[] => catalog.replaced(now).map(({ after }) => after)
    expect(replaced(1000 + HOUR - 1)).toEqual([])
    expect(replaced(1000 + HOUR)).toEqual([5, 10])
    expect(replaced(2000 + HOUR)).toEqual([5, 10, 32])
  })
})

describe('the gaps of a catalog', () => {
  const gaps = async (...manifests: readonly Manifest[]) => (await catalogOf(...manifests)).gaps

  it('are what is missing between parts of the log, and end at the next snapshot', async () => {
    expect(await gaps()).toEqual([])
    expect(await gaps(snapshotAt(5), logBetween(5, 9), logBetween(8, 12))).toEqual([])
    expect(
      await gaps(snapshotAt(5), logBetween(5, 9), logBetween(10, 12), snapshotAt(14), snapshotAt(20)),
    ).toEqual([{ after: 9, before: 14 }])
    expect(await gaps(logBetween(5, 9), logBetween(10, 12))).toEqual([{ after: 9, before: undefined }])
    // The log ends before the newest snapshot.
    expect(await gaps(snapshotAt(5), logBetween(5, 9), snapshotAt(9), snapshotAt(14))).toEqual([
      { after: 9, before: 14 },
    ])
    // A part of the log fills what is missing between two others.
    expect(await gaps(logBetween(1, 2), logBetween(5, 6), logBetween(0, 10, { merged: true }))).toEqual([])
    // A snapshot is exact where the log ends: nothing is missing.
    expect(await gaps(snapshotAt(5), logBetween(5, 9), snapshotAt(9))).toEqual([])
    expect(
      await gaps(snapshotAt(5), logBetween(5, 9), snapshotAt(10), logBetween(10, 12), logBetween(14, 15)),
    ).toEqual([
      { after: 9, before: 10 },
      { after: 12, before: undefined },
    ])
  })

  it('are none where only that log is left which old snapshots need', async () => {
    const old = [
      snapshotAt(5, { exactAt: 7 }),
      logBetween(5, 7),
      snapshotAt(20, { exactAt: 22 }),
      logBetween(20, 22),
    ]
    expect(await gaps(...old)).toEqual([])
    expect(await gaps(...old, logBetween(30, 32))).toEqual([])
    expect(await gaps(...old, snapshotAt(30), logBetween(30, 32), logBetween(40, 41))).toEqual([
      { after: 32, before: undefined },
    ])
  })

  it('are what snapshots say, while the log goes on after them', async () => {
    const gap = snapshotAt(20, { gapAfter: 9 })
    expect(await gaps(snapshotAt(5), gap)).toEqual([{ after: 9, before: 20 }])
    expect(await gaps(snapshotAt(5), gap, logBetween(20, 22), snapshotAt(22))).toEqual([
      { after: 9, before: 20 },
    ])
    // The log before it is left since its own snapshot needs it.
    expect(await gaps(snapshotAt(5, { exactAt: 9 }), logBetween(5, 9), gap)).toEqual([
      { after: 9, before: 20 },
    ])
    // Retention has removed the log.
    expect(await gaps(snapshotAt(5), gap, snapshotAt(22))).toEqual([])
    // The log was found later.
    expect(await gaps(snapshotAt(5), logBetween(9, 20), gap)).toEqual([])
    // The oldest backup begins there.
    expect(await gaps(gap)).toEqual([])
    // What is missing is named once, and the oldest first.
    expect(await gaps(snapshotAt(5), logBetween(5, 9), gap, logBetween(20, 22))).toEqual([
      { after: 9, before: 20 },
    ])
    const missing = [snapshotAt(5), logBetween(5, 9), logBetween(10, 12), snapshotAt(14)]
    expect(await gaps(...missing, snapshotAt(30, { gapAfter: 14 }))).toEqual([
      { after: 9, before: 14 },
      { after: 14, before: 30 },
    ])
  })
})

describe('the lineage of a target', () => {
  it('is drawn once', async () => {
    const { store, disk } = await storeWith()
    expect(await ensureLineage(store)).toBe('0'.repeat(32))
    await store.target.remove('lineage')
    const drawn = await ensureLineage(store)
    expect(drawn).toMatch(/^[\da-f]{32}$/)
    expect(await ensureLineage(store)).toBe(drawn)
    expect(disk.paths()).toEqual(['/backup/lineage'])
  })

  it('is not drawn anew where the file is damaged, or cannot be read', async () => {
    const { store, write, disk } = await storeWith()
    for (const text of ['0'.repeat(31), '0'.repeat(33), `${'0'.repeat(31)}x`]) {
      await write('lineage', text)
      await expect(ensureLineage(store)).rejects.toThrow('/backup/lineage is damaged')
    }
    disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    await expect(ensureLineage(store)).rejects.toThrow('EIO')
  })
})

describe('a file of a target', () => {
  it('that is short is read as a whole, and closed; a longer one than a manifest may be is damaged', async () => {
    const { store, write, disk } = await storeWith()
    const open = countOpen(disk)
    await write('duty', new Uint8Array(65_536).fill(7))
    expect(await readSmall(store.target, 'duty')).toEqual(new Uint8Array(65_536).fill(7))
    await write('duty', new Uint8Array(65_537))
    await expect(readSmall(store.target, 'duty')).rejects.toThrow(
      'duty is damaged: Expected at most 65536 bytes, got 65537.',
    )
    expect(open()).toBe(0)
  })

  it('is opened as it is, or with its key, and closed where that is another one', async () => {
    const { store, write, disk } = await storeWith()
    const plain = snapshotAt(1)
    await expect(openPiece(store, plain)).rejects.toThrow('snapshot/1 is missing in file:///backup.')
    await write('snapshot/1', 'abc')
    const reader = await openPiece(store, plain)
    expect(await reader.size()).toBe(3)
    await expect(openPiece(store, { ...plain, key: 'a'.repeat(16) })).rejects.toThrow('got no key')
    const open = countOpen(disk)
    const key = parseKey('ab'.repeat(32), store.cryptography, 'backup.key')
    await expect(openPiece({ ...store, key }, { ...plain, key: key.id })).rejects.toThrow(
      'it is no encrypted file',
    )
    expect(open()).toBe(0)
    disk.openRead = () => Promise.reject(new DiskError('EIO', 'EIO', 'x'))
    await expect(openPiece(store, plain)).rejects.toThrow('EIO')
  })
})
