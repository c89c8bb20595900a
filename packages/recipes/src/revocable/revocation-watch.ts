import type { Bytes, Client } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import type { EphemeralLockHandle, HandleOptions } from '../handles/ephemeral-lock-handle.ts'
import { LostError, type LostReason } from '../handles/lost.ts'
import { OwnNodeWatcher } from '../handles/own-node-watcher.ts'
import type { QueueEntry } from '../lock-queue/lock-queue.ts'
import type { TurnOptions, WaitGuard } from '../lock-queue/turn.ts'
import { readRequest, type RevokeRequest } from './request.ts'

/** Watches the znodes of a lock, waiting and held, for requests to release it. */
export class Revocations {
  readonly #client: Client
  /** Data of the znodes before any request. */
  readonly #original: Bytes
  readonly #watches = new Map<string, RevocationWatch>()

  constructor(client: Client, original: Bytes) {
    this.#client = withoutTimeout(client)
    this.#original = original
  }

  /** Options with which a waiter leaves the queue when it is asked. */
  readonly waitOptions: Pick<TurnOptions<never>, 'createGuard' | 'onWaitEnd'> = {
    createGuard: (entry, notify) => {
      const watch = new RevocationWatch(this.#client, this.#original, entry, notify)
      this.#watches.set(entry.path, watch)
      return watch
    },
    onWaitEnd: ({ path }) => void this.#watches.delete(path),
  }

  /** Creates a handle that ends as revoked when its znode is deleted after a request. */
  grant<H extends EphemeralLockHandle>(
    entry: QueueEntry,
    options: HandleOptions,
    createHandle: (options: HandleOptions, requested: Promise<RevokeRequest>) => H,
  ): H {
    const watch =
      this.#watches.get(entry.path) ?? new RevocationWatch(this.#client, this.#original, entry, () => {})
    const deletionReason = (): LostReason => {
      const reason = options.deletionReason?.() ?? 'nodeDeleted'
      return reason === 'nodeDeleted' && watch.isRequested ? 'revoked' : reason
    }
    const handle = createHandle({ ...options, watcher: watch.watcher, deletionReason }, watch.requestPromise)
    watch.attachHandle(handle, deletionReason)
    return handle
  }
}

/** Reads requests written into the own znode, from before other clients can know it. */
class RevocationWatch implements WaitGuard {
  readonly watcher: OwnNodeWatcher
  readonly requestPromise: Promise<RevokeRequest>
  readonly #entry: QueueEntry
  readonly #original: Bytes
  #resolve: (request: RevokeRequest) => void = () => {}
  #request: RevokeRequest | undefined

  constructor(client: Client, original: Bytes, entry: QueueEntry, notify: () => void) {
    this.#entry = entry
    this.#original = original
    this.requestPromise = new Promise((resolve) => (this.#resolve = resolve))
    this.watcher = new OwnNodeWatcher(client, entry.path, {
      onData: (data) => this.#read(data, notify),
      onDeleted: notify,
    })
  }

  /** True when a revocation was requested, or at least the znode was written to before its deletion. */
  get isRequested(): boolean {
    return this.#request !== undefined || this.watcher.hasChanged
  }

  check(): void {
    if (this.#request === undefined) return
    const { path, token } = this.#entry
    const why = this.#request.reason === undefined ? '' : `: ${this.#request.reason}`
    throw new LostError(`The queue entry ${path} was revoked${why}`, 'revoked', token, path)
  }

  attachHandle(handle: EphemeralLockHandle, deletionReason: () => LostReason): void {
    this.watcher.setListener({
      onData: (data) => this.#read(data, () => {}),
      onDeleted: () => handle.lose(deletionReason()),
    })
  }

  #read(data: Bytes, notify: () => void): void {
    if (this.#request !== undefined || equalBytes(data, this.#original)) return
    this.#request = readRequest(data)
    if (this.#request === undefined) return
    this.#resolve(this.#request)
    notify()
  }
}

const equalBytes = (a: Bytes, b: Bytes): boolean =>
  a.length === b.length && a.every((byte, i) => byte === b[i])
