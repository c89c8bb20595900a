import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Interrupted } from './exit-codes.ts'
import { CliFixture, setupStage, stage } from './testing/cli-fixture.ts'

setupStage()

const dataOf = async (path: string) => {
  const { data, isNull } = await stage.zk.getData(path)
  return isNull ? null : Buffer.from(data).toString()
}

/** Returns the name of the newest snapshot in a data folder. */
const newest = (folder: string): string =>
  readdirSync(join(folder, 'version-2'))
    .filter((name) => name.startsWith('snapshot.'))
    .sort((a, b) => Number.parseInt(a.slice(9), 16) - Number.parseInt(b.slice(9), 16))
    .at(-1)!

describe('create', () => {
  it('creates a node and prints its path', async () => {
    expect(await stage.run(['create', '/c', 'data'])).toMatchObject({ code: 0, out: '/c\n' })
    expect(await dataOf('/c')).toBe('data')
    expect(await stage.run(['create', '/c'])).toMatchObject({ code: 4, err: 'zabra: /c exists already.\n' })
  })

  it('creates missing parents with --parents', async () => {
    expect((await stage.run(['create', '/p/q/r', 'x'])).code).toBe(3)
    expect((await stage.run(['create', '/p/q/r', 'x', '--parents'])).out).toBe('/p/q/r\n')
    expect(await dataOf('/p/q')).toBe('')
  })

  it('reads data from a file, and from standard input byte for byte', async () => {
    const file = join(stage.folder, 'data.bin')
    writeFileSync(file, new Uint8Array([1, 0xfe]))
    await stage.run(['create', '/file', '--file', file])
    expect((await stage.zk.getData('/file')).data).toEqual(new Uint8Array([1, 0xfe]))
    await stage.run(['create', '/stdin', '--file', '-'], { input: new Uint8Array([9, 0xff]) })
    expect((await stage.zk.getData('/stdin')).data).toEqual(new Uint8Array([9, 0xff]))
    expect(await stage.run(['create', '/both', 'x', '--file', file])).toMatchObject({
      code: 2,
      err: 'zabra: Expected data or --file, got both. Give one of them.\n',
    })
    expect((await stage.run(['create', '/none', '--file', '/no/such/file'])).err).toMatch(
      /Cannot read \/no\/such\/file \(ENOENT\)\. Check the path/,
    )
  })

  it('warns about data larger than most servers accept', async () => {
    const { err } = await stage.run(['create', '/big', '--file', '-'], { input: 'x'.repeat(1_100_000) })
    expect(err).toContain('1100000 bytes are more than most servers accept')
  })

  it('creates nodes in every create mode', async () => {
    await stage.createNodes({ '/kinds': null })
    expect((await stage.run(['create', '/kinds/s-', '-s'])).out).toMatch(/^\/kinds\/s-\d{10}\n$/)
    expect((await stage.run(['create', '/kinds/c', '-c'])).code).toBe(0)
    expect((await stage.run(['create', '/kinds/t', '-t', '60000'])).code).toBe(0)
    expect((await stage.run(['create', '/kinds/h', '--ttl', '1h'])).code).toBe(0)
    expect((await stage.run(['create', '/kinds/e', '-e'])).code).toBe(0)
    // Its session has ended with the command.
    expect(await stage.zk.exists('/kinds/e')).toBeUndefined()
    expect(await stage.run(['create', '/kinds/x', '-c', '-e'])).toMatchObject({ code: 2 })
    expect(await stage.run(['create', '/kinds/x', '-t', '5', '-e'])).toMatchObject({ code: 2 })
    expect((await stage.run(['create', '/kinds/x', '-t', 'soon'])).err).toContain(
      'Expected a time from 1 to 1099511627775 ms, such as',
    )
  })

  it('sets the given access list, and refuses an invalid one with an explanation', async () => {
    await stage.run(['create', '/acl', '--acl', 'world:anyone:r,ip:::1/128:cdrwa'])
    expect((await stage.zk.getACL('/acl')).acl).toEqual([
      { perms: 1, scheme: 'world', id: 'anyone' },
      { perms: 31, scheme: 'ip', id: '::1/128' },
    ])
    expect(await stage.run(['create', '/x', '--acl', 'world:anyone'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected an access list as scheme:id:perms'),
    })
  })
})

describe('set and setAcl', () => {
  it('set changes the data if the version matches', async () => {
    await stage.createNodes({ '/set': 'a' })
    expect(await stage.run(['set', '/set', 'b', '-v', '0'])).toMatchObject({ code: 0, out: '' })
    expect(await stage.run(['set', '/set', 'c', '-v', '0'])).toMatchObject({
      code: 5,
      err: expect.stringContaining('/set has another version than the one given'),
    })
    expect((await stage.run(['set', '/set', 'c', '--version', '0'])).code).toBe(5)
    expect((await stage.run(['delete', '/set', '--version', '0'])).code).toBe(5)
    expect(await stage.run(['set', '/set', 'c', '--version'])).toMatchObject({ code: 2, out: '' })
    expect(await dataOf('/set')).toBe('b')
    expect((await stage.run(['set', '/set', '', '-s'])).out).toContain('dataLength = 0\n')
    expect(await stage.run(['set', '/set'])).toMatchObject({ code: 2 })
  })

  it('setAcl -R changes every node of the subtree, and a client without permission gets exit code 7', async () => {
    await stage.createNodes({ '/acls': null, '/acls/a': null, '/acls/a/b': null })
    const { out } = await stage.run([
      'setAcl',
      '-R',
      '/acls',
      'digest:ada:pgVEJwJfWMFqBPQ41rR9Ao0Tq4A=:cdrwa',
      '--json',
    ])
    expect(JSON.parse(out)).toEqual({ changed: 3 })
    expect(await stage.run(['get', '/acls/a/b'])).toMatchObject({
      code: 7,
      err: expect.stringContaining('No permission for /acls/a/b'),
    })
  })
})

describe('delete and deleteall', () => {
  it('delete deletes nodes without children and explains why it refuses others', async () => {
    await stage.createNodes({ '/d': null, '/d/e': null })
    expect(await stage.run(['delete', '/d'])).toMatchObject({
      code: 6,
      err: expect.stringContaining('zabra delete-all'),
    })
    expect((await stage.run(['delete', '/d/e', '/d'])).code).toBe(0)
    expect((await stage.run(['delete', '/d'])).code).toBe(3)
    expect((await stage.run(['delete', '/d', '--missing-ok'])).code).toBe(0)
    expect(await stage.run(['delete', '/d', '/'])).toMatchObject({
      code: 2,
      err: 'zabra: / is needed by the server and cannot be deleted. Name nodes below it.\n',
    })
  })

  it('deleteall deletes a subtree in batches', async () => {
    await stage.createNodes({ '/all': null })
    for (let i = 0; i < 25; i++) await stage.createNodes({ [`/all/${i}`]: null, [`/all/${i}/x`]: null })
    const { out } = await stage.run(['deleteall', '/all', '--batch', '7', '--json'])
    expect(JSON.parse(out)).toEqual({ deleted: 51 })
    expect(await stage.zk.exists('/all')).toBeUndefined()
    expect((await stage.run(['deleteall', '/all'])).code).toBe(3)
  })

  it('deleteall deletes nodes with long paths', async () => {
    const deep = `/long/${'x'.repeat(1000)}`
    await stage.createNodes({ '/long': null, [deep]: null })
    await Promise.all(
      Array.from({ length: 600 }, (_, i) =>
        stage.zk.create(`${deep}/${i}-${'y'.repeat(1000)}`, { data: null }),
      ),
    )
    expect((await stage.run(['deleteall', '/long', '--json'])).out).toBe('{"deleted":602}\n')
  })

  it('deleteall refuses the nodes that the server needs', async () => {
    for (const path of ['/', '/zookeeper', '/zookeeper/quota'])
      expect(await stage.run(['deleteall', path])).toMatchObject({ code: 2 })
  })
})

describe('quota', () => {
  it('sets, lists and deletes limits', async () => {
    await stage.createNodes({ '/q': 'abc', '/q/r': 'de' })
    expect((await stage.run(['quota', 'set', '/q', '--nodes', '5', '--hard-bytes', '6'])).code).toBe(0)
    expect((await stage.run(['quota', 'list', '/q'])).out).toBe(
      'path  nodes  warn at  refuse at  bytes  warn at  refuse at\n/q        2        5          -      5        -          6\n',
    )
    await stage.run(['quota', 'set', '/q', '--bytes', '4'])
    expect(JSON.parse((await stage.run(['quota', 'list', '--json'])).out)).toEqual({
      path: '/q',
      limits: { count: 5, bytes: 4, countHardLimit: -1, byteHardLimit: 6 },
      used: { count: 2, bytes: 5, countHardLimit: -1, byteHardLimit: -1 },
    })
    expect((await stage.run(['quota', 'del', '/q'])).code).toBe(0)
    expect((await stage.run(['quota', 'del', '/q'])).code).toBe(3)
  })

  it('refuses nested quotas and a call without limits', async () => {
    await stage.run(['quota', 'set', '/q', '-n', '5'])
    expect(await stage.run(['quota', 'set', '/q/r', '-n', '5'])).toMatchObject({
      code: 9,
      err: expect.stringContaining('/q above /q/r has a quota'),
    })
    await stage.run(['quota', 'del', '/q'])
    await stage.run(['quota', 'set', '/q/r', '-n', '5'])
    expect((await stage.run(['quota', 'set', '/q', '-n', '5'])).err).toContain('/q/r below /q has a quota')
    expect((await stage.run(['quota', 'set', '/q'])).code).toBe(2)
  })
})

describe('watch', () => {
  it('prints changes as they happen and exits after --count of them', async () => {
    await stage.createNodes({ '/w': null })
    const watching = stage.start(['watch', '-R', '/w', '--count', '3', '--json'])
    await watching.stderr.until(/watching \/w/)
    await stage.createNodes({ '/w/a': '1' })
    await stage.zk.setData('/w/a', null)
    await stage.zk.delete('/w/a')
    const { code, out } = await watching.ended
    expect(code).toBe(0)
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toMatchObject([
      { type: 'nodeCreated', path: '/w/a' },
      { type: 'nodeDataChanged', path: '/w/a' },
      { type: 'nodeDeleted', path: '/w/a' },
    ])
  })

  it('reports a lost and restored connection, and that changes may be missing', async () => {
    const other = await CliFixture.start()
    const { port } = other.server.addresses.client
    const watching = other.start(['watch', '/'])
    await watching.stderr.until(/watching/)
    await other.restart(port)
    await watching.stdout.until(/resync \/: changes may be missing \(reconnected\)/)
    expect(watching.stderr.text).toMatch(/the connection to \S+ was lost; reconnecting\n.*reconnected to/)
    watching.stop.abort(new Interrupted('SIGTERM'))
    expect((await watching.ended).code).toBe(143)
    await other.stop()
  })

  it('closes its session when it is interrupted', async () => {
    const sessions = stage.server.stats().sessions
    const watching = stage.start(['watch', '/w'])
    await watching.stderr.until(/watching/)
    expect(stage.server.stats().sessions).toBe(sessions + 1)
    watching.stop.abort(new Interrupted('SIGINT'))
    expect(await watching.ended).toMatchObject({ code: 130 })
    expect(stage.server.stats().sessions).toBe(sessions)
  })
})

describe('export and import', () => {
  const bytes = new Uint8Array([0, 1, 0xff])

  it('restore a subtree exactly', async () => {
    await stage.createNodes({
      '/x': '',
      '/x/text': 'ä\n"',
      '/x/bytes': bytes,
      '/x/null': null,
      '/x/null/deep': 'd',
    })
    await stage.zk.create('/x/gone', { data: null, mode: 'ephemeral' })
    const acl = [
      { perms: 1, scheme: 'world', id: 'anyone' },
      { perms: 31, scheme: 'ip', id: '127.0.0.1' },
    ]
    await stage.zk.setACL('/x/null', acl)
    const exported = await stage.run(['export', '/x'])
    expect(exported).toMatchObject({ code: 0, err: expect.stringContaining('left out 1 ephemeral node, ') })
    const imported = await stage.run(['import', '-', '/y/deeper'], { input: exported.out })
    expect(imported).toMatchObject({ code: 0, err: 'zabra: created 6, replaced 0, left 0 unchanged\n' })
    const again = await stage.run(['export', '/y/deeper'])
    expect(again.out.split('\n').slice(1)).toEqual(exported.out.split('\n').slice(1))
    expect((await stage.zk.getData('/y/deeper/bytes')).data).toEqual(bytes)
    expect((await stage.zk.getData('/y/deeper')).data).toEqual(new Uint8Array(0))
    expect((await stage.zk.getData('/y/deeper/null')).isNull).toBe(true)
    expect((await stage.zk.getACL('/y/deeper/null')).acl).toEqual(acl)
  })

  it('add a temporary access list entry for this client to a node that forbids children, and remove it afterwards', async () => {
    const node = (path: string) =>
      JSON.stringify({ path, data: 's', acl: [{ scheme: 'digest', id: 'ada:x', perms: 'r' }] })
    const { code } = await stage.run(['import'], { input: `${node('/shut')}\n${node('/shut/in')}\n` })
    expect(code).toBe(0)
    const log = await stage.run(['log', join(stage.folder, 'data'), '--path', '/shut'])
    expect(log.out).toContain('create /shut 1 bytes acl digest:ada:x:r,ip:127.0.0.1:cdra')
    expect(log.out).not.toContain('world')
    expect(log.out).toMatch(/setACL \/shut version 1 acl digest:ada:x:r\n/)
  })

  it('restore containers and TTL nodes with their types from a snapshot', async () => {
    await stage.zk.create('/sorts', { data: null, mode: 'container' })
    await stage.zk.create('/sorts/plain', { data: null })
    await stage.zk.create('/sorts/timed', { data: null, mode: 'persistentWithTtl', ttlMs: 3_600_000 })
    await stage.zk.create('/sorts/mine', { data: null, mode: 'ephemeral' })
    await stage.server.snapshot()
    const data = join(stage.folder, 'data')
    const { code, out, err } = await stage.run(['export', '/sorts', '--from', data])
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('left out 1 ephemeral node, ') })
    expect(err).toMatch(/reading snapshot\.[\da-f]+ and \d+ transactions of the log, up to 0x/)
    const { err: ofFile } = await stage.run([
      'export',
      '/sorts',
      '--from',
      join(data, 'version-2', newest(data)),
    ])
    expect(ofFile).toContain('are in the logs and not in it')
    expect(out.split('\n').map((line) => /"container":true|"ttl":\d+/.exec(line)?.[0])).toEqual([
      undefined,
      '"container":true',
      undefined,
      '"ttl":3600000',
      undefined,
      undefined,
    ])
    expect((await stage.run(['import', '-', '/sorts-2'], { input: out })).code).toBe(0)
    await stage.server.snapshot()
    const again = await stage.run(['export', '/sorts-2', '--from', data])
    expect(again.out.split('\n').slice(1)).toEqual(out.split('\n').slice(1))
    expect(await stage.run(['export', '/none', '--from', data])).toMatchObject({ code: 3 })
    expect(await stage.run(['export', '--from', '/no/such'])).toMatchObject({ code: 2 })
  })

  it('from a data folder hold what its log has after the newest snapshot, also with the logs in another folder', async () => {
    await stage.zk.create('/late', { data: new TextEncoder().encode('before') })
    await stage.server.snapshot()
    await stage.zk.setData('/late', new TextEncoder().encode('after'))
    await stage.zk.create('/late/child', { data: null })
    const data = join(stage.folder, 'data')
    const split = join(stage.folder, 'split')
    for (const [folder, kind] of [
      ['snapshots', 'snapshot.'],
      ['logs', 'log.'],
    ] as const) {
      mkdirSync(join(split, folder, 'version-2'), { recursive: true })
      for (const name of readdirSync(join(data, 'version-2')).filter((one) => one.startsWith(kind)))
        copyFileSync(join(data, 'version-2', name), join(split, folder, 'version-2', name))
    }
    const fromSplit = ['--from', join(split, 'snapshots'), '--logs', join(split, 'logs')]
    for (const source of [['--from', data], ['--from', join(data, 'version-2')], fromSplit]) {
      const { code, out } = await stage.run(['export', '/late', ...source])
      const lines = out
        .trim()
        .split('\n')
        .slice(1, -1)
        .map((line) => JSON.parse(line) as object)
      expect([code, lines]).toMatchObject([
        0,
        [
          { path: '/', data: 'after' },
          { path: '/child', data: null },
        ],
      ])
    }
    expect(await stage.run(['export', '/late', '--logs', data])).toMatchObject({ code: 2 })
    // Logs without any snapshot are no state from which a server would start.
    expect(await stage.run(['export', '/', '--from', join(split, 'logs')])).toMatchObject({ code: 17 })
    await stage.zk.delete('/late/child')
    await stage.zk.delete('/late')
  })

  it('import to the exported path by default', async () => {
    const { out } = await stage.run(['export', '/x/null'])
    await stage.run(['deleteall', '/x/null'])
    expect((await stage.run(['import'], { input: out })).code).toBe(0)
    expect(await dataOf('/x/null/deep')).toBe('d')
  })

  it('show progress on a terminal only', async () => {
    const file = join(stage.folder, 'bar.jsonl')
    const { err } = await stage.run(['export', '/x', '-o', file], { terminal: true })
    expect(err).toMatch(/Exporting \[=* *\] \d+ %, \d+ of \d+ nodes/)
    expect((await stage.run(['export', '/x', '-o', `${file}.2`])).err).not.toContain('Exporting')
  })

  it('refuse a truncated export', async () => {
    const { out } = await stage.run(['export', '/x'])
    const lines = out.trimEnd().split('\n')
    expect(lines.at(-1)).toBe(`{"zabra":"end","nodes":${lines.length - 2}}`)
    const input = lines.slice(0, -1).join('\n')
    expect(await stage.run(['import', '-', '/part'], { input })).toMatchObject({
      code: 2,
      err: expect.stringContaining('the export is truncated. Export again.'),
    })
    expect(await stage.zk.exists('/part')).toBeUndefined()
  })

  it('delete the file of a failed export', async () => {
    const file = join(stage.folder, 'part.jsonl')
    expect((await stage.run(['export', '/none-such', '-o', file])).code).toBe(3)
    expect(existsSync(file)).toBe(false)
  })

  it.each<[flags: string[], expected: RegExp, unexpected: RegExp]>([
    [
      [],
      /^zabra: an import does not restore: ephemeral nodes; container and TTL nodes.*; versions, zxids and times;.*\n/,
      /\n.*does not restore/,
    ],
    [['--ephemeral'], /restore: ephemeral nodes, which become persistent;/, /left out/],
    [['--from', 'data'], /restore: ephemeral nodes; versions, zxids/, /container and TTL/],
  ])(
    'with %j say once what an import does not restore, in the head too',
    async (flags, expected, unexpected) => {
      await stage.server.snapshot()
      const ran = await stage.run([
        'export',
        '/x',
        ...flags.map((flag) => (flag === 'data' ? join(stage.folder, flag) : flag)),
      ])
      expect(ran.code).toBe(0)
      const notes = ran.err
        .split('\n')
        .filter((line) => line.includes('does not restore'))
        .join('\n')
      expect(`${notes}\n`).toMatch(expected)
      expect(notes).not.toMatch(unexpected)
      const { notKept } = JSON.parse(ran.out.split('\n', 1)[0]!) as { notKept: string[] }
      expect(notes).toBe(`zabra: an import does not restore: ${notKept.join('; ')}`)
    },
  )

  it('write to a new file and never overwrite one', async () => {
    const file = join(stage.folder, 'x.jsonl')
    expect((await stage.run(['export', '/x', '-o', file])).code).toBe(0)
    const [head = ''] = readFileSync(file, 'utf8').split('\n')
    expect(JSON.parse(head)).toMatchObject({ zabra: 'export', version: 1, root: '/x' })
    expect(await stage.run(['export', '/x', '-o', file])).toMatchObject({
      code: 2,
      err: expect.stringContaining('EEXIST'),
    })
  })

  it('a dry run prints the changes and makes none', async () => {
    const input = '{"path":"/new/a","data":"1","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}\n'
    const dry = await stage.run(['import', '--dry-run'], { input })
    expect(dry).toMatchObject({ code: 0, out: 'create /new (empty parent)\ncreate /new/a\n' })
    expect(await stage.zk.exists('/new')).toBeUndefined()
  })

  it('change nothing on a conflict, unless called with --skip or --replace', async () => {
    await stage.createNodes({ '/z': 'old', '/z/same': 'same' })
    const node = (path: string, data: string) =>
      JSON.stringify({ path, data, acl: [{ scheme: 'world', id: 'anyone', perms: 'cdrwa' }] })
    const input = `${node('/z', 'new')}\n${node('/z/same', 'same')}\n${node('/z/b', 'b')}\n`
    expect(await stage.run(['import'], { input })).toMatchObject({
      code: 4,
      err: expect.stringContaining(
        '/z exist and differ from the export, or may not be read; nothing was changed',
      ),
    })
    expect(await stage.zk.exists('/z/b')).toBeUndefined()
    expect(await stage.run(['import', '--skip'], { input })).toMatchObject({
      err: 'zabra: created 1, replaced 0, left 2 unchanged\n',
    })
    expect(await dataOf('/z')).toBe('old')
    expect(await stage.run(['import', '--replace'], { input })).toMatchObject({
      err: 'zabra: created 0, replaced 1, left 2 unchanged\n',
    })
    expect(await dataOf('/z')).toBe('new')
  })

  it('never touch the nodes of the server', async () => {
    const { out } = await stage.run(['export', '/'])
    expect(out).not.toContain('"path":"/zookeeper')
    const input =
      '{"path":"/zookeeper/quota/evil","data":"x","acl":[{"scheme":"world","id":"anyone","perms":"r"}]}\n'
    expect(await stage.run(['import'], { input })).toMatchObject({
      code: 0,
      err: expect.stringContaining('left out 1 nodes in /zookeeper'),
    })
    expect(await stage.zk.exists('/zookeeper/quota/evil')).toBeUndefined()
    expect((await stage.run(['import', '-', '/zookeeper'], { input })).code).toBe(2)
  })

  it.each([
    ['{"path":"/a"', 'standard input:1: Expected a line of JSON'],
    [
      '{"path":"a","data":null,"acl":[{"scheme":"world","id":"anyone","perms":"r"}]}',
      'Expected a path that starts with /',
    ],
    [
      '{"path":"/a","data":null,"ttl":0,"acl":[{"scheme":"world","id":"anyone","perms":"r"}]}',
      'Expected "ttl" to be whole milliseconds from 1',
    ],
    [
      '{"path":"/a","data":null,"ttl":5,"container":true,"acl":[{"scheme":"world","id":"anyone","perms":"r"}]}',
      'Expected "container" to be true and without "ttl"',
    ],
    [
      '{"path":"/a","data":7,"acl":[{"scheme":"world","id":"anyone","perms":"r"}]}',
      'Expected "data" with a text or null',
    ],
    ['{"path":"/a","base64":"!","acl":[{"scheme":"world","id":"anyone","perms":"r"}]}', 'got neither'],
    ['{"path":"/a","data":null,"acl":[]}', 'Expected an access list'],
    [
      '{"path":"/a","data":null,"acl":[{"scheme":"world","id":"anyone","perms":"z"}]}',
      'Expected an entry such as',
    ],
    ['{"zabra":"export","version":2,"root":"/"}', 'Expected an export of version 1, got 2'],
    ['', 'Expected at least one node, got none'],
  ])('refuse %s with an explanation', async (input, message) => {
    const { code, err } = await stage.run(['import'], { input })
    expect(err).toContain(message)
    expect(code).toBe(2)
  })
})

