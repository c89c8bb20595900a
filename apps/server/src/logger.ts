import { pino, stdTimeFunctions, type Logger } from 'pino'
import type { PinoPretty } from 'pino-pretty'
import type { LogLevel } from './command.ts'

/**
 * Lines for people on a terminal, JSON for machines anywhere else. Written at once, so that the last line before an
 * exit is not lost. `pretty` is what formats for people; without it lines are for machines. It is not imported here, since
 * it takes a tenth of the time that a start with little data takes.
 */
export function createLogger(level: LogLevel, pretty: typeof PinoPretty | undefined): Logger {
  const options = { level, base: null, redact: ['*.password', 'password', 'superDigest', '*.superDigest'] }
  const machine = {
    ...options,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  if (pretty === undefined) return pino(machine, pino.destination({ fd: 1, sync: true }))
  return pino(
    options,
    pretty({ colorize: true, translateTime: 'SYS:HH:MM:ss.l', sync: true, destination: 1 }),
  )
}
