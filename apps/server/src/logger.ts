import type { Writable } from 'node:stream'
import { pino, stdTimeFunctions, type Logger } from 'pino'
import type { ServerSettings } from '@zabra/server/settings'
import { apacheLine } from './apache-format.ts'
import type { LogLevel } from './command.ts'
import { KeptLines } from './last-lines.ts'
import { LogOutput } from './log-output.ts'

/** A logger that counts the lines it could not write, and keeps the last ones. */
export type OutputLogger = Logger & { readonly lost: number; readonly lastLines: KeptLines }

export type LogFormat = NonNullable<ServerSettings['logFormat']>

/**
 * Creates a logger. A reader that stops does not stop the server: up to 1 MiB of lines waits for it, and later ones are lost, counted, and
 * told in a line. While it reads, each line is written at once, so that the last one before an exit is not lost.
 */
export async function createLogger(
  level: LogLevel,
  format: LogFormat,
  { colorize = false, stream = process.stdout as Writable } = {},
): Promise<OutputLogger> {
  const output = new LogOutput(stream, (lost) =>
    logger.warn(
      { id: 'program.lines-lost', part: 'program', lost },
      'Lines before this one are lost: the reader of the log was too slow',
    ),
  )
  // As JSON, whatever the format: without the colours of a terminal.
  const lastLines = new KeptLines()
  const options = { level, base: null, redact: ['*.password', 'password', 'superDigest', '*.superDigest'] }
  const formatLine = await formatterOf(format, colorize)
  const destination = {
    write(line: string): void {
      lastLines.add(line)
      output.write(formatLine === undefined ? line : formatLine(line))
    },
  }
  const logger: Logger =
    formatLine === undefined
      ? pino(
          {
            ...options,
            timestamp: stdTimeFunctions.isoTime,
            formatters: { level: (label: string) => ({ level: label }) },
          },
          destination,
        )
      : pino(options, destination)
  return Object.defineProperties(logger, {
    lost: { get: () => output.lost },
    lastLines: { value: lastLines },
  }) as OutputLogger
}

/** Resolves to a function that formats a line of JSON; undefined for JSON. */
async function formatterOf(
  format: LogFormat,
  colorize: boolean,
): Promise<((line: string) => string) | undefined> {
  if (format === 'json') return undefined
  if (format === 'apache') return apacheLine
  // Loaded where it is needed only: it takes a tenth of a start with little data.
  const { default: pretty } = await import('pino-pretty')
  return pretty.prettyFactory({
    colorize,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'id,part,member,epoch,role',
  })
}
