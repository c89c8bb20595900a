import type { Cancel, Clock, Logger, LogLevel } from '@zabra/runtime'
import { LOG_LEVELS } from '../counted-logger.ts'

export const isLogLevel = (text: unknown): text is LogLevel => LOG_LEVELS.includes(text as LogLevel)

/** Changes the level of the log while the server runs, for a time or for good. */
export class LogLevelControl {
  readonly #logger: Logger
  readonly #clock: Clock
  #cancel: Cancel = () => {}
  /** The level that comes back when the time of another one is over. */
  #lasting: string | undefined

  constructor({ logger, clock }: { readonly logger: Logger; readonly clock: Clock }) {
    this.#logger = logger
    this.#clock = clock
  }

  /** The level now; undefined where the program gave a logger whose level cannot be changed. */
  get level(): string | undefined {
    return this.#logger.level
  }

  /** Sets the level: for `seconds`, or for good without. */
  set(level: LogLevel, seconds: number | undefined): void {
    this.#cancel()
    const lasting = this.#lasting ?? this.#logger.level
    this.#logger.level = level
    this.#lasting = seconds === undefined ? undefined : lasting
    this.#logger.info(
      { level, ...(seconds === undefined ? {} : { seconds }) },
      'The level of the log was changed',
    )
    if (seconds === undefined) return
    this.#cancel = this.#clock.after(seconds * 1000, 'end of a level of the log', () => {
      this.#logger.level = this.#lasting
      this.#lasting = undefined
    })
  }

  close(): void {
    this.#cancel()
  }
}
