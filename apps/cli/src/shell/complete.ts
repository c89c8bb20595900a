import { childPath } from '@zabra/protocol'
import type { ShellContext } from './command.ts'

/** Returns the completions of the last word of a line, and that word. */
export async function complete(shell: ShellContext, line: string): Promise<[string[], string]> {
  // A word in an open quote may contain blanks.
  const word = /^(?:[^"']|"[^"]*"|'[^']*')*(["'][^"']*)$/.exec(line)?.[1] ?? /\S*$/.exec(line)![0]
  const before = line.slice(0, line.length - word.length).trim()
  const matching = (all: Iterable<string>): [string[], string] => [
    [...all].filter((each) => each.startsWith(word)).toSorted(),
    word,
  ]
  if (before === '') return matching([...shell.commands.keys()].map((name) => `${name} `))
  const command = shell.commands.get(before.split(/\s/, 1)[0]!)
  if (word.startsWith('-'))
    return matching(
      [...(command?.flags ?? []), ...(command?.valueOptions ?? [])].map((option) => `${option} `),
    )
  const quote = /^["']/.exec(word)?.[0] ?? ''
  const path = word.slice(quote.length)
  if (!path.startsWith('/')) return [[], word]
  const paths = (await childPaths(shell, path)).filter((each) => each.startsWith(path)).toSorted()
  // Tab behind a whole path goes on below it.
  if (paths.length === 1 && paths[0] === path && (await childPaths(shell, `${path}/`)).length > 0)
    return [[`${word}/`], word]
  return [
    paths.map((each) => (quote === '' && /[\s"']/.test(each) ? openingQuote(each) : quote) + each),
    word,
  ]
}

/** Returns the quote that a word with blanks or quotes needs in front; the user types the closing one. */
const openingQuote = (path: string): string => (path.includes('"') ? "'" : '"')

/** Returns the paths of the children of the last complete parent in `word`. */
async function childPaths(shell: ShellContext, word: string): Promise<string[]> {
  const parent = word.slice(0, word.lastIndexOf('/')) || '/'
  try {
    const { children } = await shell.zk.getChildren(parent)
    return children.map((name) => childPath(parent, name))
  } catch {
    // Without permission or a session there are no completions; running the command shows the error.
    return []
  }
}
