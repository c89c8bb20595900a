import {
  BadVersionError,
  ClosedError,
  MultiError,
  NoNodeError,
  RecoverableError,
  SessionExpiredError,
  UsageError,
  ZooKeeperError,
  type Client,
  type ErrorPolicy,
  type OneShotWatch,
  type WriteOp,
} from '@zabra/client/core'
import { bodyAndRelease } from '../held/combine.ts'
import { Right } from '../held/right.ts'
import type { AcquireOptions, Held, RecipeOptions } from '../held/types.ts'
import { Bell } from '../line/bell.ts'
import { Line, madePlace, marks, placeOf, type Place } from '../line/line.ts'
import { deleted, isSafe, takeTurn, throwIfAborted } from '../line/turn.ts'
import { uuid } from '../line/uuid.ts'
import { lockWords, parseLock } from '../mutex/names.ts'
import { fits, layoutOf, leaseWords, type Layout } from './leases.ts'
import { causeAt } from '../waiting/errors.ts'
import { checkPermits, Permits, type Limit } from './permits.ts'

export interface SemaphoreOptions extends RecipeOptions {
  /** How many permits there are, if nobody has said otherwise yet. */
  readonly permits: number
}

type SemaphoreAcquireOptions = Omit<AcquireOptions, 'owner'>

/**
 * So many permits for all clients together. Who wants some stands in line, and the first in line waits until there are
 * enough: large requests are not overtaken by small ones. All permits of one acquire are one znode, and go together.
 */
export class Semaphore {
  readonly client: Client
  readonly path: string
  readonly #options: SemaphoreOptions
  readonly #policy: ErrorPolicy
  readonly #layout: Layout
  readonly #line: Line
  readonly #permits: Permits
  /** Whether it is known to exist. */
  #found = false

  constructor(client: Client, path: string, options: SemaphoreOptions) {
    checkPermits(options.permits, 0)
    this.client = client
    this.path = path
    this.#options = options
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#layout = layoutOf(path, options.naming ?? 'recipe')
    this.#line = new Line(client, this.#layout.line, parseLock, options)
    this.#permits = new Permits(client, path, options.permits, options)
  }

  /**
   * Waits for permits. Rejects with a `UsageError` when there are not so many in all, a `PermitsConflictError` when the
   * semaphore was made with another number, and as the `acquire` of a mutex does.
   */
  async acquire(permits = 1, options: SemaphoreAcquireOptions = {}): Promise<Held> {
    checkPermits(permits, 1)
    const { naming = 'recipe' } = this.#options
    if (naming !== 'recipe' && permits !== 1) {
      const whose = naming === 'curator' ? 'Curator' : 'kazoo'
      throw new UsageError(`Expected 1 permit at a time with the names of ${whose}, got ${permits}`)
    }
    throwIfAborted(options.signal, this.path)
    for (;;) {
      const held = await this.#acquire(permits, options)
      if (held !== undefined) return held
      if (options.onSessionLoss === 'throw') {
        throw new SessionExpiredError(
          `acquire ${this.path}: the session expired while waiting`,
          this.client.session.id,
        )
      }
    }
  }

  /** Runs the body while holding, and releases. What both throw comes in one `AggregateError`. */
  async run<T>(
    body: (held: Held) => Promise<T>,
    permits?: number,
    options?: SemaphoreAcquireOptions,
  ): Promise<T> {
    const held = await this.acquire(permits, options)
    return bodyAndRelease(
      () => body(held),
      () => held.release(),
    )
  }

  /** Changes how many there are. Fewer take effect as permits come back. */
  setPermits(permits: number): Promise<void> {
    return this.#permits.set(permits)
  }

