import { ZooKeeperError, type Client } from '@zabra/client/core'
import { childPath, withoutTimeout } from '@zabra/client/recipe-kit'
import { LostError } from '../handles/lost.ts'
import type { Handle, LockHandle, RecipeOptions } from '../handles/types.ts'
import { Mutex } from '../mutex/mutex.ts'
import { encodeName } from '../support/name-codec.ts'
import { delay } from '../support/delay.ts'
import { assignmentChange, type Phase } from './decide.ts'

/** The item is assigned to another member: finish the work and release it. */
export class HandOverError extends ZooKeeperError {
  static override readonly tag = 'HandOverError'
}

/** An item that this member holds exclusively. Releasing it means that the work is done. */
export interface Share extends Handle {
  readonly item: string
  /** The lock of the item, with its token. */
  readonly lock: LockHandle
  /** Aborts with a `HandOverError` when the item must be handed over, and with a `LostError` when it is lost. */
  readonly signal: AbortSignal
}

interface ItemState {
  phase: Phase
  readonly stop: AbortController
  done: Promise<void>
}

export interface SharesOptions {
  /** Milliseconds that the work on an item may take during a hand-over. */
  readonly graceMs: number
  readonly lock: RecipeOptions
  /** Starts the work; resolves when it is done. */
  readonly work: (share: Share) => Promise<void>
  readonly onFailed: (error: unknown) => void
}

/** The items that a member holds or waits for, each protected by its own lock. */
export class Shares {
  readonly #client: Client
  readonly #path: string
  readonly #options: SharesOptions
  readonly #items = new Map<string, ItemState>()
  #wanted: ReadonlySet<string> = new Set()
  #isClosed = false

  constructor(client: Client, path: string, options: SharesOptions) {
    this.#client = withoutTimeout(client)
    this.#path = path
    this.#options = options
  }

  get phases(): ReadonlyMap<string, Phase> {
    return new Map([...this.#items].map(([item, { phase }]) => [item, phase]))
  }

  /** Sets the items that this member should hold. */
  setWanted(items: ReadonlySet<string>): void {
    if (this.#isClosed) return
    this.#wanted = items
    const { acquire: toAcquire, release: toRelease } = assignmentChange(items, this.phases)
    for (const item of toRelease) this.#release(item)
    for (const item of toAcquire) this.#acquire(item)
  }

  /** Hands all items over. Resolves when none is held. */
  async close(): Promise<void> {
    this.setWanted(new Set())
    this.#isClosed = true
    await Promise.all([...this.#items.values()].map(({ done }) => done))
  }

  #release(item: string): void {
    const state = this.#items.get(item)!
    state.phase = 'leaving'
    state.stop.abort(
      new HandOverError(`The item ${item} must be handed over`, 'HAND_OVER', { path: this.#path }),
    )
  }

  #acquire(item: string): void {
    const state: ItemState = { phase: 'waiting', stop: new AbortController(), done: Promise.resolve() }
    this.#items.set(item, state)
    state.done = this.#holdItem(item, state)
      .catch((error: unknown) => {
        // A queue entry that another client deleted is created again.
        if (!state.stop.signal.aborted && !(error instanceof LostError)) this.#options.onFailed(error)
      })
      .then(() => {
        this.#items.delete(item)
        // The item may be assigned to this member again by now.
        this.setWanted(this.#wanted)
      })
  }

  async #holdItem(item: string, state: ItemState): Promise<void> {
    const { stop } = state
    const mutex = new Mutex(
      this.#client,
      childPath(this.#path, `locks/${encodeName(item)}`),
      this.#options.lock,
    )
    const held = await mutex.acquire({ signal: stop.signal })
    const lost = (): void => stop.abort(held.signal.reason)
    held.signal.addEventListener('abort', lost)
    if (held.signal.aborted) lost()
    // Start no work on an item that must be handed over or is lost already: its signal has aborted.
    if (stop.signal.aborted) return held.release()
    state.phase = 'owned'
    const release = (): Promise<void> => held.release()
    const share = { item, lock: held, signal: stop.signal, release, [Symbol.asyncDispose]: release }
    const worked = this.#options.work(share)
    await waitForAbort(stop.signal)
    state.phase = 'leaving'
    const workDone = new AbortController()
    const finished = worked.finally(() => workDone.abort())
    finished.catch(() => {})
    await delay(this.#client, this.#options.graceMs, workDone.signal)
    await held.release()
    // Never run two bodies for one item here, however long the first one takes.
    await finished
  }
}

export function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
}
