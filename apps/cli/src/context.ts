import { InvalidArgumentError, type Command } from 'commander'
import { readFile } from 'node:fs/promises'
import { Failure, ExitCode, UsageError } from './exit-codes.ts'
import { note, readInput, type Io } from './io.ts'
import { openSession, type SessionOptions } from './session/open.ts'
import type { ZooKeeper } from './session/zookeeper.ts'

/** The options that every command takes. */
export interface GlobalOptions extends SessionOptions {
  readonly json: boolean
}

/** What a command works with. */
export interface Context {
  readonly io: Io
  readonly options: () => GlobalOptions
  /**
   * Opens a session for `work` and ends it afterwards, whatever happens, Ctrl-C included. Work that `cleansUp` hears of
   * Ctrl-C by the signal alone and is waited for.
   */
  readonly session: <T>(
    work: (zk: ZooKeeper) => Promise<T>,
    options?: { readonly cleansUp?: boolean },
  ) => Promise<T>
}

/** How a command adds itself to the program. */
export type CommandModule = (program: Command, context: Context) => void

/** A context whose options are those of a program that has been parsed. */
export function createContext(io: Io, options: () => GlobalOptions): Context {
  return {
    io,
    options,
    async session(work, { cleansUp = false } = {}) {
      const zk = await openSession(options(), io.signal, (line) => note(io, line))
      try {
        return await (cleansUp ? work(zk) : raceAbort(work(zk), io.signal))
      } finally {
        await zk.close()
      }
    },
  }
}

/** Settles as `work` does, or rejects with the signal's reason when that comes first. */
export function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Collects nodes that may not be read, and says so at the end. */
export class UnreadableNodes {
  readonly #io: Io
  readonly #paths = new Set<string>()
  constructor(io: Io) {
    this.#io = io
  }

  readonly add = (path: string): void => {
    if (this.#paths.has(path)) return
    this.#paths.add(path)
    note(this.#io, `${path} may not be read; what is below it is left out`)
  }

  /** Throws when anything was left out, so that a script does not take the output for the whole. */
  failIfAny(): void {
    const { size } = this.#paths
    if (size === 0) return
    const nodes = size === 1 ? '1 node' : `${size} nodes`
    throw new Failure(
      `${nodes} could not be read. Give an identity that may with --auth scheme:credential.`,
      ExitCode.noPermission,
    )
  }
}

/** A parser for an option that is a whole number from `least` up. */
export function integer(least: number, most = 2 ** 31 - 1): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (!/^[+-]?\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
    return value
  }
}

/** What a server takes in one request unless it was told to take more. */
const DEFAULT_REQUEST_LIMIT = 1024 * 1024 - 1024

/** The data that a command line gives: an argument, a file, or standard input for the file `-`. Undefined for none. */
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
      `${data.length} bytes are more than most servers take; one that was not told to (jute.maxbuffer) cuts the connection`,
    )
  return data
}

async function readArg(
  io: Io,
  argument: string | undefined,
  file: string | undefined,
): Promise<Uint8Array | undefined> {
  if (file === '-') return readInput(io)
  if (file !== undefined) return readFileArg(file)
  return argument === undefined ? undefined : new TextEncoder().encode(argument)
}

/** A file that the user has named. */
export async function readFileArg(file: string): Promise<Uint8Array> {
  try {
    return new Uint8Array(await readFile(file))
  } catch (error) {
    throw new UsageError(
      `Cannot read ${file} (${(error as NodeJS.ErrnoException).code}). Check the path and its permissions.`,
    )
  }
}
