#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { nodePlatform } from '@zabra/runtime/node'
import { ExitCode, Interrupted } from './exit-codes.ts'
import { run } from './run.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // The first one ends the session cleanly; whoever asks again does not want to wait for that.
    if (stop.signal.aborted) process.exit(new Interrupted(signal).exitCode)
    stop.abort(new Interrupted(signal))
  })
}
// The reader of the output is gone, as with `zabra ls -R / | head`: there is nothing left to do.
let lost: NodeJS.ErrnoException | undefined
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') lost ??= error
  stop.abort(error.code === 'EPIPE' ? new Interrupted('SIGPIPE') : error)
})
process.stderr.on('error', () => stop.abort(new Interrupted('SIGPIPE')))

const exitCode = await run(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  version,
  signal: stop.signal,
  platform: nodePlatform(),
})
// A command may have ended well whose output did not get where it should.
const end = (): void => {
  if (lost !== undefined && exitCode === ExitCode.ok)
    process.stderr.write(
      `zabra: Cannot write to standard output (${lost.code}). Make room, or print elsewhere.\n`,
    )
  process.exit(lost === undefined ? exitCode : exitCode || ExitCode.unexpected)
}
// Standard input may be open still; what was printed goes out first, and what is wrong with it is told a turn later.
process.stdout.write('', () => setImmediate(end))
if (process.stdout.destroyed) setImmediate(end)
