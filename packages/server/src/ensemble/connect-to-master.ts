import { NetworkError, type Address, type Clock, type Connection, type Network } from '@zabra/runtime'
import { votersOf, type ServerId } from '../core/quorum/index.ts'
import type { MemberContext } from './context.ts'
import { formatAddress } from './election-hello.ts'

/** The learner master of a learner, which is its leader or a follower with `observerMasterPort`, and the connection to it. */
export interface MasterConnection {
  readonly connection: Connection
  readonly master: ServerId
}

/** The leader to which a learner connects, and whether the learner is an observer. */
export interface MasterTarget {
  readonly leader: ServerId
  readonly isObserver: boolean
  readonly signal: AbortSignal
}

type DialBase = Omit<DialOptions, 'addresses' | 'timeoutMs' | 'retryForMs' | 'secure'>

/**
 * Connects a learner to its learner master. An observer with an `observerMasterPort` prefers the followers, in random order; when none
 * of them accepts it within a tick it connects to the leader, where Apache ZooKeeper keeps trying the followers. Rejects with a
 * `NetworkError` when no server can be reached.
 */
export async function connectToMaster(
  context: MemberContext,
  { leader, isObserver: observer, signal }: MasterTarget,
): Promise<MasterConnection> {
  const { settings, platform, membership, security } = context
  const timeoutMs = (settings.connectToLearnerMasterLimit || settings.initLimit) * settings.tickTimeMs
  const base: DialBase = {
    network: security.network,
    clock: platform.clock,
    maxRetryDelayMs: settings.connectRetryDelayMs,
    signal,
  }
  if (observer && settings.observerMasterPort > 0) {
    const connected = await connectToFollower(context, base, leader, Math.min(settings.tickTimeMs, timeoutMs))
    if ('connection' in connected) return connected
    platform.logger.info(
      { leader, reasons: connected.reasons },
      'No follower accepts this observer; it connects to the leader',
    )
  }
  const addresses = membership.addressesOf(leader, 'quorumPort')
  const { retryForMs } = dialDefaults
  const secure = secureFor(context, leader)
  return { connection: await dial({ ...base, addresses, timeoutMs, retryForMs, secure }), master: leader }
}

/**
 * Tries one follower after the other, repeatedly. Each gets a share of the time, since a host may not answer at all. Resolves to the last
 * reason of each when none accepts the observer.
 */
async function connectToFollower(
  context: MemberContext,
  base: DialBase,
  leader: ServerId,
  withinMs: number,
): Promise<MasterConnection | { readonly reasons: readonly string[] }> {
  const { settings, platform, membership } = context
  const followers = votersOf(membership.active).filter((id) => id !== leader)
  const { clock, random } = platform
  const until = clock.monotonic() + withinMs
  const reasons = new Map<ServerId, string>()
  shuffle(followers, (below) => random.below(below))
  while (clock.monotonic() < until && followers.length > 0 && !base.signal.aborted) {
    for (const master of followers) {
      const addresses = membership
        .addressesOf(master, 'quorumPort')
        .map(({ host }) => ({ host, port: settings.observerMasterPort }))
      const timeoutMs = Math.max(1, Math.min(withinMs / followers.length, until - clock.monotonic()))
      const endsAt = clock.monotonic() + timeoutMs
      const secure = secureFor(context, master)
      try {
        return { connection: await dial({ ...base, addresses, timeoutMs, retryForMs: 0, secure }), master }
      } catch (error) {
        // The next follower is tried, and after all of them the leader.
        if (base.signal.aborted) break
        // What an attempt says that has run out of time is less than what was wrong with one before.
        if (!reasons.has(master) || clock.monotonic() < endsAt)
          reasons.set(master, error instanceof Error ? error.message : String(error))
      }
    }
    await delay(clock, base.maxRetryDelayMs, base.signal)
  }
  return { reasons: [...reasons.values()] }
}

