import type { Compression, Disk } from '@zabra/runtime'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  incomingName,
  snapshotName,
  snapshotsIn,
  takeSnapshot,
  writeSnapshot,
  type SessionTimeouts,
  type SnapshotKind,
  type WrittenSnapshot,
} from '../persistence/index.ts'

export interface SnapshotFilesOptions {
  readonly disk: Disk
  readonly folder: string
  /** How new snapshots are compressed. */
  readonly compression: SnapshotKind
  readonly compressor: Compression
}

export interface TakeSnapshotOptions {
  readonly signal: AbortSignal | undefined
  /** Resolves when the log is durable up to a transaction. */
  readonly waitUntilDurable: (lastZxid: Zxid) => Promise<void>
}

/** Writes snapshot files, several at a time if asked to, and can abort all of them. */
export class SnapshotFiles {
  readonly #options: SnapshotFilesOptions
  readonly #running = new Map<Promise<unknown>, AbortController>()
  #newestBytes = 0

  constructor(options: SnapshotFilesOptions) {
    this.#options = options
  }

  /** Bytes of the newest snapshot file; 0 for none. */
  get newestBytes(): number {
    return this.#newestBytes
  }

  /** Writes a snapshot while the tree changes. Rejects with the reason of the signal, or of `abortAll`. */
  async take(
    tree: Tree,
    sessions: SessionTimeouts,
    { signal, waitUntilDurable }: TakeSnapshotOptions,
  ): Promise<WrittenSnapshot> {
    const controller = new AbortController()
    const onAbort = (): void => controller.abort(signal?.reason)
    signal?.addEventListener('abort', onAbort)
    if (signal?.aborted === true) onAbort()
    const taking = takeSnapshot(tree, sessions, {
      ...this.#options,
      signal: controller.signal,
      waitUntilDurable,
    })
    this.#running.set(taking, controller)
    try {
      const written = await taking
      await this.measure()
      return written
    } finally {
      this.#running.delete(taking)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Writes a snapshot under its incoming name, for `replaceAllFiles`, and resolves to its final name. */
  async writeIncoming(tree: Tree, sessions: SessionTimeouts): Promise<string> {
    const { folder, compression } = this.#options
    const name = snapshotName(tree.lastZxid, compression)
    await writeSnapshot(tree, sessions, `${folder}/${incomingName(name)}`, this.#options)
    return name
  }

  /** Aborts snapshots in progress, which are of a tree that is about to be replaced, and waits until they have stopped. */
  async abortAll(): Promise<void> {
    for (const controller of this.#running.values())
      controller.abort(new Error('The data are being replaced'))
    await Promise.allSettled(this.#running.keys())
  }

  /** Reads the size of the newest snapshot file. */
  async measure(): Promise<void> {
    const { disk, folder } = this.#options
    const newest = snapshotsIn(await disk.list(folder)).at(-1)
    this.#newestBytes = newest === undefined ? 0 : await disk.size(`${folder}/${newest.name}`)
  }
}
