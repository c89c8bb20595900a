import { PassThrough } from 'node:stream'
import type { Command } from 'commander'
import { nodePorts } from '@zabra/runtime/node'
import { expect, it } from 'vitest'
import { createProgram } from './program.ts'

const program = createProgram({
  stdin: new PassThrough(),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  environment: {},
  version: '1.2.3',
  signal: new AbortController().signal,
  ports: nodePorts(),
})

const below = (command: Command): Command[] => command.commands.flatMap((one) => [one, ...below(one)])
const names = (command: Command): string[] =>
  command.options.flatMap(({ short, long }) => [short, long].filter((name) => name !== undefined))

it('no command has an option that the program takes for its own wherever it stands', () => {
  const ours = names(program)
  const clashes = below(program).flatMap((command) =>
    names(command)
      .filter((name) => ours.includes(name))
      .map((name) => `${command.name()} ${name}`),
  )
  expect(clashes).toEqual([])
})
