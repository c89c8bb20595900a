import { formatZxid } from '@zabra/protocol'
import { DiskError, type Cryptography, type DiskReader, type Random } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { BackupError, TargetError, BackupUsageError } from './errors.ts'
import {
  decodeManifest,
  manifestName,
  MANIFESTS,
  needsLog,
  type LogManifest,
  type Manifest,
  type SnapshotManifest,
} from './manifest.ts'
import { SealedReader, type BackupKey } from './sealing.ts'
import { hex, type BackupTarget } from './target.ts'

/** A target with what reading and writing it needs. */
export interface BackupStore {
  readonly target: BackupTarget
  readonly cryptography: Cryptography
  readonly random: Random
  readonly key: BackupKey | undefined
}

/** Longest manifest in bytes. */
const MAX_MANIFEST_BYTES = 64 * 1024
/** Manifests that cannot be used, of which is kept why. */
const MAX_BAD = 1000
/** Bytes from which a part of the log is not merged with others. */
export const LARGE_BYTES = 32 << 20
/** Time for which parts of the log stay beside the larger one that replaces them, in milliseconds. */
const REPLACED_MS = 3_600_000
/** Manifests that are read at a time. */
const CONCURRENT_READS = 8
/** The file that holds the lineage of a target. */
const LINEAGE = 'lineage'

/** A manifest that cannot be used. */
export interface BadManifest {
  readonly name: string
  readonly error: BackupError
}

/** A snapshot with the parts of the log after it that follow each other without a gap. */
export interface BackupChain {
  readonly snapshot: SnapshotManifest
  readonly logs: readonly LogManifest[]
  /** The last transaction of the chain. */
  readonly upTo: Zxid
}

/** A time between two backups that cannot be restored. */
export interface BackupGap {
  /** The last transaction that can be restored before it. */
  readonly after: Zxid
  /** The first one that can be restored after it; undefined where no snapshot has followed. */
  readonly before: Zxid | undefined
}

/** The last transaction in a target. */
export interface CatalogEnd {
  readonly upTo: Zxid
  /** A transaction after which a log begins that contains the last one, or goes on after it. */
  readonly beforeLast: Zxid
  /** The checksum of the last transaction; undefined where no log holds it. */
  readonly lastChecksum: number | undefined
}

/** Manifests in the orders of `Catalog`. */
interface SortedManifests {
  readonly snapshots: readonly SnapshotManifest[]
  readonly logs: readonly LogManifest[]
  readonly logsByBegin: readonly LogManifest[]
}

/** No two snapshots of one transaction are in a target: their manifests have one name. */
const bySnapshot = (a: SnapshotManifest, b: SnapshotManifest): number => a.zxid - b.zxid
const byEnd = (a: LogManifest, b: LogManifest): number => a.upTo - b.upTo || b.after - a.after
const byBegin = (a: LogManifest, b: LogManifest): number => a.after - b.after || b.upTo - a.upTo

function byKind(manifests: readonly Manifest[]): [snapshots: SnapshotManifest[], logs: LogManifest[]] {
  return [
    manifests.filter((one): one is SnapshotManifest => one.kind === 'snapshot'),
    manifests.filter((one): one is LogManifest => one.kind === 'log'),
  ]
}

/** Returns a sorted list without some, and with others, which come close to its end. */
function changed<T extends Manifest>(
  sorted: readonly T[],
  gone: ReadonlySet<Manifest>,
  added: readonly T[],
  order: (a: T, b: T) => number,
): readonly T[] {
  const list = sorted.filter((one) => !gone.has(one))
  for (const one of added) list.splice(list.findLastIndex((other) => order(other, one) <= 0) + 1, 0, one)
  return list
}

/** The backups in a target, by their manifests. */
export class Catalog {
  readonly lineage: string | undefined
  /** Oldest first. */
  readonly snapshots: readonly SnapshotManifest[]
  /** Oldest first. */
  readonly logs: readonly LogManifest[]
  readonly bad: readonly BadManifest[]
  /** Those that are known by their names, which later catalogs of the target share. */
  readonly #byName: Map<string, Manifest>
  /** Of those that begin alike the longest comes first. */
  readonly #logsByBegin: readonly LogManifest[]

