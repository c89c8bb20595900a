import {
  ClosedError,
  NoNodeError,
  SessionExpiredError,
  type Client,
  type ErrorPolicy,
} from '@zabra/client/core'
import { runAndRelease } from '../handles/run-and-release.ts'
import { LostError } from '../handles/lost.ts'
import { EphemeralLockHandle } from '../handles/ephemeral-lock-handle.ts'
import type { Abortable, LockHandle, RecipeOptions } from '../handles/types.ts'
import { createParser } from '../lock-queue/contenders.ts'
import { LockQueue, type QueueEntry } from '../lock-queue/lock-queue.ts'
import { readParticipants, type Participant } from '../lock-queue/participants.ts'
import { acquireTurn } from '../lock-queue/turn.ts'
import { uuid } from '../support/uuid.ts'
import { announce, withdrawAnnouncement, type Leader } from './announcement.ts'
import { readAnnouncement, readQueueHead, observeLeaders } from './observe.ts'

export interface ElectionOptions extends Omit<RecipeOptions, 'data'> {
  /** Id of this participant for observers (default: random). */
  readonly id?: string
  /**
   * Leaders write their id to `<path>/leader`, and observers read it there: they see only leaders that know of
   * their leadership.
   */
  readonly announce?: boolean
}

/** A participant of an election. */
export interface ElectionParticipant extends Omit<Participant, 'data'> {
  readonly id: string
}

/** A leadership that is held. */
export interface Leadership extends LockHandle {
  /** Resigns, so that another participant leads next. The same as `release`. */
  resign(): Promise<void>
}

