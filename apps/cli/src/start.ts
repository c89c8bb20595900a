import { readFileSync } from 'node:fs'
import { lightRandom } from '@zabra/runtime/node/dial'
import { exitAtOnce, NodeDisk, nodeCompression, nodeSystem } from '@zabra/runtime/node/files'
import { ExitCode, Failure, Interrupted } from './exit-codes.ts'
import type { Io } from './io.ts'
import { report, run } from './run.ts'

const PROGRAM = 'zabra'

/** Runs the command line of this process, and ends the process, also while a call for a file does not return. */
export async function start(): Promise<void> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // The first signal closes the session; a second one exits without waiting for that.
      if (stop.signal.aborted) exitAtOnce(PROGRAM, new Interrupted(signal).exitCode)
      stop.abort(new Interrupted(signal))
    })
  }
  // Prints the stack, as Node does, whose exit would wait for calls for files.
  for (const event of ['uncaughtException', 'unhandledRejection'] as const)
    process.on(event, (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
      exitAtOnce(PROGRAM, ExitCode.unexpected)
    })
  // EPIPE: the reader of the output has closed it, as with `zabra ls -R / | head`. Stop, unless another reason came first.
  const failed = (error: NodeJS.ErrnoException): void =>
    stop.abort(error.code === 'EPIPE' ? new Interrupted('SIGPIPE') : unwritable(error))
  process.stdout.on('error', failed)
  process.stderr.on('error', failed)

  const argv = process.argv.slice(2)
  const io: Io = {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    environment: process.env,
    version,
    signal: stop.signal,
    platform: { disk: new NodeDisk(), compression: nodeCompression, system: nodeSystem, random: lightRandom },
  }
  const exitCode = await run(argv, io)
  // What a command says by its exit code does not count when its output could not be written.
  const end = (): void => {
    const reason: unknown = stop.signal.reason
    const isLost = reason instanceof Failure || (reason instanceof Interrupted && reason.signal === 'SIGPIPE')
    exitAtOnce(PROGRAM, !isLost || exitCode === reason.exitCode ? exitCode : report(argv, io, reason))
  }
  // Exit even if standard input is still open, but only after the output is flushed; a write error is emitted a tick later.
  const { stdout } = process
  if (stdout.writableLength > 0 && !stdout.destroyed) stdout.write('', () => setImmediate(end))
  else setImmediate(end)
}

const unwritable = ({ code }: NodeJS.ErrnoException): Failure =>
  new Failure(
    `Cannot write to standard output (${code}). Make room, or print elsewhere.`,
    ExitCode.unwritable,
  )
