import type { Command } from 'commander'
import { Failure, ExitCode } from './exit-codes.ts'
import { note, type Io } from './io.ts'
import type { AdminOptions } from './session/admin-client.ts'
import { openSession, type SessionOptions } from './session/open.ts'
import type { Client } from '@zabra/client'

/** The options of the program, which every command accepts. */
export interface GlobalOptions extends SessionOptions, Pick<AdminOptions, 'tls' | 'token'> {
  readonly json: boolean
}

/** What the program gives to its commands. */
export interface Context {
  readonly io: Io
  readonly options: () => GlobalOptions
  /**
   * Opens a session, runs `work` and closes the session afterwards, also on failure and on Ctrl-C. With `handlesAbort`, Ctrl-C
   * only aborts the signal and `work` is awaited; otherwise Ctrl-C rejects at once.
   */
  readonly session: <T>(
    work: (zk: Client) => Promise<T>,
    options?: { readonly handlesAbort?: boolean },
  ) => Promise<T>
}

/** Adds a command to the program. */
export type CommandModule = (program: Command, context: Context) => void

/** Returns a context. `options` is called when a command runs, after the command line has been parsed. */
export function createContext(io: Io, options: () => GlobalOptions): Context {
  return {
    io,
    options,
    async session(work, { handlesAbort = false } = {}) {
      const zk = await openSession(options(), io.signal, (line) => note(io, line))
      try {
        return await (handlesAbort ? work(zk) : raceAbort(work(zk), io.signal))
      } finally {
        await zk.close()
      }
    },
  }
}

/** Settles as `work` does, or rejects with the signal's reason when the signal aborts first. */
export function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Collects nodes that this client may not read, and prints a note about each. */
export class UnreadableNodes {
  readonly #io: Io
  readonly #paths = new Set<string>()
  constructor(io: Io) {
    this.#io = io
  }

  readonly add = (path: string): void => {
    if (this.#paths.has(path)) return
    this.#paths.add(path)
    note(this.#io, `no permission to read ${path}; it and the nodes below it are left out`)
  }

  /** Throws a `Failure` when a node was left out, so that a script does not take the output for complete. */
  failIfAny(): void {
    const { size } = this.#paths
    if (size === 0) return
    const nodes = size === 1 ? '1 node' : `${size} nodes`
    throw new Failure(
      `${nodes} could not be read. Give an identity with read permission with --auth scheme:credential.`,
      ExitCode.noPermission,
    )
  }
}
