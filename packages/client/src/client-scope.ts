import { ClosedError, type ZooKeeperError } from './errors.ts'
import type { Session } from './session/session.ts'

/**
 * The lifetime of one client over a session, and the owner of its watches and state listeners. A client made by
 * chroot() closes with its parent, and without ending the session.
 */
export class ClientScope {
  readonly #session: Session
  readonly #parent: ClientScope | undefined
  #closedError: ClosedError | undefined
  /** Created at first use. */
  #closed: Promise<Error | undefined> | undefined
  #resolveClosed: (() => void) | undefined

  constructor(session: Session, parent?: ClientScope) {
    this.#session = session
    this.#parent = parent
  }

  /** The error with which calls reject because this client or one that it was derived from is closed. */
  get closedError(): ZooKeeperError | undefined {
    const parent = this.#parent
    return this.#closedError ?? (parent && parent.closedError)
  }

  /** Resolves when this client or its session closes: to the error, or to undefined after `close()`. */
  get closed(): Promise<Error | undefined> {
    this.#closed ??= new Promise((resolve) => {
      if (this.closedError !== undefined) resolve(undefined)
      this.#resolveClosed = () => resolve(undefined)
      void (this.#parent?.closed ?? this.#session.closed).then(resolve)
    })
    return this.#closed
  }

  /** Returns whether this client is `other` or was derived from it, at any depth. */
  isWithin(other: ClientScope): boolean {
    const parent = this.#parent
    return this === other || (parent !== undefined && parent.isWithin(other))
  }

  /** Marks the client as closed, then calls `onClosed` and resolves `closed`. Does nothing the second time. */
  close(onClosed: () => void): void {
    if (this.#closedError !== undefined) return
    this.#closedError = new ClosedError('This client is closed', 'CLOSED')
    onClosed()
    this.#resolveClosed?.()
  }
}
