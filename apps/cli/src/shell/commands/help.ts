import { CommandSyntaxError, type ShellCommand } from '../command.ts'

/** Prints the usage of every command, or of the named ones. */
export const help: ShellCommand = {
  usage: 'help ',
  offline: true,
  run(shell, { words }) {
    if (words.length === 0) for (const line of shell.usage()) shell.out(line)
    for (const word of words) {
      const command = shell.commands.get(word)
      if (command === undefined) throw new CommandSyntaxError(`There is no command ${word}; help lists them.`)
      shell.out(command.help === undefined ? command.usage : `${command.usage} # ${command.help}`)
    }
  },
}
