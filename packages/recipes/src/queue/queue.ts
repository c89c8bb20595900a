import { abortError, UsageError, type Client, type Codec } from '@zabra/client/core'
import { isNewSession, undefinedIfMissing, retryInNewSession } from '../support/retry.ts'
import { acquireHead, type HeadOptions, type QueueHead } from '../lock-queue/queue-head.ts'
import { compareSequence } from '../lock-queue/contenders.ts'
import { watchUntil, type WatchingReader } from '../support/watch.ts'
import { receive, take, type ClaimContext, type ClaimOptions, type ClaimFailure } from './claims.ts'
import { choose, runLength, type Choice } from './decide.ts'
import type { Message } from './message.ts'
import { queueLayout, type Item, type QueueLayout, type QueueNaming } from './names.ts'
import { Producer, type PutOptions } from './producer.ts'
import { ServerClock } from '../support/server-clock.ts'

export interface QueueOptions<T> {
  /** How values become bytes. An item that cannot be decoded goes to the dead letters. */
  readonly codec: Codec<T>
  /** Items at which `put` begins to wait (default 10 000). */
  readonly maxItems?: number
  /**
   * `soft` (default): several producers may pass `maxItems` together. `hard`: nobody ever does, if all producers say so;
   * each put then costs two looks more, and puts go one after the other.
   */
  readonly bound?: 'soft' | 'hard'
  /** Deliveries after which an item that was never acknowledged goes to the dead letters (default: never). */
  readonly deadLetterAfter?: number
  /**
   * `kazoo` shares the queue with kazoo's `LockingQueue`, `curator` with Curator's `DistributedQueue` and
   * `DistributedPriorityQueue` whose lock path is `<path>.queue/claims`; their items need the codec `curatorItems`.
   */
  readonly naming?: QueueNaming
}

export interface ReceiveOptions {
  readonly signal?: AbortSignal
  /** Messages that may be at work at a time (default 1). */
  readonly concurrency?: number
}

type ClaimFunction<R> = (
  context: ClaimContext<never>,
  name: string,
  options: ClaimOptions,
) => Promise<R | ClaimFailure>

/** Items in a line that survive their producers, each for one of many consumers. */
export class Queue<T> {
  readonly path: string
  readonly #client: Client
  readonly #layout: QueueLayout
  readonly #context: ClaimContext<T>
  readonly #producer: Producer<T>
  readonly #clock: ServerClock
  /** What is left of the last listing. */
  #cachedItems: Item[] = []
  /** Others are at work on items, so listings need the claims beside them. */
  #hasClaims = false
  /** The last item had to be waited for. */
  #isWaiting = false

