import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from '@zabra/server'
import { beforeEach, describe, expect, it } from 'vitest'
import { openSession } from './session/open.ts'
import { ClientTransport } from './session/transport.ts'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage({
  adminPort: 0,
  adminRoleBackup: ['digest:ops:Z9CcY3Ydkb2wEo5r4nKOtH0mg2M='],
  superDigest: 'super:xQJmxLMiHGwaqBvst5y6rkB6HQs=',
})

let number = 0
let target: string
const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const AUTH = ['--auth', 'digest:super:admin']

beforeEach(() => {
  target = join(stage.folder, `target-${number++}`)
})

const run = (argv: readonly string[], environment: Record<string, string> = {}) =>
  stage.run(argv, { environment: { ZABRA_BACKUP_TARGET: target, ...environment } })

async function succeed(...argv: string[]): Promise<string> {
  const { code, out, err } = await run([...argv, ...AUTH])
  expect(err + out, argv.join(' ')).not.toBe('')
  expect({ code, err }).toMatchObject({ code: 0 })
  return out
}

describe('zabra backup', () => {
  it('makes, lists, shows and verifies backups of a running server', async () => {
    await stage.zk.create('/first', { data: text('one') })
    expect(await succeed('backup', 'now')).toMatch(/^snapshot 0x\w+: \d+ nodes, \d+ bytes\nlog up to 0x/)
    await stage.zk.setData('/first', text('two'))
    expect(await succeed('backup', 'now', '--log-only')).toMatch(/^log up to 0x\w+: \d+ transactions/)
    expect(await succeed('backup', 'list')).toMatch(
      /^made +kind +from +up to +bytes +key\n.* log .*\n.* snapshot .*\n.* log /,
    )
    expect(await succeed('backup', 'show')).toMatch(
      /ensemble {2}0-[\da-f]{32}\n[^]*restores {2}to 0x\w+ and each later transaction up to 0x/,
    )
    expect(await succeed('backup', 'verify', '--deep')).toMatch(/restores up to 0x\w+\n\d+ files are sound/)
    const [log] = readdirSync(join(target, 'log'))
    const bytes = readFileSync(join(target, 'log', log!))
    bytes[40]! ^= 1
    writeFileSync(join(target, 'log', log!), bytes)
    const { code, err } = await run(['backup', 'verify'])
    expect(code).toBe(17)
    expect(err).toContain('its sum is another one. Use another backup.')
  })

  it.each([
    ['restore', '--to', 'restored'],
    ['backup', 'verify', '--deep'],
  ])('ends before a backup fills the memory of the process: %s %s %s', async (...argv) => {
    await stage.zk.create('/small')
    await succeed('backup', 'now')
    const memory = {
      heap: () => ({ used: 96, external: 0 }),
      memoryLimits: () => ({ heap: 100, process: Infinity }),
    }
    const { code, err } = await stage.run(argv, {
      environment: { ZABRA_BACKUP_TARGET: target },
      system: memory,
    })
    expect(code).toBe(1)
    expect(err).toContain(
      'Expected a backup that fits into the memory of this process, got a larger one. Raise its limit with NODE_OPTIONS',
    )
    expect(err).not.toContain('cannot be used')
    await stage.zk.delete('/small')
  })

  it('names the moments that cannot be restored because a part of the log is in no backup', async () => {
    await succeed('backup', 'now')
    for (const part of ['one', 'two', 'three']) {
      await stage.zk.create(`/gap-${part}`, { data: null })
      await stage.zk.setData(`/gap-${part}`, text(part))
      await succeed('backup', 'now', '--log-only')
    }
    expect((await run(['backup', 'verify'])).err).not.toContain('cannot be restored')
    const manifests = readdirSync(join(target, 'manifest')).filter((name) => name.startsWith('log-'))
    rmSync(join(target, 'manifest', manifests.toSorted().at(-2)!))
    expect(await run(['backup', 'verify'])).toMatchObject({
      code: 0,
      err: expect.stringMatching(/moments after 0x\w+ cannot be restored: a part of the log is in no backup/),
    })
    expect(JSON.parse((await run(['backup', 'verify', '--json'])).out)).toMatchObject({
      defects: [],
      gaps: [{ after: expect.stringMatching(/^0x/), before: null }],
    })
  })

  it('restores a data folder from which a server starts, as of the moment before a delete', async () => {
    await stage.zk.create('/app', { data: null })
    await stage.zk.create('/app/x', { data: text('kept') })
    await stage.zk.create('/lock', { data: null, mode: 'ephemeral' })
    await succeed('backup', 'now')
    await stage.zk.delete('/app/x')
    await stage.zk.delete('/app')
    await stage.zk.delete('/lock')
    await succeed('backup', 'now', '--log-only')
    const dataDir = join(stage.folder, `restored-${number}`)
    const argv = ['restore', '--to', dataDir, '--before', 'delete /app']
    expect(await succeed(...argv, '--dry-run')).toMatch(/^would write \d+ nodes as of 0x/)
    await succeed(...argv)
    const server = await createServer({ dataDir, clientPort: 0 })
    const zk = await openSession(
      {
        server: `127.0.0.1:${server.addresses.client.port}`,
        auth: [],
        timeoutMs: 10_000,
        clientTransport: new ClientTransport(),
      },
      new AbortController().signal,
    )
    expect(Buffer.from((await zk.getData('/app/x')).data).toString()).toBe('kept')
    expect(await zk.exists('/lock')).toBeUndefined()
    await zk.close()
    await server.close()
    expect(await run(argv)).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected a folder without data, got snapshot.') as unknown,
    })
    expect(await run(['restore', '--to', `${dataDir}-2`, '--before', 'delete /none'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('got no such change') as unknown,
    })
    expect((await run(['restore', '--to', `${dataDir}-2`, '--zxid', '0xffffffffff'])).code).toBe(2)
  })

  it('brings a subtree back on a running server, with access lists and counters', async () => {
    await stage.zk.create('/sub', { data: text('a') })
    await stage.zk.create('/sub/item-', { data: null, mode: 'persistentSequential', protected: false })
    await stage.zk.create('/sub/x', { data: text('x') })
    await stage.zk.setACL('/sub/x', [{ perms: 1, scheme: 'world', id: 'anyone' }])
    await succeed('backup', 'now')
    await stage.zk.delete('/sub/x')
    await stage.zk.setData('/sub', text('changed'))
    await stage.zk.create('/sub/new', { data: null })
    const argv = ['restore', '--path', '/sub', '--delete']
    expect(await succeed(...argv, '--dry-run')).toBe('+ /sub/x\n~ /sub\n- /sub/new\n')
    await succeed(...argv)
    expect(Buffer.from((await stage.zk.getData('/sub')).data).toString()).toBe('a')
    expect((await stage.zk.getACL('/sub/x')).acl).toMatchObject([{ perms: 1 }])
    expect(await stage.zk.exists('/sub/new')).toBeUndefined()
    expect(await succeed(...argv, '--dry-run', '--json')).toContain('"create":[],"set":[],"delete":[]')
    expect((await run(['restore', '--path', '/none', ...AUTH])).err).toContain('/none is not in the backup')
  })

  it('writes the files of a moment, which other commands read', async () => {
    await stage.zk.create('/got', { data: text('value') })
    await succeed('backup', 'now')
    const folder = join(stage.folder, `got-${number}`)
    await succeed('backup', 'get', folder)
    expect(await succeed('export', '/got', '--from', folder)).toContain('"data":"value"')
    expect((await run(['backup', 'get', folder])).err).toContain('exists already. Name a new folder.')
  })

  it('writes no files of a backup that is damaged', async () => {
    await succeed('backup', 'now')
    await stage.zk.create('/in-the-log')
    await succeed('backup', 'now', '--log-only')
    for (const log of readdirSync(join(target, 'log'))) truncateSync(join(target, 'log', log), 100)
    const folder = join(stage.folder, `damaged-${number}`)
    const { code, err } = await run(['backup', 'get', folder])
    expect([code, err]).toEqual([17, expect.stringContaining('cannot be used')])
    expect(existsSync(folder)).toBe(false)
  })

  it('leaves no part of a backup that cannot be written to its end', async () => {
    const key = join(stage.folder, `log-${number}.key`)
    writeFileSync(key, '6b'.repeat(32))
    await succeed('backup', 'now')
    await stage.zk.create('/in-the-sealed-log')
    await succeed('backup', 'now', '--log-only', '--key-file', key)
    const folder = join(stage.folder, `partial-${number}`)
    const { code, err } = await run(['backup', 'get', folder])
    expect([code, err]).toEqual([2, expect.stringContaining('got no key')])
    expect(readdirSync(folder)).toEqual([])
    await succeed('backup', 'get', folder, '--key-file', key)
    expect(readdirSync(folder)).toEqual(['version-2'])
  })

  it('writes the log of a moment up to that moment only', async () => {
    await succeed('backup', 'now')
    const { czxid } = await stage.zk.create('/kept').then(async () => (await stage.zk.exists('/kept'))!)
    await stage.zk.create('/later')
    await succeed('backup', 'now')
    const folder = join(stage.folder, `moment-${number}`)
    const { out, err } = await run(['backup', 'get', folder, '--zxid', `0x${czxid.toString(16)}`])
    expect([out.split('\n').length > 2, err]).toEqual([true, ''])
    expect(await succeed('export', '/', '--from', folder)).toContain('"/kept"')
    expect(await succeed('export', '/', '--from', folder)).not.toContain('"/later"')
  })

  it('are compared with the tree of a server, with a data folder and with each other by diff', async () => {
    for (const path of ['/d', '/d/a', '/d/a.b', '/d/a/x']) await stage.zk.create(path, { data: text(path) })
    await stage.zk.create('/d/lock', { data: null, mode: 'ephemeral' })
    await succeed('backup', 'now')
    const { exactAt } = JSON.parse(await succeed('backup', 'show', '--json')) as { exactAt: string }
    expect(await run(['diff', '/d', 'backup:/d', ...AUTH])).toMatchObject({ code: 0, out: '' })
    await stage.zk.setData('/d/a', text('new'))
    await stage.zk.delete('/d/a.b')
    await stage.zk.create('/d/z', { data: null })
    const expected = '~ /a\n    - "/d/a"\n    + "new"\n- /a.b\n+ /z\n'
    expect(await run(['diff', 'backup:/d', '/d', ...AUTH])).toMatchObject({ code: 11, out: expected })
    await succeed('backup', 'now')
    const before = `backup@${exactAt}:/d`
    expect(await run(['diff', before, 'backup:/d'])).toMatchObject({ code: 11, out: expected })
    const folder = join(stage.folder, `diff-${number}`)
    await succeed('backup', 'get', folder)
    expect(await run(['diff', before, `data:${folder}:/d`])).toMatchObject({ code: 11, out: expected })
    expect(await run(['diff', `data:${folder}:/d`, `backup@${new Date().toISOString()}:/d`])).toMatchObject({
      code: 2,
    })
    expect(await run(['diff', 'backup:/none', '/d', ...AUTH])).toMatchObject({
      code: 3,
      err: expect.stringContaining('/none is not in the backup at that moment.') as unknown,
    })
    for (const wrong of ['backup@:/d', 'data:/d', 'backup@0x1', 'backup@tomorrow:/d', 'data:/nowhere:/d'])
      expect((await run(['diff', wrong, '/d', ...AUTH])).code, wrong).toBe(2)
  })

  it('encrypts with a key, and says which key it needs', async () => {
    const key = join(stage.folder, 'backup.key')
    writeFileSync(key, '5a'.repeat(32))
    await succeed('backup', 'now', '--key-file', key)
    await succeed('backup', 'verify', '--deep', '--key-file', key)
    const { code, err } = await run(['backup', 'get', join(stage.folder, 'sealed')])
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/is encrypted with the key \w{16}, got no key. Name its file/),
    ])
    writeFileSync(key, 'no key')
    expect((await run(['backup', 'verify', '--key-file', key])).err).toContain(
      'Expected 64 hexadecimal digits',
    )
  })

  it('replaces all data of a running server, and says so only without --yes', async () => {
    await stage.zk.create('/replaced', { data: text('kept') })
    await succeed('backup', 'now')
    await stage.zk.delete('/replaced')
    expect(await succeed('restore', '--replace')).toMatch(/^would replace all data of 127.*--yes does it/)
    expect(await stage.zk.exists('/replaced')).toBeUndefined()
    expect(await succeed('restore', '--replace', '--yes')).toMatch(
      /^\d+ nodes as of 0x\w+ are the data now; the last transaction is 0x1000000\w\w\n/,
    )
    expect(await succeed('get', '/replaced')).toBe('kept')
    const { code, err } = await run(['restore', '--replace', '--yes'])
    expect([code, err]).toEqual([7, expect.stringContaining('needs the role admin')])
  })

  describe('with --replace and several servers', () => {
    /** Serves what the HTTP ports of two members answer: `outcomes` of restores, at whichever leads then. */
    async function members(outcomes: readonly object[]) {
      let leader = 0
      const posts: number[] = []
      const servers = await Promise.all(
        [0, 1].map(async (id) => {
          const server = createHttpServer((request, response) => {
            const answer = (status: number, body: object): void =>
              void response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body))
            request.resume().on('end', () => {
              if (request.url === '/api/v1/self')
                return answer(200, { role: id === leader ? 'leading' : 'following' })
              if (request.method === 'GET') return answer(200, outcomes[posts.length - 1]!)
              posts.push(id)
              leader = 1
              answer(202, {})
            })
          })
          await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
          return server
        }),
      )
      const ports = servers.map((server) => (server.address() as AddressInfo).port)
      return {
        admin: ports.map((port) => `127.0.0.1:${port}`).join(','),
        posts,
        close: () => servers.forEach((server) => server.close()),
      }
    }
    const lost = { state: 'failed', problem: 'Server 2 was elected with other data.', again: true }
    const done = { state: 'done', zxid: '0x300000001' }

    it.each([
      ['tries again at the next leader', [lost, done], 0, [0, 1]],
      ['tries three times', [lost, lost, lost, done], 1, [0, 1, 1]],
      ['does not try again what cannot succeed', [{ ...lost, again: false }, done], 1, [0]],
    ])('%s', async (_, outcomes, expected, posts) => {
      await succeed('backup', 'now')
      const stub = await members(outcomes)
      const { code, err } = await run(['restore', '--replace', '--yes', '--admin', stub.admin])
      expect([code === 0 ? 0 : 1, stub.posts]).toEqual([expected, posts])
      expect(err).toContain('The data are not replaced. Server 2 was elected with other data.')
      stub.close()
    })

    it('says that the outcome is unknown where the server does not know it', async () => {
      await succeed('backup', 'now')
      const stub = await members([{ state: 'unknown', problem: 'The server has failed: EIO.' }])
      const { code, err } = await run(['restore', '--replace', '--yes', '--admin', stub.admin])
      expect([code, err]).toEqual([
        expect.any(Number),
        expect.stringContaining('The outcome is unknown. The server has failed: EIO.'),
      ])
      expect(code).not.toBe(0)
      stub.close()
    })
  })

  it('removes what no rule keeps', async () => {
    await succeed('backup', 'now')
    expect(await succeed('backup', 'prune', '--retain', '1h:all')).toBe('nothing to remove\n')
    expect((await run(['backup', 'prune', '--retain', 'daily'])).err).toContain('Expected rules as AGE:EVERY')
  })

  it.each([
    [['backup', 'now'], {}, 7, 'The operation needs the role backup. Give an identity'],
    [['backup', 'list'], { ZABRA_BACKUP_TARGET: '' }, 2, 'Name it with --target or ZABRA_BACKUP_TARGET'],
    [
      ['backup', 'list', '--target', 'ftp://host/x'],
      { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' },
      2,
      'Expected an absolute folder',
    ],
    [['backup', 'list', '--target', 's3://bucket'], {}, 2, 'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
    [['backup', 'show'], {}, 1, 'Expected a backup in the target, got none'],
    [['restore'], {}, 2, 'Expected --to with a data folder, --replace, or --path with a subtree, got none'],
    [['restore', '--path', '/zookeeper/config'], {}, 2, 'belongs to the server'],
    [
      ['backup', 'now', '--admin', 'http://127.0.0.1:1'],
      {},
      8,
      'Check that the HTTP port of a server is there',
    ],
    [['backup', 'now', '--admin', 'ftp://a'], {}, 2, 'Expected the HTTP port of a server in --admin'],
    [['restore', '--to', 'x', '--at', 'yesterday'], {}, 2, 'Expected a time such as 2026-11-23T01:00:00Z'],
  ] as const)('%j is refused with what to do', async (argv, environment, code, message) => {
    const result = await run(argv, environment as Record<string, string>)
    expect(result.err).toContain(message)
    expect(result.code).toBe(code)
  })
})