const prefixes = { recipe: 'n_', curator: 'latch-', kazoo: '__lock__' } as const
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

  constructor(client: Client, path: string, options: ElectionOptions = {}) {
    this.client = client
    this.path = path
    this.id = options.id ?? uuid(client)
    this.#options = options
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#queue = new LockQueue(client, path, parse, { ...options, data: new TextEncoder().encode(this.id) })
  }

  /**
   * Takes part in the election and yields one item each time leadership is gained. Requesting the next item waits
   * until this leadership has ended, by loss or by `resign`, and takes part again. Leaving the loop resigns. Ends
   * when `signal` aborts.
   *
   * A leadership that was lost with the connection may return as a new item with the same token, since its znode
   * kept its place. Rejects with errors that make taking part impossible, such as a `ClosedError` or a
   * `NoAuthError`.
   */
  async *leadership({ signal }: Abortable = {}): AsyncGenerator<Leadership, void, undefined> {
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal])
    const term = new LeadershipTerm((entry) => this.#resign(entry))
    const abort = (): void => this.#track(term.leave())
    stop.addEventListener('abort', abort, { once: true })
    try {
      while (!stop.aborted) {
        const handle = await this.#win(term, stop)
        if (handle === undefined) continue
        yield handle
        await term.waitForEnd()
      }
    } finally {
      stop.removeEventListener('abort', abort)
      await term.leave()
    }
  }

  /**
   * Takes part, runs the body as leader, and resigns when the body has settled. With `requeue` it takes part again
   * until `signal` aborts. The next leadership begins only after the last body has settled, so a body must watch
   * its signal. Rejects with the body's error, unless that is the loss itself and `requeue` is set.
   */
  async lead(
    body: (leadership: Leadership) => Promise<void>,
    { signal, requeue = false }: Abortable & { requeue?: boolean } = {},
  ): Promise<void> {
    for await (const leadership of this.leadership(signal === undefined ? {} : { signal })) {
      try {
        await runAndRelease(
          () => body(leadership),
          () => leadership.release(),
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
  observe({ signal }: Abortable = {}): AsyncGenerator<Leader | undefined> {
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal])
    const look = this.#options.announce ? readAnnouncement(this.#leaderPath) : readQueueHead(this.#queue)
    return observeLeaders(this.client, look, stop)
  }

  /** Returns the participants, the leader first. */
  participants(): Promise<ElectionParticipant[]> {
    return readParticipants(this.#queue, ({ path, data, owner }) => ({
      id: new TextDecoder().decode(data),
      path,
      owner,
    }))
  }

  /** Ends all loops of this object and resigns. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#running)
  }

  get #leaderPath(): string {
    return this.#queue.pathOf('leader')
  }

  /**
   * Waits in the queue, at the entry of the previous leadership if there is one. Returns undefined when the
   * leadership ended before it began.
   */
  async #win(term: LeadershipTerm, stop: AbortSignal): Promise<ElectionHandle | undefined> {
    try {
      const handle = await acquireTurn(this.#queue, this.#turnOptions(stop, term), term.takeEntry())
      if (this.#options.announce) await this.#announce(handle)
      return handle
    } catch (error) {
      if (stop.aborted) return undefined
      // Another client deleted the znode: take part with a new one.
      if (error instanceof LostError && error.reason === 'nodeDeleted') return undefined
      throw error
    }
  }

  #turnOptions(signal: AbortSignal, term: LeadershipTerm): Parameters<typeof acquireTurn<ElectionHandle>>[1] {
    return {
      signal,
      prefix: prefixes[this.#queue.naming],
      policy: this.#policy,
      grant: (entry, waitedMs) => {
        const options = { policy: this.#policy, waitedMs }
        const handle = new ElectionHandle(this.client, entry, options, () => this.#resign(entry))
        term.begin(handle, entry)
        return handle
      },
    }
  }

  async #announce(handle: ElectionHandle): Promise<void> {
    try {
      await announce(
        this.client,
        this.#leaderPath,
        handle.path,
        { id: this.id, token: handle.token },
        this.#options,
      )
    } catch (error) {
      if (error instanceof NoNodeError) handle.lose('nodeDeleted', error)
      if (handle.isHeld) throw error
    }
  }

  /** Removes the queue entry and the announcement. */
  async #resign(entry: QueueEntry): Promise<void> {
    if (entry.owner !== this.client.session.id) return
    try {
      const done =
        this.#options.announce && (await withdrawAnnouncement(this.client, this.#leaderPath, entry.path))
      if (!done) await this.#queue.remove(entry)
    } catch (error) {
      // The end of the session removes both.
      if (!(error instanceof SessionExpiredError || error instanceof ClosedError)) throw error
    }
  }

  #track(work: Promise<void>): void {
    const running = work
      .catch(() => {
        this.client.instrumentation?.recipe?.({ recipe: 'election', path: this.path, phase: 'leaveFailed' })
      })
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }
}

/** A lost leadership keeps its queue entry, so that the next one can use it. */
class ElectionHandle extends EphemeralLockHandle implements Leadership {
  constructor(
    client: Client,
    entry: QueueEntry,
    options: { policy: ErrorPolicy; waitedMs: number },
    resign: () => Promise<void>,
  ) {
    super(client, entry, {
      ...options,
      recipe: 'leadership',
      release: () => (this.#wasReleased ? resign() : Promise.resolve()),
    })
  }

  resign(): Promise<void> {
    return this.release()
  }

  get #wasReleased(): boolean {
    return (this.signal.reason as LostError).reason === 'released'
  }
}

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

  /** Waits until the leadership has ended and, if it was resigned, its entry is removed. */
  async waitForEnd(): Promise<void> {
    const handle = this.#handle!
    if (!handle.signal.aborted) {
      await new Promise<void>((resolve) =>
        handle.signal.addEventListener('abort', () => resolve(), { once: true }),
      )
    }
    const { reason } = handle.signal.reason as LostError
    if (reason === 'released') await handle.release()
    if (reason !== 'suspended' && reason !== 'leasePassed') this.#entry = undefined
  }

  /** Resigns and removes the queue entry. */
  async leave(): Promise<void> {
    const entry = this.takeEntry()
    await this.#handle?.release()
    // A lost leadership has not removed its entry.
    const lost = (this.#handle?.signal.reason as LostError | undefined)?.reason !== 'released'
    if (entry !== undefined && lost) await this.#resign(entry)
  }
}
