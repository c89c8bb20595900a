import { PassThrough } from 'node:stream'
import type { Command } from 'commander'
import { nodePlatform } from '@zabra/runtime/node'
import { expect, it } from 'vitest'
import { createProgram } from './program.ts'
import { run } from './run.ts'
import { CapturedOutput } from './testing/cli-fixture.ts'

const program = await createProgram(
  {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    environment: {},
    version: '1.2.3',
    signal: new AbortController().signal,
    platform: nodePlatform(),
  },
  [],
)

const below = (command: Command): Command[] => command.commands.flatMap((one) => [one, ...below(one)])
const names = (command: Command): string[] =>
  command.options.flatMap(({ short, long }) => [short, long].filter((name) => name !== undefined))

it('no command has an option with the name of a global option', () => {
  const ours = names(program)
  const clashes = below(program).flatMap((command) =>
    names(command)
      .filter((name) => ours.includes(name))
      .map((name) => `${command.name()} ${name}`),
  )
  expect(clashes).toEqual([])
})

it('no subcommand has an option with the name of one of its command, which takes it wherever it stands', () => {
  const clashes = below(program).flatMap((command) =>
    below(command).flatMap((one) =>
      names(one)
        .filter((name) => names(command).includes(name))
        .map((name) => `${command.name()} ${one.name()} ${name}`),
    ),
  )
  expect(clashes).toEqual([])
})

it('the help shows each default as a user would type it', () => {
  const wrong = [program, ...below(program)].flatMap((command) =>
    command.options
      .filter(({ defaultValue, defaultValueDescription, flags }) =>
        defaultValueDescription === undefined && typeof defaultValue === 'number'
          ? !Number.isFinite(defaultValue) || flags.includes('<time>')
          : false,
      )
      .map(({ flags }) => `${command.name()} ${flags}`),
  )
  expect(wrong).toEqual([])
})

it('a usage error names the command whose --help explains more, also for a subcommand', async () => {
  const stderr = new CapturedOutput()
  const argv = ['quota', 'set', '/a', '--nodes', 'x']
  const io = {
    environment: {},
    version: '1.2.3',
    signal: new AbortController().signal,
    platform: nodePlatform(),
  }
  expect(await run(argv, { ...io, stdin: new PassThrough(), stdout: new CapturedOutput(), stderr })).toBe(2)
  expect(stderr.text).toContain('Run zabra quota set --help for its arguments and options.')
})