  /** One turn at the head of the line. Undefined when it was lost with the session. */
  async #acquire(permits: number, options: SemaphoreAcquireOptions): Promise<Right | undefined> {
    const since = this.client.platform.clock.monotonic()
    const bell = new Bell(this.client, options.signal)
    let place: Place | undefined
    try {
      // Before anybody stands in line: it must exist with its limit, not as a mere parent.
      if (!this.#found) await this.#permits.read(options.signal)
      this.#found = true
      place = await this.#reachHead(options)
      return await this.#atHead({ place, permits, bell, signal: options.signal, since })
    } catch (error) {
      const over = options.onSessionLoss === 'throw' || this.client.state === 'expired'
      if (over || !(error instanceof SessionExpiredError)) throw error
      return undefined
    } finally {
      // Unless the transaction has removed it already.
      if (place !== undefined && !this.#spent.has(place)) this.#line.leaveBehind(place)
      bell.close()
    }
  }

  #reachHead(options: SemaphoreAcquireOptions): Promise<Place> {
    return takeTurn(this.#line, {
      ...options,
      word: lockWords[this.#options.naming ?? 'recipe'],
      policy: this.#policy,
      grant: (own: Place) => own,
    })
  }

  readonly #spent = new WeakSet<Place>()

  /** Waits until enough permits are free, and takes them. */
  async #atHead(head: Head): Promise<Right | undefined> {
    const { place, permits, bell, signal } = head
    const watches = new Watches(this.client, [this.#leases, this.path], bell)
    try {
      for (let first = true; ; first = false) {
        throwIfAborted(signal, this.path)
        if (this.client.session.id !== place.owner) return undefined
        // What was known will do for a first look, since the transaction checks that it still holds.
        const limiting = first ? this.#permits.recent(signal) : this.#permits.read(signal)
        const [names, limit] = await Promise.all([this.#list(signal), limiting])
        if (fits(names, permits, limit.permits, this.#options.naming)) {
          const lease = await this.#take(head, limit)
          if (lease !== undefined) return await this.#grant(lease, head)
          continue
        }
        if (!first) this.#checkPossible(permits, limit)
        if (await watches.armed(signal)) await bell.wait()
      }
    } finally {
      watches.close()
    }
  }

  #checkPossible(permits: number, { permits: all }: Limit): void {
    if (permits <= all) return
    throw new UsageError(
      `Expected at most ${all} permits, which is all that ${this.path} has, got ${permits}`,
    )
  }

  get #leases(): string {
    return this.#layout.leases
  }

  async #list(signal: AbortSignal | undefined): Promise<string[]> {
    for (;;) {
      try {
        return (await this.client.getChildren(this.#leases, signal === undefined ? {} : { signal })).children
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
        const { acl, parents } = this.#options
        await this.client.mkdirp(this.#leases, {
          ...(parents === undefined ? {} : { mode: parents }),
          ...(acl === undefined ? {} : { acl }),
        })
      }
    }
  }

  /**
   * Leaves the head of the line and takes the permits in one transaction, so that nothing can go wrong in between.
   * Undefined when it could not be done and has to be looked at again.
   */
  async #take({ place, permits, signal }: Head, limit: Limit): Promise<Place | undefined> {
    const { naming = 'recipe', acl, data } = this.#options
    const mark = marks[naming](uuid(this.client))
    const path = `${this.#leases}/${mark}${leaseWords[naming](permits)}`
    const create = {
      op: 'create',
      path,
      mode: naming === 'kazoo' ? 'ephemeral' : 'ephemeralSequential',
      ...(acl === undefined ? {} : { acl }),
      ...(data === undefined ? {} : { data }),
    } as const
    const unchanged: WriteOp[] =
      limit.version === undefined ? [] : [{ op: 'check', path: this.path, version: limit.version }]
    const taken = this.client.multi([{ op: 'delete', path: place.path }, create, ...unchanged] as const)
    try {
      const [, made] = await orAbort(taken, signal, this.path)
      this.#spent.add(place)
      const lease = await madePlace(this.client, made)
      if (lease === undefined) throw deleted(place)
      return lease
    } catch (error) {
      if (causeAt(error, 2) instanceof BadVersionError) return undefined
      if (error instanceof MultiError && error.cause instanceof NoNodeError) {
        // The head of the line is gone, or the directory of the leases is.
        if (error.index === 0 && this.client.session.id === place.owner) throw deleted(place)
        return undefined
      }
      if (!(error instanceof ZooKeeperError) || error instanceof MultiError) throw error
      if (error instanceof RecoverableError && error.maybeApplied && !signal?.aborted) {
        const found = await this.#find(mark)
        if (found !== undefined) this.#spent.add(place)
        if (found !== undefined || (await this.client.exists(place.path)) !== undefined) return found
      }
      this.#forget(taken, mark)
      throw error
    }
  }

  /** The lease whose reply was lost. */
  async #find(mark: string): Promise<Place | undefined> {
    await this.client.sync(this.#leases)
    const name = (await this.#list(undefined)).find((child) => child.startsWith(mark))
    const stat = name === undefined ? undefined : await this.client.exists(`${this.#leases}/${name}`)
    if (stat === undefined || stat.ephemeralOwner !== this.client.session.id) return undefined
    return placeOf({ path: `${this.#leases}/${name}`, stat })
  }

  /** Nobody waits for these permits any more: what may have been taken is given back as soon as that can be told. */
  #forget(taken: Promise<unknown>, mark: string): void {
    const clean = async (): Promise<void> => {
      await taken.catch(() => undefined)
      const found = await this.#find(mark)
      if (found !== undefined) await this.#line.leave(found)
    }
    clean().catch((error: unknown) => {
      if (error instanceof SessionExpiredError || error instanceof ClosedError) return
      this.client.instrumentation?.recipe?.({ recipe: 'semaphore', path: this.path, phase: 'leaveFailed' })
    })
  }

  /** Holds what it has taken as soon as the policy allows. */
  async #grant(lease: Place, { bell, signal, since }: Head): Promise<Right | undefined> {
    try {
      while (!isSafe(this.client, lease, this.#policy)) {
        throwIfAborted(signal, lease.path)
        if (this.client.session.id !== lease.owner) return undefined
        if (bell.over) throw new ClosedError('The client is closed', 'CLOSED')
        if (this.client.state !== 'connected') await bell.wait()
        else await this.client.syncCommitted()
      }
      const waitedMs = this.client.platform.clock.monotonic() - since
      return new Right(this.client, lease, { recipe: 'semaphore', policy: this.#policy, waitedMs })
    } catch (error) {
      this.#line.leaveBehind(lease)
      throw error
    }
  }
}

/** The one at the head of the line, and what it wants. */
interface Head {
  readonly place: Place
  readonly permits: number
  readonly bell: Bell
  readonly signal: AbortSignal | undefined
  /** When it began to wait. */
  readonly since: number
}

/** The watches of the one at the head, kept over wake-ups that spend only some of them. */
class Watches {
  readonly #client: Client
  readonly #paths: readonly [children: string, data: string]
  readonly #bell: Bell
  readonly #live = new Map<string, OneShotWatch>()

  constructor(client: Client, paths: readonly [children: string, data: string], bell: Bell) {
    this.#client = client
    this.#paths = paths
    this.#bell = bell
  }

  /** True when all were armed already, so that nothing can have changed since it was looked at. */
  async armed(signal: AbortSignal | undefined): Promise<boolean> {
    const [children, data] = this.#paths
    const missing = (
      [
        ['children', children],
        ['data', data],
      ] as const
    ).filter(([kind]) => !this.#live.has(kind))
    await Promise.all(missing.map(([kind, path]) => this.#arm(kind, path, signal)))
    return missing.length === 0
  }

  async #arm(kind: 'children' | 'data', path: string, signal: AbortSignal | undefined): Promise<void> {
    try {
      const watch = await this.#client.watchOnce(path, kind, signal === undefined ? {} : { signal })
      this.#live.set(kind, watch)
      const spent = (): void => {
        if (this.#live.get(kind) === watch) this.#live.delete(kind)
        this.#bell.ring()
      }
      watch.fired.then(spent, spent)
    } catch (error) {
      // Then the next look makes it again.
      if (!(error instanceof NoNodeError)) throw error
    }
  }

  close(): void {
    for (const watch of this.#live.values()) void watch.close()
    this.#live.clear()
  }
}

/** What a promise comes to, unless the caller gives up first. */
async function orAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined, path: string): Promise<T> {
  if (signal === undefined) return promise
  promise.catch(() => {})
  let stop = (): void => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => {
      try {
        throwIfAborted(signal, path)
      } catch (error) {
        reject(error as Error)
      }
    }
    signal.addEventListener('abort', stop, { once: true })
    stop()
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
