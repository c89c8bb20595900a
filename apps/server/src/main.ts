#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { endProcess, exitAtOnce } from '@zabra/runtime/node/files'
import { checkFiles, createServer } from '@zabra/server'
import { raiseInliningLimits } from './compiler.ts'
import { folderProblems } from './folder-problems.ts'
import { limitYoungGeneration } from './young-generation.ts'
import { ExitCode, toExit } from './failures.ts'
import { createLogger } from './logger.ts'
import { run } from './run.ts'

const PROGRAM = 'zabra-server'
/** Time for the reader of the log to read what waits when the server has stopped, in milliseconds. */
const LAST_LINES_MS = 1000
/** Time for a start to end on a signal, in milliseconds: one that waits for a disk that hangs does not see it. */
const START_END_MS = 5000

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}
const terminal = process.stdout.isTTY

// After an uncaught error the state of the process is unknown: print the error and exit.
for (const event of ['uncaughtException', 'unhandledRejection'] as const)
  process.on(event, (error: unknown) => {
    const { line, exitCode } = toExit(error)
    process.stderr.write(`zabra-server stopped: ${line}\n`)
    if (process.env['LOG_LEVEL'] === 'debug' && error instanceof Error)
      process.stderr.write(`${error.stack}\n`)
    exitAtOnce(PROGRAM, exitCode)
  })

let serves = false
let outputError: NodeJS.ErrnoException | undefined
process.stdout.on('error', (error: NodeJS.ErrnoException) => (outputError ??= error))
process.stderr.on('error', () => {})

/** Rejects with the reason of a signal, some seconds after it. */
const endOfStart = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) =>
    signal.addEventListener('abort', () => void setTimeout(START_END_MS).then(() => reject(signal.reason))),
  )

let exitCode: number = await run({
  argv: process.argv.slice(2),
  environment: process.env,
  version,
  isTerminal: terminal,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  logger: (level, format = terminal ? 'text' : 'json') => createLogger(level, format, { colorize: terminal }),
  start(settings, logger, signal) {
    serves = true
    raiseInliningLimits()
    limitYoungGeneration()
    return Promise.race([createServer(settings, { logger, signal }), endOfStart(signal)])
  },
  checkFiles: async (settings) => [...folderProblems(settings), ...(await checkFiles(settings))],
  now: () => performance.now(),
  onStop(stop) {
    // With a terminal, SIGHUP means that it was closed: stop. Without one, SIGHUP reloads certificates.
    const signals = ['SIGINT', 'SIGTERM', ...(terminal ? (['SIGHUP'] as const) : [])] as const
    for (const signal of signals) process.on(signal, stop)
    return () => {
      for (const signal of signals) process.off(signal, stop)
    }
  },
  onReload(reload) {
    if (terminal) return () => {}
    process.on('SIGHUP', reload)
    return () => void process.off('SIGHUP', reload)
  },
  onToggleDebug(toggle) {
    process.on('SIGUSR2', toggle)
    return () => void process.off('SIGUSR2', toggle)
  },
  exit: (code) => void endProcess(PROGRAM, code),
})
// A signal that comes from here on, such as the second one of a key press, does not change the exit code.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => {})
// A reader that is behind gets the last lines. One that has stopped does not keep the server alive, and one that ends does not change the
// exit code.
const { stdout } = process
if (stdout.writableLength > 0)
  await Promise.race([new Promise((done) => stdout.write('', done)), setTimeout(LAST_LINES_MS)])
// A write error is emitted a tick later.
await setImmediate()
// A reader that has ended changes no exit code, of `zabra-server --help | head -1` for example, nor does a log that cannot be written.
if (!serves && outputError !== undefined && outputError.code !== 'EPIPE') {
  process.stderr.write(
    `zabra-server: Cannot write to standard output (${outputError.code}). Make room, or print elsewhere.\n`,
  )
  exitCode ||= ExitCode.unexpected
}
// Open handles, such as the socket of a client that does not close it, must not keep a stopped server alive.
await endProcess(PROGRAM, exitCode)
