import { Perms } from '@zabra/protocol'
import { beforeAll, describe, expect, it } from 'vitest'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage()
beforeAll(async () => {
  await stage.createNodes({
    '/app': 'root',
    '/app/config': '{"port":80}',
    '/app/workers': null,
    '/app/workers/a': 'ada',
    '/app/workers/b': new Uint8Array([0, 0xff, 0x1b, 0x41]),
  })
  await stage.zk.create('/app/workers/here', { data: null, mode: 'ephemeral' })
  const acl = [{ perms: Perms.ALL, scheme: 'digest', id: 'x:y' }]
  await stage.zk.create('/secret', { data: null })
  await stage.zk.create('/secret/closed', { data: null, acl })
})

describe('ls', () => {
  it('prints the names of children, sorted, one per line', async () => {
    expect(await stage.run(['ls', '/app'])).toMatchObject({ code: 0, out: 'config\nworkers\n', err: '' })
  })

  it('prints the paths of all descendants with -R', async () => {
    const { out } = await stage.run(['ls', '-R', '/app'])
    expect(out).toBe('/app\n/app/config\n/app/workers\n/app/workers/a\n/app/workers/b\n/app/workers/here\n')
  })

  it('prints a table with -s, and objects with --json', async () => {
    const { out } = await stage.run(['ls', '-s', '/app/workers'])
    const [head, first] = out.split('\n')
    expect(head).toMatch(/^version {2}children {2}bytes {2}owner +changed +name$/)
    expect(first).toMatch(/^ {6}0 {9}0 {6}3 {2}- +\d{4}-.*Z {2}a$/)
    const json = await stage.run(['ls', '-s', '/app', '--json'])
    expect(JSON.parse(json.out.split('\n')[0]!)).toMatchObject({ name: 'config', dataLength: 11, version: 0 })
  })

  it('prints the readable nodes and exits with 7 when some may not be read', async () => {
    expect(await stage.run(['ls', '-R', '/secret'])).toMatchObject({
      code: 7,
      out: '/secret\n/secret/closed\n',
      err: expect.stringContaining(
        'no permission to read /secret/closed; it and the nodes below it are left out',
      ),
    })
  })

  it('exits with 3 for a missing node and with 2 for an invalid path', async () => {
    expect(await stage.run(['ls', '/none'])).toMatchObject({
      code: 3,
      err: 'zabra: /none does not exist.\n',
    })
    expect(await stage.run(['ls', 'app'])).toMatchObject({
      code: 2,
      err: 'zabra: Expected a path that starts with /, got "app". Paths look like /app/config.\n',
    })
  })
})

describe('tree', () => {
  it('draws the subtree with branches', async () => {
    const { out } = await stage.run(['tree', '/app'])
    expect(out).toBe(
      ['/app', '├── config', '└── workers', '    ├── a', '    ├── b', '    └── here  (ephemeral)', ''].join(
        '\n',
      ),
    )
    expect((await stage.run(['tree', '/app', '--depth', '1'])).out).toBe('/app\n├── config\n└── workers\n')
  })
})

describe('get', () => {
  it('prints the data byte for byte to a pipe', async () => {
    expect((await stage.run(['get', '/app/config'])).out).toBe('{"port":80}')
    expect([...(await stage.run(['get', '/app/workers/b'])).bytes]).toEqual([0, 0xff, 0x1b, 0x41])
  })

  it('escapes control characters of the data on a terminal', async () => {
    const { out } = await stage.run(['get', '/app/workers/b'], { terminal: true })
    expect(out).toBe('00000000  00 ff 1b 41                                      ...A\n')
    await stage.createNodes({ '/bell': 'a\u001b]0;title\u0007' })
    expect((await stage.run(['get', '/bell'], { terminal: true })).out).toBe('a\\x1b]0;title\\x07\n')
  })

  it('prints Base64, a hex dump, the stat or JSON on request', async () => {
    expect((await stage.run(['get', '-b', '/app/workers/b'])).out).toBe('AP8bQQ==\n')
    expect((await stage.run(['get', '-x', '/app'])).out).toMatch(/^00000000 {2}72 6f 6f 74 .*root\n$/)
    expect((await stage.run(['get', '-s', '/app'])).out).toMatch(/^root\ncZxid = 0x[0-9a-f]+\nctime = /)
    const json = await stage.run(['get', '-s', '/app/workers/b', '--json'])
    expect(JSON.parse(json.out)).toMatchObject({
      path: '/app/workers/b',
      base64: 'AP8bQQ==',
      stat: { dataLength: 4, ephemeralOwner: '0x0' },
    })
    expect(JSON.parse((await stage.run(['get', '/app/workers', '--json'])).out).data).toBeNull()
  })
})

