import { formatZxid } from '@zabra/protocol'
import type { Disk, HttpRequest, Platform } from '@zabra/runtime'
import { closeSessions } from '../../backup/index.ts'
import { sameDigest, type Tree } from '../../core/tree/index.ts'
import type { Zxid } from '../../core/types.ts'
import { loadSnapshot, memoryCheck, pauseAfter, RECEIVED_FILE } from '../../persistence/index.ts'
import { RestoreRefusal, RestoreUndecided, type AdminTarget } from '../admin-target.ts'

/** How long the event loop is held at a time, in milliseconds. */
const SLICE_MS = 3

/** What has become of the last restore. */
export type RestoreState =
  | { readonly state: 'none' | 'running' }
  | { readonly state: 'done'; readonly lastZxid: Zxid }
  /** The data are the old ones. `again`: the same request may succeed later, at the leader. */
  | { readonly state: 'failed'; readonly problem: string; readonly again: boolean }
  /** The server has ended before it was known whether the data are the old or the new ones. */
  | { readonly state: 'unknown'; readonly problem: string }

/** Bytes that a restore leaves free, on a small disk a twentieth of it, and after how many bytes it looks at what is free. */
const RESERVED_BYTES = 2 ** 30
const BYTES_PER_LOOK = 2 ** 24
/** Bytes of a node in a snapshot beside its path and data, without compression. */
const NODE_BYTES = 76

/** Refuses a snapshot that is too large for a setting or for the disk, and says which. */
export class RestoreTooLargeError extends Error {
  override readonly name = 'RestoreTooLargeError'
  /** Of HTTP. */
  readonly status: 413 | 507

  constructor(status: 413 | 507, message: string) {
    super(message)
    this.status = status
  }
}

/** Replaces the data of a server, or of the ensemble that it leads, by snapshots in the bodies of requests, one at a time. */
export class Restores {
  readonly #platform: Pick<Platform, 'disk' | 'compression' | 'clock' | 'logger' | 'system'>
  #state: RestoreState = { state: 'none' }

  constructor(platform: Platform) {
    this.#platform = platform
  }

  get state(): RestoreState {
    return this.#state
  }