describe('without a server', () => {
  it('names the unreachable servers and exits with 8', async () => {
    expect(await stage.run(['ls', '--server', '127.0.0.1:1,127.0.0.1:2'])).toMatchObject({
      code: 8,
      err: 'zabra: Cannot connect to 127.0.0.1:1 (ECONNREFUSED); Cannot connect to 127.0.0.1:2 (ECONNREFUSED). Check that a server is running there, or name another one with --server or ZABRA_SERVER.\n',
    })
  })

  it('reports a connection timeout and a missing chroot', async () => {
    const silent = createServer((socket) => void socket.on('error', () => {}))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const server = `127.0.0.1:${(silent.address() as { port: number }).port}`
    const { code, err } = await stage.run(['ls', '--server', server, '--timeout', '100'])
    expect(code).toBe(8)
    expect(err).toContain(server)
    expect(err).toMatch(/did not answer within|No answer came within 100 ms/)
    silent.close()
    expect(await stage.run(['ls', '--server', `${stage.address}/none`])).toMatchObject({
      code: 3,
      err: 'zabra: The root path (chroot) after the servers in --server or ZABRA_SERVER does not exist.\n',
    })
  })

  it('exits with 7 for refused credentials', async () => {
    expect(await stage.run(['ls', '--auth', 'nosuch:secret'])).toMatchObject({
      code: 7,
      err: 'zabra: The server refused the credentials. Check --auth and ZABRA_AUTH, or log in with --sasl-user.\n',
    })
  })

  it('tries the next server of the list, and uses the chroot', async () => {
    await stage.createNodes({ '/root': null, '/root/leaf': 'x' })
    const server = `127.0.0.1:1,${stage.address}/root`
    expect(await stage.run(['ls', '-R', '/', '--server', server])).toMatchObject({ out: '/\n/leaf\n' })
    expect((await stage.run(['create', '/more', '--server', server])).out).toBe('/more\n')
    expect(await stage.zk.exists('/root/more')).toBeDefined()
  })

  it.each(['host:0', 'host:port', ':2181', '', 'host:2181/a/'])(
    'refuses the address "%s"',
    async (server) => {
      expect(await stage.run(['ls', '--server', server])).toMatchObject({ code: 2 })
    },
  )
})