describe('zabra snapshot take', () => {
  it('takes a snapshot in the data folder of a running server', async () => {
    const out = await succeed('snapshot', 'take')
    const [, file] = /^(snapshot\.\w+): \d+ bytes\n$/.exec(out)!
    expect(readdirSync(join(stage.folder, 'data', 'version-2'))).toContain(file)
    expect((await run(['snapshot', 'take'])).code).toBe(7)
  })

  it('waits for a snapshot that takes longer than other answers may', async () => {
    const stub = createHttpServer()
    let answer = (): void => {}
    const asked = new Promise<void>((resolve) => {
      stub.on('request', (request, response) => {
        if (request.method !== 'POST') return
        answer = () => void response.end('{"file": "snapshot.1", "zxid": "0x1", "bytes": 7}')
        resolve()
      })
    })
    stub.listen(0, '127.0.0.1')
    await once(stub, 'listening')
    const admin = [
      '--admin',
      `http://127.0.0.1:${(stub.address() as AddressInfo).port}`,
      '--timeout',
      '100ms',
    ]
    const taking = run(['snapshot', 'take', ...admin])
    await asked
    // Three times as long as what has the same timeout, and is not answered.
    for (let i = 0; i < 3; i++)
      expect((await run(['admin', 'log-level', ...admin])).err).toContain('no answer within 100 ms')
    answer()
    expect(await taking).toMatchObject({ code: 0, out: 'snapshot.1: 7 bytes\n' })
    stub.close()
  })
})
