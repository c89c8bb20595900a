import { UsageError, type Client } from '@zabra/client/core'
import { AsyncQueue, childPath, withoutTimeout } from '@zabra/client/recipe-kit'
import { Group } from '../group/group.ts'
import type { Abortable, RecipeOptions } from '../handles/types.ts'
import { uuid } from '../support/uuid.ts'
import { delay } from '../support/delay.ts'
import { itemsOf, stateOf, type PartitionState } from './decide.ts'
import { waitForAbort, Shares, type Share } from './shares.ts'
import {
  abortable,
  checkArgument,
  checkBody,
  checkOptions,
  checkRecipe,
  milliseconds,
  recipe,
  text,
  texts,
  type Rules,
} from '../support/checks.ts'

export interface PartitionerOptions extends Omit<RecipeOptions, 'naming' | 'data'> {
  /** Id of this member, unique among live members (default: random). */
  readonly id?: string | undefined
  /** Milliseconds for which joins and leaves are collected (default 2000). */
  readonly settleMs?: number | undefined
  /** Milliseconds for the work on an item that is handed over, before its lock is released (default 10 000). */
  readonly graceMs?: number | undefined
}

const { naming: _naming, data: _data, ...common } = recipe
const rules: Rules<PartitionerOptions> = {
  ...common,
  id: text,
  settleMs: milliseconds,
  graceMs: milliseconds,
}

/** Assigns items to members, so that each item is at one member at a time. */
export class Partitioner {
  readonly path: string
  readonly id: string
  readonly items: readonly string[]
  readonly #client: Client
  readonly #options: PartitionerOptions
  #shares: Shares | undefined
  #settled = false

  /** All members must be given the same items; an item that only some of them have may be assigned to none. */
  constructor(client: Client, path: string, items: readonly string[], options: PartitionerOptions = {}) {
    checkRecipe('Partitioner', client, path, options, rules)
    checkArgument('Partitioner', 'items', items, texts)
    if (new Set(items).size !== items.length) throw new UsageError('Expected different items, got one twice')
    this.#client = withoutTimeout(client)
    this.path = path
    this.items = items
    this.id = options.id ?? uuid(client)
    this.#options = options
  }

  /**
   * `idle` without a loop over items; `allocating` while it waits for items; `releasing` while it hands items
   * over.
   */
  get state(): PartitionState {
    return this.#shares === undefined ? 'idle' : stateOf(this.#shares.phases.values(), this.#settled)
  }

  /** The items that are held now, including those that are being handed over. */
  get owned(): readonly string[] {
    return [...(this.#shares?.phases ?? [])].flatMap(([item, phase]) => (phase === 'waiting' ? [] : [item]))
  }

  /**
   * Joins the members and yields each item that is assigned to this one, until the consumer leaves the loop or
   * `signal` aborts. The consumer must release an item once its `signal` has aborted and the work is finished;
   * after `graceMs` it is released anyway. Releasing an item earlier lets other members have it; it is acquired
   * again if it is still assigned to this member.
   */
  async *shares(options: Abortable = {}): AsyncGenerator<Share, void, undefined> {
    checkOptions(`shares ${this.path}`, options, abortable)
    const { signal } = options
    const stream = new AsyncQueue<Share>(Infinity, (waiting) => waiting)
    const work = (share: Share): Promise<void> => {
      stream.push(share)
      return waitForAbort(share.lock.signal)
    }
    const stop = new AbortController()
    const stopped = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal])
    const running = this.#run(work, stopped).then(
      () => stream.end(),
      (error: unknown) => stream.end(error),
    )
    try {
      yield* stream
    } finally {
      stop.abort()
      await running
    }
  }

  /**
   * Joins the members and runs `body` for each assigned item. An item whose body has returned stays held until it
   * is handed over. There is never more than one body per item at a time. Ends when `signal` aborts, or rejects
   * with the error of a body, after all items are handed over.
   */
  async run(body: (share: Share) => Promise<void>, options: Abortable = {}): Promise<void> {
    checkBody(body)
    checkOptions(`run ${this.path}`, options, abortable)
    const { signal } = options
    const stop = new AbortController()
    let failure: { readonly error: unknown } | undefined
    const work = async (share: Share): Promise<void> => {
      try {
        await body(share)
      } catch (error) {
        // A body that is asked to stop may throw the reason of its signal.
        if (share.signal.aborted && error === share.signal.reason) return
        failure ??= { error }
        stop.abort()
      }
    }
    await this.#run(work, signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]))
    if (failure !== undefined) throw failure.error
  }

  /** Stays a member until `signal` aborts or an error occurs. */
  async #run(work: (share: Share) => Promise<void>, signal: AbortSignal): Promise<void> {
    if (this.#shares !== undefined) {
      throw new UsageError(`Expected one loop over the items of ${this.id} at a time, got another`)
    }
    const { graceMs = 10_000, settleMs = 2000, id: _id, ...lock } = this.#options
    const failed = new AbortController()
    const stopped = AbortSignal.any([signal, failed.signal])
    const shares = new Shares(this.#client, this.path, {
      graceMs,
      lock,
      work,
      onFailed: (error) => failed.abort(error),
    })
    this.#shares = shares
    const group = new Group(this.#client, childPath(this.path, 'members'), { settleMs })
    try {
      await this.#follow(group, shares, settleMs, stopped)
    } catch (error) {
      if (!stopped.aborted) throw error
    } finally {
      this.#settled = false
      await Promise.all([shares.close(), group.close()]).finally(() => (this.#shares = undefined))
    }
    if (failed.signal.aborted) throw failed.signal.reason
  }

  async #follow(group: Group, shares: Shares, settleMs: number, signal: AbortSignal): Promise<void> {
    // The session of an earlier run of this member may still hold its id.
    const membership = await group.join(this.id, new Uint8Array(0), { onConflict: 'wait', signal })
    const stopped = AbortSignal.any([signal, membership.signal])
    await delay(this.#client, settleMs, stopped)
    for await (const { members } of group.changes({ signal: stopped })) {
      shares.setWanted(itemsOf(this.id, new Set(members.keys()), this.items))
      this.#settled = members.has(this.id)
    }
    if (!signal.aborted) membership.signal.throwIfAborted()
  }
}
