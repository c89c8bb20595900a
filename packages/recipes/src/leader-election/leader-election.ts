import {
  ClosedError,
  NoNodeError,
  SessionExpiredError,
  type Client,
  type ErrorPolicy,
} from '@zabra/client/core'
import { bodyAndRelease } from '../held/combine.ts'
import { LostError } from '../held/lost.ts'
import { Right } from '../held/right.ts'
import type { Abortable, Held, RecipeOptions } from '../held/types.ts'
import { parserOf } from '../line/contenders.ts'
import { Line, type Place } from '../line/line.ts'
import { takeTurn } from '../line/turn.ts'
import { uuid } from '../line/uuid.ts'
import { announce, withdraw, type Leader } from './announcement.ts'
import { lookAtAnnouncement, lookAtLine, observing } from './observe.ts'

export interface ElectionOptions extends Omit<RecipeOptions, 'data'> {
  /** How others see this participant (default: a random text). */
  readonly id?: string
  /** Leaders write their name into `<path>/leader`, and observers look there: they see only who knows that it leads. */
  readonly announce?: boolean
}

/** Leadership that is held now. */
export interface Leadership extends Held {
  /** Gives it up; another participant leads next. The same as `release`. */
  resign(): Promise<void>
}

const words = { recipe: 'n_', curator: 'latch-', kazoo: '__lock__' } as const
const parse = parserOf(['n_', 'latch-', 'lock-', '__lock__'])

/** One of several participants leads at a time; when it ends, the one that has waited longest follows. */
export class LeaderElection implements AsyncDisposable {
  readonly client: Client
  readonly path: string
  readonly id: string
  readonly #options: ElectionOptions
  readonly #policy: ErrorPolicy
  readonly #line: Line
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()

  constructor(client: Client, path: string, options: ElectionOptions = {}) {
    this.client = client
    this.path = path
    this.id = options.id ?? uuid(client)
    this.#options = options
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#line = new Line(client, path, parse, { ...options, data: new TextEncoder().encode(this.id) })
  }