  private constructor(
    lineage: string | undefined,
    byName: Map<string, Manifest>,
    bad: readonly BadManifest[],
    { snapshots, logs, logsByBegin }: SortedManifests,
  ) {
    this.lineage = lineage
    this.#byName = byName
    this.snapshots = snapshots
    this.logs = logs
    this.#logsByBegin = logsByBegin
    this.bad = bad
  }

  /**
   * Reads all manifests of a target, but for those that `known`, an earlier catalog of it, has. Those that are damaged, or belong to
   * another target, are in `bad`, the first thousand of them.
   */
  static async read(store: BackupStore, known?: Catalog): Promise<Catalog> {
    return Catalog.#read(store, await listManifests(store), known)
  }

  /** Reads the newest manifest of each kind alone: enough for `end`, with a request for each. */
  static async readNewest(store: BackupStore): Promise<Catalog> {
    const names = (await listManifests(store)).toSorted()
    const newest = ['snapshot', 'log'].map((kind) =>
      names.findLast((name) => name.startsWith(`${MANIFESTS}/${kind}-`)),
    )
    return Catalog.#read(
      store,
      newest.filter((name) => name !== undefined),
    )
  }

  static async #read(store: BackupStore, all: readonly string[], known?: Catalog): Promise<Catalog> {
    const lineage = await readLineage(store.target)
    const names = all.values()
    const byName = new Map<string, Manifest>()
    const bad: BadManifest[] = []
    // Each reader takes the next name: a store far away answers one request after tens of milliseconds.
    const readers = Array.from({ length: CONCURRENT_READS }, async () => {
      for (const name of names) {
        const manifest =
          (known === undefined || known.lineage !== lineage ? undefined : known.#byName.get(name)) ??
          (await readManifest(store, name, lineage))
        if (manifest instanceof BackupError) {
          if (bad.length < MAX_BAD) bad.push({ name, error: manifest })
        } else if (manifest !== undefined) byName.set(name, manifest)
      }
    })
    await Promise.all(readers)
    const [snapshots, logs] = byKind([...byName.values()])
    return new Catalog(lineage, byName, bad, {
      snapshots: snapshots.toSorted(bySnapshot),
      logs: logs.toSorted(byEnd),
      logsByBegin: logs.toSorted(byBegin),
    })
  }

  /**
   * Returns the catalog of the target after backups were written to it, and others of this catalog removed. It sorts nothing anew: a busy
   * target gets a part each five seconds, and may hold tens of thousands.
   */
  with(added: readonly Manifest[], removed: readonly Manifest[] = []): Catalog {
    const byName = this.#byName
    const gone = new Set(removed)
    for (const manifest of removed) byName.delete(manifestName(manifest))
    for (const manifest of added) {
      const name = manifestName(manifest)
      const replaced = byName.get(name)
      if (replaced !== undefined) gone.add(replaced)
      byName.set(name, manifest)
    }
    const [snapshots, logs] = byKind(added)
    return new Catalog(this.lineage ?? added[0]?.lineage, byName, this.bad, {
      snapshots: changed(this.snapshots, gone, snapshots, bySnapshot),
      logs: changed(this.logs, gone, logs, byEnd),
      logsByBegin: changed(this.#logsByBegin, gone, logs, byBegin),
    })
  }

  /** The parts of the log at its end that follow each other and that no larger one has replaced yet, oldest first. */
  get unmerged(): readonly LogManifest[] {
    const { logs } = this
    let first = logs.length
    while (first > 0 && isSmall(logs[first - 1]!)) {
      if (first < logs.length && logs[first - 1]!.upTo < logs[first]!.after) break
      first--
    }
    return logs.slice(first)
  }

  /**
   * Returns the parts of the log that larger ones have replaced and that can go, at a time in milliseconds since 1970. They stay for an
   * hour, for readers that have listed the target before.
   */
  replaced(now: number): readonly LogManifest[] {
    let reach = -1
    const replaced: LogManifest[] = []
    for (const log of this.#logsByBegin)
      if (log.merged === true) {
        if (now - log.time >= REPLACED_MS) reach = Math.max(reach, log.upTo)
      } else if (log.upTo <= reach) replaced.push(log)
    return replaced
  }

  /** Where the log of the next backup continues; undefined for a target without backups. */
  get end(): CatalogEnd | undefined {
    const [log, snapshot] = [this.logs.at(-1), this.snapshots.at(-1)]
    if (log !== undefined && log.upTo >= (snapshot?.exactAt ?? 0)) return log
    return snapshot && { upTo: snapshot.exactAt, beforeLast: snapshot.exactAt, lastChecksum: undefined }
  }

  /** The gaps in the log, oldest first: what is missing between its parts, and what snapshots say. */
  get gaps(): readonly BackupGap[] {
    const missing = this.#missing()
    const others = this.#gapsBySnapshots().filter(
      (gap) => !missing.some(({ before }) => before === gap.before),
    )
    return [...others, ...missing].toSorted((one, other) => one.after - other.after)
  }

  /**
   * Returns the gaps before snapshots that say so, while the log goes on after them: retention has removed it, and the time before, at old
   * ones.
   */
  #gapsBySnapshots(): BackupGap[] {
    const { snapshots, logs } = this
    const goesOnAfter = (zxid: Zxid): boolean => logs.some(({ after, upTo }) => after <= zxid && upTo > zxid)
    const newest = snapshots.at(-1)
    return snapshots.slice(1).flatMap((snapshot) => {
      const { gapAfter, exactAt } = snapshot
      if (gapAfter === undefined || goesOnAfter(gapAfter)) return []
      return snapshot === newest || goesOnAfter(exactAt) ? [{ after: gapAfter, before: exactAt }] : []
    })
  }

  /**
   * Returns what is missing between parts of the log. Retention removes the log between old snapshots but for what these need to be
   * exact: where that alone is left, what is missing is no gap.
   */
  #missing(): BackupGap[] {
    const { snapshots } = this
    const begin = this.logs.findIndex((log) => !snapshots.some((snapshot) => needsLog(snapshot, log)))
    if (begin < 0) return []
    const gaps: BackupGap[] = []
    let reach = this.logs[begin]!.upTo
    const addUpTo = (next: Zxid): void => {
      const before = snapshots.find(({ exactAt }) => exactAt > reach)?.exactAt
      if (next > reach && (gaps.length === 0 || gaps.at(-1)!.before !== before))
        gaps.push({ after: reach, before })
    }
    // Parts overlap where a larger one has replaced smaller ones.
    for (const log of this.#logsByBegin) {
      addUpTo(log.after)
      reach = Math.max(reach, log.upTo)
    }
    addUpTo(snapshots.at(-1)?.exactAt ?? 0)
    return gaps
  }

  /** Returns a snapshot with the log after it, in as few parts as there are. */
  chainOf(snapshot: SnapshotManifest): BackupChain {
    const logs: LogManifest[] = []
    let upTo = snapshot.zxid
    let next: LogManifest | undefined
    for (const log of this.#logsByBegin) {
      if (next !== undefined && log.after > upTo) {
        logs.push(next)
        upTo = next.upTo
        next = undefined
      }
      if (log.after > upTo) break
      if (log.upTo > (next?.upTo ?? upTo)) next = log
    }
    return next === undefined
      ? { snapshot, logs, upTo }
      : { snapshot, logs: [...logs, next], upTo: next.upTo }
  }

  /**
   * Returns the newest snapshot that is exact at or before a transaction, with the log up to the end. Throws a `BackupError` when no
   * backup reaches from before the transaction to it.
   */
  chainTo(zxid: Zxid): BackupChain {
    for (const snapshot of this.snapshots.toReversed()) {
      if (snapshot.exactAt > zxid) continue
      const chain = this.chainOf(snapshot)
      if (chain.upTo >= zxid) return chain
    }
    const ranges = this.snapshots.map((snapshot) => {
      const { upTo } = this.chainOf(snapshot)
      return `0x${formatZxid(snapshot.exactAt)} to 0x${formatZxid(Math.max(upTo, snapshot.exactAt))}`
    })
    throw new BackupUsageError(
      `Expected a backup that holds 0x${formatZxid(zxid)}, got ${ranges.length === 0 ? 'none' : `those of ${ranges.join(', ')}`}. Name a transaction within one of them.`,
    )
  }

  /** Returns the newest snapshot with its log. Throws a `BackupError` when there is none. */
  newestChain(): BackupChain {
    const snapshot = this.snapshots.at(-1)
    if (snapshot !== undefined) return this.chainOf(snapshot)
    const [first] = this.bad
    if (first !== undefined) throw first.error
    throw new BackupError('Expected a backup in the target, got none. Make one with zabra backup now.')
  }
}

