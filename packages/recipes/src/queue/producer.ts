import { NoNodeError, type Client, type Codec, type WriteOp } from '@zabra/client/core'
import { AmbiguousResultError } from '../waiting/ambiguous.ts'
import { causeAt, orMissing, throughSessions } from '../waiting/errors.ts'
import { atHead } from '../waiting/line.ts'
import { commitMarked, dropMark, uniqueName, type Committed } from '../waiting/marked.ts'
import { watchUntil } from '../waiting/watch-until.ts'
import type { Layout } from './names.ts'
import type { ServerClock } from '../waiting/server-clock.ts'

export interface PutOptions {
  /** Stops waiting. An item that was added by then is told as added. */
  readonly signal?: AbortSignal
  /** Smaller is sooner (default 0, or 100 with the names of kazoo). */
  readonly priority?: number
  /** Milliseconds before which nobody gets it, by the clock of the servers. */
  readonly delayMs?: number
}

/** How many puts may go by between two looks at the length of the queue, as a part of its bound. */
const UNSEEN_PART = 16

/** Puts items into a queue. */
export class Producer<T> {
  readonly #client: Client
  readonly #layout: Layout
  readonly #codec: Codec<T>
  readonly #clock: ServerClock
  readonly #maxItems: number
  /** Items that may be put before the next look. */
  #credit = 0

  constructor(client: Client, layout: Layout, codec: Codec<T>, clock: ServerClock, maxItems: number) {
    this.#client = client
    this.#layout = layout
    this.#codec = codec
    this.#clock = clock
    this.#maxItems = maxItems
  }

  async put(values: readonly T[], { signal, priority, delayMs }: PutOptions): Promise<string[]> {
    const { items, prefix } = this.#layout
    const due =
      delayMs === undefined
        ? undefined
        : Math.round((await throughSessions(this.#client, () => this.#now(signal))) + delayMs)
    const path = `${items}/${prefix(priority, due)}`
    const operations = values.map((value): WriteOp => ({
      op: 'create',
      path,
      data: this.#codec.encode(value),
      mode: 'persistentSequential',
    }))
    await throughSessions(this.#client, () => this.#room(values.length, signal))
    const mark = `${this.#layout.marks}/put-${uniqueName(this.#client)}`
    const sentAt = this.#client.ports.clock.monotonic()
    const committed = await this.#commit(mark, operations, signal, values)
    dropMark(this.#client, mark)
    if (committed.results === undefined) {
      // A lost reply is found out about by the mark, so there is one.
      const zxid = committed.mark!.czxid
      return throughSessions(this.#client, () => this.#madeWith(zxid))
    }
    if (committed.mark !== undefined) this.#clock.observe(committed.mark.ctime, sentAt)
    return (committed.results as { path: string }[]).map(({ path: made }) => made.slice(items.length + 1))
  }

  async #commit(
    mark: string,
    operations: readonly WriteOp[],
    signal: AbortSignal | undefined,
    values: readonly T[],
  ): Promise<Committed<unknown>> {
    const { items, parents } = this.#layout
    for (;;) {
      try {
        return await commitMarked(this.#client, mark, operations, { signal, parents })
      } catch (error) {
        if (error instanceof AmbiguousResultError) {
          const message = 'The session ended before it could be told whether the item was put'
          throw new AmbiguousResultError(message, { path: items, cause: error, value: values })
        }
        // An empty container is the server's to remove at any time.
        if (!(causeAt(error, 0) instanceof NoNodeError)) throw error
        const options = { mode: parents, ...(signal && { signal }) } as const
        await throughSessions(this.#client, () => this.#client.mkdirp(items, options))
      }
    }
  }

  /** The names of what one transaction made, when its reply was lost. */
  async #madeWith(zxid: bigint): Promise<string[]> {
    const { items, parse } = this.#layout
    const list = await orMissing(this.#client.getChildren(items))
    const newest = (list?.children ?? []).filter((name) => parse(name) !== undefined)
    newest.sort((a, b) => (parse(b)!.sequence - parse(a)!.sequence) | 0)
    const own: string[] = []
    for (const name of newest) {
      const stat = await this.#client.exists(`${items}/${name}`)
      if (stat !== undefined && stat.czxid < zxid) break
      if (stat?.czxid === zxid) own.unshift(name)
    }
    return own
  }

  /** The time of the servers, measured if nothing has told it yet. */
  async #now(signal: AbortSignal | undefined): Promise<number> {
    for (;;) {
      const now = this.#clock.now()
      if (now !== undefined) return now
      const path = `${this.#layout.marks}/clock-${uniqueName(this.#client)}`
      const options = { mode: 'ephemeral', parents: true, ...(signal && { signal }) } as const
      try {
        await this.#clock.measured(() => this.#client.create(path, undefined, options))
      } finally {
        dropMark(this.#client, path)
      }
    }
  }

  /** Waits until the queue has room. Producers wait in a line, so that one item less wakes one of them. */
  async #room(count: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#credit >= count) return void (this.#credit -= count)
    const { items, putters } = this.#layout
    const length = (await this.#client.exists(items, signal ? { signal } : {}))?.numChildren ?? 0
    if (length + count <= this.#maxItems || length === 0) return this.#earn(length, count)
    const waiting = { signal, operation: 'queue.put' }
    const place = await atHead(this.#client, putters, waiting)
    try {
      const left = await watchUntil(this.#client, waiting, async (look) => {
        const now = (await look.children(items))?.children.length ?? 0
        return now + count <= this.#maxItems || now === 0 ? { now } : undefined
      })
      this.#earn(left.now, count)
    } finally {
      place.leave()
    }
  }

  #earn(length: number, count: number): void {
    this.#credit = Math.max(0, Math.floor((this.#maxItems - length - count) / UNSEEN_PART))
  }
}
