import {
  BadVersionError,
  ClosedError,
  MultiError,
  NoNodeError,
  SessionExpiredError,
  UsageError,
  ZooKeeperError,
  type CallOptions,
  type Client,
  type ErrorPolicy,
  type OneShotWatch,
  type WriteOp,
} from '@zabra/client/core'
import { onAbort, withoutTimeout } from '@zabra/client/recipe-kit'
import { runAndRelease } from '../handles/run-and-release.ts'
import { EphemeralLockHandle } from '../handles/ephemeral-lock-handle.ts'
import { explainHolders, type Explanation, type Participant } from '../handles/lock-timeout.ts'
import type { LockHandle, RecipeOptions, WaitOptions } from '../handles/types.ts'
import { Notifier } from '../lock-queue/notifier.ts'
import { LockQueue, createdEntry, protectionIds, entryOf, type QueueEntry } from '../lock-queue/lock-queue.ts'
import { contendersInOrder } from '../lock-queue/contenders.ts'
import {
  entryDeleted,
  canGrant,
  acquireTurn,
  tryAcquireTurn,
  throwIfAborted,
  type TurnOptions,
} from '../lock-queue/turn.ts'
import { withLimits, type WaitContext } from '../support/limits.ts'
import { report } from '../support/report.ts'
import { uuid } from '../support/uuid.ts'
import { lockPrefixes, parseLock } from '../mutex/names.ts'
import { fits, permitsOf, semaphoreLayout, leasePrefixes, type SemaphoreLayout } from './leases.ts'
import { causeAt, pauses, retryInNewSession, undefinedIfMissing } from '../support/retry.ts'
import { checkPermits, PermitLimit, type Limit } from './permits.ts'
import { anything, checkBody, checkRecipe, recipe, waiting } from '../support/checks.ts'

export interface SemaphoreOptions extends RecipeOptions {
  /** Number of permits, unless set otherwise before. */
  readonly permits: number
}

export interface PermitOptions extends WaitOptions {
  /** Number of permits to take together (default 1). */
  readonly permits?: number | undefined
}

/** A client that holds permits. */
export interface PermitHolder extends Participant {
  /** Number of permits that it took together. */
  readonly permits: number
}

/**
 * A number of permits shared by all clients. Callers queue, and the head of the queue waits until enough permits
 * are free: small requests do not overtake large ones. All permits of one acquire are one znode and are released
 * together.
 */
export class Semaphore {
  readonly client: Client
  readonly path: string
  readonly #options: SemaphoreOptions
  readonly #policy: ErrorPolicy
  readonly #layout: SemaphoreLayout
  readonly #queue: LockQueue
  readonly #limit: PermitLimit
  /** True when the znode is known to exist. */
  #exists = false

  constructor(client: Client, path: string, options: SemaphoreOptions) {
    checkRecipe('Semaphore', client, path, options, { ...recipe, permits: anything })
    checkPermits('Semaphore', (options as SemaphoreOptions | undefined)?.permits, 0)
    this.client = withoutTimeout(client)
    this.path = path
    this.#options = options
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#layout = semaphoreLayout(path, options.naming ?? 'recipe')
    this.#queue = new LockQueue(client, this.#layout.queue, parseLock, options)
    this.#limit = new PermitLimit(client, path, options.permits, options)
  }