const isSmall = ({ merged, piece }: LogManifest): boolean => merged !== true && piece.bytes < LARGE_BYTES

/** Opens the piece of a manifest, decrypted. Rejects with a `BackupError` when it is missing or the key is not that of the backup. */
export async function openPiece(
  { target, key, cryptography }: BackupStore,
  { piece, key: keyId }: Manifest,
): Promise<DiskReader> {
  if (keyId !== null && key === undefined)
    throw new BackupUsageError(
      `${piece.name} is encrypted with the key ${keyId}, got no key. Name its file with --key-file.`,
    )
  const own = key?.earlier?.find(({ id }) => id === keyId) ?? key
  const reader = await openRaw(target, piece.name)
  try {
    return keyId === null ? reader : await SealedReader.open(reader, piece.name, own!, cryptography)
  } catch (error) {
    await reader.close()
    throw error
  }
}

/** Opens a piece as it is stored. */
export async function openRaw(target: BackupTarget, name: string): Promise<DiskReader> {
  try {
    return await target.open(name)
  } catch (cause) {
    if (!(cause instanceof DiskError) || cause.code !== 'ENOENT') throw cause
    throw new BackupError(`${name} is missing in ${target.url}. Use another backup.`, { cause })
  }
}

/**
 * Returns the lineage of a target, and makes one for a target that has none. Several writers may do that at once: the one in the file counts
 * for all of them, since manifests with another one cannot be used.
 */
