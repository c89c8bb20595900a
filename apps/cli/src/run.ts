import { CommanderError } from 'commander'
import { ExitCode, toExit } from './exit-codes.ts'
import { print, type Io } from './io.ts'
import { asksForVersion, createProgram } from './program.ts'
import { translateZkCliArgs } from './shell/zk-cli-args.ts'

/** Runs one command line and resolves to the exit code. Never rejects and never exits the process. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  if (asksForVersion(argv)) {
    print(io, io.version)
    return ExitCode.ok
  }
  try {
    const { args, environment } = translateZkCliArgs(argv)
    await createProgram({ ...io, environment: { ...io.environment, ...environment } }).parseAsync(args, {
      from: 'user',
    })
    return ExitCode.ok
  } catch (error) {
    // commander has printed the help or the usage error already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage
    const { line, exitCode } = toExit(io.signal.aborted ? io.signal.reason : error)
    if (line !== '') io.stderr.write(`zabra: ${line}\n`)
    return exitCode
  }
}
