/** One log line at a time: facts first, then a sentence. Fits pino unchanged. Never pass a password, token or node data. */
export interface Logger {
  error(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  info(facts: object, sentence: string): void
  debug(facts: object, sentence: string): void
}

/** Says nothing. */
export const silentLogger: Logger = { error() {}, warn() {}, info() {}, debug() {} }
