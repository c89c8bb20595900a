import { ExitCode } from '../../exit-codes.ts'
import type { ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'
import { splitWords } from '../split.ts'

/** Runs a line of the history again. */
export const redo: ShellCommand = {
  usage: 'redo cmdno',
  offline: true,
  minArgs: 1,
  async run(shell, { words: [number = ''] }) {
    const line = /^\d+$/.test(number) ? shell.history[Number(number)] : undefined
    if (line === undefined || Number(number) >= shell.history.length - 1)
      throw new ShellFailure('Command index out of range', ExitCode.usage)
    if (splitWords(line)?.[0] === 'redo') throw new ShellFailure('No redoing redos', ExitCode.usage)
    // The repeated line replaces the redo in the history.
    shell.history.pop()
    const exitCode = await shell.execute(line)
    if (exitCode !== ExitCode.ok) throw new RepeatedLineError(exitCode)
  },
}

/** Carries the exit code of the repeated line, which has printed its error. */
class RepeatedLineError extends ShellFailure {
  constructor(exitCode: number) {
    super('', exitCode)
  }
}
