import type { Clock, LogLevel } from '@zabra/runtime'
import { kindOf } from '../core/kind-of.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { NamedEvent } from './parts.ts'
import { RepeatedLines } from './repeated-lines.ts'

/** Events that are kept. */
const KEPT = 512
/** Longest JSON of an event in characters; a longer one is kept without its fields. */
const MAX_CHARS = 4096
/** Numbers of a process begin at the milliseconds since 1970 times this: those of a later one are above all of an earlier one. */
const NUMBERS_PER_MS = 1000
/** The message of an event that has many sentences: those of other events are alike, whatever path or number they name. */
const SENTENCE = /^\{[^}]*\}$/
/** Names of fields whose values are never shown, although none should be there. */
const SECRETS: ReadonlySet<string> = new Set(['password', 'superDigest'])

/** An event at `info` or above, as the log has it. */
export interface RecentEvent {
  /** One more than that of the event before. */
  readonly number: number
  readonly event: NamedEvent
  readonly level: LogLevel
  /** The line as a JSON object. */
  readonly json: string
}

/**
 * Keeps the last events of a server, whatever the level of its log. Of more than ten events in a minute that are alike, the rest is one
 * event with a count, so that none of them fills the memory of the others.
 */
export class RecentEvents {
  /** Called when an event was added. */
  onAdded: () => void = () => {}
  readonly #clock: Pick<Clock, 'wall'>
  readonly #repeats: RepeatedLines
  readonly #kept = new RingBuffer<RecentEvent | undefined>(undefined)
  /** The number of the first event of this process. */
  readonly #first: number
  #next: number

  constructor(clock: Pick<Clock, 'after' | 'monotonic' | 'wall'>) {
    this.#clock = clock
    this.#repeats = new RepeatedLines(clock)
    this.#first = this.#next = Math.floor(clock.wall()) * NUMBERS_PER_MS
  }

  /** The number of the newest event; before the first one that of none. */
  get newest(): number {
    return this.#next - 1
  }

  /** The number of the oldest event that is kept. */
  get oldest(): number {
    return this.#next - this.#kept.length
  }

  /** Returns the event with a number from `oldest` to `newest`. */
  at(number: number): RecentEvent {
    return this.#kept.at(number - this.oldest)!
  }

  /** Whether a number is that of an event of this process, or the one before its first. */
  has(number: number): boolean {
    return number >= this.#first - 1 && number <= this.newest
  }

  /** Keeps an event, or counts it for the end of the minute. */
  add(level: LogLevel, event: NamedEvent, context: Readonly<Record<string, unknown>>, message: string): void {
    const { times } = context
    const kind = SENTENCE.test(event.message) ? kindOf(message) : ''
    const count = typeof times === 'number' ? times : 1
    const addRest = (rest: number): void => this.#add(level, event, { ...context, times: rest }, message)
    if (this.#repeats.admits(event.id, kind, addRest, count)) this.#add(level, event, context, message)
  }

  /** Adds the counts of what was left out. */
  close(): void {
    this.#repeats.close()
  }

  #add(level: LogLevel, event: NamedEvent, context: object, message: string): void {
    const fixed = { time: new Date(this.#clock.wall()).toISOString(), level, id: event.id, part: event.part }
    // The names of the event count, whatever fields the line has.
    const whole = JSON.stringify({ ...fixed, ...context, ...fixed, msg: message }, plain)
    const json =
      whole.length <= MAX_CHARS
        ? whole
        : JSON.stringify({ ...fixed, msg: message.slice(0, MAX_CHARS / 4), cut: true })
    if (this.#kept.length === KEPT) this.#kept.shift()
    this.#kept.push({ number: this.#next++, event, level, json })
    this.onAdded()
  }
}

/** Writes what JSON cannot, and hides secrets. */
function plain(name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return SECRETS.has(name) ? '[Redacted]' : value
}
