import {
  abortError,
  NoNodeError,
  SessionExpiredError,
  UsageError,
  type Client,
  type ErrorPolicy,
  type OneShotWatch,
} from '@zabra/client/core'
import { LostError } from '../held/lost.ts'
import { lossOf, situationOf } from '../held/policy.ts'
import type { AcquireOptions } from '../held/types.ts'
import { Bell } from './bell.ts'
import { verdictOf } from './contenders.ts'
import type { Line, Listing, Place } from './line.ts'

/** Something that goes on beside the wait for a turn. */
export interface Companion {
  /** Throws what should end the wait. */
  check(): void
}

export interface TurnOptions<T> extends AcquireOptions {
  /** How names of this contender go on after their mark. */
  readonly word: string
  readonly policy: ErrorPolicy
  /** What waits, for messages (default `acquire`). */
  readonly operation?: string
  /** Makes the right, at the very instant at which it is known to be held. */
  readonly grant: (place: Place, waitedMs: number) => T
  /** Called with each znode that waits; it rings when it wants to be asked. */
  readonly accompany?: (place: Place, ring: () => void) => Companion
  /** Called when a znode no longer waits, whatever came of it. */
  readonly ended?: (place: Place) => void
}

/**
 * Stands in line until it is our turn. Every wake-up only means to look again. What is left behind when it fails is
 * removed, whatever the reason. A place that one has already is taken instead of a new one, if it still exists.
 */
export async function takeTurn<T>(line: Line, options: TurnOptions<T>, place?: Place): Promise<T> {
  const { signal, onSessionLoss = 'requeue' } = options
  const since = line.client.platform.clock.monotonic()
  for (let own = place; ; own = undefined) {
    try {
      if (own === undefined) throwIfAborted(signal, line.directory, options.operation)
      const granted = await attempt(line, options, own, since)
      if (granted !== undefined) return granted.right
      // The place went with its session, or with the whole directory.
      if (onSessionLoss === 'throw') throw expired(line)
    } catch (error) {
      if (!(error instanceof SessionExpiredError) || onSessionLoss === 'throw') throw error
      if (!(await renewed(line, options))) throw error
    }
  }
}

/** Takes a turn only if nobody has to be waited for; else leaves no trace and gives undefined. */
export async function tryTurn<T>(
  line: Line,
  options: TurnOptions<T>,
  isFree: (names: readonly string[]) => boolean,
): Promise<T | undefined> {
  const { signal, word } = options
  throwIfAborted(signal, line.directory, options.operation)
  // Looking costs others nothing, a znode would.
  const before = await line.list(signal)
  if (before !== undefined && !isFree(before.names)) return undefined
  const { place, listing } = await line.enter(word, signal)
  try {
    const { names } = listing ?? (await line.list(signal)) ?? { names: [] }
    if (verdictOf(names, place.name, line.parse).turn === 'now') {
      await freshen(line.client, options.policy, signal)
      if (isSafe(line.client, place, options.policy)) return options.grant(place, 0)
    }
  } catch (error) {
    line.leaveBehind(place)
    throw error
  }
  await line.leave(place)
  return undefined
}

async function attempt<T>(
  line: Line,
  options: TurnOptions<T>,
  own: Place | undefined,
  since: number,
): Promise<{ right: T } | undefined> {
  const entered = own === undefined ? await line.enter(options.word, options.signal) : { place: own }
  const { place, listing } = { listing: undefined, ...entered }
  const bell = new Bell(line.client, options.signal)
  const predecessor = new Predecessor(line, bell)
  try {
    const companion = options.accompany?.(place, bell.ring)
    const granted = await patience({ line, options, place, bell, predecessor, companion, since }, listing)
    if (granted === undefined) line.leaveBehind(place)
    return granted
  } catch (error) {
    line.leaveBehind(place)
    throw error
  } finally {
    bell.close()
    predecessor.forget()
    options.ended?.(place)
  }
}

interface Wait<T> {
  readonly line: Line
  readonly options: TurnOptions<T>
  readonly place: Place
  readonly bell: Bell
  readonly predecessor: Predecessor
  readonly companion: Companion | undefined
  readonly since: number
}

