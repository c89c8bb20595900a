import type { Clock } from '@zabra/runtime'
import type { RecentEvent, RecentEvents } from '../../../logging/index.ts'

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

/** The reader of a stream. */
interface Reader {
  /** Wakes the stream, if it has sent all events. */
  wake: () => void
  hasLeft: boolean
}

/**
 * Sends the recent events of a server, and those to come, to several readers. Streams keep no events of their own: one whose reader is
 * slow goes on with the oldest event that is still kept, and says how many it has left out.
 */
export class EventStreams {
  readonly #events: RecentEvents
  readonly #clock: Pick<Clock, 'after' | 'wall'>
  readonly #beatMs: number
  /** Those of the streams that are open. */
  readonly #readers = new Set<Reader>()
  #isClosed = false

  /** `idleTimeoutMs` is the time without traffic after which the port closes a connection. */
  constructor(events: RecentEvents, clock: Pick<Clock, 'after' | 'wall'>, idleTimeoutMs: number) {
    this.#events = events
    this.#clock = clock
    this.#beatMs = Math.max(1, Math.min(BEAT_MS, idleTimeoutMs / 2))
    events.onAdded = () => this.#wake()
  }

  /** The streams that are open. One whose reader has only closed its own side is open until the next comment shows that it has left. */
  get size(): number {
    return this.#readers.size
  }

  /**
   * Returns the chunks of a stream, which must be read to the end or returned: `return` ends it at once, also while `next` waits for an
   * event. Returns undefined where as many are open as there may be.
   */
  open(options: StreamOptions): AsyncIterableIterator<string> | undefined {
    if (this.#readers.size >= MAX_STREAMS) return undefined
    const reader: Reader = { wake() {}, hasLeft: false }
    this.#readers.add(reader)
    const chunks = this.#chunks(options, reader)
    return {
      [Symbol.asyncIterator]() {
        return this
      },
      next: () => chunks.next(),
      return: () => {
        reader.hasLeft = true
        this.#readers.delete(reader)
        reader.wake()
        return chunks.return(undefined)
      },
    }
  }

  /** Ends all streams, after the events that they have not sent. */
  close(): void {
    this.#isClosed = true
    this.#wake()
  }

  async *#chunks({ after, follows, includes }: StreamOptions, reader: Reader): AsyncGenerator<string> {
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
        } else if (last >= end || this.#isClosed || reader.hasLeft) return
        // A reader that filters continues after this number.
        else if (!(await this.#isWoken(reader))) text = `:\nid: ${last}\n\n`
      }
    } finally {
      this.#readers.delete(reader)
    }
  }

  /** Resolves to true when an event was added, the reader has left or the streams are closed, and to false when it is time for a comment. */
  #isWoken(reader: Reader): Promise<boolean> {
    return new Promise((resolve) => {
      reader.wake = () => {
        cancel()
        resolve(true)
      }
      const cancel = this.#clock.after(this.#beatMs, 'comment of a stream of events', () => resolve(false))
    })
  }

  #wake(): void {
    for (const { wake } of this.#readers) wake()
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
