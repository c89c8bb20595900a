import { NetworkError, type Address, type Clock, type Connection, type Network } from '@zabra/runtime'
import { formatAddress } from './election-hello.ts'

/** How a leader is looked for. Times are in milliseconds. */
export interface DialOptions {
  readonly network: Network
  readonly clock: Clock
  /** Where it may be; all are tried at once. */
  readonly addresses: readonly Address[]
  /** Until so long after the first attempt there are others. */
  readonly retryForMs: number
  /** The longest pause between two attempts; the first ones are short. */
  readonly maxRetryDelayMs: number
  /** For all attempts together. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export const dialDefaults = { retryForMs: 500, maxRetryDelayMs: 100 } as const

/** A leader that was elected in the same moment listens a few milliseconds later. */
const FIRST_PAUSE_MS = 5

/**
 * Connects to a leader at the first of its addresses that answers. It may need a moment before it listens, so there are
 * several attempts. Rejects with a `NetworkError` when all of them fail, the budget is spent or `signal` aborts.
 */
export async function dial(options: DialOptions): Promise<Connection> {
  const { clock, retryForMs: patienceMs, maxRetryDelayMs: pauseMs, timeoutMs: budgetMs, signal } = options
  const begun = clock.monotonic()
  const last = begun + Math.min(patienceMs, budgetMs)
  for (let wait = Math.min(FIRST_PAUSE_MS, pauseMs); ; wait = Math.min(wait * 2, pauseMs)) {
    try {
      return await race(options, Math.max(0, begun + budgetMs - clock.monotonic()))
    } catch (error) {
      if (signal.aborted || clock.monotonic() + wait >= last) throw error
    }
    await delay(clock, wait, signal)
  }
}

/** One attempt at all addresses. Those that answer too late are closed. */
async function race({ network, clock, addresses, signal }: DialOptions, ms: number): Promise<Connection> {
  const over = new AbortController()
  const cancel = clock.after(ms, 'connection to the leader', () => over.abort())
  let won: Connection | undefined
  const tries = addresses.map(async (address) => {
    const wire = await network.connect(address, { signal: AbortSignal.any([signal, over.signal]) })
    if (won === undefined && !signal.aborted) return (won = wire)
    wire.setHandler({ data() {}, drain() {}, closed() {} })
    wire.destroy()
    throw new NetworkError('It answered too late', 'ABORT_ERR')
  })
  try {
    return await Promise.any(tries)
  } catch (error) {
    const places = addresses.map(formatAddress).join(', ') || 'no address'
    const reasons =
      error instanceof AggregateError ? error.errors.map((each: Error) => each.message) : [String(error)]
    throw new NetworkError(`The leader cannot be reached at ${places}: ${reasons.join('; ')}`, 'ENOTCONN', {
      cause: error,
    })
  } finally {
    cancel()
    over.abort()
  }
}

/** Waits, or not any longer when `signal` aborts. */
export function delay(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(ms, 'next attempt at the leader', end)
    signal.addEventListener('abort', end, { once: true })
  })
}