  /**
   * Waits for permits. Rejects with a `UsageError` when the semaphore has fewer in all, a `PermitsConflictError`
   * when it was created with another number, and otherwise as the `acquire` of a mutex does.
   */
  acquire(options: PermitOptions = {}): Promise<LockHandle> {
    return withLimits(this.client, options, this.#waiting, async (signal) => {
      const { permits = 1 } = options
      this.#checkRequest(permits, signal)
      for (;;) {
        const held = await this.#acquire(permits, signal)
        if (held !== undefined) return held
      }
    })
  }

  /**
   * Takes permits that are free now. Returns undefined when too few are free or other callers wait, which may include one
   * that is just leaving. Rejects as `acquire` does.
   */
  tryAcquire(options: PermitOptions = {}): Promise<LockHandle | undefined> {
    return withLimits(this.client, options, this.#waiting, (signal) =>
      retryInNewSession(this.client, () => this.#tryAcquire(options.permits ?? 1, signal)),
    )
  }

  async #tryAcquire(permits: number, signal: AbortSignal | undefined): Promise<LockHandle | undefined> {
    this.#checkRequest(permits, signal)
    const startedAt = this.client.platform.clock.monotonic()
    // A read does not disturb other callers; an entry in the queue would.
    if (!(await this.#isFree(permits, signal))) return undefined
    const isFirst = (names: readonly string[]): boolean => contendersInOrder(names, parseLock).length === 0
    const entry = await tryAcquireTurn(this.#queue, this.#turnOptions(signal), isFirst)
    if (entry === undefined) return undefined
    const notifier = new Notifier(this.client, signal)
    const pause = pauses(this.client, signal)
    try {
      // Others may have taken permits before this entry was the head of the queue.
      while (await this.#isFree(permits, signal)) {
        if (this.client.session.id !== entry.owner) throw this.#sessionExpired()
        const head = { entry, permits, notifier, signal, startedAt, pause }
        const lease = await this.#take(head, await this.#limit.recent(signal))
        const held = lease && (await this.#grant(lease, head))
        if (held !== undefined) return held
      }
      return undefined
    } finally {
      this.#leaveQueue(entry)
      notifier.close()
    }
  }

  /** Returns the clients that hold permits now, in the order of their grants. */
  async holders(options: CallOptions = {}): Promise<PermitHolder[]> {
    const listing = await undefinedIfMissing(this.client.getChildren(this.#leases, options))
    const reads = (listing?.children ?? []).map(async (name) => {
      const permits = this.#options.naming === 'kazoo' ? 1 : permitsOf(name)
      const path = `${this.#leases}/${name}`
      const found = permits === 0 ? undefined : await undefinedIfMissing(this.client.getData(path, options))
      return found === undefined ? [] : [{ path, permits, data: found.data, stat: found.stat }]
    })
    const found = (await Promise.all(reads)).flat()
    found.sort((a, b) => (a.stat.czxid < b.stat.czxid ? -1 : 1))
    return found.map(({ stat, ...holder }) => ({ ...holder, owner: stat.ephemeralOwner }))
  }

  /** Runs the body while holding permits, then releases them. Rejects with an `AggregateError` when both fail. */
  async run<T>(body: (held: LockHandle) => Promise<T>, options?: PermitOptions): Promise<T> {
    checkBody(body)
    const held = await this.acquire(options)
    return runAndRelease(
      () => body(held),
      () => held.release(),
    )
  }

  /**
   * Changes the number of permits. A lower number takes effect as permits are released. From then on every client uses
   * this number, whatever it was created with: there is no `PermitsConflictError` any more.
   */
  async setPermits(permits: number): Promise<void> {
    return this.#limit.set(permits)
  }

  /** Takes one turn at the head of the queue. Returns undefined when the session was lost. */
  async #acquire(permits: number, signal: AbortSignal | undefined): Promise<EphemeralLockHandle | undefined> {
    const startedAt = this.client.platform.clock.monotonic()
    const notifier = new Notifier(this.client, signal)
    let entry: QueueEntry | undefined
    try {
      // Before queueing: the znode must exist with its limit, not as a mere parent.
      if (!this.#exists) await this.#limit.read(signal)
      this.#exists = true
      entry = await acquireTurn(this.#queue, this.#turnOptions(signal))
      return await this.#acquireAtHead({
        entry,
        permits,
        notifier,
        signal,
        startedAt,
        pause: pauses(this.client, signal),
      })
    } catch (error) {
      if (this.client.state === 'expired' || !(error instanceof SessionExpiredError)) throw error
      return undefined
    } finally {
      if (entry !== undefined) this.#leaveQueue(entry)
      notifier.close()
    }
  }

  #checkRequest(permits: number, signal: AbortSignal | undefined): void {
    checkPermits(`acquire ${this.path}`, permits, 1)
    const { naming = 'recipe' } = this.#options
    if (naming !== 'recipe' && permits !== 1) {
      const whose = naming === 'curator' ? 'Curator' : 'kazoo'
      throw new UsageError(`Expected 1 permit at a time with the naming of ${whose}, got ${permits}`)
    }
    throwIfAborted(signal, this.path)
  }

  /** Returns whether enough permits are free. Throws a `UsageError` when the semaphore has fewer in all. */
  async #isFree(permits: number, signal: AbortSignal | undefined): Promise<boolean> {
    const limit = await this.#limit.read(signal)
    this.#exists = true
    const names = await this.#list(signal)
    this.#checkPossible(permits, limit)
    return fits(names, permits, limit.permits, this.#options.naming)
  }

  #sessionExpired(): SessionExpiredError {
    return new SessionExpiredError(
      `acquire ${this.path}: the session expired while waiting`,
      this.client.session.id,
    )
  }

  get #waiting(): WaitContext {
    const explain = async (options: CallOptions): Promise<Explanation> =>
      explainHolders(await this.holders(options))
    return { operation: 'acquire', path: this.path, explain, rules: { ...waiting, permits: anything } }
  }

  #turnOptions(signal: AbortSignal | undefined): TurnOptions<QueueEntry> {
    return {
      signal,
      prefix: lockPrefixes[this.#options.naming ?? 'recipe'],
      policy: this.#policy,
      grant: (own: QueueEntry) => own,
    }
  }

  /** Removes the entry, unless the transaction that took the permits has removed it already. */
  #leaveQueue(entry: QueueEntry): void {
    if (!this.#removedEntries.has(entry)) this.#queue.removeInBackground(entry)
  }

  readonly #removedEntries = new WeakSet<QueueEntry>()

  /** Waits until enough permits are free, and takes them. */
  async #acquireAtHead(head: HeadRequest): Promise<EphemeralLockHandle | undefined> {
    const { entry, permits, notifier, signal } = head
    const watches = new PermitWatches(this.client, [this.#leases, this.path], notifier)
    try {
      for (let first = true; ; first = false) {
        throwIfAborted(signal, this.path)
        if (this.client.session.id !== entry.owner) return undefined
        // The last known limit suffices for a first attempt, since the transaction checks its version.
        const limiting = first ? this.#limit.recent(signal) : this.#limit.read(signal)
        const [names, limit] = await Promise.all([this.#list(signal), limiting])
        if (fits(names, permits, limit.permits, this.#options.naming)) {
          const lease = await this.#take(head, limit)
          if (lease !== undefined) return await this.#grant(lease, head)
          continue
        }
        if (!first) this.#checkPossible(permits, limit)
        if (await watches.setMissing(signal)) await notifier.wait()
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
        const { acl, parents = 'container' } = this.#options
        await this.client.createMissing([{ path: this.#leases, mode: parents, acl }], { signal })
      }
    }
  }

  /** Leaves the queue and takes the permits in one transaction. Returns undefined when the caller must read again. */
  async #take({ entry, permits, signal, pause }: HeadRequest, limit: Limit): Promise<QueueEntry | undefined> {
    const { naming = 'recipe', acl, data } = this.#options
    const protectionId = protectionIds[naming](uuid(this.client))
    const path = `${this.#leases}/${protectionId}${leasePrefixes[naming](permits)}`
    const create = {
      op: 'create',
      path,
      mode: naming === 'kazoo' ? 'ephemeral' : 'ephemeralSequential',
      ...(acl === undefined ? {} : { acl }),
      ...(data === undefined ? {} : { data }),
    } as const
    const unchanged: WriteOp[] =
      limit.version === undefined ? [] : [{ op: 'check', path: this.path, version: limit.version }]
    const taken = this.client
      .unordered()
      .multi([{ op: 'delete', path: entry.path }, create, ...unchanged] as const)
    try {
      const [, made] = await rejectOnAbort(taken, signal, this.path)
      this.#removedEntries.add(entry)
      const lease = await rejectOnAbort(createdEntry(this.client, made), signal, this.path)
      if (lease === undefined) throw entryDeleted(entry)
      return lease
    } catch (error) {
      if (causeAt(error, 2) instanceof BadVersionError) return undefined
      if (error instanceof MultiError && error.cause instanceof NoNodeError) {
        // Either the own entry or the directory of the leases is gone.
        if (error.index === 0 && this.client.session.id === entry.owner) throw entryDeleted(entry)
        return undefined
      }
      if (!(error instanceof ZooKeeperError) || error instanceof MultiError) throw error
      try {
        if (error.retryable && error.maybeApplied && !signal?.aborted) {
          const found = await rejectOnAbort(this.#find(protectionId), signal, this.path)
          if (found !== undefined) {
            this.#removedEntries.add(entry)
            return found
          }
          if ((await this.client.exists(entry.path, { signal })) !== undefined) {
            await pause()
            return undefined
          }
        }
        throw error
      } catch (cause) {
        this.#releaseAbandoned(taken, protectionId)
        throw cause
      }
    }
  }

  /** Finds the lease whose reply was lost. */
  async #find(protectionId: string): Promise<QueueEntry | undefined> {
    await this.client.sync(this.#leases)
    const name = (await this.#list(undefined)).find((child) => child.startsWith(protectionId))
    const stat = name === undefined ? undefined : await this.client.exists(`${this.#leases}/${name}`)
    if (stat === undefined || stat.ephemeralOwner !== this.client.session.id) return undefined
    return entryOf({ path: `${this.#leases}/${name}`, stat })
  }

  /** Releases permits that may have been taken for a caller that has gone, as soon as the outcome is known. */
  #releaseAbandoned(taken: Promise<unknown>, protectionId: string): void {
    const clean = async (): Promise<void> => {
      await taken.catch(() => undefined)
      const found = await this.#find(protectionId)
      if (found !== undefined) await this.#queue.remove(found)
    }
    clean().catch((error: unknown) => {
      if (error instanceof SessionExpiredError || error instanceof ClosedError) return
      report(this.client, { recipe: 'semaphore', path: this.path, phase: 'leaveFailed' })
    })
  }

  /** Creates the handle as soon as the policy allows. */
  async #grant(
    lease: QueueEntry,
    { notifier, signal, startedAt }: HeadRequest,
  ): Promise<EphemeralLockHandle | undefined> {
    try {
      while (!canGrant(this.client, lease, this.#policy)) {
        throwIfAborted(signal, lease.path)
        if (this.client.session.id !== lease.owner) return undefined
        if (notifier.isClientFinished) throw new ClosedError('The client is closed', 'CLOSED')
        if (this.client.state !== 'connected') await notifier.wait()
        else await this.client.syncCommitted({ signal })
      }
      const waitedMs = this.client.platform.clock.monotonic() - startedAt
      return new EphemeralLockHandle(this.client, lease, {
        recipe: 'semaphore',
        policy: this.#policy,
        waitedMs,
      })
    } catch (error) {
      this.#queue.removeInBackground(lease)
      throw error
    }
  }
}

/** The head of the queue and its request. */
interface HeadRequest {
  readonly entry: QueueEntry
  readonly permits: number
  readonly notifier: Notifier
  readonly signal: AbortSignal | undefined
  /** When the wait began, on the monotonic clock. */
  readonly startedAt: number
  /** The pause before another attempt when the outcome of one was unknown. */
  readonly pause: () => Promise<void>
}

/** The watches of the head, kept over wake-ups that consume only some of them. */
class PermitWatches {
  readonly #client: Client
  readonly #paths: readonly [children: string, data: string]
  readonly #notifier: Notifier
  readonly #live = new Map<string, OneShotWatch>()

  constructor(client: Client, paths: readonly [children: string, data: string], notifier: Notifier) {
    this.#client = withoutTimeout(client)
    this.#paths = paths
    this.#notifier = notifier
  }

  /**
   * Sets missing watches. Returns true when all were set already, so that nothing has changed since the last read.
   */
  async setMissing(signal: AbortSignal | undefined): Promise<boolean> {
    const [children, data] = this.#paths
    const missing = (
      [
        ['children', children],
        ['data', data],
      ] as const
    ).filter(([kind]) => !this.#live.has(kind))
    await Promise.all(missing.map(([kind, path]) => this.#set(kind, path, signal)))
    return missing.length === 0
  }

  async #set(kind: 'children' | 'data', path: string, signal: AbortSignal | undefined): Promise<void> {
    try {
      const watch = await this.#client.watchOnce(path, kind, signal === undefined ? {} : { signal })
      this.#live.set(kind, watch)
      const onFired = (): void => {
        if (this.#live.get(kind) === watch) this.#live.delete(kind)
        this.#notifier.notify()
      }
      watch.fired.then(onFired, onFired)
    } catch (error) {
      // The next read creates the znode again.
      if (!(error instanceof NoNodeError)) throw error
    }
  }

  close(): void {
    for (const watch of this.#live.values()) void watch.close()
    this.#live.clear()
  }
}

/** Resolves with the promise, or rejects when the signal aborts first. */
async function rejectOnAbort<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  path: string,
): Promise<T> {
  if (signal === undefined) return promise
  promise.catch(() => {})
  let stopListening = (): void => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    stopListening = onAbort(signal, () => {
      try {
        throwIfAborted(signal, path)
      } catch (error) {
        reject(error as Error)
      }
    })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    stopListening()
  }
}
