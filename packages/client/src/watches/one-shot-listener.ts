import { toClientPath } from '../chroot.ts'
import type { WatchRegistration } from '../operations.ts'
import type { Session } from '../session/session.ts'
import type { NodeEvent } from '../types.ts'
import { ClosedError } from '../errors.ts'
import { removeWatch } from './remove-watch.ts'
import type { ServerEvent, WatchListener } from './watch-registry.ts'

type OneShotKind = 'data' | 'exists' | 'children'

/** The listener of a watch that fires once. */
export class OneShotListener implements WatchListener, WatchRegistration {
  readonly #session: Session
  #kind: OneShotKind
  /** Server path. */
  readonly #path: string
  readonly #chroot: string
  readonly owner: object
  readonly fired: Promise<NodeEvent>
  #resolve: (event: NodeEvent) => void = () => {}
  #reject: (error: Error) => void = () => {}
  #hasEnded = false

  constructor(
    session: Session,
    kind: OneShotKind,
    path: string,
    { chroot, owner }: { chroot: string; owner: object },
  ) {
    this.#session = session
    this.owner = owner
    this.#kind = kind
    this.#path = path
    this.#chroot = chroot
    this.fired = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // The caller need not await it.
    this.fired.catch(() => {})
    session.watches.addPending(kind, path)
  }

  /** The request that sets the watch was answered, or failed for good. `exists` says whether the znode existed. */
  onRegistrationReply(isRegistered: boolean, isAbandoned: boolean, exists: boolean): void {
    this.#session.watches.removePending(this.#kind, this.#path)
    if (!isRegistered) return
    // On an existing znode the server sets a data watch; only on a missing one it waits for the creation.
    if (this.#kind === 'exists' && exists) this.#kind = 'data'
    if (isAbandoned) void removeWatch(this.#session, this.#kind, this.#path)
    else this.#session.watches.add(this.#kind, this.#path, this)
  }

  notify({ type, path, zxid, order }: ServerEvent): void {
    this.#hasEnded = true
    const clientPath = toClientPath(this.#chroot, path)
    if (clientPath === undefined) return
    this.#resolve({ type, path: clientPath, order, ...(zxid === undefined ? {} : { zxid }) })
  }

  resync(): void {}

  end(error: Error | undefined): void {
    this.#hasEnded = true
    this.#reject(error ?? new ClosedError('The watch is closed', 'CLOSED'))
  }

  /** Removes the watch. */
  close(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve()
    this.end(undefined)
    if (this.#session.watches.remove(this.#kind, this.#path, this)) {
      return removeWatch(this.#session, this.#kind, this.#path)
    }
    return Promise.resolve()
  }
}
