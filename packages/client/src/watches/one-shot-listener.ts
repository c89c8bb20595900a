import { toClientPath } from '../chroot.ts'
import type { Session } from '../session/session.ts'
import type { NodeEvent } from '../types.ts'
import { ClosedError } from '../errors.ts'
import { removeWatch } from './remove-watch.ts'
import type { ServerEvent, WatchListener } from './watch-registry.ts'

type OneShotKind = 'data' | 'exists' | 'children'

/** The local end of one watch that fires once. */
export class OneShotListener implements WatchListener {
  readonly #session: Session
  #kind: OneShotKind
  /** On the server. */
  readonly #path: string
  readonly #root: string
  readonly owner: object
  readonly fired: Promise<NodeEvent>
  #resolve: (event: NodeEvent) => void = () => {}
  #reject: (error: Error) => void = () => {}
  #hasEnded = false

  constructor(
    session: Session,
    kind: OneShotKind,
    path: string,
    { root, owner }: { root: string; owner: object },
  ) {
    this.#session = session
    this.owner = owner
    this.#kind = kind
    this.#path = path
    this.#root = root
    this.fired = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    // Nobody has to wait for it.
    this.fired.catch(() => {})
    session.watches.addPending(kind, path)
  }

  /** The request that arms it has been answered, or lost for good. `found` says whether the znode was there. */
  onRegistrationReply(armed: boolean, abandoned: boolean, found: boolean): void {
    this.#session.watches.removePending(this.#kind, this.#path)
    if (!armed) return
    // On what exists it waits for a change, as servers know it; only on what does not, for a creation.
    if (this.#kind === 'exists' && found) this.#kind = 'data'
    if (abandoned) void removeWatch(this.#session, this.#kind, this.#path)
    else this.#session.watches.add(this.#kind, this.#path, this)
  }

  notify({ type, path, zxid, order }: ServerEvent): void {
    this.#hasEnded = true
    const own = toClientPath(this.#root, path)
    if (own === undefined) return
    this.#resolve({ type, path: own, order, ...(zxid === undefined ? {} : { zxid }) })
  }

  resync(): void {}

  end(error: Error | undefined): void {
    this.#hasEnded = true
    this.#reject(error ?? new ClosedError('The watch is closed', 'CLOSED'))
  }

  /** Nobody waits for it any more. */
  close(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve()
    this.end(undefined)
    if (this.#session.watches.remove(this.#kind, this.#path, this)) {
      return removeWatch(this.#session, this.#kind, this.#path)
    }
    return Promise.resolve()
  }
}
