import {
  BadVersionError,
  ConnectionLossError,
  NodeExistsError,
  NoNodeError,
  ZooKeeperError,
  UsageError,
  type CallOptions,
  type Client,
  type Codec,
  type WriteOp,
} from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { AmbiguousResultError, endOf } from '../support/ambiguous-result.ts'
import { causeAt, readThroughLosses, undefinedIfMissing, retryInNewSession } from '../support/retry.ts'
import { acquireHead } from '../lock-queue/queue-head.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import type { WaitOptions } from '../handles/types.ts'
import { compareSequence } from '../lock-queue/contenders.ts'
import { orInDoubt } from '../support/in-doubt.ts'
import { commitWithMarker, deleteMarker, uniqueName, type Committed } from '../support/commit-with-marker.ts'
import { watchUntil } from '../support/watch.ts'
import type { QueueLayout } from './names.ts'
import type { ServerClock } from '../support/server-clock.ts'

/**
 * When the limits end the wait for a put that was sent, an item that was added is reported as added, without its name if that could not be
 * read. If it is unknown whether it was added, the call rejects with an `AmbiguousResultError`.
 */
export interface PutOptions extends WaitOptions {
  /** Lower is more urgent (default 0, or 100 with the naming of kazoo). */
  readonly priority?: number | undefined
  /** Milliseconds, by the server clock, before which the item is not delivered. */
  readonly delayMs?: number | undefined
  /** Id for `takeById`. Several items may share one. */
  readonly id?: string | undefined
  /** While the queue is full: wait (default), or fail with a `QueueFullError`. */
  readonly whenFull?: 'wait' | 'fail' | undefined
}

/** The queue is full. */
export class QueueFullError extends ZooKeeperError {
  static override readonly tag = 'QueueFullError'
}

/** Capacity of a queue. */
export interface Bound {
  readonly maxItems: number
  /** Never exceeded, at the cost of an extra read per put and of serialised puts. */
  readonly hard: boolean
}

/** A soft bound allows this fraction of the free capacity to be used without reading the length again. */
const CREDIT_DIVISOR = 16

/** Puts items into a queue. */
export class Producer<T> {
  readonly #client: Client
  readonly #layout: QueueLayout
  readonly #codec: Codec<T>
  readonly #clock: ServerClock
  readonly #bound: Bound
  /** Number of items that may be put before the next read of the length. */
  #credit = 0

  constructor(client: Client, layout: QueueLayout, codec: Codec<T>, clock: ServerClock, bound: Bound) {
    this.#client = withoutTimeout(client)
    this.#layout = layout
    this.#codec = codec
    this.#clock = clock
    this.#bound = bound
  }