describe('stat, getAcl, whoami, config and sync', () => {
  it('print the reply of the server', async () => {
    expect((await stage.run(['stat', '/app'])).out).toMatch(/^cZxid = [\s\S]*\nnumChildren = 2\n$/)
    expect((await stage.run(['stat', '/none'])).code).toBe(3)
    expect((await stage.run(['getAcl', '/app'])).out).toBe('world:anyone:cdrwa\n')
    expect(JSON.parse((await stage.run(['getAcl', '/app', '--json'])).out).acl).toEqual([
      { scheme: 'world', id: 'anyone', perms: 'cdrwa' },
    ])
    expect((await stage.run(['whoami'])).out).toBe('ip: 127.0.0.1\n')
    expect(await stage.run(['config'])).toMatchObject({ code: 0, out: '' })
    expect(await stage.run(['sync'])).toMatchObject({ code: 0, out: '' })
  })

  it('whoami prints the identities of --auth and of ZABRA_AUTH', async () => {
    const flags = await stage.run(['whoami', '--auth', 'digest:ada:pw', '--auth', 'digest:bob:pw'])
    expect(flags.out.split('\n').toSorted().join('\n').trim()).toBe('digest: ada\ndigest: bob\nip: 127.0.0.1')
    const { out } = await stage.run(['whoami'], { environment: { ZABRA_AUTH: 'digest:eve:pw' } })
    expect(out).toContain('digest: eve\n')
  })

  it('a token, which is for HTTP ports, is sent to no client port', async () => {
    const environment = { ZABRA_AUTH: 'token:hush\ndigest:eve:pw' }
    expect(await stage.run(['whoami'], { environment })).toMatchObject({ code: 0, err: '' })
    expect(await stage.run(['whoami', '--auth', 'token:hush'])).toMatchObject({
      code: 0,
      out: 'ip: 127.0.0.1\n',
    })
  })

  it('an identity without a scheme is refused, and the message does not contain it', async () => {
    const { code, err } = await stage.run(['whoami', '--auth', 'hush-hush'])
    expect(code).toBe(2)
    expect(err).toContain('Expected an identity as scheme:credential')
    expect(err).not.toContain('hush')
  })
})

describe('find', () => {
  it('finds nodes by a pattern of the name or of the path', async () => {
    expect((await stage.run(['find', '/app', '--glob', '?'])).out).toBe('/app/workers/a\n/app/workers/b\n')
    expect((await stage.run(['find', '--glob', '/app/**/a'])).out).toBe('/app/workers/a\n')
    expect((await stage.run(['find', '/app', '--regexp', 'g$'])).out).toBe('/app/config\n')
  })

  it('finds nodes by their data, and ephemeral nodes', async () => {
    expect((await stage.run(['find', '/app', '--data', '"port":\\d+'])).out).toBe('/app/config\n')
    expect((await stage.run(['find', '/app', '--ephemeral'])).out).toBe('/app/workers/here\n')
  })

  it('refuses an invalid regular expression with an explanation', async () => {
    expect(await stage.run(['find', '--regexp', '('])).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected a regular expression after --regexp, got "("'),
    })
  })
})

describe('du and ephemerals', () => {
  it('du prints nodes and bytes of subtrees, the largest first', async () => {
    expect((await stage.run(['du', '/app'])).out).toBe(
      'bytes  nodes  path\n   22      6  /app\n   11      1  /app/config\n    7      4  /app/workers\n',
    )
  })

  it('ephemerals prints the session that owns a node', async () => {
    const { out } = await stage.run(['ephemerals', '/app', '--json'])
    const owner = `0x${BigInt.asUintN(64, stage.zk.session.id).toString(16)}`
    expect(JSON.parse(out)).toMatchObject({ owner, path: '/app/workers/here' })
  })
})
