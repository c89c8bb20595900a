import { formatZxid } from '@zabra/protocol'
import {
  DiskError,
  silentLogger,
  type Compression,
  type Disk,
  type DiskReader,
  type Logger,
} from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { LOG_HEADER_BYTES, readData, scanLog, type Pause, type Recovery } from '../persistence/index.ts'
import { FEATURE_LEVEL } from '../version.ts'
import { openPiece, type BackupChain, type BackupStore } from './catalog.ts'
import { BackupError, BackupUsageError } from './errors.ts'
import type { LogManifest, Manifest } from './manifest.ts'

/** The tree of a backup, and its sessions. */
export interface LoadedBackup extends Pick<
  Recovery,
  'tree' | 'sessions' | 'lastZxid' | 'replayed' | 'canCompareDigests'
> {
  /** The feature level that its ensemble had finalized; 0 for none. */
  readonly level: number
}

export interface LoadOptions {
  readonly compression: Compression
  readonly logger?: Logger
  /** Called often, so that a server can serve beside it. */
  readonly pause?: Pause | undefined
}

/**
 * Builds the tree of a backup after a transaction: loads the snapshot and replays the log, with every check of a server that starts.
 * `upTo` must lie between `exactAt` of the snapshot and the end of the chain. Rejects with a `BackupError`, `DamageError` or
 * `RecoveryError` when the backup cannot be used.
 */
export async function loadBackup(
  store: BackupStore,
  chain: BackupChain,
  upTo: Zxid,
  { compression, logger = silentLogger, pause }: LoadOptions,
): Promise<LoadedBackup> {
  const level = Math.max(...[chain.snapshot, ...chain.logs].map((manifest) => manifest.level ?? 0))
  if (level > FEATURE_LEVEL)
    throw new BackupError(
      `Expected a backup of feature level ${FEATURE_LEVEL} or below, which this release reads, got one of level ${level}. Use a release of level ${level} or later.`,
    )
  const disk = new BackupDisk(store)
  disk.add(chain.snapshot.file, { manifest: chain.snapshot })
  for (const file of await logFilesOf(store, chain, upTo)) disk.add(file.name, file)
  const recovery = await readData({
    dataDir: FOLDER,
    dataLogDir: FOLDER,
    disk: disk as unknown as Disk,
    logger,
    compression,
    pause,
  })
  if (recovery.lastZxid === upTo) return { ...recovery, level }
  throw new BackupUsageError(
    `Expected the backup to end with 0x${formatZxid(upTo)}, got 0x${formatZxid(recovery.lastZxid)}. Name a transaction that zabra backup list shows.`,
  )
}

/** A file of a data folder that a piece of a backup gives. */
export interface BackupFile {
  readonly manifest: Manifest
  /** Bytes of it behind the header of a log that are left out. */
  readonly skipped?: number
  /** Where it ends. */
  readonly limit?: number
}

/**
 * Returns the log of a chain up to a transaction, as files of a data folder. Parts that two members wrote at once may have any number of
 * transactions in common; a server that starts takes a few for repetitions, so the files have one.
 */
export async function logFilesOf(
  store: BackupStore,
  { logs }: BackupChain,
  upTo: Zxid,
): Promise<readonly (BackupFile & { readonly name: string })[]> {
  const files: (BackupFile & { readonly name: string })[] = []
  let reached = -1
  for (const log of logs) {
    if (log.first > upTo || reached >= upTo) break
    const first = Math.max(log.first, reached)
    const skipped =
      first === log.first ? 0 : (await offsetOf(store, log, (zxid) => zxid >= first)) - LOG_HEADER_BYTES
    const limit = log.upTo <= upTo ? Infinity : await offsetOf(store, log, (zxid) => zxid > upTo)
    files.push({ name: `log.${formatZxid(first)}`, manifest: log, skipped, limit })
    reached = log.upTo
  }
  return files
}

/** Opens what a file has of a piece. */
export async function openFile(
  store: BackupStore,
  { manifest, skipped = 0, limit = Infinity }: BackupFile,
): Promise<DiskReader> {
  const reader = await openPiece(store, manifest)
  if (limit === Infinity && skipped === 0) return reader
  const readUpTo = (into: Uint8Array, position: number): Promise<number> =>
    reader.read(into.subarray(0, Math.max(0, limit - position)), position)
  return {
    async read(into, position) {
      const head = Math.max(0, Math.min(into.length, LOG_HEADER_BYTES - position))
      if (skipped === 0 || head === 0) return readUpTo(into, position + skipped)
      const length = await readUpTo(into.subarray(0, head), position)
      return length + (await readUpTo(into.subarray(head), LOG_HEADER_BYTES + skipped))
    },
    size: async () => Math.min(limit, await reader.size()) - skipped,
    close: () => reader.close(),
  }
}

/** Returns where in a piece of the log the first transaction of a kind begins. */
async function offsetOf(
  store: BackupStore,
  log: LogManifest,
  isSought: (zxid: Zxid) => boolean,
): Promise<number> {
  let offset = Infinity
  await scanPiece(store, log, (entry) => {
    if (!isSought(entry.zxid)) return true
    offset = entry.offset
    return false
  })
  return offset
}

/** Reads a piece of the log, and calls `visit` with each entry. */
export async function scanPiece(
  store: BackupStore,
  log: LogManifest,
  visit: Parameters<typeof scanLog>[2],
): Promise<void> {
  const disk = new BackupDisk(store)
  const name = `log.${formatZxid(log.first)}`
  disk.add(name, { manifest: log })
  await scanLog(disk as unknown as Disk, `${FILES}/${name}`, visit)
}

const FOLDER = 'backup'
const FILES = `${FOLDER}/version-2`

/** Shows the pieces of a backup as a data folder that can be read and not written. */
class BackupDisk implements Pick<Disk, 'list' | 'exists' | 'openRead'> {
  readonly #store: BackupStore
  readonly #files = new Map<string, BackupFile>()

  constructor(store: BackupStore) {
    this.#store = store
  }

  add(name: string, file: BackupFile): void {
    this.#files.set(`${FILES}/${name}`, file)
  }

  async list(folder: string): Promise<string[]> {
    return folder === FILES ? [...this.#files.keys()].map((path) => path.slice(FILES.length + 1)) : []
  }

  async exists(path: string): Promise<boolean> {
    return path === FOLDER || path === FILES || this.#files.has(path)
  }

  async openRead(path: string): Promise<DiskReader> {
    const file = this.#files.get(path)
    if (file === undefined) throw new DiskError(`ENOENT on ${path}`, 'ENOENT', path)
    return openFile(this.#store, file)
  }
}
