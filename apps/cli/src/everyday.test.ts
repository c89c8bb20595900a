import { stripVTControlCharacters } from 'node:util'
import { describe, expect, it } from 'vitest'
import { setupStage, stage, type RunResult } from './testing/cli-fixture.ts'

setupStage()

const run = (argv: readonly string[], input = ''): Promise<RunResult> =>
  stage.run(argv, { input, environment: { XDG_CONFIG_HOME: stage.folder } })

// The rows run in this order, on one server. Those without a third part print nothing.
it.each<[argv: string[], out?: RegExp | string, input?: string]>([
  [['ls'], 'zookeeper\n'],
  [['create', '/app', '{"port":80}'], '/app\n'],
  [['get', '/app'], '{"port":80}'],
  [['get', '/app', '--json'], /^\{"path":"\/app","data":"\{\\"port\\":80\}"\}\n$/],
  [['get', '-s', '/app'], /dataVersion = 0/],
  [['get', '--base64', '/app'], 'eyJwb3J0Ijo4MH0=\n'],
  [['create', '/app/a/b/c', '--parents'], '/app/a/b/c\n'],
  [['set', '/app', 'two']],
  [['set', '/app', '--file', '-'], '', 'three'],
  [['set', '/app', 'four', '--version', '2']],
  [['get', '/app'], 'four'],
  [['stat', '/app'], /dataVersion = 3/],
  [['ls', '-R', '/app'], '/app\n/app/a\n/app/a/b\n/app/a/b/c\n'],
  [['ls', '-s', '/'], /^version +children +bytes +owner +changed +name\n[^]*app\n/],
  [['tree', '/app'], /a\n[^]*b\n[^]*c/],
  [['create', '-e', '/here'], '/here\n'],
  [['create', '-s', '/app/item-'], /^\/app\/item-\d{10}\n$/],
  [['create', '--ttl', '1h', '/app/short'], '/app/short\n'],
  [['create', '--container', '/app/jobs'], '/app/jobs\n'],
  [['delete', '/app/short']],
  [['rm', '/app/jobs']],
  [['delete', '--missing-ok', '/none']],
  [['delete-all', '/app/a/b']],
  [['deleteall', '/app/a']],
  [['get-acl', '/app'], /world:anyone:cdrwa/],
  [['getAcl', '/app'], /world:anyone:cdrwa/],
  [['set-acl', '/app', 'world:anyone:cdrwa,ip:127.0.0.1:r']],
  [['setAcl', '/app', 'world:anyone:cdrwa']],
  [['whoami'], /ip: 127\.0\.0\.1/],
  [['whoami', '--auth', 'digest:ada:secret'], /digest: ada/],
  [['find', '/', '--data', 'four'], '/app\n'],
  [['digest', 'ada'], /^ada:[A-Za-z\d+/]{27}=\n$/, 'secret\n'],
  [['du', '/app'], /\/app/],
  [['ephemerals']],
  [['export', '/app'], /^\{"zabra":"export"[^]*"end"/],
  [['txn', 'create /t1 x', 'set /app five', 'delete /t1']],
  [['txn', '--file', '-'], '', 'check /app\nset /app six\n'],
  [['quota', 'set', '/app', '--nodes', '100']],
  [['quota', 'list'], /\/app +\d+ +100/],
  [['quota', 'del', '/app']],
  [['sync', '/app']],
  [['status'], /standalone[^]*ok/],
  [['diff', '/app', '/app']],
  [['shell', '-c', 'get /app'], 'six\n'],
  [['shell', 'get', '/app'], 'six\n'],
  [['context', 'add', 'prod', '--server', 'zk1:2181']],
  [['context', 'list'], /\* +prod +zk1:2181/],
  [['context', 'remove', 'prod']],
  [['help', 'get'], /^Usage: zabra get /],
  [['--version'], '1.2.3\n'],
  [['completion', 'bash'], /complete/],
  [['man', 'get'], /\.TH/],
])('%j does what it says', async (argv, out = '', input = '') => {
  const ran = await run(argv, input)
  // An export says what it cannot hold.
  expect({ ...ran, err: ran.err.replace(/^zabra: an import does not restore: .*\n/, '') }).toMatchObject({
    code: 0,
    err: '',
  })
  if (typeof out === 'string') expect(ran.out).toBe(out)
  else expect(ran.out).toMatch(out)
})

it('a subtree is copied by export and import', async () => {
  const { out } = await run(['export', '/app'])
  expect((await run(['import', '-', '/copy'], out)).code).toBe(0)
  expect((await run(['diff', '/app', '/copy'])).code).toBe(0)
})

it('watch prints the next change and exits', async () => {
  const watching = stage.start(['watch', '/app', '--count', '1'], { input: '' })
  await watching.stderr.until(/watch|press|Ctrl/i)
  await stage.zk.setData('/app', new Uint8Array(0))
  expect((await watching.ended).out).toContain('/app')
})

describe('colours', () => {
  const green = '\u001B[32mok\u001B[39m'
  it.each<[terminal: boolean, environment: Record<string, string>, isColoured: boolean]>([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: '1' }, false],
    [true, { NO_COLOR: '' }, true],
    [true, { TERM: 'dumb' }, false],
    [false, { FORCE_COLOR: '1' }, true],
    [true, { FORCE_COLOR: '0' }, false],
    [true, { NO_COLOR: '1', FORCE_COLOR: '1' }, false],
  ])('a table on a terminal (%j) with %j has them: %j', async (terminal, environment, isColoured) => {
    const ran = await stage.run(['status'], { terminal, environment })
    expect(ran.out).toMatch(/ok/)
    expect(ran.out.includes(green)).toBe(isColoured)
    expect(ran.out.includes('\u001B')).toBe(isColoured)
  })

  it('a coloured table has the columns of a plain one', async () => {
    const plain = await stage.run(['ls', '-s', '/'])
    const { out } = await stage.run(['ls', '-s', '/'], { terminal: true })
    expect(stripVTControlCharacters(out)).toBe(plain.out)
    expect(out).not.toBe(plain.out)
  })

  it('an error on a terminal begins in red, and its JSON is plain', async () => {
    const { err } = await stage.run(['get', '/none'], { terminal: true })
    expect(err).toBe('\u001B[31mzabra:\u001B[39m /none does not exist.\n')
    expect((await stage.run(['get', '/none', '--json'], { terminal: true })).err).not.toContain('\u001B')
  })
})

describe('progress of long work', () => {
  it.each<[argv: string[], text: string]>([
    [['set-acl', '-R', '/app', 'world:anyone:cdrwa'], 'Changing ['],
    [['mirror', '/app', '/mirrored', '--json'], 'Mirroring ['],
    [['delete-all', '/mirrored'], 'Deleting ['],
  ])('%j is shown on a terminal alone', async (argv, text) => {
    expect((await stage.run(argv, { terminal: true })).err).toContain(text)
    expect((await stage.run(['create', '/mirrored'])).err).not.toContain(text)
  })
})
