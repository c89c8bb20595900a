import { createInterface } from 'node:readline/promises'
import { raceAbort, type CommandModule, type Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { print } from '../io.ts'
import { openSession } from '../session/open.ts'
import { complete } from '../shell/complete.ts'
import { shellCommands } from '../shell/commands/index.ts'
import { historyFile, HISTORY_LINES, loadHistory, saveHistory } from '../shell/history.ts'
import { Shell } from '../shell/shell.ts'

interface Flags {
  readonly command?: readonly string[]
  readonly exitOnError?: boolean
  readonly readOnly?: boolean
}

/** `zabra shell`: the commands of ZooKeeper's shell, typed or from a pipe. */
export const shell: CommandModule = (program, context) => {
  program
    .command('shell')
    .description('take commands as zkCli.sh does, typed or from a pipe; help lists them')
    .option(
      '-c, --command <line>',
      'run this line and end; may be repeated',
      (line: string, before: readonly string[] | undefined) => [...(before ?? []), line],
    )
    .argument('[words...]', 'one command to run, as zkCli.sh takes it')
    .option('-e, --exit-on-error', 'end at the first line that fails')
    .option('-r, --read-only', 'be content with a server that is cut off from its quorum')
    .addHelpText('after', ZKCLI)
    .action(async (words: string[], asked: Flags) => {
      if (words.length > 0 && asked.command !== undefined)
        throw new UsageError('Expected a command or --command, got both. Give one of them.')
      const exitCode = await runShell(context, words, asked)
      // Every line has told what was wrong with it.
      if (exitCode !== ExitCode.ok) throw new Failure('', exitCode)
    })
}

const ZKCLI = `
Options of zkCli.sh are understood: -server, -timeout, -r, -waitforconnection (which is always done) and
-client-configuration.`

/** Runs lines to their end and resolves to the exit code: that of the last line, or of the first that fails with -e. */
async function runShell({ io, options }: Context, words: readonly string[], asked: Flags): Promise<number> {
  const settings = options()
  const isAlone = asked.command === undefined && words.length === 0
  const isInteractive = isAlone && io.stdin.isTTY === true && io.stdout.isTTY === true
  let refresh = (): void => {}
  const shell: Shell = new Shell({
    io,
    commands: shellCommands,
    server: settings.server,
    open: (server) =>
      openSession({ ...settings, server, readOnly: asked.readOnly === true }, shell.signal, (line) =>
        shell.notice(line),
      ),
    refresh: () => refresh(),
  })
  await shell.connect()
  const lines = isInteractive ? promptLines(shell, (again) => (refresh = again)) : readLines(shell, asked)
  let exitCode: number = ExitCode.ok
  try {
    if (words.length > 0) return await raceAbort(shell.executeWords(words), io.signal)
    for await (const line of lines) {
      exitCode = await raceAbort(shell.execute(line), io.signal)
      if (shell.hasQuit || (asked.exitOnError && exitCode !== ExitCode.ok)) break
    }
    io.signal.throwIfAborted()
    return exitCode
  } finally {
    await shell.close()
  }
}

/** The lines of --command, else those of standard input. */
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

/** Lines that a person types, with history and completion. */
async function* promptLines(shell: Shell, onRefresh: (again: () => void) => void): AsyncGenerator<string> {
  const { io } = shell
  const file = historyFile(io.environment)
  print(io, 'Tab completes commands and paths, help lists commands, Ctrl-D leaves.')
  const reader = createInterface({
    input: io.stdin,
    output: io.stdout,
    terminal: true,
    history: loadHistory(file),
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
    completer: (line: string) => complete(shell, line),
  })
  const stop = (): void => reader.close()
  io.signal.addEventListener('abort', stop, { once: true })
  reader.on('SIGINT', () => {
    if (shell.interrupt()) return print(io, '^C')
    // As in any shell: the line is dropped, and with nothing typed the shell is left.
    if (reader.line === '') return stop()
    print(io, '^C')
    reader.write(null, { ctrl: true, name: 'e' })
    reader.write(null, { ctrl: true, name: 'u' })
    return undefined
  })
  reader.on('history', (lines: string[]) => saveHistory(file, lines))
  const prompt = (): void => {
    reader.setPrompt(shell.prompt)
    // Something may be typed already, and the cursor stays behind it.
    reader.prompt(true)
  }
  onRefresh(prompt)
  try {
    prompt()
    for await (const line of reader) {
      yield line
      if (!shell.hasQuit) prompt()
    }
  } finally {
    onRefresh(() => {})
    io.signal.removeEventListener('abort', stop)
    reader.close()
  }
}
