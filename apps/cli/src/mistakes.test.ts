import { beforeAll, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage({ adminPort: 0 })
beforeAll(() => stage.createNodes({ '/made': 'x', '/made/child': 'y' }))

it.each<[argv: string[], code: number, message: string]>([
  // Nodes
  [['get', '/none'], 3, '/none does not exist.'],
  [['ls', '/none'], 3, '/none does not exist.'],
  [['set', '/none', 'x'], 3, '/none does not exist.'],
  [['delete', '/none'], 3, '/none does not exist.'],
  [['set-acl', '/none', 'world:anyone:r'], 3, '/none does not exist.'],
  [
    ['create', '/p/q/r'],
    3,
    '/p/q does not exist, so /p/q/r cannot be created. Create it first, or use zabra create --parents.',
  ],
  [['create', '/p/q', '--ttl', '1h'], 3, '/p does not exist, so /p/q cannot be created.'],
  [['create', '/p/q', '-c'], 3, '/p does not exist, so /p/q cannot be created.'],
  [['create', '/p/q', '-e', '-s'], 3, 'cannot be created. Create it first, or use zabra create --parents.'],
  [['create', '/made'], 4, '/made exists already.'],
  [['delete', '/made'], 6, '/made has children. Delete them first, or use zabra delete-all.'],
  [['set', '/made', 'x', '--version', '9'], 5, '/made has another version than the one given'],
  [['create', '/'], 2, '/ exists on every server. Name a node below it'],
  [['edit', '/made'], 2, 'Name an editor without one in $VISUAL or $EDITOR'],
  [['set-acl', '/made', 'nope:x:r'], 9, 'Schemes are world:anyone'],
  [['set', '/made', 'two', 'words'], 2, 'Put data with blanks into quotes'],
  [['digest', 'ada:secret'], 2, 'Give the password in --password-file'],
  [['delete', '/zookeeper/quota'], 2, 'is needed by the server'],
  [['delete', '/'], 2, 'Name nodes below it.'],
  [['delete-all', '/'], 2, '/'],
  [['quota', 'list', '/made'], 3, '/made has no quota. zabra quota list shows all quotas.'],
  [['txn', 'create /p/q'], 3, 'Operation 1 (create /p/q): /p does not exist, so /p/q cannot be created.'],
  // Paths
  [['get', 'app'], 2, 'Paths look like /app/config.'],
  [['get', '/app/'], 2, 'Paths look like /app/config.'],
  [['get', ''], 2, 'Paths look like /app/config.'],
  [['get', '/app/../made'], 2, 'Paths look like /app/config.'],
  [['txn', 'create /app/'], 2, 'Paths look like /app/config.'],
  [['lock', 'app', 'true'], 2, 'Paths look like /app/config.'],
  [['elect', 'app', 'true'], 2, 'Paths look like /app/config.'],
  [['log', '/none', '--path', 'app'], 2, 'Paths look like /app/config.'],
  [['snapshot', '/none', '--path', 'app'], 2, 'Paths look like /app/config.'],
  [['restore', '--path', 'app'], 2, 'Paths look like /app/config.'],
  [['watches', '--path', 'app'], 2, 'Paths look like /app/config.'],
  [['create', '/made/a//', '-s'], 2, 'Paths look like /app/config.'],
  // Arguments
  [['get'], 2, "missing required argument 'path'"],
  [['get', '/made', '/made/child'], 2, 'Expected 1 argument but got 2'],
  [['set', '/zookeeper'], 2, 'Expected data for the node, got none.'],
  [['create', '/a', 'x', '--file', 'y'], 2, 'Expected data or --file, got both.'],
  [['create', '/a', '--file', '/none'], 2, 'Cannot read /none (ENOENT). Check the path'],
  [['txn', 'destroy /a'], 2, 'destroy'],
  [['txn'], 2, 'Expected at least one operation, got none.'],
  [['lock', '/l'], 2, "missing required argument 'command'"],
  [['quota', 'set', '/made'], 2, 'Expected a limit, got none. Give --nodes'],
  [['import', '/none.jsonl'], 2, 'Cannot read /none.jsonl (ENOENT)'],
  [['export', '/zookeeper'], 2, 'Name another subtree.'],
  [['export', '--from', '/none'], 2, 'Cannot read /none (ENOENT)'],
  [['log', '/none'], 2, '/none'],
  [['audit', 'verify', '/none'], 2, '/none: ENOENT. Check the path and its permissions.'],
  [['recover', 'adopt', '/none', '--yes'], 2, 'Cannot read /none (ENOENT). Check the path'],
  [['recover', 'force', '/', '--members', '1'], 2, 'got /. Name the data folder (dataDir) of a member.'],
  [['initialize', '/dev/null/x'], 2, 'ENOTDIR. Check the path and its permissions.'],
  [['man', '--output', '/dev/null/x'], 2, 'Cannot make the folder /dev/null/x (ENOTDIR). Check the path'],
  [['cert', 'init-ca', '--dir', '/dev/null/x'], 2, 'Cannot make the folder /dev/null/x (ENOTDIR)'],
  [['cert', 'issue'], 2, 'Expected either --member N with --hosts, or --client NAME.'],
  [['restore', '--replace', '--keep-sessions'], 2, '--keep-sessions belongs to --to: give it too, or leave'],
  [['restore', '--path', '/a', '--logs', '/l'], 2, '--logs belongs to --to: give it too, or leave'],
  [['restore', '--to', '/a', '--delete'], 2, '--delete belongs to --path: give it too, or leave'],
  [['backup', 'list', '--target', 'nope://x'], 2, 'file:///folder or s3://bucket/prefix as the target'],
  // Options
  [['create', '/a', '--ttl', '1y'], 2, 'such as 500ms, 30s, 5m, 1h or 2d'],
  [['create', '/a', '-e', '--ttl', '5s'], 2, 'Only a persistent node has a time to live'],
  [['create', '/a', '-e', '-c'], 2, 'A container is neither ephemeral nor sequential'],
  [['set', '/made', 'x', '--version', 'two'], 2, 'Expected a whole number from 0'],
  [['bench', '--size', '99999999'], 2, 'Expected a whole number from 0 to 67108864.'],
  [['cluster', 'roll', '--exec', 'true'], 2, 'in --admin-of or in --admin-pattern, got neither. Give one'],
  [['ls', '/', '--timeout', 'soon'], 2, 'such as 500ms, 30s'],
  [['create', '/a', '--acl', 'open'], 2, 'For example, world:anyone:r lets every client read.'],
  [['create', '/a', '--acl', 'digest:ada:secret:cdrwa'], 2, 'Expected the hash of a password'],
  [['ls', '/', '--auth', 'secret'], 2, 'Expected an identity as scheme:credential'],
  [['ls', '/', '--context', 'prod'], 2, 'prod'],
  [['get', '/made', '--jsno'], 2, 'Did you mean --json?'],
  [['get', '/made', '--version'], 2, 'zabra --version prints the version of the program'],
  [['mirror', '/none', '/made/mirrored'], 3, '/none does not exist.'],
  [['get', '/made/mirrored'], 3, '/made/mirrored does not exist.'],
  [['ls', '/', '-o', 'json'], 2, '--json prints JSON'],
  [['delete', '-r', '/made'], 2, 'zabra delete-all'],
  [['ls', '/', '-server', 'zk1:2181'], 2, '--server host:port names the servers'],
  // Commands of other programs
  [['gett', '/a'], 2, 'Did you mean get?'],
  [['help', 'gett'], 2, 'Did you mean get?'],
  [['LS', '/'], 2, 'Use zabra ls'],
  [['cluster', 'list'], 2, "unknown command 'list'"],
  [['put', '/a', 'x'], 2, 'Use zabra set PATH DATA'],
  [['cat', '/a'], 2, 'Use zabra get PATH'],
  [['rmr', '/a'], 2, 'Use zabra delete-all PATH'],
  [['mkdir', '/a'], 2, 'Use zabra create PATH'],
  [['addauth', 'digest', 'a:b'], 2, 'Use --auth digest:user:password'],
  [['setquota', '-n', '1', '/a'], 2, 'Use zabra quota set PATH'],
  [['ruok'], 2, 'Use zabra status'],
  [['reconfig'], 2, 'Use zabra member'],
  [['version'], 2, 'Use zabra --version'],
  // Servers
  [['cluster', 'compare', '127.0.0.1:1', '127.0.0.1:2'], 8, 'Check that it runs, or compare the others.'],
  [['ls', '/', '--server', '127.0.0.1:1'], 8, 'Check that a server is running there'],
  [['ls', '/', '--server', 'a:b'], 2, 'Give host:port'],
  [['ls', '/', '--server', 'http://127.0.0.1:2181'], 2, 'Give host:port'],
  [['ls', '/', '--server', '127.0.0.1:99999'], 2, 'Give host:port'],
  [['ls', '/', '--tls', '--ca', '/none.pem'], 2, 'Cannot read /none.pem (ENOENT)'],
  [['member', 'list'], 9, 'The server is a standalone one'],
])('%j exits with %i and says what to do', async (argv, code, message) => {
  const ran = await stage.run(argv)
  expect(ran).toMatchObject({ code, err: expect.stringContaining(message) as unknown })
  const json = await stage.run([...argv, '--json'])
  expect(json).toMatchObject({ code, out: '' })
  const { error } = JSON.parse(json.err) as { error: { message: string; exitCode: number } }
  expect(error.exitCode).toBe(code)
  expect(error.message).toContain(message.replace('Did you mean --json?', ''))
})

it.each([[['no\u001b[2J']], [['get', '/made', '--no\u001b[2J']], [['lock', '/l', '/no\u001b[2J']]])(
  'what was typed commands no terminal in an error: %j',
  async (argv) => {
    const { code, err } = await stage.run(argv)
    expect([code, err]).toEqual([2, expect.stringContaining('no\\x1b[2J')])
    expect(err).not.toContain('\u001b')
  },
)

it('a configuration that cannot be read is named with the reason', async () => {
  for (const argv of [
    ['--config', '/'],
    ['--migrate', '/'],
    ['--downgrade', '/', '--config', '/'],
  ])
    expect((await stage.run(['doctor', ...argv])).err).toContain('Cannot read / (EISDIR). Check the path')
})

it.skipIf(process.platform !== 'linux')(
  'a folder where the system forbids them is refused at once',
  async () => {
    expect(await stage.run(['man', '--output', '/proc/x'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('Cannot make the folder /proc/x (ENOENT). Check the path') as unknown,
    })
  },
)

it('no member is what answers with HTTP', async () => {
  const { code, out } = await stage.run(['status', stage.adminUrl.replace('http://', '')])
  expect([code, out]).toEqual([20, expect.stringContaining('unknown reply: not a ZooKeeper server')])
})

it('JSON commands no terminal, and has the value nevertheless', async () => {
  const data = 'a\u202eb\u009b\u{e0041}'
  await stage.zk.create('/hidden', { data: new TextEncoder().encode(data) })
  const { out } = await stage.run(['get', '/hidden', '--json'])
  expect(out).toContain('"a\\u202eb\\u009b\\udb40\\udc41"')
  expect(JSON.parse(out)).toMatchObject({ data })
})

it('an error with --json has the code and the path', async () => {
  const { err } = await stage.run(['get', '/none', '--json'])
  expect(JSON.parse(err)).toEqual({
    error: { message: '/none does not exist.', code: 'NO_NODE', exitCode: 3, path: '/none' },
  })
})

it('help shows the help of a command, with the options of the program', async () => {
  expect((await stage.run(['help', 'backup', 'now'])).out).toContain('Usage: zabra backup now')
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
