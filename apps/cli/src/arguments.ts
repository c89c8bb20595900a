import { validatePath } from '@zabra/protocol'
import { InvalidArgumentError, Option } from 'commander'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { UsageError } from './exit-codes.ts'
import { note, readInput, type Io } from './io.ts'

/** Returns a parser for an option that is a whole number from `min` to `max`. */
export function integer(min: number, max = 2 ** 31 - 1): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^[+-]?\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`)
    return value
  }
}

const units: Readonly<Record<string, number>> = {
  '': 1,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Returns a parser for an option that is a time, such as `500ms`, `30s`, `5m`, `1h` or `2d`; a number alone is milliseconds. */
export function duration(min: number, max = 2 ** 31 - 1): (text: string) => number {
  return (text) => {
    const [, number = '', unit = ''] = /^(\d+)(ms|s|m|h|d|)$/.exec(text) ?? []
    const value = Number(number) * units[unit]!
    if (number === '' || value < min || value > max)
      throw new InvalidArgumentError(
        `Expected a time from ${min} to ${max} ms, such as 500ms, 30s, 5m, 1h or 2d; a number alone is milliseconds.`,
      )
    return value
  }
}

/** Returns an option that is a time with a default, which the help shows as it is written here. */
export const timeOption = (
  flags: string,
  description: string,
  parse: (text: string) => number,
  byDefault: string,
): Option => new Option(flags, description).argParser(parse).default(parse(byDefault), byDefault)

/** Bytes of data that fit into one request at the default `jute.maxbuffer`. */
const DEFAULT_REQUEST_LIMIT = 1024 * 1024 - 1024

/** Returns the data of a node: an argument, a file, or standard input for the file `-`; undefined when neither is given. */
export async function readDataArg(
  io: Io,
  argument: string | undefined,
  file: string | undefined,
): Promise<Uint8Array | undefined> {
  if (file !== undefined && argument !== undefined)
    throw new UsageError('Expected data or --file, got both. Give one of them.')
  const data = await readArg(io, argument, file)
  if (data !== undefined && data.length > DEFAULT_REQUEST_LIMIT)
    note(
      io,
      `${data.length} bytes are more than most servers accept; a server whose jute.maxbuffer is not raised closes the connection`,
    )
  return data
}

async function readArg(
  io: Io,
  argument: string | undefined,
  file: string | undefined,
): Promise<Uint8Array | undefined> {
  if (file !== undefined) return readFileOrInput(io, file)
  return argument === undefined ? undefined : new TextEncoder().encode(argument)
}

/** Reads a file named on the command line, or standard input for `-`. Rejects with a `UsageError` when it cannot be read. */
export const readFileOrInput = (io: Io, file: string): Promise<Uint8Array> =>
  file === '-' ? readInput(io) : readFileArg(file)

/** Reads the text of a file named on the command line. Throws a `UsageError` when it cannot be read. */
export function readTextArg(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** Reads a file named on the command line. Rejects with a `UsageError` when it cannot be read. */
export async function readFileArg(file: string): Promise<Uint8Array> {
  try {
    return new Uint8Array(await readFile(file))
  } catch (error) {
    throw unreadable(file, error)
  }
}

const unreadable = (file: string, error: unknown): UsageError =>
  new UsageError(
    `Cannot read ${file} (${(error as NodeJS.ErrnoException).code}). Check the path and its permissions.`,
  )

/** Parses the path of a node. */
export function nodePath(text: string): string {
  const problem = validatePath(text)
  if (problem === undefined) return text
  throw new InvalidArgumentError(`${problem}. Paths look like /app/config.`)
}

/** Parses the id of a session, as commands print it. */
export function sessionId(text: string): string {
  if (/^0x[\da-f]{1,16}$/i.test(text)) return text.toLowerCase()
  throw new InvalidArgumentError('Expected a session id in hexadecimal, such as 0x1000018f5ff0000.')
}
