/** The levels of a log; each includes those before it. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

/** Writes log entries: structured context, then a message. Compatible with pino. Never pass a password, token or node data. */
export interface Logger {
  /** The least important level that is written; set it to change it. Absent where it cannot be changed. */
  level?: string | undefined
  /** Entries that were lost since the start, because their reader was too slow. Absent where none is. */
  readonly lost?: number | undefined
  /** The last lines that were written, the oldest first, without their ends. Absent where none are kept. */
  readonly lastLines?: LastLines | undefined
  error(context: object, message: string): void
  warn(context: object, message: string): void
  info(context: object, message: string): void
  debug(context: object, message: string): void
}

/** Lines that are kept in memory. */
export interface LastLines extends Iterable<string> {
  /** The memory that they take, at most. */
  readonly bytes: number
}

/** Discards all entries. */
export const silentLogger: Logger = { error() {}, warn() {}, info() {}, debug() {} }
