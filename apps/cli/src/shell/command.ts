import type { Io } from '../io.ts'
import type { Client } from '@zabra/client'
import type { ShellWatches } from './shell-watches.ts'

/** The shell as its commands use it. */
export interface ShellContext {
  readonly io: Io
  readonly commands: ReadonlyMap<string, ShellCommand>
  readonly watches: ShellWatches
  /** Every line that was run, including the current one. */
  readonly history: string[]
  areWatchesPrinted: boolean
  /** Set by `quit`: the shell reads no further line. */
  hasQuit: boolean
  /** The session. Throws when there is none. */
  readonly zk: Client
  /** Aborts when the running command or the whole program has to end. */
  readonly signal: AbortSignal
  /** Opens a session, on another server when one is given, after closing the current session. */
  connect(server?: string): Promise<void>
  /** Closes the session. */
  close(): Promise<void>
  /** Prints a line of output. */
  out(text: string): void
  /** Prints a line to standard error: an error, or what ZooKeeper's shell logs beside its output. */
  err(text: string): void
  /** Returns a path that is valid in a command. Throws with the message of ZooKeeper's shell otherwise. */
  path(text: string | undefined): string
  /** Runs one line and resolves to its exit code. */
  execute(line: string): Promise<number>
  /** Returns the lines that `help` prints. */
  usage(): string[]
}

/** The words after the name of a command, by kind. */
export interface Arguments {
  readonly words: readonly string[]
  readonly flags: ReadonlySet<string>
  readonly values: ReadonlyMap<string, readonly string[]>
}

/** A command of the shell. The first word of `usage` is its name. */
export interface ShellCommand {
  /** The usage line of ZooKeeper's shell, byte for byte. */
  readonly usage: string
  /** A remark that `help` prints after the usage. */
  readonly help?: string
  /** Options without a value, including the dash. */
  readonly flags?: readonly string[]
  /** Options with a value, including the dash. */
  readonly valueOptions?: readonly string[]
  /** Required number of words. */
  readonly minArgs?: number
  /** Whether the command runs without a session. */
  readonly offline?: boolean
  run(shell: ShellContext, args: Arguments): Promise<void> | void
}

/** Wrong options or too few words for a command. */
export class CommandSyntaxError extends Error {
  override readonly name = 'BadCall'
}

/** Parses the words after a command's name. Options may come before, between or after other words. */
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
    // A single dash and a negative number are words, not options.
    else if (/^-[A-Za-z]/.test(word)) throw new CommandSyntaxError(`Unrecognized option: ${word}`)
    else rest.push(word)
  }
  if (rest.length < (command.minArgs ?? 0)) throw new CommandSyntaxError('')
  return { words: rest, flags, values }
}

/** Returns the value of an option as a whole number; undefined when the option is absent. */
export function numberOption(args: Arguments, option: string, radix = 10): number | undefined {
  const text = args.values.get(option)?.[0]
  if (text === undefined) return undefined
  const isNumber = (radix === 16 ? /^(0x)?[0-9a-f]+$/i : /^-?\d+$/).test(text)
  const value = Number.parseInt(text, radix)
  if (!isNumber || !Number.isSafeInteger(value))
    throw new CommandSyntaxError(`Expected a whole number after ${option}, got "${text}"`)
  return value
}
