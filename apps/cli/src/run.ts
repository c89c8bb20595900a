import { setMaxListeners } from 'node:events'
import { CommanderError } from 'commander'
import { commandGroups } from './commands/index.ts'
import { ExitCode, errorDetails, toExit, withPathAdvice } from './exit-codes.ts'
import { adviseForeignName } from './foreign-names.ts'
import { print, type Io } from './io.ts'
import { safe, safeJson } from './text/bytes.ts'
import { painter } from './text/style.ts'
import { asksForJson, asksForVersion, createProgram, overview } from './program.ts'

/** Runs one command line and resolves to the exit code. Never rejects and never exits the process. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  if (asksForVersion(argv)) {
    print(io, io.version)
    return ExitCode.ok
  }
  // Commands that ask many servers at once listen as often; Node would warn of a leak.
  setMaxListeners(0, io.signal)
  try {
    const { args, environment } = argv.includes('shell')
      ? (await import('./shell/zk-cli-args.ts')).translateZkCliArgs(argv)
      : { args: withHelpOption(argv), environment: {} }
    const program = await createProgram({ ...io, environment: { ...io.environment, ...environment } }, args)
    if (args.length === 0) {
      io.stderr.write(overview(program))
      return ExitCode.usage
    }
    await program.parseAsync(args, { from: 'user' })
    return ExitCode.ok
  } catch (error) {
    // commander has printed the help or the usage error already.
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return ExitCode.ok
      if (asksForJson(argv)) {
        const message = adviseForeignName(error.message.replace(/^error: /, ''), argv)
        writeErrorJson(io, message, ExitCode.usage, error)
      }
      return ExitCode.usage
    }
    return report(argv, io, io.signal.aborted ? io.signal.reason : withPathAdvice(error))
  }
}

/** Prints why a command line has failed. Returns the exit code. */
export function report(argv: readonly string[], io: Io, reason: unknown): number {
  const { line, exitCode } = toExit(reason)
  if (line === '') return exitCode
  if (asksForJson(argv)) writeErrorJson(io, line, exitCode, reason)
  // Parts of it may be what a server has said.
  else io.stderr.write(`${painter(io, io.stderr)('bad', 'zabra:')} ${safe(line)}\n`)
  return exitCode
}

/** Returns `get --help` for `help get`, and `gett` for `help gett`, which is an unknown command. */
function withHelpOption(argv: readonly string[]): string[] {
  const [first, name, ...rest] = argv
  if (first !== 'help' || name === undefined || name.startsWith('-')) return [...argv]
  const isKnown = commandGroups.some(([, entries]) => entries.some(({ names }) => names.includes(name)))
  return isKnown ? [name, ...rest, '--help'] : [name, ...rest]
}

/** Writes an error as one line of JSON; `code` is that of the client, such as `NO_NODE`, or null. */
function writeErrorJson(io: Io, message: string, exitCode: number, error: unknown): void {
  const { code } = (error ?? {}) as { code?: unknown }
  const name = typeof code === 'string' && /^[A-Z_\d]+$/.test(code) ? code : null
  const { path } = errorDetails(error)
  const fields = { message, code: name, exitCode, ...(path === undefined ? {} : { path }) }
  io.stderr.write(`${safeJson(JSON.stringify({ error: fields }))}\n`)
}
