import { readFileSync, readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { exitCodeTable } from './exit-codes.ts'
import { CommandRun } from './testing/cli-fixture.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

describe('the README', () => {
  it('has the same table of exit codes as --help', () => {
    const [, table = ''] =
      /## Exit codes\n\n\| code \| meaning \|\n\| --- \| --- \|\n([\s\S]*)$/.exec(readme) ?? []
    expect(table.trim().split('\n')).toEqual(
      exitCodeTable.map(([code, meaning]) => `| ${code} | ${meaning} |`),
    )
  })
})

const docs = new URL('../../../docs/', import.meta.url)
const pages = readdirSync(docs)
  .filter((name) => name.endsWith('.md'))
  .map((name) => [`docs/${name}`, readFileSync(new URL(name, docs), 'utf8')] as const)

const helps = new Map<string, Promise<string>>()
/** Returns what `--help` prints for a command. */
function helpOf(...command: string[]): Promise<string> {
  const key = command.join(' ')
  let help = helps.get(key)
  if (help === undefined)
    helps.set(key, (help = new CommandRun([...command, '--help'], undefined).ended.then(({ out }) => out)))
  return help
}

/** Returns the command and the subcommand that words begin with. */
async function commandIn([command = '', second = '']: readonly string[]): Promise<string[]> {
  const help = await helpOf(command)
  return help.includes('\nCommands:\n') && new RegExp(`^  ${second}\\b`, 'm').test(help)
    ? [command, second]
    : [command]
}

describe('the README and the pages of docs', () => {
  it('use only existing commands and options', async () => {
    let checked = 0
    const wrong: string[] = []
    for (const [page, text] of [['README.md', readme] as const, ...pages])
      for (const [call, rest = ''] of text.matchAll(/(?:^(?:\$ )?|`)zabra ([a-z][^#\n<>|`]*)/gm)) {
        checked++
        const words = rest
          .replaceAll(/'[^']*'/g, '')
          .trim()
          .split(/\s+/)
        const command = await commandIn(words)
        const help = `${await helpOf(...command)}${await helpOf()}`
        const isKnown = help.startsWith(`Usage: zabra ${command[0]}`)
        const options = words
          .map((word) => /^--?[a-z][a-z-]*/.exec(word)?.[0])
          .filter((one) => one !== undefined)
        if (!isKnown || !options.every((option) => new RegExp(`[ ,]${option}[ ,<\\[\\n]`).test(help)))
          wrong.push(`${page}: ${call}`)
      }
    expect(checked).toBeGreaterThan(150)
    expect(wrong).toEqual([])
  })
})