  /**
   * Takes part, and gives one item each time that leadership is gained. Asking for the next one waits until this one has
   * ended, by loss or by `resign`, and takes part again. Leaving the loop resigns. It ends when `signal` aborts.
   *
   * Leadership that was lost with the connection may come back, as a new item with the same token: the znode kept its
   * place. Rejects with what makes taking part impossible, such as a `ClosedError` or a `NoAuthError`.
   */
  async *leadership({ signal }: Abortable = {}): AsyncGenerator<Leadership, void, undefined> {
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal])
    const term = new Term((place) => this.#resign(place))
    const abort = (): void => this.#track(term.leave())
    stop.addEventListener('abort', abort, { once: true })
    try {
      while (!stop.aborted) {
        const right = await this.#win(term, stop)
        if (right === undefined) continue
        yield right
        await term.over()
      }
    } finally {
      stop.removeEventListener('abort', abort)
      await term.leave()
    }
  }

  /**
   * Takes part, runs the body as leader, and resigns when it has settled. With `requeue` it goes on taking part, until
   * `signal` aborts. The next leadership begins only after the body of the last has settled: a body must watch its
   * signal. Rejects with what the body throws, unless that is the loss itself and it goes on.
   */
  async lead(
    body: (leadership: Leadership) => Promise<void>,
    { signal, requeue = false }: Abortable & { requeue?: boolean } = {},
  ): Promise<void> {
    for await (const leadership of this.leadership(signal === undefined ? {} : { signal })) {
      try {
        await bodyAndRelease(
          () => body(leadership),
          () => leadership.release(),
        )
      } catch (error) {
        if (!(requeue && error === leadership.signal.reason)) throw error
      }
      if (!requeue) return
    }
  }

  /** The leader whenever it changes; undefined while there is none. Ends when the signal aborts, or with the client. */
  observe({ signal }: Abortable = {}): AsyncGenerator<Leader | undefined> {
    const stop = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal])
    const look = this.#options.announce ? lookAtAnnouncement(this.#leaderPath) : lookAtLine(this.#line)
    return observing(this.client, look, stop)
  }

  /** Ends everything that was begun here, and resigns. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#running)
  }

  get #leaderPath(): string {
    return this.#line.pathOf('leader')
  }

  /** Stands in line, at the place that is left from before if there is one. Undefined when it ended before it began. */
  async #win(term: Term, stop: AbortSignal): Promise<LeadershipRight | undefined> {
    try {
      const right = await takeTurn(this.#line, this.#turn(stop, term), term.takePlace())
      if (this.#options.announce) await this.#announce(right)
      return right
    } catch (error) {
      if (stop.aborted) return undefined
      // Somebody has deleted the znode: it takes part with a new one.
      if (error instanceof LostError && error.reason === 'nodeDeleted') return undefined
      throw error
    }
  }

  #turn(signal: AbortSignal, term: Term): Parameters<typeof takeTurn<LeadershipRight>>[1] {
    return {
      signal,
      word: words[this.#line.naming],
      policy: this.#policy,
      grant: (place, waitedMs) => {
        const options = { policy: this.#policy, waitedMs }
        const right = new LeadershipRight(this.client, place, options, () => this.#resign(place))
        term.begin(right, place)
        return right
      },
    }
  }

  async #announce(right: LeadershipRight): Promise<void> {
    try {
      await announce(
        this.client,
        this.#leaderPath,
        right.path,
        { id: this.id, token: right.token },
        this.#options,
      )
    } catch (error) {
      if (error instanceof NoNodeError) right.lose('nodeDeleted', error)
      if (right.isHeld) throw error
    }
  }

  /** Leaves the place, and takes the name back that stands for it. */
  async #resign(place: Place): Promise<void> {
    if (place.owner !== this.client.session.id) return
    try {
      const done = this.#options.announce && (await withdraw(this.client, this.#leaderPath, place.path))
      if (!done) await this.#line.leave(place)
    } catch (error) {
      // With its session both are gone.
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

/** Leadership that was lost leaves the place as it is: the next one may stand on it. */
class LeadershipRight extends Right implements Leadership {
  constructor(
    client: Client,
    place: Place,
    options: { policy: ErrorPolicy; waitedMs: number },
    resign: () => Promise<void>,
  ) {
    super(client, place, {
      ...options,
      recipe: 'leadership',
      giveBack: () => (this.#wasReleased ? resign() : Promise.resolve()),
    })
  }

  resign(): Promise<void> {
    return this.release()
  }

  get #wasReleased(): boolean {
    return (this.signal.reason as LostError).reason === 'released'
  }
}

/** What one participant has: a right while it leads, a place while one is left to stand on. */
class Term {
  readonly #resign: (place: Place) => Promise<void>
  #right: Right | undefined
  #place: Place | undefined

  constructor(resign: (place: Place) => Promise<void>) {
    this.#resign = resign
  }

  begin(right: Right, place: Place): void {
    this.#right = right
    this.#place = place
  }

  /** The place of a leadership that was lost, for whoever goes on with it. */
  takePlace(): Place | undefined {
    const place = this.#place
    this.#place = undefined
    return place
  }

  /** Waits until the leadership has ended, and its place been given back if it was given up. */
  async over(): Promise<void> {
    const right = this.#right!
    if (!right.signal.aborted) {
      await new Promise<void>((resolve) =>
        right.signal.addEventListener('abort', () => resolve(), { once: true }),
      )
    }
    const { reason } = right.signal.reason as LostError
    if (reason === 'released') await right.release()
    if (reason !== 'suspended' && reason !== 'leasePassed') this.#place = undefined
  }

  /** Gives up what there is. */
  async leave(): Promise<void> {
    const place = this.takePlace()
    await this.#right?.release()
    // A leadership that was lost has given nothing back.
    const lost = (this.#right?.signal.reason as LostError | undefined)?.reason !== 'released'
    if (place !== undefined && lost) await this.#resign(place)
  }
}
