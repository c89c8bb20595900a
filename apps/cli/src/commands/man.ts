import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { makeFolder } from '../files/private-files.ts'
import { print } from '../io.ts'

/** `zabra man`: prints manual pages, which are made of the help texts. */
export const man: CommandModule = (program, { io }) => {
  program
    .command('man')
    .description('print a manual page, for man -l -, or write all pages into a folder')
    .argument('[command]', 'the command (default: zabra itself)')
    .option('-o, --output <folder>', 'write zabra.1 and a page for each command')
    .action(async (name: string | undefined, { output }: { output?: string }) => {
      const visible = program.commands.filter((one) =>
        program.createHelp().visibleCommands(program).includes(one),
      )
      if (output === undefined) {
        const command = name === undefined ? program : visible.find((one) => one.name() === name)
        if (command === undefined)
          throw new UsageError(`There is no command ${JSON.stringify(name)}. Run zabra help.`)
        return print(io, manualPage(program, command, io.version))
      }
      if (name !== undefined)
        throw new UsageError('Expected a command or --output, got both. Give one of them.')
      await makeFolder(output)
      for (const command of [program, ...visible])
        await writeFile(
          join(output, `${pageName(program, command)}.1`),
          `${manualPage(program, command, io.version)}\n`,
        )
      return undefined
    })
}

const pageName = (program: Command, command: Command): string =>
  command === program ? 'zabra' : `zabra-${command.name()}`

/** Returns the manual page of a command, in the macros of man(7). */
function manualPage(program: Command, command: Command, version: string): string {
  const name = pageName(program, command)
  const help = command.createHelp()
  const terms = (list: readonly { term: string; text: string }[]): string[] =>
    list.flatMap(({ term, text }) => ['.TP', `.B ${escape(term)}`, escape(text)])
  const section = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : [`.SH ${title}`, ...lines]
  const options = (of: Command): { term: string; text: string }[] =>
    help.visibleOptions(of).map((one) => ({ term: help.optionTerm(one), text: help.optionDescription(one) }))
  return [
    `.TH ${name.toUpperCase()} 1 "" "zabra ${version}" "Zabra"`,
    ...section('NAME', [`${escape(name)} \\- ${escape(help.commandDescription(command))}`]),
    ...section('SYNOPSIS', [`.B ${escape(help.commandUsage(command))}`]),
    ...section(
      'ARGUMENTS',
      terms(
        help
          .visibleArguments(command)
          .map((one) => ({ term: one.name(), text: help.argumentDescription(one) })),
      ),
    ),
    ...section('OPTIONS', terms(options(command))),
    ...section(
      'COMMANDS',
      terms(
        help
          .visibleCommands(command)
          .map((one) => ({ term: help.subcommandTerm(one), text: one.description() })),
      ),
    ),
    ...(command === program ? [] : section('GLOBAL OPTIONS', terms(options(program)))),
    ...section('SEE ALSO', [command === program ? '.BR zabra-shell (1)' : '.BR zabra (1)']),
  ].join('\n')
}

/** Escapes text for roff: backslashes, dashes, and a control character at the beginning of a line. */
const escape = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1')
