import type { Writable } from 'node:stream'
import { pino, stdTimeFunctions, type Logger } from 'pino'
import type { prettyFactory } from 'pino-pretty'
import type { LogLevel } from './command.ts'
import { LogOutput } from './log-output.ts'

/** A logger that counts the lines it could not write. */
export type OutputLogger = Logger & { readonly lost: number }

/**
 * Creates a logger that writes readable lines with `pretty` and JSON lines without. A reader that stops does not stop the server: up
 * to 1 MiB of lines waits for it, and later ones are lost, counted, and told in a line. While it reads, each line is written at once, so
 * that the last one before an exit is not lost. The caller imports `pretty` when needed, since loading it takes a tenth of a start with
 * little data.
 */
export function createLogger(
  level: LogLevel,
  pretty: typeof prettyFactory | undefined,
  { colorize = false, stream = process.stdout as Writable } = {},
): OutputLogger {
  const options = { level, base: null, redact: ['*.password', 'password', 'superDigest', '*.superDigest'] }
  const json = {
    ...options,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const output = new LogOutput(stream, (lost) =>
    logger.warn({ lost }, 'Lines before this one are lost: the reader of the log was too slow'),
  )
  const format = pretty?.({ colorize, translateTime: 'SYS:HH:MM:ss.l' })
  const logger: Logger =
    format === undefined
      ? pino(json, output)
      : pino(options, { write: (line: string) => output.write(format(line)) })
  return Object.defineProperty(logger, 'lost', { get: () => output.lost }) as OutputLogger
}
