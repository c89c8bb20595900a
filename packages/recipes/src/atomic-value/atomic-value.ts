import {
  BadVersionError,
  NoNodeError,
  type Bytes,
  type Client,
  type Codec,
  type Stat,
} from '@zabra/client/core'
import { abortError, syncResult, withCodecErrors, withoutTimeout } from '@zabra/client/recipe-kit'
import type { Abortable, WaitOptions } from '../handles/types.ts'
import { withLimits } from '../support/limits.ts'
import { untilAborted } from '../support/until-aborted.ts'
import { watchData } from '../tree-cache/watchers.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import {
  causeAt,
  createIfMissing,
  isAmbiguous,
  retryInNewSession,
  undefinedIfMissing,
} from '../support/retry.ts'
import { acquireHead, type QueueHead } from '../lock-queue/queue-head.ts'
import { commitWithMarker, deleteMarker, uniqueName } from '../support/commit-with-marker.ts'
import { delay } from '../support/delay.ts'
import { bigEndian, decimal, outcomeOf, backoffMs } from './decide.ts'
import {
  abortable,
  aFunction,
  anything,
  checkArgument,
  checkCodec,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  oneOf,
  type Rule,
} from '../support/checks.ts'

export interface AtomicValueOptions<T> {
  readonly codec: Codec<T>
  /** Value used while the znode does not exist; the first read writes it. */
  readonly initial: T
  /**
   * `exact` (default): resolves a lost reply with a marker znode. `fast`: throws an `AmbiguousResultError` when a
   * reply is lost, and saves the two requests for the marker.
   */
  readonly mode?: 'exact' | 'fast' | undefined
}

/** A value and the stat of its znode. */
export interface Versioned<T> {
  readonly value: T
  readonly stat: Stat
}

/** Number of lost version races after which an update waits in a queue. */
const MAX_LOST_RACES = 6

const mode = oneOf('exact', 'fast')
const wholeNumber: Rule = [
  'a whole number',
  (value) => typeof value === 'bigint' || Number.isSafeInteger(value),
]

/** A value that many clients update; each update is applied exactly once. */
export class AtomicValue<T> {
  readonly path: string
  readonly #client: Client
  readonly #options: AtomicValueOptions<T>

  constructor(client: Client, path: string, options: AtomicValueOptions<T>) {
    checkRecipe('AtomicValue', client, path, options, { codec: aCodec, initial: anything, mode })
    checkCodec('AtomicValue', options)
    this.#client = withoutTimeout(client).unordered()
    this.path = path
    const codec = withCodecErrors(options.codec, { operation: 'atomic value', path })
    this.#options = { ...options, codec }
  }

  /** Returns the current value. Creates the znode with the initial value when it is missing. */
  get(options: WaitOptions = {}): Promise<Versioned<T>> {
    return this.#limited('get', options, (signal) => this.#get(signal))
  }

  /** Writes if the znode is unchanged since `expected` was read; returns false otherwise. */
  async compareAndSet(
    expected: { readonly stat: Stat },
    value: T,
    options: WaitOptions = {},
  ): Promise<boolean> {
    checkArgument(
      'compareAndSet',
      'the version that was read',
      (expected as Partial<typeof expected> | undefined)?.stat?.version,
      ['a number', (version) => typeof version === 'number'],
    )
    const data = this.#options.codec.encode(value)
    return this.#limited('compareAndSet', options, (signal) => this.#write(expected.stat, data, signal))
  }

