import {
  AbortedError,
  NoNodeError,
  type CallOptions,
  type Client,
  type ErrorPolicy,
} from '@zabra/client/core'
import { onAbort, withoutTimeout } from '@zabra/client/recipe-kit'
import { runAndRelease } from '../handles/run-and-release.ts'
import { LostError } from '../handles/lost.ts'
import { EphemeralLockHandle } from '../handles/ephemeral-lock-handle.ts'
import type { Abortable, LockHandle, RecipeOptions, WaitOptions } from '../handles/types.ts'
import { contendersInOrder, createParser } from '../lock-queue/contenders.ts'
import { LockQueue, type QueueEntry } from '../lock-queue/lock-queue.ts'
import type { Participant } from '../handles/lock-timeout.ts'
import { explainQueue, readParticipants } from '../lock-queue/participants.ts'
import { acquireTurn, tryAcquireTurn, type TurnOptions } from '../lock-queue/turn.ts'
import { callSignal } from '../support/call-signal.ts'
import { orInBackground } from '../support/in-doubt.ts'
import { orAborted, withLimits } from '../support/limits.ts'
import { report } from '../support/report.ts'
import { readThroughLosses } from '../support/retry.ts'
import { uuid } from '../support/uuid.ts'
import { watchUntil } from '../support/watch.ts'
import {
  announce,
  isAnnouncementOf,
  readAnnouncementOf,
  removeAnnouncement,
  withdrawAnnouncement,
  type Leader,
} from './announcement.ts'
import { readAnnouncement, readQueueHead, observeLeaders } from './observe.ts'
import {
  abortable,
  checkBody,
  checkOptions,
  checkRecipe,
  recipe,
  text,
  trueOrFalse,
  type Rules,
} from '../support/checks.ts'

export interface ElectionOptions extends Omit<RecipeOptions, 'data'> {
  /** Id of this participant for observers (default: random). */
  readonly id?: string | undefined
  /**
   * Leaders write their id to `<path>/leader`, and observers read it there: they see only leaders that know of
   * their leadership, and none while a participant leads that does not announce itself.
   */
  readonly announce?: boolean | undefined
}

export interface LeadOptions extends Abortable {
  /** Whether to take part again when a leadership has ended (default false). */
  readonly requeue?: boolean | undefined
}

/** A participant of an election. */
export interface ElectionParticipant extends Omit<Participant, 'data'> {
  readonly id: string
}

const prefixes = { recipe: 'n_', curator: 'latch-', kazoo: '__lock__' } as const
const { data: _data, ...common } = recipe
const rules: Rules<ElectionOptions> = { ...common, id: text, announce: trueOrFalse }
const leading: Rules<LeadOptions> = { ...abortable, requeue: trueOrFalse }
const parse = createParser(['n_', 'latch-', 'lock-', '__lock__'])

/**
 * Elects one leader among the participants. When a leadership ends, the participant that has waited longest leads
 * next.
 */
export class LeaderElection implements AsyncDisposable {
  readonly client: Client
  readonly path: string
  readonly id: string
  readonly #options: ElectionOptions
  readonly #policy: ErrorPolicy
  readonly #queue: LockQueue
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** Handles of `acquire` that are not released yet. */
  readonly #acquired = new Set<LockHandle>()
  /** Queue entries for which an announcement may have been written, each with its removal once that has begun. */
  readonly #announced = new WeakMap<QueueEntry, Promise<boolean> | undefined>()