/** Looks and waits by turns. Undefined when the place is gone through nobody's will, and another may be taken. */
async function patience<T>(wait: Wait<T>, first: Listing | undefined): Promise<{ right: T } | undefined> {
  const { line, options, place, bell, predecessor, companion } = wait
  const { client } = line
  const { signal, policy } = options
  let directory = first?.directory
  for (let listing = first; ; listing = undefined) {
    throwIfAborted(signal, place.path, options.operation)
    companion?.check()
    if (client.session.id !== place.owner) return undefined
    listing ??= await line.list(signal)
    if (listing === undefined) return undefined
    directory ??= listing.directory
    const verdict = verdictOf(listing.names, place.name, line.parse)
    if (verdict.turn === 'missing') {
      if (client.session.id !== place.owner || listing.directory !== directory) return undefined
      throw deleted(place)
    }
    if (verdict.turn === 'behind') {
      if (await predecessor.watch(verdict.name, signal)) await bell.wait()
      continue
    }
    await freshen(client, policy, signal)
    throwIfAborted(signal, place.path, options.operation)
    companion?.check()
    if (isSafe(client, place, policy)) {
      return { right: options.grant(place, client.platform.clock.monotonic() - wait.since) }
    }
    if (client.state !== 'connected') await bell.wait()
  }
}

/** The watch on the one before us, kept over wake-ups that have nothing to do with it. */
class Predecessor {
  readonly #line: Line
  readonly #bell: Bell
  #name: string | undefined
  #watch: OneShotWatch | undefined

  constructor(line: Line, bell: Bell) {
    this.#line = line
    this.#bell = bell
  }

  /** False when it has gone already. A read arms the watch: it leaves none on a znode that does not exist. */
  async watch(name: string, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#name === name) return true
    this.forget()
    try {
      const path = this.#line.pathOf(name)
      const watch = await this.#line.client.watchOnce(path, 'data', signal === undefined ? {} : { signal })
      this.#name = name
      this.#watch = watch
      const spent = (): void => {
        if (this.#watch === watch) this.#name = this.#watch = undefined
        this.#bell.ring()
      }
      watch.fired.then(spent, spent)
      return true
    } catch (error) {
      if (error instanceof NoNodeError) return false
      throw error
    }
  }

  /** Nobody waits for it any more. */
  forget(): void {
    const watch = this.#watch
    this.#name = this.#watch = undefined
    void watch?.close()
  }
}

/** While the connection is away nothing is granted, even if the policy would let a holder keep what it has. */
export const isSafe = (client: Client, { owner }: Place, policy: ErrorPolicy): boolean =>
  client.state === 'connected' && lossOf(policy, situationOf(client, owner)) === undefined

/** A lease that ran out while waiting is renewed before anything is granted on it. */
async function freshen(client: Client, policy: ErrorPolicy, signal: AbortSignal | undefined): Promise<void> {
  const now = (): number => client.platform.clock.monotonic()
  if (typeof policy !== 'object' || now() < client.leaseHorizon) return
  await client.syncCommitted(signal === undefined ? {} : { signal })
  if (client.state === 'connected' && now() >= client.leaseHorizon) {
    throw new UsageError(`Expected a lease margin below the session timeout of ${client.session.timeout} ms`)
  }
}

/** Waits for the session that follows an expired one. False when none will. */
async function renewed(
  { client, directory }: Line,
  { signal, operation }: Pick<TurnOptions<unknown>, 'signal' | 'operation'>,
): Promise<boolean> {
  const bell = new Bell(client, signal)
  try {
    while (!signal?.aborted && !bell.over && client.state !== 'connected') await bell.wait()
    throwIfAborted(signal, directory, operation)
    return client.state === 'connected'
  } finally {
    bell.close()
  }
}

export function throwIfAborted(signal: AbortSignal | undefined, path: string, operation = 'acquire'): void {
  if (signal?.aborted) throw abortError(signal.reason, { path, operation })
}

const expired = ({ client, directory }: Line): SessionExpiredError =>
  new SessionExpiredError(`acquire ${directory}: the session expired while waiting`, client.session.id, {
    path: directory,
    operation: 'acquire',
  })

/** A waiting znode has gone by somebody's hand. */
export const deleted = ({ path, token }: Place): LostError =>
  new LostError(`The place in line ${path} is gone: somebody has deleted it`, 'nodeDeleted', token, path)
