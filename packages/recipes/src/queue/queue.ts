import type { CallOptions, Client, Codec } from '@zabra/client/core'
import { withCodecErrors, withoutTimeout } from '@zabra/client/recipe-kit'
import type { Abortable, WaitOptions } from '../handles/types.ts'
import { orInBackground } from '../support/in-doubt.ts'
import { orAborted, withLimits } from '../support/limits.ts'
import { untilAborted } from '../support/until-aborted.ts'
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
import {
  abortable,
  checkArgument,
  checkCodec,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  milliseconds,
  oneOf,
  positive,
  text,
  type Rule,
  type Rules,
  waiting,
} from '../support/checks.ts'

export interface QueueOptions<T> {
  /** Encodes values. An item that cannot be decoded moves to the dead letters. */
  readonly codec: Codec<T>
  /** Number of items at which `put` begins to wait (default 10 000). */
  readonly maxItems?: number | undefined
  /**
   * `soft` (default): concurrent producers may exceed `maxItems`. `hard`: they never do, if all producers use it;
   * each put then costs two more reads, and puts are serialised.
   */
  readonly bound?: 'soft' | 'hard' | undefined
  /**
   * Number of deliveries after which an item that was never acknowledged moves to the dead letters (default:
   * never).
   */
  readonly deadLetterAfter?: number | undefined
  /**
   * `kazoo` shares the queue with kazoo's `LockingQueue`, `kazooPlain` with its `Queue`, whose consumers know no claims
   * and may take an item that `receive` has delivered. `curator` shares it with Curator's `DistributedQueue`
   * and `DistributedPriorityQueue` with the lock path `<path>.queue/claims`; their items need the codec
   * `curatorItems`.
   */
  readonly naming?: QueueNaming | undefined
}

export interface ReceiveOptions extends Abortable {
  /** Number of messages processed at the same time (default 1). */
  readonly concurrency?: number | undefined
}

const rules: Rules<QueueOptions<unknown>> = {
  codec: aCodec,
  maxItems: positive,
  bound: oneOf('soft', 'hard'),
  deadLetterAfter: positive,
  naming: oneOf('recipe', 'kazoo', 'kazooPlain', 'curator'),
}
const putting: Rules<PutOptions> = {
  ...waiting,
  priority: ['a number', (value) => typeof value === 'number'],
  delayMs: milliseconds,
  id: text,
  whenFull: oneOf('wait', 'fail'),
}
const receiving: Rules<ReceiveOptions> = { ...abortable, concurrency: positive }
const list: Rule = ['a list', Array.isArray]

type ClaimFunction<R> = (
  context: ClaimContext<never>,
  name: string,
  options: ClaimOptions,
) => Promise<R | ClaimFailure>

/** A durable queue; each item goes to one of many consumers. */
export class Queue<T> {
  readonly path: string
  readonly #client: Client
  readonly #layout: QueueLayout
  readonly #context: ClaimContext<T>
  readonly #producer: Producer<T>
  readonly #clock: ServerClock
  /** Unprocessed items of the last listing. */
  #cachedItems: Item[] = []
  /** True when other consumers hold claims, so that a listing must be compared with the claims. */
  #hasClaims = false
  /** True when the last item had to be waited for. */
  #isWaiting = false

