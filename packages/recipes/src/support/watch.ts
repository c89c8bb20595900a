import {
  abortError,
  ConnectionLossError,
  NoNodeError,
  type Bytes,
  type Client,
  type OneShotWatch,
  type Ordered,
  type Stat,
} from '@zabra/client/core'
import { isNewSession } from './retry.ts'
import { onReconnect } from './on-reconnect.ts'

/** One look at the tree. What it reads is watched, so that a change brings the next look. */
export interface WatchingReader {
  readonly client: Client
  readonly signal: AbortSignal | undefined
  /** Undefined, and no watch, when there is no such znode. */
  data(path: string): Promise<({ data: Bytes; stat: Stat } & Ordered) | undefined>
  /** Also waits for creation. */
  exists(path: string): Promise<Stat | undefined>
  /** Undefined, and no watch, when there is no such znode. */
  children(path: string): Promise<{ children: readonly string[]; stat: Stat } | undefined>
  /** Looks again after so many milliseconds, if nothing happens before. */
  recheckAfter(ms: number): void
  /** Looks again when this settles. */
  recheckWhen(settled: Promise<unknown>): void
}

export interface WatchUntilOptions {
  readonly signal?: AbortSignal | undefined
  /** What waits, for messages. */
  readonly operation: string
}

/**
 * Looks until there is an answer. Whatever happens in between, a change, a reconnect or a new session, means no more than
 * that it is worth looking again. A look only reads: it is repeated when the session ends in its midst.
 *
 * Nothing is left when this settles: no watch, no listener, no timer.
 */
export async function watchUntil<T>(
  client: Client,
  options: WatchUntilOptions,
  read: (reader: WatchingReader) => Promise<T | undefined>,
): Promise<T> {
  for await (const answer of watchEach(client, options, read)) return answer
  throw abortError(options.signal?.reason, { operation: options.operation })
}

/** Every answer of a look that is repeated whenever something may have changed, until the consumer leaves. */
export async function* watchEach<T>(
  client: Client,
  { signal, operation }: WatchUntilOptions,
  read: (reader: WatchingReader) => Promise<T | undefined>,
): AsyncGenerator<T, void, undefined> {
  let current: WatchRound | undefined
  let watching: WatchRound | undefined
  // When the client is finished, the next look says how.
  const unsubscribe = onReconnect(client, () => current?.wake())
  try {
    for (;;) {
      if (signal?.aborted) throw abortError(signal.reason, { operation })
      const round = new WatchRound(client, signal)
      current = round
      let answer: T | undefined
      try {
        answer = await read(round)
      } catch (error) {
        // Connections broke at the same read again and again. An answer that cannot be read is another error.
        if (!isNewSession(client, error) && !(error instanceof ConnectionLossError)) throw error
        // While the connection is away its return brings the next look.
        if (client.state === 'connected') round.wake()
      } finally {
        // Only now, since what both rounds watch stays armed on the server.
        watching?.close()
        watching = round
      }
      if (answer !== undefined) yield answer
      await round.waitForWake(operation)
    }
  } finally {
    watching?.close()
    current = undefined
    unsubscribe()
  }
}

/** The watches of one look. */
class WatchRound implements WatchingReader {
  readonly client: Client
  readonly signal: AbortSignal | undefined
  readonly #watches: OneShotWatch[] = []
  readonly #woken: Promise<void>
  #wake: () => void = () => {}
  #cancelTimer: () => void = () => {}

  constructor(client: Client, signal: AbortSignal | undefined) {
    this.client = client
    this.signal = signal
    this.#woken = new Promise((resolve) => (this.#wake = resolve))
  }

  async data(path: string): Promise<({ data: Bytes; stat: Stat } & Ordered) | undefined> {
    const watch = await this.#watch(path, 'data')
    return watch && { data: watch.data!, stat: watch.stat!, order: watch.order }
  }

  async exists(path: string): Promise<Stat | undefined> {
    return (await this.#watch(path, 'exists'))?.stat
  }

  async children(path: string): Promise<{ children: readonly string[]; stat: Stat } | undefined> {
    const watch = await this.#watch(path, 'children')
    return watch && { children: watch.children!, stat: watch.stat! }
  }

  recheckAfter(ms: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.client.platform.clock.after(ms, 'look again', () => this.wake())
  }

  recheckWhen(settled: Promise<unknown>): void {
    const wake = (): void => this.wake()
    settled.then(wake, wake)
  }

  wake(): void {
    this.#wake()
  }

  /** Resolves when it is worth looking again; rejects when the caller has left. */
  async waitForWake(operation: string): Promise<void> {
    const { signal } = this
    if (signal === undefined) return this.#woken
    let leave = (): void => {}
    const left = new Promise<never>((_resolve, reject) => {
      leave = () => reject(abortError(signal.reason, { operation }))
      signal.addEventListener('abort', leave, { once: true })
      if (signal.aborted) leave()
    })
    try {
      await Promise.race([this.#woken, left])
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** Not awaited: a connection that hangs must not keep a caller who leaves. */
  close(): void {
    this.#cancelTimer()
    for (const watch of this.#watches) void watch.close()
  }

  async #watch(path: string, kind: 'data' | 'exists' | 'children'): Promise<OneShotWatch | undefined> {
    const { signal } = this
    try {
      const watch = await this.client.watchOnce(path, kind, signal === undefined ? {} : { signal })
      this.#watches.push(watch)
      this.recheckWhen(watch.fired)
      return watch
    } catch (error) {
      if (error instanceof NoNodeError && kind !== 'exists') return undefined
      throw error
    }
  }
}
