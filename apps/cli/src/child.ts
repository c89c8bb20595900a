import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { constants } from 'node:os'
import type { Client } from '@zabra/client'
import { Failure, Interrupted, UsageError } from './exit-codes.ts'
import type { Io } from './io.ts'

export interface ChildOptions {
  /** Variables in addition to those of the program. */
  readonly environment?: Readonly<Record<string, string>>
  /** Bytes for its standard input, which otherwise is that of the program. */
  readonly input?: Uint8Array
  /** Ends the command when it aborts: SIGTERM, then SIGKILL after `graceMs`. */
  readonly stop?: AbortSignal
  readonly graceMs?: number
  /** Runs the first word as a line of the shell of the system. */
  readonly shell?: boolean
}

/** Returns the milliseconds between the loss of a lock and the moment when another client can hold it. */
export const graceMsOf = ({ session }: Client): number => Math.floor(session.timeoutMs / 3)

/**
 * Runs a command with the streams of the program and resolves to its exit code, 128 and the number of the signal that ended it as
 * shells do. Forwards the signals that the program receives. Rejects with a `UsageError` when the command cannot be started.
 */
export async function runChild(
  io: Io,
  command: readonly string[],
  options: ChildOptions = {},
): Promise<number> {
  const [file = '', ...args] = command
  const { environment = {}, input, stop, graceMs = 5000, shell = false } = options
  // A command inherits a real stream, so that it has a terminal when the program has one.
  const stdin = input !== undefined ? 'pipe' : io.stdin === process.stdin ? 'inherit' : 'ignore'
  const [stdout, stderr] = [streamOf(io.stdout, process.stdout), streamOf(io.stderr, process.stderr)]
  const stdio: StdioOptions = [stdin, stdout, stderr]
  // A process group of its own, so that signals reach what the command has started. With a terminal it stays in the group of
  // the program, or it could not read from the terminal.
  const detached = process.platform !== 'win32' && !(stdin === 'inherit' && process.stdin.isTTY === true)
  const child = spawn(file, args, { stdio, shell, detached, env: { ...io.environment, ...environment } })
  const send = (signal: NodeJS.Signals): void => sendSignal(child, signal, detached)
  if (input !== undefined) {
    // A command need not read its input.
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  }
  child.stdout?.pipe(io.stdout, { end: false })
  child.stderr?.pipe(io.stderr, { end: false })
  let timer: NodeJS.Timeout | undefined
  const forward = (): void => forwardSignal(send, io)
  const end = (): void => {
    send('SIGTERM')
    timer ??= setTimeout(() => send('SIGKILL'), graceMs)
  }
  // A second signal exits the program at once; the command must not outlive it without the lock.
  const kill = (): void => send('SIGKILL')
  process.once('exit', kill)
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        reject(
          new UsageError(`Cannot run ${file} (${error.code}). Check its name, and that it is installed.`, {
            cause: error,
          }),
        )
      })
      child.once('close', (code, signal) =>
        resolve(code ?? 128 + constants.signals[signal as keyof typeof constants.signals]),
      )
      io.signal.addEventListener('abort', forward)
      stop?.addEventListener('abort', end)
      if (io.signal.aborted) forward()
      if (stop?.aborted) end()
    })
  } finally {
    clearTimeout(timer)
    // What the command has started must not outlive it without the lock.
    if (stop?.aborted === true) send('SIGKILL')
    process.off('exit', kill)
    io.signal.removeEventListener('abort', forward)
    stop?.removeEventListener('abort', end)
  }
}

/** Throws a silent `Failure` with the exit code of a command unless that is 0. */
export function exitAs(code: number): void {
  if (code !== 0) throw new Failure('', code)
}

const streamOf = (stream: unknown, real: unknown): 'inherit' | 'pipe' =>
  stream === real ? 'inherit' : 'pipe'

/** Ctrl-C on a terminal reaches the command without the program. */
function forwardSignal(send: (signal: NodeJS.Signals) => void, io: Io): void {
  const signal = io.signal.reason instanceof Interrupted ? io.signal.reason.signal : 'SIGTERM'
  if (signal === 'SIGINT' && io.stdin === process.stdin && io.stdin.isTTY === true) return
  send(signal === 'SIGPIPE' ? 'SIGTERM' : signal)
}

/** Sends a signal to a command, or to its process group. */
function sendSignal(child: ChildProcess, signal: NodeJS.Signals, isGroup: boolean): void {
  if (!isGroup || child.pid === undefined) return void child.kill(signal)
  try {
    process.kill(-child.pid, signal)
  } catch (error) {
    // The group has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