  constructor(client: Client, path: string, options: QueueOptions<T>) {
    checkRecipe('Queue', client, path, options, rules)
    checkCodec('Queue', options)
    const { deadLetterAfter, maxItems = 10_000, naming = 'recipe', bound } = options
    const codec = withCodecErrors(options.codec, { operation: 'queue', path })
    this.#client = withoutTimeout(client).unordered()
    this.path = path
    this.#layout = queueLayout(path, naming)
    this.#clock = new ServerClock(client.platform.clock)
    this.#context = { client: this.#client, layout: this.#layout, codec, clock: this.#clock, deadLetterAfter }
    this.#producer = new Producer(this.#client, this.#layout, codec, this.#clock, {
      maxItems,
      hard: bound === 'hard',
    })
  }

  /**
   * Adds an item exactly once and returns its name, which is the id of its messages. Returns undefined if the item was added but
   * its name is unknown: the reply was lost, and before the name could be read the item was taken or the limits ended the call. Waits while the queue is full.
   */
  async put(value: T, options: PutOptions = {}): Promise<string | undefined> {
    return (await this.putAll([value], options))?.[0]
  }

  /**
   * Adds several items in one transaction and returns their names in order. Returns undefined, as `put` does, if the items
   * were added but not all names could be read. Waits while the queue is full.
   */
  putAll(values: readonly T[], options: PutOptions = {}): Promise<string[] | undefined> {
    const put = async (signal: AbortSignal | undefined): Promise<string[] | undefined> => {
      checkArgument('queue.put', 'values', values, list)
      if (values.length === 0) return []
      return this.#producer.put(values, { ...options, signal })
    }
    return this.#limited('put', options, put, putting)
  }

  /** Waits for an item and removes it: at-most-once delivery. If the caller fails, the item is lost. */
  take(options: WaitOptions = {}): Promise<T> {
    return this.#limited('take', options, async (signal) => {
      const taken = await this.#next<{ value: T }>(take as ClaimFunction<{ value: T }>, 'queue.take', signal)
      return taken.value
    })
  }

  /**
   * Takes the first unclaimed item with this id, at most once; returns undefined if there is none. Can be used to
   * withdraw an item. Ignores its delay.
   */
  takeById(id: string, options: WaitOptions = {}): Promise<T | undefined> {
    return this.#limited('takeById', options, async (signal) => {
      checkArgument('queue.takeById', 'an id', id, text)
      return this.#takeById(id, signal)
    })
  }

  #takeById(id: string, signal: AbortSignal | undefined): Promise<T | undefined> {
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
   * Waits for items and yields them until the consumer leaves the loop or `signal` aborts: at-least-once delivery. With a concurrency
   * of 1, requesting the next message returns an unacknowledged one to the queue; with more, it waits until one of
   * them is settled.
   */
  receive(options: ReceiveOptions = {}): AsyncGenerator<Message<T>, void, undefined> {
    checkOptions(`queue.receive ${this.path}`, options, receiving)
    return untilAborted(options.signal, this.#receive(options))
  }

  async *#receive({ signal, concurrency = 1 }: ReceiveOptions): AsyncGenerator<Message<T>, void, undefined> {
    let working = 0
    let wake = (): void => {}
    for (;;) {
      const message = await this.#next<Message<T>>(
        receive as ClaimFunction<Message<T>>,
        'queue.receive',
        signal,
      )
      const giveBack = (): Promise<void> => orInBackground(this.#client, message.nack(), signal)
      if (signal?.aborted) return giveBack()
      if (concurrency === 1) {
        let isAskedForMore = false
        try {
          yield message
          isAskedForMore = true
        } finally {
          // Requests arrive in order, so the next claim need not wait for the reply to a pending acknowledgement.
          if (!(isAskedForMore && message.isAcknowledged)) await giveBack()
        }
        continue
      }
      working++
      void message.settled.then(() => {
        working--
        wake()
      })
      yield message
      const waiting = { operation: 'queue.receive', path: this.path }
      // A race among the messages would leave a reaction in each that is processed for long, each time.
      while (working >= concurrency)
        await orAborted(new Promise<void>((resolve) => (wake = resolve)), signal, waiting)
    }
  }

  /**
   * Returns the value that would be taken next, without taking it; undefined when no item can be taken now. Another client
   * may take it meanwhile. Rejects with the error of the codec for an item that it cannot decode.
   */
  peek(options: WaitOptions = {}): Promise<T | undefined> {
    return this.#limited('peek', options, (signal) => this.#decodeNext(signal))
  }

  #decodeNext(signal: AbortSignal | undefined): Promise<T | undefined> {
    return retryInNewSession(this.#client, async () => {
      for (;;) {
        // Items that others have claimed cannot be taken.
        this.#hasClaims = true
        const item = await this.#peek(signal)
        // The listing is not used for claims, since its first item was not claimed.
        this.#cachedItems = []
        if (item === undefined) return undefined
        const path = `${this.#layout.items}/${item.name}`
        const found = await undefinedIfMissing(this.#client.getData(path, signal ? { signal } : {}))
        if (found !== undefined) return this.#context.codec.decode(found.data)
      }
    })
  }

  /** Returns the number of items, including claimed ones. */
  async size(options: CallOptions = {}): Promise<number> {
    return (await this.#client.exists(this.#layout.items, options))?.numChildren ?? 0
  }

  /** Returns the items that were delivered too often or could not be decoded, as they were put. */
  async deadLetters(
    options: CallOptions = {},
  ): Promise<{ readonly name: string; readonly data: Uint8Array }[]> {
    const { dead } = this.#layout
    const list = await undefinedIfMissing(this.#client.getChildren(dead, options))
    const letters = (list?.children ?? []).map(async (name) => {
      const found = await undefinedIfMissing(this.#client.getData(`${dead}/${name}`, options))
      return found === undefined ? [] : [{ name, data: found.data }]
    })
    return (await Promise.all(letters)).flat()
  }

  #limited<R>(
    method: string,
    options: WaitOptions,
    work: (signal: AbortSignal | undefined) => Promise<R>,
    rules?: Readonly<Record<string, Rule>>,
  ): Promise<R> {
    return withLimits(this.#client, options, { operation: `queue.${method}`, path: this.path, rules }, work)
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
      // The listing is outdated because of another consumer: from now on, read the claims too.
      this.#cachedItems = []
      this.#hasClaims = true
    }
    return got
  }

  /** Only the head of the queue of consumers watches, so that one new item wakes one consumer. */
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

  /** Claims an item as head of the queue. Returns `again` when the entry is lost. */
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
        // A first read that probably succeeds needs no watch.
        const likely = looks++ > 0 || this.#hasClaims
        return (likely && (await this.#peek(waiting.signal))) || this.#peekAndWatch(reader)
      })
      if (item === 'again') return item
      const got = await this.#claim(claimer, item, { signal: waiting.signal, head })
      if (got !== 'gone') return got
    }
  }

  /** Returns the first item that can be claimed now, or undefined. */
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

  /** Does the same with watches on new items and on returned ones. */
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
