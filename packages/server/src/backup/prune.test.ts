import { describe, expect, it } from 'vitest'
import { Catalog } from './catalog.ts'
import { manifestName } from './manifest.ts'
import { findPrunable, prune, removeBackups } from './prune.ts'
import { parseRetention } from './retention.ts'
import { logBetween, snapshotAt, storeWith } from './testing/manifests.ts'

const DAY = 86_400_000
const NOW = 100 * DAY
const RULES = parseRetention('9d:all')

describe('what can be removed from a target', () => {
  const pieceAt = (time: number, rest = '0a1b2c3d.gz'): string => `snapshot/0-${time}-${rest}`
  const old = pieceAt(NOW - DAY - 1)

  it('are expired backups, and parts of the log that a merged one has replaced, once each', async () => {
    const expired = [snapshotAt(1), logBetween(0, 5), logBetween(0, 15, { merged: true })]
    const replaced = logBetween(30, 35)
    const kept = [snapshotAt(20), snapshotAt(30, { time: NOW }), logBetween(30, 40, { merged: true })]
    const { store } = await storeWith(...expired, replaced, ...kept)
    const { manifests, pieces } = await findPrunable(store, await Catalog.read(store), RULES, NOW)
    const gone = [...expired, replaced]
    expect(manifests).toEqual(gone.map(manifestName))
    expect(pieces).toEqual(gone.map(({ piece }) => piece.name))
  })

  it('are pieces without a manifest a day after they were begun, and no other files', async () => {
    const kept = snapshotAt(30, { time: NOW, piece: { ...snapshotAt(1).piece, name: pieceAt(1) } })
    const { store, write } = await storeWith(kept, logBetween(30, 40))
    const log = `log/0-1-${NOW - DAY - 1}-0a1b2c3d.txns`
    const others = [
      kept.piece.name,
      pieceAt(NOW - DAY),
      'snapshot/notes.gz',
      pieceAt(1, '0a1b2c3.gz'),
      pieceAt(1, '0a1b2c3d'),
      `${old}.0a1b2c3d.unfinished`,
    ]
    for (const name of [old, log, ...others]) await write(name, 'x')
    const { manifests, pieces } = await findPrunable(store, await Catalog.read(store), RULES, NOW)
    expect([manifests, pieces]).toEqual([[], [old, log]])
  })

  it('are no pieces of a manifest that was written, or became unreadable, after the catalog was read', async () => {
    for (const isDamaged of [false, true]) {
      const { store, write, put } = await storeWith(snapshotAt(30, { time: NOW }))
      await write(old, 'x')
      const known = await Catalog.read(store)
      if (isDamaged) await write('manifest/log-1.json', 'x')
      else await put(snapshotAt(31, { time: NOW, piece: { ...snapshotAt(1).piece, name: old } }))
      expect((await findPrunable(store, known, RULES, NOW)).pieces).toEqual([])
      // Nor does one that has read the damaged manifest.
      expect((await findPrunable(store, await Catalog.read(store), RULES, NOW)).pieces).toEqual([])
    }
  })

  it('is found without reading the manifests again where no piece lacks one', async () => {
    const { store, disk } = await storeWith(snapshotAt(30, { time: NOW }))
    const known = await Catalog.read(store)
    disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    expect(await findPrunable(store, known, RULES, NOW)).toEqual({
      manifests: [],
      pieces: [],
      unfinished: [],
    })
  })
})

describe('prune', () => {
  it('removes manifests before the first piece, eight at a time, and then what is unfinished', async () => {
    const { store } = await storeWith()
    const began: string[] = []
    let running = 0
    let most = 0
    const remove = async (name: string): Promise<void> => {
      began.push(name)
      most = Math.max(most, ++running)
      for (let turn = 0; turn < 3; turn++) await Promise.resolve()
      running--
      if (name.startsWith('p')) expect(began.filter((one) => one.startsWith('m'))).toHaveLength(20)
    }
    store.target.remove = remove
    store.target.removeUnfinished = remove
    const named = (kind: string): string[] => Array.from({ length: 20 }, (_, at) => `${kind}${at}`)
    const [manifests, pieces, unfinished] = ['m', 'p', 'u'].map(named)
    await prune(store, { manifests: manifests!, pieces: pieces!, unfinished: unfinished! })
    expect(began).toEqual([...manifests!, ...pieces!, ...unfinished!])
    expect(most).toBe(8)
  })

  it('leaves the pieces of manifests that it could not remove', async () => {
    const { store, disk, write } = await storeWith(snapshotAt(1))
    await write('snapshot/1', 'x')
    disk.injectFault = (call) => (call === 'remove' ? { code: 'EIO' } : undefined)
    await expect(removeBackups(store, [snapshotAt(1)])).rejects.toThrow('EIO')
    disk.injectFault = undefined
    expect(disk.paths()).toContain('/backup/snapshot/1')
    await removeBackups(store, [snapshotAt(1)])
    expect(disk.paths()).toEqual(['/backup/lineage'])
  })
})
