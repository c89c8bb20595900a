import type { Cancel, Clock, Logger, LogLevel } from '@zabra/runtime'
import { LOG_LEVELS } from './parts.ts'

/** A level that was set for a time. */
interface Passing {
  readonly cancel: Cancel
  /** The level that comes back; undefined where a part follows the level of all. */
  readonly lasting: string | undefined
}

/** Returns how many of the four levels a level includes: loggers have others too, the least important ones include all, `silent` none. */
const rankOf = (level: string | undefined): number => {
  const index = LOG_LEVELS.indexOf(level as LogLevel)
  if (index >= 0) return index
  return level === 'silent' ? -1 : LOG_LEVELS.length - 1
}

/**
 * The level of all parts, and of single ones, which may be set for a time. The logger beneath writes what the most talkative part needs;
 * without parts of their own its level is that of all.
 */
export class LogLevels {
  readonly #logger: Logger
  readonly #clock: Pick<Clock, 'after'>
  readonly #parts = new Map<string, string>()
  readonly #passing = new Map<string | undefined, Passing>()
  /** The level of all, while the logger beneath has that of a part. */
  #all: string | undefined

  constructor(logger: Logger, clock: Pick<Clock, 'after'>) {
    this.#logger = logger
    this.#clock = clock
  }

  /** The level of parts without one of their own; undefined where the program gave a logger whose level cannot be changed. */
  get level(): string | undefined {
    return this.#parts.size === 0 ? this.#logger.level : this.#all
  }

  set level(level: string | undefined) {
    this.#all = level
    this.#apply()
  }

  /** The parts that have a level of their own. */
  get parts(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#parts)
  }

  /** Whether a line may be written, whatever its part. */
  mayWrite(level: LogLevel): boolean {
    return LOG_LEVELS.indexOf(level) <= rankOf(this.#logger.level)
  }

  /** Whether a line of a part is written; one without a part has the level of all. Call it for lines that may be written. */
  writes(level: LogLevel, part: string | undefined): boolean {
    if (this.#parts.size === 0) return true
    const own = part === undefined ? undefined : this.#parts.get(part)
    return LOG_LEVELS.indexOf(level) <= rankOf(own ?? this.#all)
  }

  /** Sets the level of all, or of a part, for `seconds`, or for good without. A part that gets the level of all follows it again. */
  set(level: LogLevel, seconds?: number, part?: string): void {
    const earlier = this.#passing.get(part)
    earlier?.cancel()
    this.#passing.delete(part)
    const lasting = earlier === undefined ? this.#of(part) : earlier.lasting
    this.#change(part, level)
    if (seconds === undefined) return
    const cancel = this.#clock.after(seconds * 1000, 'end of a level of the log', () => {
      this.#passing.delete(part)
      this.#change(part, lasting)
    })
    this.#passing.set(part, { cancel, lasting })
  }

  close(): void {
    for (const { cancel } of this.#passing.values()) cancel()
  }

  #of(part: string | undefined): string | undefined {
    return part === undefined ? this.level : this.#parts.get(part)
  }

  #change(part: string | undefined, level: string | undefined): void {
    const all = this.level
    if (part === undefined) this.#all = level
    else {
      this.#all = all
      if (level === undefined || level === all) this.#parts.delete(part)
      else this.#parts.set(part, level)
    }
    this.#apply()
  }

  #apply(): void {
    const levels = [this.#all, ...this.#parts.values()]
    this.#logger.level = levels.reduce((most, level) => (rankOf(level) > rankOf(most) ? level : most))
  }
}
