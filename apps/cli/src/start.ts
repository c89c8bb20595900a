import { readFileSync } from 'node:fs'
import { lightRandom } from '@zabra/runtime/node/dial'
import { NodeDisk, nodeCompression, nodeSystem } from '@zabra/runtime/node/files'
import { ExitCode, Failure, Interrupted } from './exit-codes.ts'
import { run } from './run.ts'

/** Runs the command line of this process, and ends the process. */
export async function start(): Promise<void> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // The first signal closes the session; a second one exits without waiting for that.
      if (stop.signal.aborted) process.exit(new Interrupted(signal).exitCode)
      stop.abort(new Interrupted(signal))
    })
  }
  // EPIPE: the reader of the output has closed it, as with `zabra ls -R / | head`. Stop.
  let outputFailure: Failure | undefined
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') outputFailure ??= unwritable(error)
    stop.abort(outputFailure ?? new Interrupted('SIGPIPE'))
  })
  process.stderr.on('error', () => stop.abort(new Interrupted('SIGPIPE')))

  const exitCode = await run(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    environment: process.env,
    version,
    signal: stop.signal,
    platform: { disk: new NodeDisk(), compression: nodeCompression, system: nodeSystem, random: lightRandom },
  })
  // A command that succeeded fails after all when its output could not be written.
  const end = (): void => {
    if (outputFailure !== undefined && exitCode === ExitCode.ok)
      process.stderr.write(`zabra: ${outputFailure.message}\n`)
    process.exit(outputFailure === undefined ? exitCode : exitCode || outputFailure.exitCode)
  }
  // Exit even if standard input is still open, but only after the output is flushed; a write error is emitted a tick later.
  process.stdout.write('', () => setImmediate(end))
  if (process.stdout.destroyed) setImmediate(end)
}

const unwritable = ({ code }: NodeJS.ErrnoException): Failure =>
  new Failure(
    `Cannot write to standard output (${code}). Make room, or print elsewhere.`,
    ExitCode.unexpected,
  )
