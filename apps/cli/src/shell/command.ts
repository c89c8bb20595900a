import type { Shell } from './shell.ts'

/** What stands behind the name of a command. */
export interface Arguments {
  readonly words: readonly string[]
  readonly flags: ReadonlySet<string>
  readonly values: ReadonlyMap<string, readonly string[]>
}

/** A command of the shell. Its name is the first word of its usage. */
export interface ShellCommand {
  /** As ZooKeeper's shell prints it. */
  readonly usage: string
  /** What `help` says behind the usage. */
  readonly help?: string
  /** Options without a value, with their dash. */
  readonly flags?: readonly string[]
  /** Options with one. */
  readonly valueOptions?: readonly string[]
  /** Words that it needs. */
  readonly minArgs?: number
  /** Runs without a session. */
  readonly offline?: boolean
  run(shell: Shell, args: Arguments): Promise<void> | void
}

/** A command that was called in a way it cannot be. */
export class CommandSyntaxError extends Error {
  override readonly name = 'BadCall'
}

/** The words behind a command's name, with its options among them wherever they stand. */
export function parseArguments(command: ShellCommand, words: readonly string[]): Arguments {
  const rest: string[] = []
  const flags = new Set<string>()
  const values = new Map<string, string[]>()
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (command.valueOptions?.includes(word)) {
      const value = words[++i]
      if (value === undefined) throw new CommandSyntaxError(`Missing argument for option: ${word.slice(1)}`)
      values.set(word, [...(values.get(word) ?? []), value])
    } else if (command.flags?.includes(word)) flags.add(word)
    // A single dash and a number below zero are words like any other.
    else if (/^-[A-Za-z]/.test(word)) throw new CommandSyntaxError(`Unrecognized option: ${word}`)
    else rest.push(word)
  }
  if (rest.length < (command.minArgs ?? 0)) throw new CommandSyntaxError('')
  return { words: rest, flags, values }
}

/** The one value of an option as a whole number; undefined when it was not given. */
export function numberOption(args: Arguments, option: string, radix = 10): number | undefined {
  const text = args.values.get(option)?.[0]
  if (text === undefined) return undefined
  const isNumber = (radix === 16 ? /^(0x)?[0-9a-f]+$/i : /^-?\d+$/).test(text)
  const value = Number.parseInt(text, radix)
  if (!isNumber || !Number.isSafeInteger(value))
    throw new CommandSyntaxError(`Expected a whole number after ${option}, got "${text}"`)
  return value
}
