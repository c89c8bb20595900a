/** Writes log entries: structured context, then a message. Compatible with pino. Never pass a password, token or node data. */
export interface Logger {
  error(context: object, message: string): void
  warn(context: object, message: string): void
  info(context: object, message: string): void
  debug(context: object, message: string): void
}

/** Discards all entries. */
export const silentLogger: Logger = { error() {}, warn() {}, info() {}, debug() {} }
