import { counterOf, formatZxid } from '@zabra/protocol'
import type { Clock, Compression } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { Catalog, ensureLineage, LARGE_BYTES, type BackupStore, type CatalogEnd } from './catalog.ts'
import { BackupError } from './errors.ts'
import { LogStreamCheck } from './log-stream.ts'
import {
  encodeManifest,
  manifestName,
  sortable,
  type LogManifest,
  type Manifest,
  type SnapshotManifest,
} from './manifest.ts'
import { seal } from './sealing.ts'
import { endChunks, hex, oneChunk } from './target.ts'
import { verifyPiece } from './verify.ts'

/** Small parts of the log at which they are merged, and the age of the oldest one at which fewer are, in milliseconds. */
const MAX_UNMERGED = 256
const MAX_UNMERGED_MS = 3_600_000

/** A part of the log of a server, up to its last applied transaction. */
export interface SourceLog {
  readonly upTo: Zxid
  /** Nodes of the tree after that transaction. */
  readonly nodes: number
  /** The digest of that tree in hexadecimal; null where the server keeps none. */
  readonly digest: string | null
  /** A log file. The server keeps its log for it until they have come to their end, or are ended (`endChunks`). */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** A snapshot file of a server. */
export interface SourceSnapshot {
  /** The name of the file. */
  readonly file: string
  readonly zxid: Zxid
  /** Each is valid until the next one is asked for. Throws when the file is cut short. The file is open until they have ended. */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** A snapshot file of a server that holds the tree after a transaction exactly. */
export interface SourceBaseSnapshot extends SourceSnapshot {
  readonly nodes: number
  /** The digest of the tree in hexadecimal; null where the server keeps none. */
  readonly digest: string | null
}

/** A server from which a backup is made. */
export interface BackupSource {
  /** For manifests: version and address. */
  readonly name: string
  /** The id of the ensemble; undefined where it has none. */
  readonly cluster?: string | undefined
  /** The feature level that the ensemble has finalized; 0 or undefined for none. Read after each file. */
  readonly level?: number | undefined
  /** Takes a snapshot. */
  takeSnapshot(): Promise<SourceSnapshot>
  /**
   * Opens the snapshot after which the log of the server begins; undefined where the server has the log after `after` too, and where
   * that snapshot cannot be used.
   */
  openBaseSnapshot?(after: Zxid): Promise<SourceBaseSnapshot | undefined>
  /** Reads the log after a transaction; undefined when the server does not have it any more. */
  readLog(after: Zxid): Promise<SourceLog | undefined>
}

export interface BackupOptions {
  readonly clock: Pick<Clock, 'wall'>
  readonly compression: Compression
  /** Whether a snapshot is written beside the log since the last backup: always, where the log cannot go on without, or never. */
  readonly snapshot: 'always' | 'if-needed' | 'never'
  /** The catalog of the target, which is not read again then. What others write meanwhile may hold the same transactions. */
  readonly catalog?: Catalog | undefined
  /**
   * Called once a snapshot is in the target, before the log is. Resolves to the catalog of the target, to which parts of the log may have
   * been added meanwhile.
   */
  readonly snapshotSent?: () => Promise<Catalog>
  /** Whether small parts of the log may be merged into the new one. Remove those of `Catalog.replaced` then. */
  readonly merges?: boolean
}

/** What a backup has written. */
export interface WrittenBackup {
  readonly snapshot: SnapshotManifest | undefined
  readonly log: LogManifest | undefined
  /** Whether transactions between the last backup and this one are in none, because the server had no log of them any more. */
  readonly hasGap: boolean
}

/**
 * Writes the log since the last backup, and a snapshot, to a target. Each is there once its manifest is: a backup that is cut short
 * leaves none. Rejects with a `BackupError` when the server has another history than the backups of the target.
 */
export async function writeBackup(
  store: BackupStore,
  source: BackupSource,
  options: BackupOptions,
): Promise<WrittenBackup> {
  const lineage = options.catalog?.lineage ?? (await ensureLineage(store))
  const catalog = options.catalog ?? (await Catalog.read(store))
  const [damaged] = catalog.bad
  if (damaged !== undefined) throw damaged.error
  if (catalog.end === undefined && options.snapshot === 'never')
    throw new BackupError(
      'Expected a snapshot in the target, after which the log continues, got none. Leave out --log-only.',
    )
  return new BackupWriter(store, source, options, lineage).run(catalog)
}

/** Returns the parts of the log whose place the next part takes, oldest first; none while they are few. */
function mergeable(
  { unmerged }: Catalog,
  { merges = false, snapshot, clock }: BackupOptions,
): readonly LogManifest[] {
  const [first] = unmerged
  if (!merges || first === undefined) return []
  const bytes = unmerged.reduce((sum, { piece }) => sum + piece.bytes, 0)
  const isDue =
    snapshot === 'always' ||
    unmerged.length >= MAX_UNMERGED ||
    bytes >= LARGE_BYTES ||
    clock.wall() - first.time >= MAX_UNMERGED_MS
  return isDue ? unmerged : []
}

class BackupWriter {
  readonly #store: BackupStore
  readonly #source: BackupSource
  readonly #options: BackupOptions
  readonly #lineage: string

