import { expect, it } from 'vitest'
import { CommandRun } from '../testing/cli-fixture.ts'
import { commandGroups } from './index.ts'

const entries = commandGroups.flatMap(([, commands]) => commands)

it.each(entries.flatMap(({ names }) => names))('zabra %s loads the command of this name', async (name) => {
  const { code, out } = await new CommandRun([name, '--help'], undefined, { input: '' }).ended
  expect(code).toBe(0)
  expect(out).toContain(`Usage: zabra ${entries.find(({ names }) => names.includes(name))!.names.join('|')} `)
})
