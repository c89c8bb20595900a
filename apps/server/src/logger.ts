import { pino, stdTimeFunctions, type Logger } from 'pino'
import type { PinoPretty } from 'pino-pretty'
import type { LogLevel } from './command.ts'

/**
 * Creates a logger that writes readable lines with `pretty` and JSON lines without. Writes synchronously, so that the last line
 * before an exit is not lost. The caller imports `pretty` when needed, since loading it takes a tenth of a start with little data.
 */
export function createLogger(
  level: LogLevel,
  pretty: typeof PinoPretty | undefined,
  { colorize = false } = {},
): Logger {
  const options = { level, base: null, redact: ['*.password', 'password', 'superDigest', '*.superDigest'] }
  const json = {
    ...options,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  if (pretty === undefined) return pino(json, pino.destination({ fd: 1, sync: true }))
  return pino(options, pretty({ colorize, translateTime: 'SYS:HH:MM:ss.l', sync: true, destination: 1 }))
}
