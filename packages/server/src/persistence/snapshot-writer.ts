import { adler32, Writer } from '@zabra/protocol'
import type { ByteTransform, Compression, Disk, DiskWriter } from '@zabra/runtime'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import { snapshotName, type SnapshotKind } from './file-names.ts'
import {
  END_OF_NODES,
  SLICE_BYTES,
  SNAPSHOT_MAGIC,
  SnapshotTables,
  writeNode,
  type SessionTimeouts,
} from './snapshot-codec.ts'
import { SnappyCompressor } from './snappy.ts'
import { TXN_DIGEST_VERSION } from './txn-codec.ts'

const SLICE_NODES = 500
/**
 * Bytes after which the file is synced, while the next ones are encoded. Every other sync, above all the log's, waits for the dirty
 * pages before it: 150 ms for 220 MiB on a disk that writes 1.5 GB a second. One sync runs at a time, so a slower disk gets
 * larger pieces; the snapshot waits for it only at the end.
 */
const SYNC_BYTES = 8 << 20

export interface SnapshotOptions {
  readonly disk: Disk
  /** The folder that holds `snapshot.*`, `version-2` included. It must exist. */
  readonly folder: string
  readonly compression: SnapshotKind
  /** Needed for `gz`. */
  readonly compressor: Compression
  /** Nodes in a slice; other work runs between two slices. */
  readonly sliceNodes?: number
  /** Aborts before the next slice and removes the file. */
  readonly signal?: AbortSignal
  /**
   * Called before the snapshot gets its name, with the last transaction whose effects it may include. Must resolve when the log is
   * durable up to that: the next start would reject a snapshot that is ahead of its log.
   */
  readonly waitUntilDurable?: (lastZxid: Zxid) => Promise<void>
}

export interface WrittenSnapshot {
  readonly file: string
  /** The last transaction applied when writing began; part of the name. */
  readonly zxid: Zxid
  /** The last transaction applied when writing ended: the contents may include effects of transactions up to it. */
  readonly lastZxid: Zxid
  readonly nodes: number
  readonly bytes: number
}

/**
 * Writes a snapshot of the tree while it changes, slice by slice. It gets its name when it is durable and complete; a failure leaves
 * no file. Rejects with the error of the disk, or the reason of the signal.
 */
export async function takeSnapshot(
  tree: Tree,
  sessions: SessionTimeouts,
  options: SnapshotOptions,
): Promise<WrittenSnapshot> {
  const { disk, folder } = options
  const zxid = tree.lastZxid
  const name = snapshotName(zxid, options.compression)
  const temporary = `${folder}/writing.${name}.tmp`
  const result = await writeSnapshot(tree, sessions, temporary, options)
  await disk.rename(temporary, `${folder}/${name}`)
  await disk.syncFolder(folder)
  return { file: name, zxid, ...result }
}

/**
 * Writes a snapshot to a path, replacing an existing file. The bytes are durable when this resolves; the caller syncs the folder.
 * A failure leaves no file.
 */
export async function writeSnapshot(
  tree: Tree,
  sessions: SessionTimeouts,
  path: string,
  options: SnapshotOptions,
): Promise<Omit<WrittenSnapshot, 'file' | 'zxid'>> {
  const { disk, signal, waitUntilDurable: ready } = options
  if (await disk.exists(path)) await disk.remove(path)
  const file = await disk.openWrite(path, { create: true, durable: false })
  let done = false
  try {
    const result = await new SnapshotFileWriter(file, options).run(tree, sessions)
    await file.sync()
    await ready?.(result.lastZxid)
    signal?.throwIfAborted()
    done = true
    return result
  } finally {
    await file.close()
    if (!done) await disk.remove(path)
  }
}

