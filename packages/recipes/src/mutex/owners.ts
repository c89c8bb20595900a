import { UsageError } from '@zabra/client/core'
import { checkRelease } from '../handles/ephemeral-lock-handle.ts'
import type { LockHandle } from '../handles/types.ts'

/** The owners that hold or wait for one lock. */
export class Owners {
  readonly #held = new Map<object, { readonly held: LockHandle; count: number }>()
  readonly #waiting = new Set<object>()
  readonly #reentrant: boolean
  readonly #path: string

  constructor(path: string, reentrant: boolean) {
    this.#path = path
    this.#reentrant = reentrant
  }

  /** Returns another handle for an owner that holds the lock. Throws when the owner would wait for itself. */
  reenter(owner: object | undefined): LockHandle | undefined {
    if (owner === undefined) {
      if (!this.#reentrant) return undefined
      throw new UsageError(`Expected an owner: ${this.#path} is reentrant and counts by owner`, {
        path: this.#path,
      })
    }
    const entry = this.#held.get(owner)
    const live = entry !== undefined && !entry.held.signal.aborted
    if (this.#waiting.has(owner) || (entry !== undefined && !(this.#reentrant && live))) {
      throw new UsageError(
        `This owner ${live ? 'holds' : 'has not released or still waits for'} ${this.#path} already and would wait for itself`,
        { path: this.#path },
      )
    }
    if (entry === undefined) return undefined
    entry.count++
    return this.#countedHandle(owner)
  }

  /** Runs an acquire for an owner, which may not start another one meanwhile. */
  async acquireFirst<T extends LockHandle | undefined>(
    owner: object | undefined,
    acquire: () => Promise<T>,
  ): Promise<T | LockHandle> {
    if (owner === undefined) return acquire()
    this.#waiting.add(owner)
    try {
      const held = await acquire()
      if (held === undefined) return held
      this.#held.set(owner, { held, count: 1 })
      return this.#countedHandle(owner)
    } finally {
      this.#waiting.delete(owner)
    }
  }

  /** Returns a handle whose release releases the lock if it is the last one. */
  #countedHandle(owner: object): LockHandle {
    const entry = this.#held.get(owner)!
    const { held } = entry
    let released: Promise<void> | undefined
    const release: LockHandle['release'] = async (options = {}) => {
      // A wrong call must not count.
      checkRelease(options)
      if (released !== undefined) return released
      if (--entry.count > 0) return (released = Promise.resolve())
      this.#held.delete(owner)
      return (released = held.release(options))
    }
    return {
      token: held.token,
      path: held.path,
      signal: held.signal,
      assertHeld: () => held.assertHeld(),
      guard: (operations, options) => held.guard(operations, options),
      release,
      [Symbol.asyncDispose]: () => release(),
    }
  }
}
