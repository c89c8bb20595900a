import { join } from '../session/paths.ts'
import type { Shell } from './shell.ts'

/** How the word at the end of a line may go on: the possibilities, and the word that they replace. */
export async function complete(shell: Shell, line: string): Promise<[string[], string]> {
  // A quote that is still open holds blanks together.
  const word = /^(?:[^"']|"[^"]*"|'[^']*')*(["'][^"']*)$/.exec(line)?.[1] ?? /\S*$/.exec(line)![0]
  const before = line.slice(0, line.length - word.length).trim()
  const fits = (all: Iterable<string>): [string[], string] => [
    [...all].filter((each) => each.startsWith(word)).toSorted(),
    word,
  ]
  if (before === '') return fits([...shell.commands.keys()].map((name) => `${name} `))
  const command = shell.commands.get(before.split(/\s/, 1)[0]!)
  if (word.startsWith('-'))
    return fits([...(command?.flags ?? []), ...(command?.valueOptions ?? [])].map((option) => `${option} `))
  const quote = /^["']/.exec(word)?.[0] ?? ''
  const path = word.slice(quote.length)
  if (!path.startsWith('/')) return [[], word]
  const paths = (await childPaths(shell, path)).filter((each) => each.startsWith(path)).toSorted()
  return [
    paths.map((each) => (quote === '' && /[\s"']/.test(each) ? openingQuote(each) : quote) + each),
    word,
  ]
}

/** What opens a word that blanks or quotes would cut; whoever types closes it. */
const openingQuote = (path: string): string => (path.includes('"') ? "'" : '"')

/** The children of the last whole parent in what was typed. */
async function childPaths(shell: Shell, word: string): Promise<string[]> {
  const parent = word.slice(0, word.lastIndexOf('/')) || '/'
  try {
    const { children } = await shell.zk.getChildren(parent)
    return children.map((name) => join(parent, name))
  } catch {
    // There is nothing to offer where nothing can be read; the command itself says why.
    return []
  }
}
