import { toClientPath } from '../chroot.ts'
import { ClosedError } from '../errors.ts'
import type { WatchRegistration } from '../operations.ts'
import type { Session } from '../session/session.ts'
import { AsyncQueue } from '../async-queue.ts'
import type { WatchedEvent, Watcher } from '../types.ts'
import { removeWatch } from './remove-watch.ts'
import type { ServerEvent, WatchListener } from './watch-registry.ts'

/** The listener of a persistent watch: a bounded queue of events. */
export class PersistentWatcher implements Watcher, WatchListener, WatchRegistration {
  readonly path: string
  readonly #session: Session
  readonly #kind: 'persistent' | 'recursive'
  readonly #serverPath: string
  readonly #chroot: string
  readonly #stream: AsyncQueue<WatchedEvent>
  readonly owner: object
  #closed: Promise<void> | undefined
  #isRegistered = false

  constructor(
    session: Session,
    kind: 'persistent' | 'recursive',
    at: {
      readonly path: string
      readonly serverPath: string
      readonly chroot: string
      readonly owner: object
    },
    buffer: number,
  ) {
    this.path = at.path
    this.#session = session
    this.#kind = kind
    this.#serverPath = at.serverPath
    this.#chroot = at.chroot
    this.owner = at.owner
    // A lost event makes the buffered ones useless: replace them by one resync event.
    this.#stream = new AsyncQueue(
      buffer,
      (_waiting, { order }) => [{ type: 'resync', reason: 'overflow', order }],
      () => void this.close(),
    )
    session.watches.addPending(kind, at.serverPath)
  }

  /** The request that sets the watch was answered, or failed for good. */
  onRegistrationReply(isRegistered: boolean, isAbandoned: boolean): void {
    this.#session.watches.removePending(this.#kind, this.#serverPath)
    if (!isRegistered) return
    if (isAbandoned) void removeWatch(this.#session, this.#kind, this.#serverPath)
    else {
      this.#isRegistered = true
      this.#session.watches.add(this.#kind, this.#serverPath, this)
    }
  }

  notify({ type, path, zxid, order }: ServerEvent): void {
    const clientPath = toClientPath(this.#chroot, path)
    if (clientPath !== undefined)
      this.#stream.push({ type, path: clientPath, order, ...(zxid === undefined ? {} : { zxid }) })
  }

  resync(reason: 'reconnected' | 'newSession', order: number): void {
    this.#stream.push({ type: 'resync', reason, order })
  }

  end(error: Error | undefined): void {
    this.#closed ??= Promise.resolve()
    this.#stream.end(error instanceof ClosedError ? undefined : error)
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchedEvent> {
    return this.#stream
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #close(): Promise<void> {
    this.#stream.end()
    if (!this.#isRegistered) return Promise.resolve()
    return this.#session.watches.remove(this.#kind, this.#serverPath, this)
      ? removeWatch(this.#session, this.#kind, this.#serverPath)
      : Promise.resolve()
  }
}
