import type { Clock, LastLines, Logger, LogLevel } from '@zabra/runtime'
import { LogLevels } from './log-levels.ts'
import { eventOf, type NamedEvent } from './parts.ts'
import { RecentEvents } from './recent-events.ts'
import { RepeatedLines } from './repeated-lines.ts'

/** The fields of contexts that say what a line is about; the first one that is there is the key of repeats. */
const KEYS = ['peer', 'server', 'from', 'session', 'client', 'address', 'path', 'file', 'target'] as const

/** What lines say of the server that writes them. */
export interface LogOrigin {
  /** The id of the member; undefined on a standalone server. */
  readonly member?: number | undefined
  readonly epoch?: number
  readonly role?: string
}

/**
 * Passes lines on to a logger, at the level of their part. Adds the id of the event, its part and what the server is, counts what is
 * written, and folds repeats.
 */
export class EventLogger implements Logger {
  readonly levels: LogLevels
  /** The lines that were written since the start. */
  readonly lines: Readonly<Record<LogLevel, number>>
  /** Returns what lines say of the server. */
  origin: () => LogOrigin = () => ({})
  /** Called with the id of each event above `debug`, whether its line is written or not. */
  observer: ((id: string, context: object, message: string) => void) | undefined
  /** The last events above `debug`, whether their lines are written or not. */
  readonly events: RecentEvents
  readonly #lines: Record<LogLevel, number> = { error: 0, warn: 0, info: 0, debug: 0 }
  readonly #logger: Logger
  readonly #repeats: RepeatedLines

  constructor(logger: Logger, clock: Pick<Clock, 'after' | 'monotonic' | 'wall'>) {
    this.#logger = logger
    this.levels = new LogLevels(logger, clock)
    this.#repeats = new RepeatedLines(clock)
    this.events = new RecentEvents(clock)
    this.lines = this.#lines
  }

  get level(): string | undefined {
    return this.levels.level
  }

  set level(level: string | undefined) {
    this.levels.level = level
  }

  get lost(): number | undefined {
    return this.#logger.lost
  }

  get lastLines(): LastLines | undefined {
    return this.#logger.lastLines
  }

  error(context: object, message: string): void {
    this.#observe('error', context, message)
    if (this.levels.mayWrite('error')) this.#log('error', context, message)
  }

  warn(context: object, message: string): void {
    this.#observe('warn', context, message)
    if (this.levels.mayWrite('warn')) this.#log('warn', context, message)
  }

  info(context: object, message: string): void {
    this.#observe('info', context, message)
    if (this.levels.mayWrite('info')) this.#log('info', context, message)
  }

  debug(context: object, message: string): void {
    if (this.levels.mayWrite('debug')) this.#log('debug', context, message)
  }

  /** Writes and keeps the counts of repeats, and ends the levels that were set for a time. */
  close(): void {
    this.#repeats.close()
    this.events.close()
    this.levels.close()
  }

  #observe(level: LogLevel, context: object, message: string): void {
    const event = eventOf(context, message)
    if (event === undefined) return
    this.observer?.(event.id, context, message)
    if (!event.isRoutine) this.events.add(level, event, { ...this.origin(), ...context }, message)
  }

  #log(level: LogLevel, context: object, message: string): void {
    const event = eventOf(context, message)
    if (!this.levels.writes(level, event?.part)) return
    const isWritten =
      event === undefined ||
      event.isLimited ||
      this.#repeats.admits(event.id, keyOf(context), (times) =>
        this.#write(level, { ...context, times }, message, event),
      )
    if (isWritten) this.#write(level, context, message, event)
  }

  #write(level: LogLevel, context: object, message: string, event: NamedEvent | undefined): void {
    this.#lines[level]++
    // What a line is about counts before what the server is: an epoch of another server, for example.
    const name = event === undefined ? {} : { id: event.id, part: event.part }
    this.#logger[level]({ ...name, ...this.origin(), ...context, ...name }, message)
  }
}

function keyOf(context: object): string {
  for (const key of KEYS) {
    const value = (context as Readonly<Record<string, unknown>>)[key]
    if (typeof value === 'string' || typeof value === 'number') return String(value)
  }
  return ''
}