export async function ensureLineage({ target, random }: BackupStore): Promise<string> {
  const known = await readLineage(target)
  if (known !== undefined) return known
  await target.create(LINEAGE, new TextEncoder().encode(`${hex(random.bytes(16))}\n`))
  const made = await readLineage(target)
  if (made !== undefined) return made
  throw new TargetError(`Expected ${target.url}/${LINEAGE}, which was just written, got none. Try again.`)
}

/** Returns a manifest, or what is wrong with it; undefined for one that was removed meanwhile. */
async function readManifest(
  { target, cryptography }: BackupStore,
  name: string,
  lineage: string | undefined,
): Promise<Manifest | BackupError | undefined> {
  try {
    const manifest = decodeManifest(await readSmall(target, name), name, cryptography)
    if (manifest.lineage === lineage) return manifest
    return new BackupError(
      `${name} belongs to the backups of another target (${manifest.lineage}). Move it away.`,
    )
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOENT') return undefined
    if (error instanceof BackupError && !(error instanceof TargetError)) return error
    throw error
  }
}

async function listManifests({ target }: BackupStore): Promise<readonly string[]> {
  const files = await target.list(MANIFESTS)
  return files.filter((file) => file.endsWith('.json')).map((file) => `${MANIFESTS}/${file}`)
}

async function readLineage(target: BackupTarget): Promise<string | undefined> {
  let bytes: Uint8Array
  try {
    bytes = await readSmall(target, LINEAGE)
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOENT') return undefined
    throw error
  }
  const lineage = new TextDecoder().decode(bytes).trim()
  if (/^[\da-f]{32}$/.test(lineage)) return lineage
  throw new BackupError(
    `${target.url}/${LINEAGE} is damaged: Expected 32 hexadecimal digits. Take them from a manifest; without one, remove the file.`,
  )
}

/** Reads a short file of a target. Rejects with a `DiskError` of code ENOENT when it does not exist. */
export async function readSmall(target: BackupTarget, name: string): Promise<Uint8Array> {
  const reader = await target.open(name)
  try {
    const size = await reader.size()
    if (size > MAX_MANIFEST_BYTES)
      throw new BackupError(
        `${name} is damaged: Expected at most ${MAX_MANIFEST_BYTES} bytes, got ${size}. Use another backup.`,
      )
    const bytes = new Uint8Array(size)
    return bytes.subarray(0, await reader.read(bytes, 0))
  } finally {
    await reader.close()
  }
}