  constructor(client: Client, path: string, options: QueueOptions<T>) {
    const { codec, deadLetterAfter, maxItems = 10_000, naming = 'recipe', bound } = options
    if (!(maxItems >= 1)) throw new UsageError(`Expected maxItems from 1 up, got ${maxItems}`)
    if (deadLetterAfter !== undefined && !(deadLetterAfter >= 1)) {
      throw new UsageError(`Expected deadLetterAfter from 1 up, got ${deadLetterAfter}`)
    }
    this.#client = client
    this.path = path
    this.#layout = queueLayout(path, naming)
    this.#clock = new ServerClock(client.platform.clock)
    this.#context = { client, layout: this.#layout, codec, clock: this.#clock, deadLetterAfter }
    this.#producer = new Producer(client, this.#layout, codec, this.#clock, {
      maxItems,
      hard: bound === 'hard',
    })
  }

  /** Adds an item, exactly once, and returns its name. Waits while the queue is full. */
  async put(value: T, options: PutOptions = {}): Promise<string> {
    return (await this.#producer.put([value], options))[0]!
  }

  /** Adds several items in one transaction: all or none. */
  putAll(values: readonly T[], options: PutOptions = {}): Promise<string[]> {
    return this.#producer.put(values, options)
  }

  /** Waits for an item and removes it: at most once. What its taker does not finish is not done. */
  async take({ signal }: { readonly signal?: AbortSignal } = {}): Promise<T> {
    const taken = await this.#next<{ value: T }>(take as ClaimFunction<{ value: T }>, 'queue.take', signal)
    return taken.value
  }

  /**
   * Takes the first item that was put with this id, at most once; undefined when there is none that nobody is at work on.
   * So an item can be withdrawn, too. One that is delayed is taken at once.
   */
  async takeById(id: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<T | undefined> {
    const { items, parse } = this.#layout
    return retryInNewSession(this.#client, async () => {
      const list = await undefinedIfMissing(this.#client.getChildren(items, signal ? { signal } : {}))
      const named = (list?.children ?? [])
        .flatMap((each) => parse(each) ?? [])
        .filter((item) => item.id === id)
      for (const { name } of named.sort((a, b) => compareSequence(a.sequence, b.sequence))) {
        let taken: { value: T } | ClaimFailure = 'again'
        while (taken === 'again') taken = await take(this.#context, name, { signal, head: undefined })
        if (taken !== 'gone') return taken.value
      }
      return undefined
    })
  }

  /**
   * Waits for items and hands them out until it is left: at least once. With a concurrency of 1, asking for the next
   * message gives back one that was not acknowledged; with more, it waits until one of them is settled.
   */
  async *receive({ signal, concurrency = 1 }: ReceiveOptions = {}): AsyncGenerator<
    Message<T>,
    void,
    undefined
  > {
    if (!(concurrency >= 1)) throw new UsageError(`Expected a concurrency from 1 up, got ${concurrency}`)
    const working = new Set<Promise<void>>()
    for (;;) {
      const message = await this.#next<Message<T>>(
        receive as ClaimFunction<Message<T>>,
        'queue.receive',
        signal,
      )
      if (signal?.aborted) {
        await message.nack()
        throw abortError(signal.reason, { operation: 'queue.receive', path: this.path })
      }
      if (concurrency === 1) {
        let isAskedForMore = false
        try {
          yield message
          isAskedForMore = true
        } finally {
          // What comes next arrives behind an acknowledgement that is on its way, and need not wait for its reply.
          if (!(isAskedForMore && message.isAcknowledged)) await message.nack()
        }
        continue
      }
      const settled = message.settled.then(() => void working.delete(settled))
      working.add(settled)
      yield message
      while (working.size >= concurrency) await Promise.race(working)
    }
  }

  /** How many items there are, those at work included. */
  async size(): Promise<number> {
    return (await this.#client.exists(this.#layout.items))?.numChildren ?? 0
  }

  /** The items that were delivered too often or could not be decoded, as they were put. */
  async deadLetters(): Promise<{ readonly name: string; readonly data: Uint8Array }[]> {
    const { dead } = this.#layout
    const list = await undefinedIfMissing(this.#client.getChildren(dead))
    const letters = (list?.children ?? []).map(async (name) => {
      const found = await undefinedIfMissing(this.#client.getData(`${dead}/${name}`))
      return found === undefined ? [] : [{ name, data: found.data }]
    })
    return (await Promise.all(letters)).flat()
  }

  async #next<R>(claimer: ClaimFunction<R>, operation: string, signal: AbortSignal | undefined): Promise<R> {
    const waiting = { signal, operation }
    for (;;) {
      try {
        const item = this.#cachedItems.shift() ?? (this.#isWaiting ? undefined : await this.#peek(signal))
        const got = item && (await this.#claim(claimer, item, { signal, head: undefined }))
        if (got !== undefined && !isFailed(got)) return got
        return await this.#claimInTurn(claimer, waiting)
      } catch (error) {
        if (!isNewSession(this.#client, error)) throw error
      }
    }
  }

  async #claim<R>(
    claimer: ClaimFunction<R>,
    { name }: Item,
    options: ClaimOptions,
  ): Promise<R | ClaimFailure> {
    const got = await claimer(this.#context as ClaimContext<never>, name, options)
    if (isFailed(got)) {
      // The listing is old, and somebody else is at work: from now on the claims count too.
      this.#cachedItems = []
      this.#hasClaims = true
    }
    return got
  }

  /** Only the head of the line watches, so that one new item wakes one consumer. */
  async #claimInTurn<R>(claimer: ClaimFunction<R>, waiting: HeadOptions): Promise<R> {
    for (;;) {
      const onCreate: HeadOptions['onCreate'] = (stat, sentAt) => this.#clock.observe(stat.ctime, sentAt)
      const head = await acquireHead(this.#client, this.#layout.line, { ...waiting, onCreate })
      let got: R | ClaimFailure = 'again'
      try {
        got = await this.#claimAtHead(claimer, waiting, head)
      } finally {
        if (isFailed(got)) head.release()
      }
      if (!isFailed(got)) return got
    }
  }

  /** `again` when the place is lost. */
  async #claimAtHead<R>(
    claimer: ClaimFunction<R>,
    waiting: HeadOptions,
    head: QueueHead,
  ): Promise<R | ClaimFailure> {
    for (;;) {
      let looks = 0
      const item = await watchUntil(this.#client, waiting, async (reader) => {
        if (this.#client.session.id !== head.owner) return 'again' as const
        this.#isWaiting = looks > 0
        // What is probably there needs no watch.
        const likely = looks++ > 0 || this.#hasClaims
        return (likely && (await this.#peek(waiting.signal))) || this.#peekAndWatch(reader)
      })
      if (item === 'again') return item
      const got = await this.#claim(claimer, item, { signal: waiting.signal, head })
      if (got !== 'gone') return got
    }
  }

  /** The first item that can be had now, if there is one. */
  async #peek(signal: AbortSignal | undefined): Promise<Item | undefined> {
    const { items, claims } = this.#layout
    const options = signal ? { signal } : {}
    const list = await undefinedIfMissing(this.#client.getChildren(items, options))
    if (list === undefined || list.children.length === 0) return undefined
    const busy = this.#hasClaims
      ? await undefinedIfMissing(this.#client.getChildren(claims, options))
      : undefined
    return this.#choose(list.children, busy?.children ?? []).ready[0]
  }

  /** The same, with watches that tell of the next one: new items, and those that others give back. */
  async #peekAndWatch(reader: WatchingReader): Promise<Item | undefined> {
    const { items, claims } = this.#layout
    const list = await reader.children(items)
    if (list === undefined)
      return (await reader.exists(items)) === undefined ? undefined : this.#peekAndWatch(reader)
    if (list.children.length === 0) return undefined
    const busy = this.#hasClaims ? await reader.children(claims) : undefined
    const { ready, nextDue } = this.#choose(list.children, busy?.children ?? [])
    const now = this.#clock.now()
    if (ready.length === 0 && nextDue !== undefined && now !== undefined)
      reader.recheckAfter(nextDue - now + 1)
    return ready[0]
  }

  #choose(names: readonly string[], busy: readonly string[]): Choice {
    this.#hasClaims = busy.length > 0
    const choice = choose(names, new Set(busy), this.#clock.now() ?? 0, this.#layout.parse)
    this.#cachedItems = this.#hasClaims ? [] : choice.ready.slice(1, runLength(choice.ready.length))
    return choice
  }
}

const isFailed = (got: unknown): got is ClaimFailure => got === 'gone' || got === 'again'
