import { Catalog, type BackupStore } from './catalog.ts'
import { manifestName, type Manifest } from './manifest.ts'
import { expiredBackups, type RetentionRule } from './retention.ts'

/** Age from which a piece without a manifest, or an unfinished file, is not one that a running backup writes, in milliseconds. */
const ORPHAN_AGE_MS = 86_400_000

/** Files that are removed at a time. */
const CONCURRENT_REMOVALS = 8

/** Files of a target that can go: expired backups, parts of the log that a larger one has replaced, and pieces of backups that were cut short. */
export interface Prunable {
  readonly manifests: readonly string[]
  /** The pieces of `manifests`, in the same order, then pieces without a manifest. */
  readonly pieces: readonly string[]
  /** What writes that a crash cut short have left. */
  readonly unfinished: readonly string[]
}

/**
 * Returns what can be removed. A piece without a manifest belongs to a backup that was cut short; it can go a day after the newest
 * backup began before it.
 */
export async function findPrunable(
  store: BackupStore,
  catalog: Catalog,
  rules: readonly RetentionRule[],
  now: number,
): Promise<Prunable> {
  const expired = expiredBackups(catalog, rules, now)
  const gone = [...expired.snapshots, ...new Set([...expired.logs, ...catalog.replaced(now)])]
  return {
    manifests: gone.map(manifestName),
    pieces: [...gone.map(({ piece }) => piece.name), ...(await findOrphans(store, catalog, now))],
    unfinished: await store.target.listUnfinished(now - ORPHAN_AGE_MS),
  }
}

/** Returns the pieces without a manifest that can go. */
async function findOrphans(store: BackupStore, catalog: Catalog, now: number): Promise<readonly string[]> {
  const named = piecesOf(catalog)
  const found: string[] = []
  for (const folder of ['snapshot', 'log'])
    for (const file of await store.target.list(folder)) {
      const name = `${folder}/${file}`
      const madeAt = Number(/-(\d{1,15})-[\da-f]{8}\./.exec(file)?.[1] ?? now)
      const isOld = now - madeAt > ORPHAN_AGE_MS
      if (isOld && !named.has(name) && !name.endsWith('.unfinished')) found.push(name)
    }
  if (found.length === 0) return found
  // Another writer may have replaced a manifest since it was read: it names another piece now. Manifests that cannot be read may name any.
  const current = await Catalog.read(store)
  const namedNow = piecesOf(current)
  return current.bad.length > 0 ? [] : found.filter((name) => !namedNow.has(name))
}

const piecesOf = ({ snapshots, logs }: Catalog): ReadonlySet<string> =>
  new Set([...snapshots, ...logs].map(({ piece }) => piece.name))

/**
 * Removes files: manifests first, so that a backup is whole or absent at any time. Goes on with the others where some cannot be removed,
 * and rejects with the first error at the end.
 */
export async function prune(
  { target }: BackupStore,
  { manifests, pieces, unfinished }: Prunable,
): Promise<void> {
  const errors: unknown[] = []
  const left = await forEach(manifests, (name) => target.remove(name), errors)
  const unnamed = pieces.filter((_, at) => at >= manifests.length || !left.has(manifests[at]!))
  await forEach(unnamed, (name) => target.remove(name), errors)
  await forEach(unfinished, (name) => target.removeUnfinished(name), errors)
  if (errors.length > 0) throw errors[0]
}

/** Removes backups of a target. */
export const removeBackups = (store: BackupStore, gone: readonly Manifest[]): Promise<void> =>
  prune(store, {
    manifests: gone.map(manifestName),
    pieces: gone.map(({ piece }) => piece.name),
    unfinished: [],
  })

/**
 * Runs an action for each name, a few at a time: a store far away answers one request after tens of milliseconds. Ends after as many
 * errors, as a store that does not answer gives for each name. Resolves to the names for which it was not done.
 */
async function forEach(
  names: readonly string[],
  action: (name: string) => Promise<void>,
  errors: unknown[],
): Promise<ReadonlySet<string>> {
  const left = new Set(names)
  const rest = names.values()
  const workers = Array.from({ length: CONCURRENT_REMOVALS }, async () => {
    for (const name of rest)
      try {
        await action(name)
        left.delete(name)
      } catch (error) {
        errors.push(error)
        return
      }
  })
  await Promise.all(workers)
  return left
}
