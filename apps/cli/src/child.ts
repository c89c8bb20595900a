import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { constants } from 'node:os'
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
  const child = spawn(file, args, { stdio, shell, env: { ...io.environment, ...environment } })
  if (input !== undefined) {
    // A command need not read its input.
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
  }
  child.stdout?.pipe(io.stdout, { end: false })
  child.stderr?.pipe(io.stderr, { end: false })
  let timer: NodeJS.Timeout | undefined
  const forward = (): void => forwardSignal(child, io)
  const end = (): void => {
    child.kill('SIGTERM')
    timer ??= setTimeout(() => child.kill('SIGKILL'), graceMs)
  }
  // A second signal exits the program at once; the command must not outlive it without the lock.
  const kill = (): void => void child.kill('SIGKILL')
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
function forwardSignal(child: ChildProcess, io: Io): void {
  const signal = io.signal.reason instanceof Interrupted ? io.signal.reason.signal : 'SIGTERM'
  if (signal === 'SIGINT' && io.stdin === process.stdin && io.stdin.isTTY === true) return
  child.kill(signal === 'SIGPIPE' ? 'SIGTERM' : signal)
}