  /**
   * Receives a snapshot, and begins to replace the data by it. The snapshot is checked before anything changes; the old files are set
   * aside. Sessions end, and zxids go on above all that a client has seen. `done` resolves to the last transaction, and rejects with a
   * `DamageError` for a body that is no complete snapshot. Rejects with a `RestoreRefusal` where the data cannot be replaced now, and
   * with a `RestoreTooLargeError`.
   */
  async begin(
    target: AdminTarget,
    { body, headers }: Pick<HttpRequest, 'body' | 'headers'>,
  ): Promise<{ readonly done: Promise<Zxid> }> {
    const { disk, clock, logger } = this.#platform
    if (this.#state.state === 'running')
      throw new RestoreRefusal('Another snapshot is being restored. Try again when it is done')
    target.replacementStart(0)
    const stats = target.service?.stats
    const begun = clock.monotonic()
    this.#state = { state: 'running' }
    const fail = (error: unknown): void => {
      const problem = error instanceof Error ? error.message : String(error)
      if (stats !== undefined) stats.restoreErrors++
      if (error instanceof RestoreUndecided) {
        logger.error({ reason: problem }, 'It is not known whether the snapshot was restored')
        this.#state = { state: 'unknown', problem }
        return
      }
      logger.error({ reason: problem }, 'The snapshot was not restored')
      const again = error instanceof RestoreRefusal && error.isPassing
      this.#state = { state: 'failed', problem, again }
    }
    const folder = target.directories.snapshots
    let name: string
    try {
      const limit = target.settings.adminRestoreMaxBytes
      rejectAbove(limit, Number(headers['content-length'] ?? 0))
      name = await receive(disk, folder, body, limit)
    } catch (error) {
      fail(error)
      throw error
    }
    const done = this.#replaceBy(target, folder, name)
    done.then((lastZxid) => {
      stats?.restoreTime.add(clock.monotonic() - begun)
      logger.info({ lastZxid: formatZxid(lastZxid) }, 'The data were replaced by a snapshot')
      this.#state = { state: 'done', lastZxid }
    }, fail)
    return { done }
  }

  /** Replaces the data by a received file, which is removed once it is in memory. */
  async #replaceBy(target: AdminTarget, folder: string, name: string): Promise<Zxid> {
    const { disk, compression, clock } = this.#platform
    const pause = pauseAfter(clock, SLICE_MS)
    // A small compressed file may hold a very large tree.
    const loading = pauseAfter(clock, SLICE_MS, memoryCheck(this.#platform, tooLarge))
    const tree = target.createTree()
    let loaded: Awaited<ReturnType<typeof loadSnapshot>>
    try {
      loaded = await loadSnapshot(disk, folder, { name, zxid: 0 }, tree, compression, loading)
    } finally {
      const path = `${folder}/${name}`
      // A role that ends meanwhile may have loaded the files again, which removes this one.
      if (await disk.exists(path)) await disk.remove(path)
    }
    rejectPartial(tree, loaded)
    const lastZxid = loaded.lastZxid!
    const start = target.replacementStart(lastZxid)
    tree.lastZxid = lastZxid
    for (const _ of closeSessions(tree, loaded.sessions.keys(), start, Math.floor(clock.wall())))
      await pause()
    tree.lastZxid = Math.max(tree.lastZxid, start)
    const bytes = tree.approximateDataSize + tree.acls.bytes + NODE_BYTES * tree.nodeCount
    await rejectFullDisk(disk, folder, bytes)
    await target.replaceTree(tree, start)
    return tree.lastZxid
  }
}

const tooLarge = (): Error =>
  new RestoreTooLargeError(
    507,
    'Expected a snapshot that fits into memory beside the data, got a larger one. Stop the server and run zabra restore --to, or raise the limits of its memory.',
  )

/** Reports a request without a body. */
export class EmptyBodyError extends Error {
  override readonly name = 'EmptyBodyError'

  constructor() {
    super('Expected a snapshot in the body of the request, got none.')
  }
}

/** Writes a body to the folder of snapshots. Resolves to the name of the file, which tells how it is compressed. */
async function receive(
  disk: Disk,
  folder: string,
  body: AsyncIterable<Uint8Array>,
  limit: number,
): Promise<string> {
  let name: string | undefined
  let size = 0
  let lookAt = 0
  let file: Awaited<ReturnType<Disk['openWrite']>> | undefined
  try {
    for await (const chunk of body) {
      rejectAbove(limit, size + chunk.length)
      if (size >= lookAt) {
        await rejectFullDisk(disk, folder)
        lookAt = size + BYTES_PER_LOOK
      }
      if (file === undefined) {
        name = RECEIVED_FILE + suffixOf(chunk)
        file = await disk.openWrite(`${folder}/${name}`, { create: true, durable: false })
      }
      await file.write(chunk, size)
      size += chunk.length
    }
  } catch (error) {
    // The first error is the one that counts: a full disk may refuse the close too, and the file may not be there.
    await file?.close().catch(() => {})
    file = undefined
    if (name !== undefined) await disk.remove(`${folder}/${name}`).catch(() => {})
    throw error
  } finally {
    await file?.close()
  }
  if (name === undefined) throw new EmptyBodyError()
  return name
}

function rejectAbove(limit: number, bytes: number): void {
  if (bytes > limit)
    throw new RestoreTooLargeError(
      413,
      `Expected a snapshot of at most ${limit} bytes (admin.restore.maxBytes), got a larger one. Raise that setting, or stop the server and run zabra restore --to.`,
    )
}

/** Throws if a disk has not enough space for `bytes` more. */
async function rejectFullDisk(disk: Disk, folder: string, bytes = 0): Promise<void> {
  const { free, size } = await disk.space(folder)
  const reserved = Math.min(RESERVED_BYTES, size / 20) + bytes
  if (free < reserved)
    throw new RestoreTooLargeError(
      507,
      `Expected ${Math.ceil(reserved)} free bytes in ${folder}, got ${free}. Make space on this disk, and send the snapshot again.`,
    )
}

const suffixOf = ([first, second]: Uint8Array): '' | '.gz' | '.snappy' =>
  first === 0x1f && second === 0x8b ? '.gz' : first === 0x82 && second === 0x53 ? '.snappy' : ''

/** Throws for a snapshot whose contents are not those of a moment. */
function rejectPartial(
  tree: Tree,
  { lastZxid, digest, nodesWithoutAcl }: Awaited<ReturnType<typeof loadSnapshot>>,
): void {
  if (lastZxid === undefined)
    throw new Error(
      'Expected a snapshot that says what its last transaction is, got one of a server before 3.9. Start a server on it, and take another one there.',
    )
  const [path] = nodesWithoutAcl
  if (path !== undefined)
    throw new Error(
      `Expected a snapshot that is complete without a log, got one without the access list of ${path}: it was written while transactions came. Take another one.`,
    )
  if (digest === undefined || tree.digest === undefined || digest.zxid !== lastZxid) return
  if (!sameDigest(digest.value, tree.digest))
    throw new Error(
      `Expected the digest of the snapshot after 0x${formatZxid(lastZxid)}, got another one. Take another snapshot.`,
    )
}
