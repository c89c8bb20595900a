import type { Clock } from '@zabra/runtime'
import type { RecentEvent, RecentEvents } from '../../logging/index.ts'

/** Most streams at a time. */
const MAX_STREAMS = 32
/** Characters after which a chunk ends: that, and one event more, is what a stream holds for its reader. */
const CHUNK_CHARS = 16_384
/** Time without events after which a stream sends a comment, in milliseconds; half of `admin.idleTimeout` where that is less. */
const BEAT_MS = 15_000
/** Time after which a browser connects again, in milliseconds. */
const RETRY_MS = 2000

export interface StreamOptions {
  /** The number of the last event that the reader has; undefined for one that has none. */
  readonly after: number | undefined
  /** Whether the stream goes on with the events to come. */
  readonly follows: boolean
  readonly includes: (event: RecentEvent) => boolean
}

/**
 * Sends the recent events of a server, and those to come, to several readers. Streams keep no events of their own: one whose reader is
 * slow goes on with the oldest event that is still kept, and says how many it has left out.
 */
export class EventStreams {
  readonly #events: RecentEvents
  readonly #clock: Pick<Clock, 'after' | 'wall'>
  readonly #beatMs: number
  /** Wakes the streams that have sent all events. */
  readonly #waiting = new Set<() => void>()
  #count = 0
  #isClosed = false

  /** `idleTimeoutMs` is the time without traffic after which the port closes a connection. */
  constructor(events: RecentEvents, clock: Pick<Clock, 'after' | 'wall'>, idleTimeoutMs: number) {
    this.#events = events
    this.#clock = clock
    this.#beatMs = Math.max(1, Math.min(BEAT_MS, idleTimeoutMs / 2))
    events.onAdded = () => this.#wake()
  }

  /** The streams that are open. One whose reader has left is open until it sends something. */
  get size(): number {
    return this.#count
  }

  /** Returns the chunks of a stream, which must be read or returned; undefined where as many are open as there may be. */
  open(options: StreamOptions): AsyncGenerator<string> | undefined {
    if (this.#count >= MAX_STREAMS) return undefined
    this.#count++
    return this.#chunks(options)
  }

  /** Ends all streams, after the events that they have not sent. */
  close(): void {
    this.#isClosed = true
    this.#wake()
  }

  async *#chunks({ after, follows, includes }: StreamOptions): AsyncGenerator<string> {
    const events = this.#events
    const end = follows ? Infinity : events.newest
    try {
      // Sent at once, so that the reader learns that its request was accepted.
      let text = `retry: ${RETRY_MS}\n\n`
      let last = after ?? events.oldest - 1
      if (!events.has(last)) {
        last = events.oldest - 1
        text += this.#lost(last, undefined)
      }
      for (;;) {
        while (last < Math.min(end, events.newest) && text.length < CHUNK_CHARS) {
          const left = events.oldest - 1 - last
          if (left > 0) text += this.#lost((last += left), left)
          const event = events.at(++last)
          if (includes(event)) text += block(event.number, event.event.id, event.json)
        }
        if (text !== '') {
          yield text
          text = ''
        } else if (last >= end || this.#isClosed) return
        // The number tells a reader of few events how far it is.
        else if (!(await this.#isWoken())) text = `:\nid: ${last}\n\n`
      }
    } finally {
      this.#count--
    }
  }

  /** Resolves to true when an event was added or the streams are closed, and to false when it is time for a comment. */
  #isWoken(): Promise<boolean> {
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel()
        resolve(true)
      }
      this.#waiting.add(wake)
      const cancel = this.#clock.after(this.#beatMs, 'comment of a stream of events', () => {
        this.#waiting.delete(wake)
        resolve(false)
      })
    })
  }

  #wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Says that events up to a number were left out: `count` of them, or an unknown number. */
  #lost(upTo: number, count: number | undefined): string {
    const json = JSON.stringify({
      time: new Date(this.#clock.wall()).toISOString(),
      level: 'warn',
      id: 'events.lost',
      part: 'events',
      lost: count ?? null,
      msg:
        count === undefined
          ? 'The events after the last one that was received are not known to this process; it continues with the oldest that it has'
          : 'Events were left out: they are not kept any more',
    })
    return block(upTo, 'events.lost', json)
  }
}

const block = (number: number, id: string, json: string): string =>
  `id: ${number}\nevent: ${id}\ndata: ${json}\n\n`
