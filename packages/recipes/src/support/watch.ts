import {
  ConnectionLossError,
  NoNodeError,
  type Bytes,
  type Client,
  type OneShotWatch,
  type Ordered,
  type Stat,
} from '@zabra/client/core'
import { abortError, onAbort, withoutTimeout } from '@zabra/client/recipe-kit'
import { isNewSession } from './retry.ts'
import { onReconnect } from './on-reconnect.ts'

/** Reads znodes and watches them, so that a change triggers the next read. */
export interface WatchingReader {
  readonly client: Client
  readonly signal: AbortSignal | undefined
  /** Returns undefined, and sets no watch, when the znode does not exist. */
  data(path: string): Promise<({ data: Bytes; stat: Stat } & Ordered) | undefined>
  /** Also watches for the creation. */
  exists(path: string): Promise<Stat | undefined>
  /** Returns undefined, and sets no watch, when the znode does not exist. */
  children(path: string): Promise<{ children: readonly string[]; stat: Stat } | undefined>
  /** Reads again after `ms` milliseconds, if nothing happens before. */
  recheckAfter(ms: number): void
  /** Reads again when the promise settles. */
  recheckWhen(settled: Promise<unknown>): void
}

export interface WatchUntilOptions {
  readonly signal?: AbortSignal | undefined
  /** Name of the waiting operation, for messages. */
  readonly operation: string
}

/**
 * Reads repeatedly until `read` returns an answer. A change, a reconnect or a new session each trigger another
 * read. `read` must have no side effects: it is repeated when the session expires meanwhile.
 *
 * When this settles, no watch, listener or timer is left.
 */
export async function watchUntil<T>(
  client: Client,
  options: WatchUntilOptions,
  read: (reader: WatchingReader) => Promise<T | undefined>,
): Promise<T> {
  for await (const answer of watchEach(client, options, read)) return answer
  throw abortError(options.signal?.reason, { operation: options.operation })
}

/** Yields every answer of a read that is repeated on each possible change, until the consumer leaves the loop. */
export async function* watchEach<T>(
  client: Client,
  { signal, operation }: WatchUntilOptions,
  read: (reader: WatchingReader) => Promise<T | undefined>,
): AsyncGenerator<T, void, undefined> {
  let current: WatchRound | undefined
  let watching: WatchRound | undefined
  // When the client is finished, the next read throws the error.
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
        // The connection broke at this read repeatedly. Errors of decoding are rethrown.
        if (!isNewSession(client, error) && !(error instanceof ConnectionLossError)) throw error
        // While disconnected, the reconnect triggers the next read.
        if (client.state === 'connected') round.wake()
      } finally {
        // Closed only now, because paths that both rounds watch stay watched on the server.
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

/** The watches of one read. */
class WatchRound implements WatchingReader {
  readonly client: Client
  readonly signal: AbortSignal | undefined
  readonly #watches: OneShotWatch[] = []
  readonly #woken: Promise<void>
  #wake: () => void = () => {}
  #cancelTimer: () => void = () => {}

  constructor(client: Client, signal: AbortSignal | undefined) {
    this.client = withoutTimeout(client)
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

  /** Resolves when a read may have another result; rejects when the signal aborts. */
  async waitForWake(operation: string): Promise<void> {
    const { signal } = this
    if (signal === undefined) return this.#woken
    let stopListening = (): void => {}
    const left = new Promise<never>((_resolve, reject) => {
      stopListening = onAbort(signal, () => reject(abortError(signal.reason, { operation })))
    })
    try {
      await Promise.race([this.#woken, left])
    } finally {
      stopListening()
    }
  }

  /** Not awaited: a hanging connection must not block an aborted caller. */
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
