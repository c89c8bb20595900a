import { readFileSync } from 'node:fs'
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

  it('uses only existing commands and options', async () => {
    const calls = [...readme.matchAll(/^(?:\$ )?zabra ([\w-]+)([^#\n<>|]*)/gm)]
    expect(calls.length).toBeGreaterThan(30)
    for (const [, command = '', rest = ''] of calls) {
      const sub = ['quota', 'cert', 'context', 'backup', 'admin'].includes(command)
        ? (/^ ([\w-]+)/.exec(rest)?.[1] ?? '')
        : ''
      const help = await new CommandRun([command, ...(sub === '' ? [] : [sub]), '--help'], undefined).ended
      const general = await new CommandRun(['--help'], undefined).ended
      expect(help.out).toMatch(new RegExp(`^Usage: zabra ${command}\\b`))
      const quoteless = rest.replace(/'[^']*'/g, '')
      for (const [option] of quoteless.matchAll(/(?<= )--?[a-z][a-z-]*/g))
        expect(`${help.out}${general.out}`).toMatch(new RegExp(`${option}[ ,<\\[]`))
    }
  })
})