  async put(
    values: readonly T[],
    { signal, priority, delayMs, id, whenFull }: PutOptions,
  ): Promise<string[] | undefined> {
    const { items, prefix } = this.#layout
    const due =
      delayMs === undefined
        ? undefined
        : Math.round((await retryInNewSession(this.#client, () => this.#now(signal))) + delayMs)
    const path = `${items}/${prefix({ priority, due, id })}`
    const operations = values.map((value): WriteOp => ({
      op: 'create',
      path,
      data: this.#codec.encode(value),
      mode: 'persistentSequential',
    }))
    const request = { count: values.length, signal, fail: whenFull === 'fail' }
    const marker = `${this.#layout.marks}/put-${uniqueName(this.#client)}`
    const sentAt = this.#client.platform.clock.monotonic()
    const committed = await this.#commit(marker, operations, request, values)
    deleteMarker(this.#client, marker)
    if (committed.results === undefined) {
      // A lost reply is resolved by the marker, so the marker exists and the items were added. Only their names may stay unknown.
      const zxid = committed.marker!.czxid
      const names = retryInNewSession(this.#client, () =>
        readThroughLosses(this.#client, (options) => this.#namesCreatedBy(zxid, options)),
      )
      const found = await orInDoubt(this.#client, names, signal, items).catch(() => undefined)
      return found?.length === values.length ? found : undefined
    }
    if (committed.marker !== undefined) this.#clock.observe(committed.marker.ctime, sentAt)
    const made = (committed.results as { path: string }[]).slice(-values.length)
    return made.map((each) => each.path.slice(items.length + 1))
  }

  async #commit(
    marker: string,
    operations: readonly WriteOp[],
    request: CapacityRequest,
    values: readonly T[],
  ): Promise<Committed<unknown>> {
    const { items, parents, gate } = this.#layout
    const { signal } = request
    for (;;) {
      const version = await retryInNewSession(this.#client, () => this.#waitForCapacity(request))
      // A hard bound holds because no other producer has put an item between the read of the length and this
      // transaction.
      const guard: WriteOp[] =
        version === undefined ? [] : [{ op: 'setData', path: gate, data: EMPTY, version }]
      try {
        const all = [...guard, ...operations]
        return await commitWithMarker(this.#client, marker, all, { signal, parents })
      } catch (error) {
        if (error instanceof AmbiguousResultError) {
          const message = `${endOf(error)}, and it is unknown whether the item was put`
          throw new AmbiguousResultError(message, { path: items, cause: error, value: values })
        }
        if (guard.length > 0 && (causeAt(error, 0) instanceof BadVersionError || isMissing(error, 0)))
          continue
        if (!isMissing(error, guard.length)) throw error
        // Not a container: once a server has removed an empty one, sequence numbers restart, and a consumer that
        // claims an item by name and version could get another item.
        await retryInNewSession(this.#client, () => this.#client.createMissing([items], { signal }))
      }
    }
  }

  /** Returns the names of the items that one transaction created, when its reply was lost. */
  async #namesCreatedBy(zxid: bigint, options: CallOptions): Promise<string[]> {
    const { items, parse } = this.#layout
    const list = await undefinedIfMissing(this.#client.getChildren(items, options))
    const newest = (list?.children ?? []).filter((name) => parse(name) !== undefined)
    newest.sort((a, b) => compareSequence(parse(b)!.sequence, parse(a)!.sequence))
    const own: string[] = []
    for (const name of newest) {
      const stat = await this.#client.exists(`${items}/${name}`, options)
      if (stat !== undefined && stat.czxid < zxid) break
      if (stat?.czxid === zxid) own.unshift(name)
    }
    return own
  }

  /** Returns the server time; measures it if it is unknown. */
  async #now(signal: AbortSignal | undefined): Promise<number> {
    for (;;) {
      const now = this.#clock.now()
      if (now !== undefined) return now
      const path = `${this.#layout.marks}/clock-${uniqueName(this.#client)}`
      throwIfAborted(signal, path, 'queue.put')
      const options = { mode: 'ephemeral', parents: true, ...(signal && { signal }) } as const
      try {
        await this.#clock.measure(() => this.#client.create(path, options))
      } finally {
        deleteMarker(this.#client, path)
      }
    }
  }

  /** Waits for free capacity. Returns the version of the gate at that moment if the bound is hard. */
  async #waitForCapacity(request: CapacityRequest): Promise<number | undefined> {
    if (!this.#bound.hard) {
      await this.#useCredit(request)
      return undefined
    }
    for (;;) {
      const version = await this.#readGate(request.signal)
      if (this.#fits(await this.#length(request.signal), request.count)) return version
      await this.#waitWhileFull(request)
    }
  }

  async #readGate(signal: AbortSignal | undefined): Promise<number> {
    const { gate } = this.#layout
    const options = signal ? { signal } : {}
    for (;;) {
      const stat = await this.#client.exists(gate, options)
      if (stat !== undefined) return stat.version
      try {
        await this.#client.create(gate, { data: EMPTY, parents: true, ...options })
      } catch (error) {
        // Created by another client, or by this one with a lost reply: the next read decides.
        if (!(error instanceof NodeExistsError || error instanceof ConnectionLossError)) throw error
      }
    }
  }

  async #length(signal: AbortSignal | undefined): Promise<number> {
    return (await this.#client.exists(this.#layout.items, signal ? { signal } : {}))?.numChildren ?? 0
  }

  /** A soft bound admits more items than fit if they are put together into an empty queue; a hard one never does. */
  #fits(length: number, count: number): boolean {
    return length + count <= this.#bound.maxItems || (!this.#bound.hard && length === 0)
  }

  async #useCredit(request: CapacityRequest): Promise<void> {
    const { count } = request
    if (this.#credit >= count) return void (this.#credit -= count)
    const length = await this.#length(request.signal)
    this.#grantCredit(this.#fits(length, count) ? length : await this.#waitWhileFull(request), count)
  }

  /**
   * Waits for free capacity. Producers queue, so that one removed item wakes one of them. Returns the length of
   * the queue.
   */
  async #waitWhileFull({ count, signal, fail }: CapacityRequest): Promise<number> {
    const { items, putters } = this.#layout
    const { maxItems, hard } = this.#bound
    if (hard && count > maxItems) {
      throw new UsageError(
        `Expected at most ${maxItems} items at once, which is all that ${items} may hold, got ${count}`,
      )
    }
    if (fail)
      throw new QueueFullError(`The queue ${items} holds its ${maxItems} items`, 'QUEUE_FULL', {
        path: items,
      })
    const waiting = { signal, operation: 'queue.put' }
    const head = await acquireHead(this.#client, putters, waiting)
    try {
      const left = await watchUntil(this.#client, waiting, async (reader) => {
        const now = (await reader.children(items))?.children.length ?? 0
        return this.#fits(now, count) || now === 0 ? { now } : undefined
      })
      return left.now
    } finally {
      head.release()
    }
  }

  #grantCredit(length: number, count: number): void {
    this.#credit = Math.max(0, Math.floor((this.#bound.maxItems - length - count) / CREDIT_DIVISOR))
  }
}

/** The capacity that a put needs. */
interface CapacityRequest {
  readonly count: number
  readonly signal: AbortSignal | undefined
  readonly fail: boolean
}

const EMPTY = new Uint8Array(0)

const isMissing = (error: unknown, index: number): boolean => causeAt(error, index) instanceof NoNodeError