  constructor(store: BackupStore, source: BackupSource, options: BackupOptions, lineage: string) {
    this.#store = store
    this.#source = source
    this.#options = options
    this.#lineage = lineage
  }

  /** Continues the log after the end of a catalog. */
  async run(catalog: Catalog): Promise<WrittenBackup> {
    const { end } = catalog
    if (end !== undefined && this.#options.snapshot !== 'always') {
      const continued = (await this.#mergeLog(end, catalog)) ?? (await this.#continueLog(end))
      if (continued !== undefined) return { snapshot: undefined, log: continued.manifest, hasGap: false }
      if (await this.#isIdleAt(end)) return { snapshot: undefined, log: undefined, hasGap: false }
      if (this.#options.snapshot === 'never')
        throw new BackupError(
          `The server has no log after 0x${formatZxid(end.upTo)} any more. Make a backup with a snapshot: leave out --log-only.`,
        )
    }
    // An earlier snapshot than one of now, where the server has one, shortens a gap.
    const base = end && (await this.#source.openBaseSnapshot?.(end.upTo))
    // The snapshot first: the log that is read after it reaches to where it is exact.
    const { file, zxid, chunks } = base ?? (await this.#source.takeSnapshot())
    const isPlain = !/\.(?:gz|snappy)$/.test(file)
    const stored = isPlain ? `${file}.gz` : file
    const name = `snapshot/${sortable(zxid)}-${this.#stamp()}${stored.slice(stored.lastIndexOf('.'))}`
    const stream = isPlain ? gzip(chunks, this.#options.compression) : chunks
    const piece = await this.#writePiece(name, stream, chunks)
    const { log, source, gapAfter } = await this.#removedOnFailure(piece, async () => {
      const current = (await this.#options.snapshotSent?.()) ?? catalog
      return this.#writeLogBeside(zxid, current, base !== undefined)
    })
    const snapshot: SnapshotManifest = {
      ...this.#common(piece),
      kind: 'snapshot',
      file: stored,
      zxid,
      // After the begin of an epoch without transactions the snapshot is later than the last one.
      exactAt: base === undefined ? Math.max(source.upTo, zxid) : zxid,
      nodes: (base ?? source).nodes,
      digest: (base ?? source).digest,
      ...(gapAfter === undefined ? {} : { gapAfter }),
    }
    await this.#writeManifest(snapshot)
    return { snapshot, log, hasGap: gapAfter !== undefined }
  }

  /** Writes the log that belongs to a snapshot: after the end of a catalog, or from the snapshot on, where it cannot go on there. */
  async #writeLogBeside(zxid: Zxid, catalog: Catalog, isBase: boolean) {
    const { end } = catalog
    const continued =
      end === undefined || isBase
        ? undefined
        : ((await this.#mergeLog(end, catalog)) ??
          (await this.#continueLog(end)) ??
          (await this.#joinLog(end)))
    if (continued === undefined && end !== undefined && zxid < end.upTo) throw behind(end, zxid)
    const { manifest: log, source } = continued ?? (await this.#beginLog(zxid))
    return { log, source, gapAfter: continued === undefined ? end?.upTo : undefined }
  }

  /** Writes the log after a snapshot, from its transaction on where the server has that: the next backup compares it. */
  async #beginLog(zxid: Zxid): Promise<WrittenLog> {
    for (const after of counterOf(zxid) > 0 ? [zxid - 1, zxid] : [zxid]) {
      const source = await this.#source.readLog(after)
      if (source !== undefined) return this.#writeLog(source, after, undefined)
    }
    throw new BackupError(
      `The server has no log after 0x${formatZxid(zxid)}, its own snapshot: it was removed meanwhile. Try again.`,
    )
  }

  /**
   * Writes the log from the begin of the parts that are to be merged on, as one part in place of all that the log of the server still
   * has. Undefined where it has not two of them, or nothing is new.
   */
  async #mergeLog(end: CatalogEnd, catalog: Catalog): Promise<WrittenLog | undefined> {
    const parts = mergeable(catalog, this.#options)
    for (let from = 0; from < parts.length - 1; from += Math.max(1, (parts.length - from) >> 1)) {
      const { after } = parts[from]!
      const source = await this.#source.readLog(after)
      if (source === undefined) continue
      if (source.upTo > end.upTo) return this.#writeLog(source, after, end, { isMerged: true })
      for await (const _ of source.chunks);
      return undefined
    }
    return undefined
  }

  /**
   * Writes the log after the last backup; undefined when the server does not have it any more. The log is read from the last
   * transaction in the target on, which must be the same one.
   */
  async #continueLog(end: CatalogEnd): Promise<WrittenLog | undefined> {
    const source = await this.#source.readLog(end.beforeLast)
    if (source === undefined) return undefined
    if (source.upTo >= end.upTo) return this.#writeLog(source, end.beforeLast, end)
    await endChunks(source.chunks)
    throw behind(end, source.upTo)
  }

  /**
   * Writes the log after the last backup of a server that has loaded a snapshot of exactly that transaction, and so cannot read the
   * transaction itself. Undefined for any other server.
   */
  async #joinLog({ upTo }: CatalogEnd): Promise<WrittenLog | undefined> {
    const source = await this.#source.readLog(upTo)
    if (source === undefined) return undefined
    if (source.upTo >= upTo) return this.#writeLog(source, upTo, undefined)
    await endChunks(source.chunks)
    return undefined
  }

  /** Resolves to whether nothing is new at a server that has the last transaction in its snapshot, and not in its log. */
  async #isIdleAt({ upTo }: CatalogEnd): Promise<boolean> {
    const source = await this.#source.readLog(upTo)
    if (source === undefined) return false
    for await (const _ of source.chunks);
    return source.upTo === upTo
  }

  /** `isMerged`: the log begins before `end`, and takes the place of the parts up to there. */
  async #writeLog(
    source: SourceLog,
    after: Zxid,
    end: CatalogEnd | undefined,
    { isMerged = false } = {},
  ): Promise<WrittenLog> {
    let isCompared = false
    const check = new LogStreamCheck(after, (entry) => {
      if (isCompared || end?.lastChecksum === undefined || (isMerged && entry.zxid < end.upTo)) return
      isCompared = true
      if (entry.zxid === end.upTo && entry.checksum === end.lastChecksum) return
      throw new BackupError(
        `The target holds backups of another history: its transaction 0x${formatZxid(end.upTo)} is not that of the server. Name another target.`,
      )
    })
    const chunks = check.pass(source.chunks)
    if (source.upTo === (end?.upTo ?? after)) {
      // Nothing is new; the history is compared nevertheless.
      for await (const _ of chunks);
      return { manifest: undefined, source }
    }
    const name = `log/${sortable(after)}-${sortable(source.upTo)}-${this.#stamp()}.txns`
    const piece = await this.#writePiece(name, chunks, source.chunks)
    const manifest = await this.#removedOnFailure(piece, async (): Promise<LogManifest> => {
      const { summary } = check
      if (summary?.upTo !== source.upTo)
        throw new BackupError('The log of the server was cut short. Try again.')
      const merged = isMerged ? ({ merged: true } as const) : {}
      const described: LogManifest = { ...this.#common(piece), kind: 'log', after, ...summary, ...merged }
      // The parts that it replaces are removed once its manifest is there.
      if (isMerged) await verifyPiece(this.#store, described)
      return described
    })
    await this.#writeManifest(manifest)
    return { manifest, source }
  }

  #common(piece: Manifest['piece']) {
    const { cluster, level = 0 } = this.#source
    return {
      format: 1,
      lineage: this.#lineage,
      time: this.#now(),
      server: this.#source.name,
      ...(cluster === undefined ? {} : { cluster }),
      ...(level === 0 ? {} : { level }),
      key: this.#store.key?.id ?? null,
      piece,
    } as const
  }

  #now(): number {
    return Math.floor(this.#options.clock.wall())
  }

  /** Returns the end of a name, which differs where two members write at once: each manifest names a piece of its own. */
  #stamp(): string {
    return `${this.#now()}-${hex(this.#store.random.bytes(4))}`
  }

  /** Writes a piece. `source` are the chunks of the server behind it, which are ended also where the target asks for none. */
  async #writePiece(
    name: string,
    chunks: AsyncIterable<Uint8Array>,
    source: AsyncIterable<Uint8Array>,
  ): Promise<Manifest['piece']> {
    const { key, target, cryptography } = this.#store
    const hash = cryptography.sha256()
    async function* hashed(stored: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of stored) {
        hash.update(chunk)
        yield chunk
      }
    }
    const stored = key === undefined ? chunks : seal(chunks, key, name, this.#store)
    try {
      const bytes = await target.write(name, hashed(stored))
      return { name, bytes, sha256: hash.digest() }
    } finally {
      await endChunks(source)
    }
  }

  /** Removes a piece where the work that its manifest needs fails: retention would leave it for a day, and the target may be full. */
  async #removedOnFailure<T>({ name }: Manifest['piece'], work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      await this.#store.target.remove(name).catch(() => {})
      throw error
    }
  }

  async #writeManifest(manifest: Manifest): Promise<void> {
    const { target, cryptography } = this.#store
    await target.write(manifestName(manifest), oneChunk(encodeManifest(manifest, cryptography)))
  }
}

const behind = ({ upTo }: CatalogEnd, applied: Zxid): BackupError =>
  new BackupError(
    `Expected a server that has applied 0x${formatZxid(upTo)}, as the last backup has, got one at 0x${formatZxid(applied)}. Back up a member that is in step; or name another target, if this one holds the backups of another ensemble.`,
  )

interface WrittenLog {
  /** Undefined when there was no new transaction. */
  readonly manifest: LogManifest | undefined
  readonly source: SourceLog
}

async function* gzip(
  chunks: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncGenerator<Uint8Array> {
  const pack = compression.gzip()
  for await (const chunk of chunks) {
    const packed = await pack.write(chunk)
    if (packed.length > 0) yield packed
  }
  yield await pack.end()
}
