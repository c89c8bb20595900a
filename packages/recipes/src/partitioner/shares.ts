import { StateError, type Client } from '@zabra/client/core'
import { LostError } from '../held/lost.ts'
import type { Held, RecipeOptions } from '../held/types.ts'
import { Mutex } from '../mutex/mutex.ts'
import { encodeName } from '../waiting/names.ts'
import { pauseFor } from '../waiting/pause.ts'
import { stepOf, type Phase } from './decide.ts'

/** An item that is to become somebody else's: finish the work on it and release it. */
export class HandOverError extends StateError {
  static override readonly tag = 'HandOverError'
}

/** An item that is ours now, and nobody else's. */
export interface Share {
  readonly item: string
  /** Its lock. Releasing it says that the work on the item is done. */
  readonly held: Held
  /** Aborts with a `HandOverError` when the item is to be handed over, and with a `LostError` when it is lost already. */
  readonly signal: AbortSignal
}

interface Piece {
  phase: Phase
  readonly stop: AbortController
  done: Promise<void>
}

export interface SharesOptions {
  /** How long the work on an item that is handed over may take. */
  readonly graceMs: number
  readonly lock: RecipeOptions
  /** Begins the work; resolves when it is over. */
  readonly work: (share: Share) => Promise<void>
  readonly failed: (error: unknown) => void
}

/** The items that a member holds or waits for, each behind a lock of its own. */
export class Shares {
  readonly #client: Client
  readonly #path: string
  readonly #options: SharesOptions
  readonly #pieces = new Map<string, Piece>()
  #wanted: ReadonlySet<string> = new Set()
  #over = false

  constructor(client: Client, path: string, options: SharesOptions) {
    this.#client = client
    this.#path = path
    this.#options = options
  }

  get phases(): ReadonlyMap<string, Phase> {
    return new Map([...this.#pieces].map(([item, { phase }]) => [item, phase]))
  }

  /** From now on these are to be ours, and no others. */
  want(items: ReadonlySet<string>): void {
    if (this.#over) return
    this.#wanted = items
    const { take, leave } = stepOf(items, this.phases)
    for (const item of leave) this.#leave(item)
    for (const item of take) this.#take(item)
  }

  /** Hands everything over. Resolves when nothing is held. */
  async close(): Promise<void> {
    this.want(new Set())
    this.#over = true
    await Promise.all([...this.#pieces.values()].map(({ done }) => done))
  }

  #leave(item: string): void {
    const piece = this.#pieces.get(item)!
    piece.phase = 'leaving'
    piece.stop.abort(
      new HandOverError(`The item ${item} is to be handed over`, 'HAND_OVER', { path: this.#path }),
    )
  }

  #take(item: string): void {
    const piece: Piece = { phase: 'waiting', stop: new AbortController(), done: Promise.resolve() }
    this.#pieces.set(item, piece)
    piece.done = this.#own(item, piece)
      .catch((error: unknown) => {
        // A place in a line that somebody deleted is taken again.
        if (!piece.stop.signal.aborted && !(error instanceof LostError)) this.#options.failed(error)
      })
      .then(() => {
        this.#pieces.delete(item)
        // It may be wanted again by now.
        this.want(this.#wanted)
      })
  }

  async #own(item: string, piece: Piece): Promise<void> {
    const { stop } = piece
    const mutex = new Mutex(this.#client, `${this.#path}/locks/${encodeName(item)}`, this.#options.lock)
    const held = await mutex.acquire({ signal: stop.signal })
    const lost = (): void => stop.abort(held.signal.reason)
    held.signal.addEventListener('abort', lost)
    if (held.signal.aborted) lost()
    // No work is begun on what is to be handed over, or lost, already: it would wait for a signal that has been given.
    if (stop.signal.aborted) return held.release()
    piece.phase = 'owned'
    const worked = this.#options.work({ item, held, signal: stop.signal })
    await aborted(stop.signal)
    piece.phase = 'leaving'
    const enough = new AbortController()
    const finished = worked.finally(() => enough.abort())
    finished.catch(() => {})
    await pauseFor(this.#client, this.#options.graceMs, enough.signal)
    await held.release()
    // Never two pieces of work on one item here, however long the first one takes.
    await finished
  }
}

/** Resolves when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (signal.aborted) resolve()
  })
}