/** Encodes the tree, slice by slice, and writes it to a file. */
class SnapshotFileWriter {
  readonly #file: DiskWriter
  readonly #options: SnapshotOptions
  readonly #pack: ByteTransform | undefined
  readonly #writer = new Writer(1 << 17)
  #checked = 0
  #adler = 1
  #position = 0
  /** Bytes that the last sync covers. */
  #syncedTo = 0
  #syncing: Promise<void> | undefined

  constructor(file: DiskWriter, options: SnapshotOptions) {
    this.#file = file
    this.#options = options
    if (options.compression === 'gz') this.#pack = options.compressor.gzip()
    if (options.compression === 'snappy') this.#pack = new SnappyCompressor()
  }

  async run(
    tree: Tree,
    sessions: SessionTimeouts,
  ): Promise<{ lastZxid: Zxid; nodes: number; bytes: number }> {
    const cursor = tree.scan()
    const tables = new SnapshotTables(tree, sessions)
    let nodes = 0
    try {
      this.#head()
      // Changes since the zxid of the name are in the log after it.
      for (const _ of tables.write(this.#writer)) {
        this.#options.signal?.throwIfAborted()
        await this.#drain()
      }
      for (let more = true; more;) {
        this.#options.signal?.throwIfAborted()
        // A slice ends at its limit of nodes or bytes, whichever is reached first.
        for (
          let left = this.#options.sliceNodes ?? SLICE_NODES;
          more && left > 0 && this.#writer.length <= SLICE_BYTES;
          left--
        ) {
          more = cursor.next(1, (node) => writeNode(this.#writer, tree, node))
          nodes++
        }
        if (more && this.#writer.length > SLICE_BYTES) await this.#drain()
        else if (more) await Promise.resolve()
      }
      while (tree.isApplying) await new Promise<void>((resolve) => tree.whenConsistent(resolve))
      // No await since the last read of the tree: the digest must be that of the tree as it is now.
      const lastZxid = tree.lastZxid
      this.#tail(tree, lastZxid)
      await this.#drain()
      if (this.#pack) await this.#put(await this.#pack.end())
      await this.#syncing
      return { lastZxid, nodes, bytes: this.#position }
    } finally {
      tables.close()
      cursor.close()
      // The caller closes the file next. A failure of the sync has been thrown already, or another error has come first.
      await this.#syncing?.catch(() => {})
    }
  }

  #head(): void {
    const w = this.#writer
    w.int(SNAPSHOT_MAGIC)
    w.int(2)
    w.long(-1n)
  }

  #tail(tree: Tree, lastZxid: Zxid): void {
    const w = this.#writer
    const { digest } = tree
    w.string(END_OF_NODES)
    this.#seal()
    if (digest) {
      w.longNumber(lastZxid)
      w.int(TXN_DIGEST_VERSION)
      w.int(digest.hi | 0)
      w.int(digest.lo | 0)
      this.#seal()
      // Readers tell sections by their order: without the digest's section this one would be taken for it.
      w.longNumber(lastZxid)
      this.#seal()
    }
  }

  #seal(): void {
    this.#check()
    this.#writer.longNumber(this.#adler)
    this.#writer.string('/')
  }

  #check(): void {
    this.#adler = this.#writer.checksum(adler32, this.#checked, this.#adler)
    this.#checked = this.#writer.length
  }

  async #drain(): Promise<void> {
    this.#check()
    const bytes = this.#writer.bytes()
    await this.#put(this.#pack ? await this.#pack.write(bytes) : bytes)
    // The bytes are written: the next slice is encoded into the same array.
    this.#writer.reset()
    this.#checked = 0
  }

  async #put(bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0) return
    await this.#file.write(bytes, this.#position)
    this.#position += bytes.length
    if (this.#syncing === undefined && this.#position - this.#syncedTo >= SYNC_BYTES) this.#sync()
  }

  #sync(): void {
    this.#syncedTo = this.#position
    this.#syncing = this.#file.sync()
    // After a failure `#syncing` stays rejected; `run` awaits it at the end.
    this.#syncing.then(
      () => (this.#syncing = undefined),
      () => {},
    )
  }
}