  constructor(client: Client, path: string, options: ElectionOptions = {}) {
    checkRecipe('LeaderElection', client, path, options, rules)
    this.client = withoutTimeout(client)
    this.path = path
    this.id = options.id ?? uuid(client)
    this.#options = options
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#queue = new LockQueue(client, path, parse, {
      ...options,
      data: new TextEncoder().encode(this.id),
      withdraw: (entry) => this.#withdraw(entry),
    })
  }

  /**
   * Takes part in the election and waits until this participant leads. Releasing the handle resigns. Rejects as `acquire`
   * of a mutex does, and with an `AbortedError` when `close` is called. Use `lead` or `leadership` to lead again after a loss.
   */
  acquire(options: WaitOptions = {}): Promise<LockHandle> {
    const explain = (call: CallOptions): ReturnType<typeof explainQueue> => explainQueue(this.#queue, call)
    const waiting = { operation: 'acquire', path: this.path, explain }
    return withLimits(this.client, options, waiting, async (signal) => {
      const closing = this.#closing.signal
      const stop = callSignal(closing, signal)
      const closed = (): AbortedError =>
        new AbortedError(`acquire ${this.path}: the election was closed`, {
          operation: 'acquire',
          path: this.path,
        })
      let entry: QueueEntry | undefined
      const turn = this.#turnOptions(stop, (own) => this.#queue.remove(own))
      const grant: typeof turn.grant = (own, waitedMs) => turn.grant((entry = own), waitedMs)
      for (;;) {
        const handle = await acquireTurn(this.#queue, { ...turn, grant }, entry).catch((error: unknown) => {
          throw closing.aborted && error instanceof AbortedError ? closed() : error
        })
        try {
          await this.#announce(handle, stop)
          if (closing.aborted) throw closed()
          if (reasonOf(handle) === 'nodeDeleted') throw handle.signal.reason
        } catch (error) {
          await handle.release({ background: true })
          throw closing.aborted && error instanceof AbortedError ? closed() : error
        }
        // Lost during the announcement: the entry keeps its place for the next turn.
        if (!handle.isHeld) continue
        this.#acquired.add(handle)
        handle.onRelease(() => this.#acquired.delete(handle))
        return handle
      }
    })
  }

  /**
   * Takes part in the election and yields one item each time leadership is gained. Requesting the next item waits
   * until this leadership has ended, by loss or by `release`, and takes part again. Leaving the loop resigns. Ends
   * when `signal` aborts.
   *
   * A leadership that was lost with the connection may return as a new item with the same token, since its znode
   * kept its place. Rejects with errors that make taking part impossible, such as a `ClosedError` or a
   * `NoAuthError`.
   */
  async *leadership(options: Abortable = {}): AsyncGenerator<LockHandle, void, undefined> {
    checkOptions(`leadership ${this.path}`, options, abortable)
    const { signal } = options
    const stop = callSignal(this.#closing.signal, signal)
    const term = new LeadershipTerm((entry) => this.#queue.remove(entry))
    const stopListening = onAbort(stop, () => this.#track(term.leave()))
    try {
      while (!stop.aborted) {
        const handle = await this.#win(term, stop)
        if (handle === undefined) continue
        yield handle
        await orInBackground(this.client, term.waitForEnd(), stop)
      }
    } finally {
      stopListening()
      await orInBackground(this.client, term.leave(), stop)
    }
  }

  /**
   * Takes part, runs the body as leader, and resigns when the body has settled. With `requeue` it takes part again
   * until `signal` aborts. The next leadership begins only after the last body has settled, so a body must watch
   * its signal. Rejects with the body's error, unless that is the loss itself and `requeue` is set.
   */
  async lead(body: (leadership: LockHandle) => Promise<void>, options: LeadOptions = {}): Promise<void> {
    checkBody(body, 'lead')
    checkOptions(`lead ${this.path}`, options, leading)
    const { signal, requeue = false } = options
    for await (const leadership of this.leadership({ signal })) {
      try {
        await runAndRelease(
          () => body(leadership),
          () => orInBackground(this.client, leadership.release(), signal),
        )
      } catch (error) {
        if (!(requeue && error === leadership.signal.reason)) throw error
      }
      if (!requeue) return
    }
  }

  /**
   * Yields the leader whenever it changes; undefined while there is none. Ends when the signal aborts, or with the
   * client.
   */
  observe(options: Abortable = {}): AsyncGenerator<Leader | undefined> {
    checkOptions(`observe ${this.path}`, options, abortable)
    const { signal } = options
    const stop = callSignal(this.#closing.signal, signal)
    const look = this.#options.announce ? readAnnouncement(this.#leaderPath) : readQueueHead(this.#queue)
    return observeLeaders(this.client, look, stop)
  }

  /** Returns the participants, the leader first. */
  participants(options?: CallOptions): Promise<ElectionParticipant[]> {
    return readParticipants(
      this.#queue,
      ({ path, data, owner }) => ({ id: new TextDecoder().decode(data), path, owner }),
      options,
    )
  }

  /** Resigns, and ends all loops and waiting calls of this object. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#running, ...[...this.#acquired].map((handle) => handle.release())])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #leaderPath(): string {
    return this.#queue.pathOf('leader')
  }

  /**
   * Waits in the queue, at the entry of the previous leadership if there is one. Returns undefined when the
   * leadership ended before it began.
   */
  async #win(term: LeadershipTerm, stop: AbortSignal): Promise<EphemeralLockHandle | undefined> {
    try {
      const options = this.#turnOptions(stop, (entry, handle) =>
        // A lost leadership keeps its queue entry for the next one.
        reasonOf(handle) === 'released' ? this.#queue.remove(entry) : Promise.resolve(),
      )
      const grant: typeof options.grant = (entry, waitedMs) => {
        const handle = options.grant(entry, waitedMs)
        term.begin(handle, entry)
        return handle
      }
      const handle = await acquireTurn(this.#queue, { ...options, grant }, term.takeEntry())
      await this.#announce(handle, stop)
      if (handle.isHeld) return handle
      await term.waitForEnd()
      return undefined
    } catch (error) {
      if (stop.aborted) return undefined
      // Another client deleted the znode: take part with a new one.
      if (error instanceof LostError && error.reason === 'nodeDeleted') return undefined
      throw error
    }
  }

  #turnOptions(
    signal: AbortSignal | undefined,
    release: (entry: QueueEntry, handle: LockHandle) => Promise<void>,
  ): TurnOptions<EphemeralLockHandle> {
    return {
      signal,
      prefix: prefixes[this.#queue.naming],
      policy: this.#policy,
      grant: (entry, waitedMs) => {
        if (this.#options.announce) this.#announced.set(entry, undefined)
        const handle: EphemeralLockHandle = new EphemeralLockHandle(this.client, entry, {
          recipe: 'leadership',
          policy: this.#policy,
          waitedMs,
          release: () => release(entry, handle),
          // Its own handle may be released late, and the next leader need not announce itself.
          onEnd: ({ reason }) => {
            if (reason === 'nodeDeleted') this.#track(this.#queue.remove(entry))
          },
        })
        return handle
      },
    }
  }

  /** Returns early when the leadership is lost meanwhile. */
  async #announce(handle: EphemeralLockHandle, stop: AbortSignal): Promise<void> {
    if (!this.#options.announce) return
    const leader = { id: this.id, token: handle.token }
    const options = { ...this.#options, signal: stop }
    const announced = announce(this.client, this.#leaderPath, handle.path, leader, options)
    try {
      await orAborted(announced, stop, { operation: 'announce', path: this.#leaderPath })
      this.#keepAnnounced(handle, leader)
    } catch (error) {
      if (error instanceof NoNodeError) handle.lose('nodeDeleted', error)
      if (handle.isHeld || stop.aborted) throw error
    }
  }

  /** Writes an announcement again that another client deletes or writes over, while the leadership lasts. */
  #keepAnnounced({ signal, path }: LockHandle, leader: Leader): void {
    const options = { signal, operation: 'announce' }
    const keep = async (): Promise<never> => {
      for (;;) {
        await watchUntil(this.client, options, async (reader) => {
          const found = await reader.data(this.#leaderPath)
          return found === undefined || !isAnnouncementOf(found.data, leader) || undefined
        })
        await announce(this.client, this.#leaderPath, path, leader, { ...this.#options, signal })
      }
    }
    keep().catch(() => {
      if (!signal.aborted) report(this.client, { recipe: 'election', path: this.path, phase: 'unannounced' })
    })
  }

  /** Removes a queue entry with its announcement. Returns false when the entry is left. */
  async #withdraw(entry: QueueEntry): Promise<boolean> {
    if (!this.#announced.has(entry)) return false
    const removal = this.#announced.get(entry) ?? this.#withdrawOnce(entry)
    this.#announced.set(entry, removal)
    removal.catch(() => {
      // A release after a removal that failed in the background tries again.
      if (this.#announced.get(entry) === removal) this.#announced.set(entry, undefined)
    })
    return removal
  }

  async #withdrawOnce(entry: QueueEntry): Promise<boolean> {
    const left = await withdrawAnnouncement(this.client, this.#leaderPath, entry.path)
    if (left === 'announcement') await this.#removeLeft(entry)
    return left !== 'entry'
  }

  /** Removes an announcement whose queue entry another client has deleted: as the head of the queue, or for the one that is. */
  async #removeLeft({ token }: QueueEntry): Promise<void> {
    for (;;) {
      const [found, listing] = await readThroughLosses(this.client, async (options) => {
        await this.client.sync(this.#leaderPath, options)
        return Promise.all([
          readAnnouncementOf(this.client, this.#leaderPath, token, options),
          this.#queue.list(options),
        ])
      })
      if (!found?.isOwn) return
      const [first] = contendersInOrder(listing?.names ?? [], parse)
      const isDone =
        first === undefined
          ? await this.#withdrawAsHead()
          : await removeAnnouncement(this.client, this.#leaderPath, this.#queue.pathOf(first.name), token)
      if (isDone) return
    }
  }

  /** Takes the place of the head of an empty queue, and leaves it with the announcement. Returns false if it is not empty. */
  async #withdrawAsHead(): Promise<boolean> {
    const isFree = (names: readonly string[]): boolean => contendersInOrder(names, parse).length === 0
    const turn = {
      prefix: prefixes[this.#queue.naming],
      policy: 'session',
      grant: (own: QueueEntry) => own,
    } as const
    const head = await tryAcquireTurn(this.#queue, turn, isFree)
    if (head === undefined) return false
    this.#announced.set(head, undefined)
    await this.#queue.remove(head)
    return true
  }

  #track(work: Promise<void>): void {
    const running = work
      .catch(() => {
        report(this.client, { recipe: 'election', path: this.path, phase: 'leaveFailed' })
      })
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }
}

const reasonOf = ({ signal }: LockHandle): LostError['reason'] | undefined =>
  (signal.reason as LostError | undefined)?.reason

/** State of one participant: a handle while it leads, a queue entry while it has one. */
class LeadershipTerm {
  readonly #resign: (entry: QueueEntry) => Promise<void>
  #handle: EphemeralLockHandle | undefined
  #entry: QueueEntry | undefined

  constructor(resign: (entry: QueueEntry) => Promise<void>) {
    this.#resign = resign
  }

  begin(handle: EphemeralLockHandle, entry: QueueEntry): void {
    this.#handle = handle
    this.#entry = entry
  }

  /** Returns and clears the queue entry of a lost leadership. */
  takeEntry(): QueueEntry | undefined {
    const entry = this.#entry
    this.#entry = undefined
    return entry
  }

  /** Waits until the leadership has ended. Removes what is left of it, unless its entry keeps its place in the queue. */
  async waitForEnd(): Promise<void> {
    const handle = this.#handle!
    if (!handle.signal.aborted) {
      await new Promise<void>((resolve) =>
        handle.signal.addEventListener('abort', () => resolve(), { once: true }),
      )
    }
    const reason = reasonOf(handle)
    if (reason === 'released') await handle.release()
    if (reason === 'suspended' || reason === 'leasePassed') return
    const entry = this.takeEntry()
    // What belongs to an entry that another client has deleted is left.
    if (entry !== undefined && reason === 'nodeDeleted') await this.#resign(entry)
  }

  /** Resigns and removes the queue entry. */
  async leave(): Promise<void> {
    const entry = this.takeEntry()
    await this.#handle?.release()
    // A lost leadership has not removed its entry.
    if (entry !== undefined && reasonOf(this.#handle!) !== 'released') await this.#resign(entry)
  }
}
