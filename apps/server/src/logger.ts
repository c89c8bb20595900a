import { pino, stdTimeFunctions, type Logger } from 'pino'
import { PinoPretty as pretty } from 'pino-pretty'
import type { LogLevel } from './command.ts'

/**
 * Lines for people on a terminal, JSON for machines anywhere else. Written at once, so that the last line before an
 * exit is not lost.
 */
export function createLogger(level: LogLevel, terminal: boolean): Logger {
  const options = { level, base: null, redact: ['*.password', 'password', 'superDigest', '*.superDigest'] }
  const machine = {
    ...options,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  if (!terminal) return pino(machine, pino.destination({ fd: 1, sync: true }))
  return pino(
    options,
    pretty({ colorize: true, translateTime: 'SYS:HH:MM:ss.l', sync: true, destination: 1 }),
  )
}
