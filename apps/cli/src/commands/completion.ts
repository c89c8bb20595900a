import { childPath } from '@zabra/protocol'
import { Argument, type Command, type Option } from 'commander'
import type { CommandModule, Context } from '../context.ts'
import { print } from '../io.ts'

/** Milliseconds that a completion waits for a server. */
const TIMEOUT_MS = 2000

/**
 * Paths that no shell interprets. A shell inserts completions as they are, so that a node named `/a;reboot` would run a command on
 * the machine of a user who presses Tab and Enter.
 */
const SAFE_PATH = /^\/[\p{L}\p{N}_./:@%+,-]*$/u

/** `zabra completion`: prints the script that completes commands, options and paths in a shell. */
export const completion: CommandModule = (program, { io }) => {
  program
    .command('completion')
    .description('print the completion script of a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
    .addHelpText('after', HELP)
    .action((shell: keyof typeof scripts) => print(io, scripts[shell]))
}

/** `zabra complete`: prints the completions of the last word, for the scripts of `zabra completion`. */
export const complete: CommandModule = (program, context) => {
  program
    .command('complete', { hidden: true })
    .argument('[words...]', 'the words after zabra, the last one incomplete')
    .action(async (words: string[]) => print(context.io, ...(await completionsOf(program, context, words))))
}

async function completionsOf(
  program: Command,
  context: Context,
  words: readonly string[],
): Promise<string[]> {
  const word = words.at(-1) ?? ''
  const found = parseWords(program, words.slice(0, -1))
  if (found === undefined) return []
  const { command, operands } = found
  if (word.startsWith('-')) return longNames(command === program ? [program] : [command, program], word)
  if (command.commands.length > 0) {
    const { commands } = command
    return command
      .createHelp()
      .visibleCommands(command)
      .filter((one) => commands.includes(one) || one.name() === 'help')
      .map((one) => one.name())
      .filter((name) => name.startsWith(word))
  }
  const argument = command.registeredArguments[Math.min(operands, command.registeredArguments.length - 1)]
  if (argument?.argChoices) return argument.argChoices.filter((choice) => choice.startsWith(word))
  if (argument === undefined || !['path', 'from', 'to'].includes(argument.name())) return []
  if (word === '') return ['/']
  if (!word.startsWith('/')) return []
  program.setOptionValue('timeout', TIMEOUT_MS)
  try {
    return await context.session(async (zk) => {
      const parent = word.slice(0, word.lastIndexOf('/')) || '/'
      const { children } = await zk.getChildren(parent)
      const paths = children
        .map((name) => childPath(parent, name))
        .filter((path) => path.startsWith(word) && SAFE_PATH.test(path))
        .toSorted()
      const [only] = paths
      if (paths.length !== 1 || only === undefined) return paths
      // The second one lets the next Tab go on below it.
      return ((await zk.exists(only))?.numChildren ?? 0) > 0 ? [only, `${only}/`] : [only]
    })
  } catch {
    // Without a server there are no completions; running the command shows the error.
    return []
  }
}

/** Finds the command of a line, and sets the options of the program; undefined where the value of an option follows. */
function parseWords(
  program: Command,
  words: readonly string[],
): { command: Command; operands: number } | undefined {
  let command = program
  let operands = 0
  const rest = [...words]
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') return { command, operands: operands + rest.length }
    if (!word.startsWith('-')) {
      const sub = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
      if (sub === undefined) operands++
      else command = sub
      continue
    }
    const [name, inline] = /^(--[^=]+)=(.*)$/.exec(word)?.slice(1) ?? [word]
    const option = [...command.options, ...program.options].find(
      ({ long, short }) => name === long || name === short,
    )
    if (option === undefined) continue
    const takesValue = option.required || option.optional
    const value = takesValue ? (inline ?? rest.shift()) : true
    if (value === undefined) return undefined
    if (program.options.includes(option)) setOption(program, option, value)
  }
  return { command, operands }
}

function setOption(program: Command, option: Option, value: string | boolean): void {
  const name = option.attributeName()
  const before = program.getOptionValue(name) as readonly string[] | undefined
  program.setOptionValue(name, name === 'auth' ? [...(before ?? []), value] : value)
}

const longNames = (commands: readonly Command[], word: string): string[] =>
  commands
    .flatMap(({ options }) => options)
    .flatMap(({ hidden, long }) => (hidden || !long?.startsWith(word) ? [] : [long]))

const HELP = `
  source <(zabra completion bash)                          # in ~/.bashrc
  zabra completion zsh > "\${fpath[1]}/_zabra"
  zabra completion fish > ~/.config/fish/completions/zabra.fish

Paths come from the server of the options, the variables or the context in use.`

const scripts = {
  bash: String.raw`_zabra() {
  local IFS=$' \t\n' line="${'$'}{COMP_LINE:0:COMP_POINT}"
  local -a typed
  read -ra typed <<< "$line"
  [[ $line == *[[:space:]] ]] && typed+=('')
  mapfile -t COMPREPLY < <(zabra complete -- "${'$'}{typed[@]:1}" 2> /dev/null)
  [[ ${'$'}{COMPREPLY[0]-} == / ]] && compopt -o nospace
}
complete -F _zabra zabra`,
  zsh: String.raw`#compdef zabra
_zabra() {
  local -a found
  found=("${'$'}{(@f)$(zabra complete -- "${'$'}{(@)words[2,CURRENT]}" 2> /dev/null)}")
  compadd -- "${'$'}{(@)found:#}"
}
if [[ $funcstack[1] == _zabra ]]; then _zabra; else compdef _zabra zabra; fi`,
  fish: String.raw`complete -c zabra -f -a '(zabra complete -- (commandline -opc)[2..] (commandline -ct) 2> /dev/null)'`,
}
