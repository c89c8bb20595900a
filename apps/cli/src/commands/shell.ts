import { createInterface } from 'node:readline/promises'
import { raceAbort, type CommandModule, type Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { openSession } from '../session/open.ts'
import { shellCommands } from '../shell/commands/index.ts'
import { promptLines } from '../shell/prompt-lines.ts'
import { Shell } from '../shell/shell.ts'

interface Flags {
  readonly command?: readonly string[]
  readonly exitOnError?: boolean
  readonly readOnly?: boolean
}

/** `zabra shell`: runs the commands of ZooKeeper's shell, typed or from a pipe. */
export const shell: CommandModule = (program, context) => {
  program
    .command('shell')
    .description('run the commands of zkCli.sh, typed or from a pipe; help lists them')
    .option(
      '-c, --command <line>',
      'run this line and exit; may be repeated',
      (line: string, before: readonly string[] | undefined) => [...(before ?? []), line],
    )
    .argument('[words...]', 'one command to run, as with zkCli.sh')
    .option('-e, --exit-on-error', 'exit at the first line that fails')
    .option('-r, --read-only', 'accept a read-only server without a quorum')
    .addHelpText('after', ZKCLI)
    .action(async (words: string[], flags: Flags) => {
      if (words.length > 0 && flags.command !== undefined)
        throw new UsageError('Expected a command or --command, got both. Give one of them.')
      const exitCode = await runShell(context, words, flags)
      // Every failed line has printed its error.
      if (exitCode !== ExitCode.ok) throw new Failure('', exitCode)
    })
}

const ZKCLI = `
Options of zkCli.sh are accepted: -server, -timeout, -r, -waitforconnection (always on) and
-client-configuration.`

/** Runs all lines and resolves to the exit code of the last one; with `-e`, stops at the first that fails. */
async function runShell({ io, options }: Context, words: readonly string[], flags: Flags): Promise<number> {
  const settings = options()
  const hasNoCommand = flags.command === undefined && words.length === 0
  const isInteractive = hasNoCommand && io.stdin.isTTY === true && io.stdout.isTTY === true
  let refresh = (): void => {}
  const shell: Shell = new Shell({
    io,
    commands: shellCommands,
    server: settings.server,
    open: (server) =>
      openSession({ ...settings, server, readOnly: flags.readOnly === true }, shell.signal, (line) =>
        shell.notice(line),
      ),
    refresh: () => refresh(),
  })
  await shell.connect()
  const lines = isInteractive ? promptLines(shell, (redraw) => (refresh = redraw)) : readLines(shell, flags)
  let exitCode: number = ExitCode.ok
  try {
    if (words.length > 0) return await raceAbort(shell.executeWords(words), io.signal)
    for await (const line of lines) {
      exitCode = await raceAbort(shell.execute(line), io.signal)
      if (shell.hasQuit || (flags.exitOnError && exitCode !== ExitCode.ok)) break
    }
    io.signal.throwIfAborted()
    return exitCode
  } finally {
    await shell.close()
  }
}

/** Yields the lines of `--command`, otherwise those of standard input. */
async function* readLines({ io }: Shell, { command }: Flags): AsyncGenerator<string> {
  if (command !== undefined) return yield* command
  const reader = createInterface({ input: io.stdin, crlfDelay: Infinity })
  const stop = (): void => reader.close()
  io.signal.addEventListener('abort', stop, { once: true })
  try {
    yield* reader
  } finally {
    reader.close()
  }
}
