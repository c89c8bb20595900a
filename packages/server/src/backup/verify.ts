import { formatZxid } from '@zabra/protocol'
import { DamageError, RecoveryError } from '../persistence/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import { openRaw, type BackupChain, type BackupStore, type Catalog } from './catalog.ts'
import { BackupError, TargetError } from './errors.ts'
import { loadBackup, type LoadOptions } from './load-backup.ts'
import { manifestName, type Manifest, type SnapshotManifest } from './manifest.ts'
import { chunksOf } from './target.ts'

/** A defect of a backup. */
export interface BackupDefect {
  /** The manifest. */
  readonly name: string
  readonly problem: string
}

/** Checks the stored bytes of manifests: sizes and sums. Yields the name of each piece that is sound, and defects. */
export async function* verifyPieces(
  store: BackupStore,
  manifests: Iterable<Manifest>,
): AsyncGenerator<{ readonly name: string; readonly defect: BackupDefect | undefined }> {
  for (const manifest of manifests) {
    const name = manifestName(manifest)
    yield { name, defect: await defectOf(name, () => verifyPiece(store, manifest)) }
  }
}

/** Checks that the target has the log without which a snapshot is not exact. `Catalog.gaps` are the times that only lack log. */
export function* verifyChain(catalog: Catalog): Generator<BackupDefect> {
  for (const snapshot of catalog.snapshots) {
    const { upTo } = catalog.chainOf(snapshot)
    if (upTo >= snapshot.exactAt) continue
    yield {
      name: manifestName(snapshot),
      problem: `Expected the log up to 0x${formatZxid(snapshot.exactAt)}, which the snapshot contains in part, got it up to 0x${formatZxid(upTo)}: a part of the log is missing. Use another backup.`,
    }
  }
}

/**
 * Loads a snapshot, replays the log up to where it is exact, and compares nodes and digest with the manifest. With `toEnd` it replays
 * the rest of the log too, which has digests of its own. Resolves to the last transaction that was checked.
 */
export async function verifyDeep(
  store: BackupStore,
  chain: BackupChain,
  { toEnd, ...options }: LoadOptions & { readonly toEnd: boolean },
): Promise<{ readonly upTo: Zxid; readonly defect: BackupDefect | undefined }> {
  const { snapshot } = chain
  const name = manifestName(snapshot)
  const defect = await defectOf(name, async () => {
    const { tree } = await loadBackup(store, chain, snapshot.exactAt, options)
    rejectOtherTree(tree, snapshot)
    if (toEnd && chain.upTo > snapshot.exactAt) await loadBackup(store, chain, chain.upTo, options)
  })
  return { upTo: toEnd ? Math.max(chain.upTo, snapshot.exactAt) : snapshot.exactAt, defect }
}

function rejectOtherTree(tree: Tree, { nodes, digest, exactAt }: SnapshotManifest): void {
  const at = `after 0x${formatZxid(exactAt)}`
  if (tree.nodeCount !== nodes)
    throw new BackupError(`Expected ${nodes} nodes ${at}, got ${tree.nodeCount}. Use another backup.`)
  const actual = digestText(tree)
  if (digest !== null && actual !== null && actual !== digest)
    throw new BackupError(`Expected the digest ${digest} ${at}, got ${actual}. Use another backup.`)
}

/** Returns the digest of a tree in hexadecimal; null when it keeps none. */
export function digestText({ digest }: Pick<Tree, 'digest'>): string | null {
  if (digest === undefined) return null
  return [digest.hi, digest.lo].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Reads the stored bytes of a manifest back. Rejects with a `BackupError` where its size or sum is another one. */
export async function verifyPiece({ target, cryptography }: BackupStore, { piece }: Manifest): Promise<void> {
  const hash = cryptography.sha256()
  let bytes = 0
  for await (const chunk of chunksOf(await openRaw(target, piece.name))) {
    hash.update(chunk)
    bytes += chunk.length
  }
  if (bytes !== piece.bytes)
    throw new BackupError(
      `${piece.name} is damaged: Expected ${piece.bytes} bytes, got ${bytes}. Use another backup.`,
    )
  if (hash.digest() !== piece.sha256)
    throw new BackupError(`${piece.name} is damaged: its sum is another one. Use another backup.`)
}

async function defectOf(name: string, check: () => Promise<void>): Promise<BackupDefect | undefined> {
  try {
    await check()
    return undefined
  } catch (error) {
    // Says nothing about the backup.
    if (error instanceof TargetError) throw error
    if (error instanceof BackupError || error instanceof DamageError || error instanceof RecoveryError)
      return { name, problem: error.message }
    throw error
  }
}
