import type { Logger, LogLevel } from '@zabra/runtime'

/** The levels of a log, each with those before it. */
export const LOG_LEVELS: readonly LogLevel[] = ['error', 'warn', 'info', 'debug']

/** Passes entries on to a logger, and counts those that it writes. */
export class CountedLogger implements Logger {
  /** The entries that were written since the start. */
  readonly lines: Readonly<Record<LogLevel, number>>
  readonly #lines: Record<LogLevel, number> = { error: 0, warn: 0, info: 0, debug: 0 }
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
    this.lines = this.#lines
  }

  get level(): string | undefined {
    return this.#logger.level
  }

  set level(level: string | undefined) {
    this.#logger.level = level
  }

  get lost(): number | undefined {
    return this.#logger.lost
  }

  error(context: object, message: string): void {
    this.#count('error')
    this.#logger.error(context, message)
  }

  warn(context: object, message: string): void {
    this.#count('warn')
    this.#logger.warn(context, message)
  }

  info(context: object, message: string): void {
    this.#count('info')
    this.#logger.info(context, message)
  }

  debug(context: object, message: string): void {
    this.#count('debug')
    this.#logger.debug(context, message)
  }

  #count(level: LogLevel): void {
    const { level: least } = this.#logger
    // Loggers have levels beside these four: the least important ones include all, `silent` none.
    const isWritten =
      least === undefined ||
      (LOG_LEVELS.includes(least as LogLevel)
        ? LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(least as LogLevel)
        : least !== 'silent')
    if (isWritten) this.#lines[level]++
  }
}
