import { expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage()

it.each([
  [['get', '/none'], 3, '/none does not exist.'],
  [
    ['create', '/p/q/r'],
    3,
    '/p/q does not exist, so /p/q/r cannot be created. Create it first, or use zabra create --parents.',
  ],
  [['txn', 'create /p/q'], 3, 'Operation 1 (create /p/q): /p does not exist, so /p/q cannot be created.'],
  [['get', 'app'], 2, 'Paths look like /app/config.'],
  [['get', '/app/'], 2, 'Paths look like /app/config.'],
  [['get'], 2, "missing required argument 'path'"],
  [['gett', '/a'], 2, 'Did you mean get?'],
  [['get', '/a', '--jsno'], 2, 'Did you mean --json?'],
  [['create', '/a', '--ttl', '1y'], 2, 'such as 500ms, 30s, 5m, 1h or 2d'],
  [['lock', '/l'], 2, "missing required argument 'command'"],
  [['set', '/zookeeper'], 2, 'Expected data for the node, got none.'],
  [['delete', '/'], 2, 'Name nodes below it.'],
  [['ls', '/', '--server', '127.0.0.1:1'], 8, 'Check that a server is running there'],
  [['ls', '/', '--server', 'a:b'], 2, 'Give host:port'],
])('%j exits with %i and says what to do', async (argv, code, message) => {
  const ran = await stage.run(argv)
  expect(ran).toMatchObject({ code, out: '', err: expect.stringContaining(message) as unknown })
  const json = await stage.run([...argv, '--json'])
  expect(json).toMatchObject({ code, out: '' })
  const { error } = JSON.parse(json.err) as { error: { message: string; exitCode: number } }
  expect(error.exitCode).toBe(code)
  expect(error.message).toContain(message.replace('Did you mean --json?', ''))
})

it('an error with --json has the code and the path', async () => {
  const { err } = await stage.run(['get', '/none', '--json'])
  expect(JSON.parse(err)).toEqual({
    error: { message: '/none does not exist.', code: 'NO_NODE', exitCode: 3, path: '/none' },
  })
})

it('help shows the help of a command, with the options of the program', async () => {
  const help = await stage.run(['help', 'get'])
  expect(help).toMatchObject({ code: 0, out: (await stage.run(['get', '--help'])).out })
  expect(help.out).toMatch(/Usage: zabra get [^]*--hex[^]*--server <[^]*--json/)
})

it('without a command it prints one screen', async () => {
  const { code, err } = await stage.run([])
  expect(code).toBe(2)
  expect(err.trimEnd().split('\n').length).toBeLessThanOrEqual(24)
  expect(err).toContain('zabra help')
})
