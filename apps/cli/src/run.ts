import { CommanderError } from 'commander'
import { ExitCode, judge } from './exit-codes.ts'
import type { Io } from './io.ts'
import { createProgram } from './program.ts'

/** Runs one command line and resolves to the exit code; it never rejects and nothing exits. */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  try {
    await createProgram(io).parseAsync([...argv], { from: 'user' })
    return ExitCode.ok
  } catch (error) {
    // Its text is printed already: help, a version, or a mistake with advice.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage
    const { line, exitCode } = judge(io.signal.aborted ? io.signal.reason : error)
    if (line !== '') io.stderr.write(`zabra: ${line}\n`)
    return exitCode
  }
}