  /**
   * Reads, changes and writes until no other client wrote in between. `change` may run several times; its result
   * is applied once.
   */
  async update(change: (current: T) => T, options: WaitOptions = {}): Promise<T> {
    checkArgument('update', 'a change', change, aFunction)
    const next = (current: Bytes): T =>
      syncResult('the function of an update', change(this.#options.codec.decode(current)))
    return this.#limited('update', options, (signal) => this.#update(next, signal))
  }

  /** Writes regardless of the current value, also over data that the codec cannot read. */
  async set(value: T, options: WaitOptions = {}): Promise<T> {
    return this.#limited('set', options, (signal) => this.#update(() => value, signal))
  }

  /** Yields the current value, then the newest value after each change, until `signal` aborts. */
  updates(options: Abortable = {}): AsyncGenerator<T, void, undefined> {
    checkOptions(`updates ${this.path}`, options, abortable)
    const { signal } = options
    return untilAborted(signal, this.#updates(signal))
  }

  async *#updates(signal: AbortSignal | undefined): AsyncGenerator<T, void, undefined> {
    await this.#get(signal)
    for await (const found of watchData(this.#client, this.path, { signal })) {
      yield found === undefined ? this.#options.initial : this.#options.codec.decode(found.data)
    }
  }

  #limited<R>(
    method: string,
    options: WaitOptions,
    work: (signal: AbortSignal | undefined) => Promise<R>,
  ): Promise<R> {
    const waiting = { operation: `atomicValue.${method}`, path: this.path }
    return withLimits(this.#client, options, waiting, work)
  }

  #get(signal: AbortSignal | undefined): Promise<Versioned<T>> {
    return retryInNewSession(this.#client, async () => {
      const { data, stat } = await this.#read(signal)
      return { value: this.#options.codec.decode(data), stat }
    })
  }

  async #update(change: (current: Bytes) => T, signal: AbortSignal | undefined): Promise<T> {
    let head: QueueHead | undefined
    try {
      for (let lost = 0; ; lost++) {
        const { data, stat } = await retryInNewSession(this.#client, () => this.#read(signal))
        const next = change(data)
        if (await this.#write(stat, this.#options.codec.encode(next), signal)) return next
        // A client that keeps losing races queues with the others that do, so that one of them at a time tries.
        if (lost === MAX_LOST_RACES) head = await this.#acquireHead(signal)
        else if (head === undefined) await this.#backoff(lost, signal)
      }
    } finally {
      head?.release()
    }
  }

  async #read(signal: AbortSignal | undefined): Promise<{ data: Bytes; stat: Stat }> {
    const options = signal ? { signal } : {}
    const { codec, initial } = this.#options
    for (;;) {
      const found = await undefinedIfMissing(this.#client.getData(this.path, options))
      if (found !== undefined) return found
      const create = { ...options, parents: 'persistent' } as const
      await createIfMissing(this.#client, this.path, codec.encode(initial), create)
    }
  }

  async #write(stat: Stat, data: Bytes, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      if (this.#options.mode === 'fast')
        await retryInNewSession(this.#client, () => this.#writeFast(stat, data, signal))
      else await this.#writeExact(stat, data, signal)
      return true
    } catch (error) {
      const cause = causeAt(error, 0) ?? error
      if (cause instanceof BadVersionError || cause instanceof NoNodeError) return false
      if (!(error instanceof AmbiguousResultError) || this.#options.mode === 'fast') throw error
      const check = retryInNewSession(this.#client, () => this.#wasNotWritten(stat, data, signal))
      // The error of the write says that its outcome is unknown; that of the check does not.
      if (await check.catch(() => false)) return false
      throw error
    }
  }

  async #writeFast({ version }: Stat, data: Bytes, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#client.setData(this.path, data, { version, retry: false, ...(signal && { signal }) })
    } catch (error) {
      if (!isAmbiguous(error)) throw error
      const message = `It is unknown whether ${this.path} was written; mode 'exact' resolves lost replies`
      throw new AmbiguousResultError(message, { path: this.path, cause: error })
    }
  }

  async #writeExact({ version }: Stat, data: Bytes, signal: AbortSignal | undefined): Promise<void> {
    const marker = `${this.#markerFolder}/op-${uniqueName(this.#client)}`
    await commitWithMarker(this.#client, marker, [{ op: 'setData', path: this.path, data, version }], {
      signal,
    })
    deleteMarker(this.#client, marker)
  }

  async #wasNotWritten(before: Stat, data: Bytes, signal: AbortSignal | undefined): Promise<boolean> {
    const options = signal ? { signal } : {}
    await this.#client.sync(this.path, options)
    const now = await undefinedIfMissing(this.#client.getData(this.path, options))
    const same =
      now !== undefined && now.data.length === data.length && now.data.every((byte, at) => byte === data[at])
    return (
      outcomeOf(before, now && { czxid: now.stat.czxid, version: now.stat.version, same }) === 'notWritten'
    )
  }

  /** A sibling of the value's znode, because children of the value may belong to other programs. */
  get #markerFolder(): string {
    return `${this.path}-ops`
  }

  #acquireHead(signal: AbortSignal | undefined): Promise<QueueHead> {
    return acquireHead(this.#client, `${this.#markerFolder}/line`, {
      signal,
      operation: 'atomicValue.update',
    })
  }

  async #backoff(lost: number, signal: AbortSignal | undefined): Promise<void> {
    const ms = backoffMs(lost, this.#client.platform.random.below(1024) / 1024)
    if (ms > 0) await delay(this.#client, ms, signal)
    if (signal?.aborted) throw abortError(signal.reason, { operation: 'atomicValue.update', path: this.path })
  }
}

export interface CounterOptions {
  /** `decimal` text (default, as in kazoo), or big-endian integers of 4 or 8 bytes as in Curator. */
  readonly format?: 'decimal' | 4 | 8 | undefined
  /** Same as for an `AtomicValue` (default `exact`). */
  readonly mode?: 'exact' | 'fast' | undefined
}

/** An integer that many clients update. */
export class Counter {
  readonly #value: AtomicValue<bigint>

  constructor(client: Client, path: string, options: CounterOptions = {}) {
    checkRecipe('Counter', client, path, options, { format: oneOf('decimal', 4, 8), mode })
    const { format = 'decimal' } = options
    const codec = format === 'decimal' ? decimal : bigEndian(format)
    this.#value = new AtomicValue(client, path, { codec, initial: 0n, mode: options.mode })
  }

  /** Returns the number; 0 while the znode does not exist. */
  async get(options: WaitOptions = {}): Promise<bigint> {
    return (await this.#value.get(options)).value
  }

  /** Adds exactly once and returns the sum. Throws a `UsageError` when the sum does not fit the format. */
  async add(amount: bigint | number = 1n, options: WaitOptions = {}): Promise<bigint> {
    checkArgument('add', 'an amount', amount, wholeNumber)
    const by = BigInt(amount)
    return this.#value.update((current) => current + by, options)
  }

  /** Yields the current number, then the newest after each change. */
  updates(options: Abortable = {}): AsyncGenerator<bigint, void, undefined> {
    return this.#value.updates(options)
  }
}