/** Returns what makes sure that a connection leads to this server. */
const secureFor =
  ({ security }: MemberContext, id: ServerId): DialOptions['secure'] =>
  async (connection, { host }, signal) => {
    const rest = await security.open(connection, { id, port: 'quorum', host }, signal)
    if (rest.length > 0)
      throw new NetworkError(
        `Expected server ${id} to wait for a first packet, got ${rest.length} bytes`,
        'EPROTO',
      )
  }

/** Shuffles ids; every order is equally likely. */
function shuffle(ids: ServerId[], below: (bound: number) => number): void {
  for (let at = ids.length - 1; at > 0; at--) {
    const other = below(at + 1)
    ;[ids[at], ids[other]] = [ids[other]!, ids[at]!]
  }
}

/** How to connect to one server. Times are in milliseconds. */
export interface DialOptions {
  readonly network: Network
  readonly clock: Clock
  /** The addresses of the server; all are tried at once. */
  readonly addresses: readonly Address[]
  /** How long after the first attempt further ones may begin. */
  readonly retryForMs: number
  /** The longest delay between two attempts; the first delays are shorter. */
  readonly maxRetryDelayMs: number
  /** The time for all attempts together. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
  /** Makes sure that a connection to this address leads to the server. Rejects when it does not. */
  readonly secure?:
    | ((connection: Connection, address: Address, signal: AbortSignal) => Promise<void>)
    | undefined
}

export const dialDefaults = { retryForMs: 500, maxRetryDelayMs: 100 } as const

/** The first delay is short: a leader that was just elected listens a few milliseconds later. */
const FIRST_DELAY_MS = 5

/**
 * Connects to the first address that answers, with retries, since a leader may not listen yet. Rejects with a `NetworkError` when all
 * attempts fail, the time is over or `signal` aborts.
 */
export async function dial(options: DialOptions): Promise<Connection> {
  const { clock, retryForMs, maxRetryDelayMs, timeoutMs, signal } = options
  const startedAt = clock.monotonic()
  const lastAttemptAt = startedAt + Math.min(retryForMs, timeoutMs)
  let delayMs = Math.min(FIRST_DELAY_MS, maxRetryDelayMs)
  for (; ; delayMs = Math.min(delayMs * 2, maxRetryDelayMs)) {
    try {
      return await dialOnce(options, Math.max(0, startedAt + timeoutMs - clock.monotonic()))
    } catch (error) {
      if (signal.aborted || clock.monotonic() + delayMs >= lastAttemptAt) throw error
    }
    await delay(clock, delayMs, signal)
  }
}

/** Tries all addresses once. Connections that are established too late are closed. */
async function dialOnce(
  { network, clock, addresses, signal, secure }: DialOptions,
  timeoutMs: number,
): Promise<Connection> {
  const ended = new AbortController()
  const cancel = clock.after(timeoutMs, 'connection to the leader', () => ended.abort())
  let first: Connection | undefined
  const attempts = addresses.map(async (address) => {
    const either = AbortSignal.any([signal, ended.signal])
    const connection = await network.connect(address, { signal: either })
    try {
      await secure?.(connection, address, either)
      if (first === undefined && !signal.aborted) return (first = connection)
      throw new NetworkError('It answered too late', 'ABORT_ERR')
    } catch (error) {
      connection.setHandler({ data() {}, drain() {}, closed() {} })
      connection.destroy()
      throw error
    }
  })
  try {
    return await Promise.any(attempts)
  } catch (error) {
    const tried = addresses.map(formatAddress).join(', ') || 'no address'
    const reasons =
      error instanceof AggregateError ? error.errors.map((each: Error) => each.message) : [String(error)]
    throw new NetworkError(`The server cannot be reached at ${tried}: ${reasons.join('; ')}`, 'ENOTCONN', {
      cause: error,
    })
  } finally {
    cancel()
    ended.abort()
  }
}

/** Resolves after a delay, or when `signal` aborts. */
function delay(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
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
