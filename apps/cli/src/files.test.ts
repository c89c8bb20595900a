import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createServer } from '@zabra/server'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CliFixture, CommandRun, setupStage, stage, type RunResult } from './testing/cli-fixture.ts'

setupStage({ preAllocSizeBytes: 0 })
let original: string
let data: string
let log: string
let number = 0

beforeAll(async () => {
  await stage.zk.create('/a', { data: new TextEncoder().encode('hidden') })
  await stage.zk.create('/a/b', { data: null, mode: 'ephemeral' })
  await stage.zk.multi([
    { op: 'setData', path: '/a', data: null },
    { op: 'create', path: '/c', data: new Uint8Array([0xff]) },
  ])
  await stage.zk.setACL('/c', [{ perms: 1, scheme: 'world', id: 'anyone' }])
  await stage.zk.delete('/c')
  await stage.zk.close()
  await stage.server.close()
  original = join(stage.folder, 'data', 'version-2')
})

beforeEach(() => {
  data = join(stage.folder, `copy-${number++}`)
  mkdirSync(join(data, 'version-2'), { recursive: true })
  for (const name of readdirSync(original)) copyFileSync(join(original, name), join(data, 'version-2', name))
  log = join(data, 'version-2', 'log.1')
})

const run = (...argv: string[]): Promise<RunResult> => new CommandRun(argv, undefined, { input: '' }).ended

/** The offset of each entry, by reading lengths as the format has them. */
function offsets(): number[] {
  const bytes = readFileSync(log)
  const found: number[] = []
  for (
    let at = 16;
    at + 12 < bytes.length && bytes.readInt32BE(at + 8) > 0;
    at += 13 + bytes.readInt32BE(at + 8)
  )
    found.push(at)
  return found
}

function damage(at: number): void {
  const bytes = readFileSync(log)
  bytes[at]! ^= 0xff
  writeFileSync(log, bytes)
}

describe('log', () => {
  it('prints every transaction on a line, without data', async () => {
    const { code, out } = await run('log', data)
    expect(code).toBe(0)
    const said = out
      .trim()
      .split('\n')
      .map((line) => line.replace(/^\S+Z session (0x[0-9a-f]+) cxid \S+ /, ''))
    expect(said).toEqual([
      'zxid 0x1 createSession timeout 10000 ms',
      'zxid 0x2 create /a 6 bytes acl world:anyone:cdrwa',
      'zxid 0x3 create /a/b 0 bytes ephemeral acl world:anyone:cdrwa',
      'zxid 0x4 multi [setData /a 0 bytes version 1; create /c 1 bytes acl world:anyone:cdrwa]',
      'zxid 0x5 setACL /c version 1 acl world:anyone:r',
      'zxid 0x6 delete /c',
      'zxid 0x7 closeSession deletes /a/b',
    ])
    expect(out).not.toContain('hidden')
  })

  it('prints data, one node, one session or JSON on request', async () => {
    expect((await run('log', log, '--data', '--path', '/a')).out.split('\n')).toMatchObject([
      expect.stringContaining('create /a data "hidden"'),
      expect.stringContaining('/a/b'),
      expect.stringContaining('create /c data 0xff'),
      expect.stringContaining('closeSession'),
      '',
    ])
    expect((await run('log', log, '--session', '0x7')).out).toBe('')
    const lines = (await run('log', log, '--json')).out.trim().split('\n')
    expect(JSON.parse(lines[1]!)).toMatchObject({ zxid: '0x2', type: 'create2', path: '/a', bytes: 6 })
  })

  it('--check reports a sound file', async () => {
    expect(await run('log', '--check', data)).toMatchObject({
      code: 0,
      out: `${log}: sound, 7 transactions, 0x1 to 0x7\n`,
    })
  })

  it('--check prints the first bad byte of a damaged file and exits with 17', async () => {
    const at = offsets()[3]!
    damage(at + 50)
    const { code, out } = await run('log', '--check', data)
    expect(code).toBe(17)
    expect(out).toMatch(
      new RegExp(`damaged, 3 transactions, 0x1 to 0x3\n {2}first bad byte ${at}: Expected an entry`),
    )
    expect((await run('log', data)).out.trim().split('\n')).toHaveLength(3)
  })

  it('--check reports transactions missing between two files', async () => {
    const at = offsets()[2]!
    const bytes = readFileSync(log)
    const next = offsets()[4]!
    writeFileSync(
      join(data, 'version-2', 'log.5'),
      Buffer.concat([bytes.subarray(0, 16), bytes.subarray(next)]),
    )
    truncateSync(log, at)
    const { code, err } = await run('log', '--check', data)
    expect(code).toBe(17)
    expect(err).toContain('Transactions 0x3 to 0x4 are missing between')
  })

  it('--repair cuts a torn write, keeps a copy and leaves a file that a server can recover from', async () => {
    truncateSync(log, readFileSync(log).length - 5)
    const { code, out } = await run('log', '--repair', data)
    expect(code).toBe(0)
    expect(out).toContain('kept 6 transactions')
    expect(out).toContain(join(data, 'version-2', 'backup.log.1.1'))
    expect((await run('log', '--check', data)).out).toContain('sound, 6 transactions')
    expect((await run('log', '--repair', data)).out).toContain('sound, nothing to do')
    expect(existsSync(join(data, 'zabra.lock'))).toBe(false)
  })

  it('--repair --output does not change the file', async () => {
    truncateSync(log, readFileSync(log).length - 5)
    const before = readFileSync(log)
    const output = join(data, 'mended')
    expect((await run('log', '--repair', log, '--output', output)).code).toBe(0)
    expect(readFileSync(log)).toEqual(before)
    expect((await run('log', '--check', output)).out).toContain('sound, 6 transactions')
  })

  it('--repair refuses to drop acknowledged transactions without --force', async () => {
    const before = readFileSync(log)
    damage(offsets()[3]! + 50)
    const refused = await run('log', '--repair', data)
    expect(refused).toMatchObject({ code: 17, err: expect.stringContaining('repair with --force') })
    expect(readFileSync(log)).toHaveLength(before.length)
    expect((await run('log', '--repair', '--force', data)).code).toBe(0)
    expect((await run('log', '--check', data)).out).toContain('sound, 3 transactions')
    expect(readFileSync(join(data, 'version-2', 'backup.log.1.1'))).toHaveLength(before.length)
  })

  it('--repair says which file it cannot look at, below one that is no folder', async () => {
    const file = join(log, 'log.1')
    expect(await run('log', '--repair', file)).toMatchObject({
      err: expect.stringContaining(`Cannot look at ${file}: ENOTDIR`),
    })
  })

  it('--repair refuses a folder in use by a server, by whatever name', async () => {
    const busy = await CliFixture.start()
    try {
      const folder = join(busy.folder, 'data', 'version-2')
      const file = readdirSync(folder).find((name) => name.startsWith('log.'))!
      const links = join(busy.folder, 'links')
      mkdirSync(join(links, 'data'), { recursive: true })
      symlinkSync(folder, join(links, 'folder'))
      symlinkSync(folder, join(links, 'data', 'version-2'))
      symlinkSync(join(folder, file), join(links, file))
      for (const path of [
        join(folder, file),
        ...['folder', `folder/${file}`, 'data', file].map((name) => join(links, name)),
      ])
        expect([path, await run('log', '--repair', path)]).toMatchObject([
          path,
          { code: 1, err: expect.stringContaining('is in use by') },
        ])
      expect(readdirSync(join(links, 'data'))).toEqual(['version-2'])
    } finally {
      await busy.stop()
    }
  })

  it('refuses an invalid path and conflicting options with an explanation', async () => {
    expect(await run('log', '/no/such')).toMatchObject({ code: 2, err: expect.stringContaining('ENOENT') })
    expect(await run('log', stage.folder)).toMatchObject({
      code: 2,
      err: expect.stringContaining('Expected files named log.<zxid>'),
    })
    expect((await run('log', data, '--force')).code).toBe(2)
    expect((await run('log', data, '--check', '--repair')).code).toBe(2)
    expect((await run('log', data, '--session', 'x')).code).toBe(2)
  })
})

describe('log --chop', () => {
  it('writes the transactions up to a zxid to a new file and leaves the log as it is', async () => {
    const before = readFileSync(log)
    const output = join(data, 'chopped.log')
    expect(await run('log', log, '--chop', '0x4', '-o', output)).toMatchObject({
      code: 0,
      out: `${output}: 4 transactions up to 0x4\n`,
    })
    expect((await run('log', '--check', output)).out).toContain('sound, 4 transactions, 0x1 to 0x4')
    expect(readFileSync(log)).toEqual(before)
    const all = join(data, 'all.log')
    truncateSync(log, readFileSync(log).length - 1)
    expect((await run('log', log, '--chop', '7', '-o', all)).code).toBe(0)
    expect((await run('log', '--check', all)).out).toContain('sound, 7 transactions')
  })

  it('refuses a transaction that the log does not hold, a missing or existing output, and damage before it', async () => {
    const output = join(data, 'chopped.log')
    const missing = await run('log', log, '--chop', '0x99', '-o', output)
    expect(missing).toMatchObject({
      code: 2,
      err: expect.stringContaining('which holds 0x1 to 0x7, got 0x99'),
    })
    expect(await run('log', log, '--chop', '0x4')).toMatchObject({ code: 2 })
    expect(await run('log', log, '--chop', 'zz', '-o', output)).toMatchObject({ code: 2 })
    writeFileSync(output, 'mine')
    expect((await run('log', log, '--chop', '0x4', '-o', output)).code).not.toBe(0)
    expect(readFileSync(output, 'utf8')).toBe('mine')
    damage(offsets()[2]! + 50)
    expect(await run('log', log, '--chop', '0x4', '-o', join(data, 'other.log'))).toMatchObject({ code: 17 })
    expect(existsSync(join(data, 'other.log'))).toBe(false)
  })
})

describe('snapshot', () => {
  it('prints summary and nodes of the newest snapshot in a folder', async () => {
    const { code, out } = await run('snapshot', data)
    expect(code).toBe(0)
    expect(out).toMatch(
      /^.*snapshot\.0: 4 nodes and 0 sessions, as of transaction 0x0\n\/ 0 bytes children 1 /,
    )
    const json = await run('snapshot', data, '--json', '--path', '/zookeeper')
    const [facts, first] = json.out.split('\n')
    expect(JSON.parse(facts!)).toMatchObject({ zxid: '0x0', nodes: 4, sessions: [] })
    expect(JSON.parse(first!)).toMatchObject({ path: '/zookeeper', bytes: 0, acl: 'world:anyone:cdrwa' })
  })

  it('--check distinguishes sound and damaged snapshots', async () => {
    expect(await run('snapshot', '--check', data)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/snapshot\.0: sound, 4 nodes/),
    })
    const file = join(data, 'version-2', 'snapshot.0')
    const bytes = readFileSync(file)
    bytes[100]! ^= 1
    writeFileSync(file, bytes)
    expect(await run('snapshot', '--check', data)).toMatchObject({
      code: 17,
      out: expect.stringMatching(/damaged, first bad byte \d+: /),
      err: expect.stringContaining('1 of 1 snapshot is damaged'),
    })
    expect(await run('snapshot', data)).toMatchObject({ code: 17 })
  })

  it('--compare prints what differs in a later snapshot', async () => {
    const later = await nextSnapshot()
    const first = join(data, 'version-2', 'snapshot.0')
    const { code, out } = await run('snapshot', first, '--compare', later)
    expect(code).toBe(0)
    expect(out.trim().split('\n')).toEqual([
      'changed / children (+0 bytes)',
      'added /a 0 bytes',
      '1 added, 1 changed, 0 removed',
    ])
    const back = await run('snapshot', later, '--compare', first, '--json', '--path', '/a')
    expect(JSON.parse(back.out)).toEqual({ kind: 'removed', path: '/a', bytes: 0 })
    expect((await run('snapshot', later, '--compare', later)).out).toBe('0 added, 0 changed, 0 removed\n')
  })

  it('--summary prints nodes and bytes of subtrees down to a depth', async () => {
    const later = await nextSnapshot()
    expect((await run('snapshot', later, '--summary')).out.split('\n')).toEqual([
      '/ 5 nodes 0 bytes',
      '/a 1 nodes 0 bytes',
      '/zookeeper 3 nodes 0 bytes',
      '',
    ])
    expect((await run('snapshot', later, '--summary', '--depth', '0')).out).toBe('/ 5 nodes 0 bytes\n')
    const deep = await run('snapshot', later, '--summary', '--depth', '5', '--path', '/zookeeper', '--json')
    expect(
      deep.out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toEqual([
      { path: '/zookeeper', nodes: 3, bytes: 0 },
      { path: '/zookeeper/config', nodes: 1, bytes: 0 },
      { path: '/zookeeper/quota', nodes: 1, bytes: 0 },
    ])
    for (const flags of [['--summary'], []])
      expect(await run('snapshot', later, ...flags, '--path', '/none')).toMatchObject({ code: 3 })
    expect(await run('snapshot', later, '--summary', '--check')).toMatchObject({ code: 2 })
  })

  /** Starts a server on the copy, which replays the log, and returns the snapshot that it takes. */
  async function nextSnapshot(): Promise<string> {
    const before = new Set(readdirSync(join(data, 'version-2')))
    const server = await createServer({ dataDir: data, clientPort: 0, clientPortAddress: '127.0.0.1' })
    await server.snapshot()
    await server.close()
    const name = readdirSync(join(data, 'version-2')).find(
      (one) => one.startsWith('snapshot.') && !before.has(one),
    )
    return join(data, 'version-2', name!)
  }
})

describe('initialize', () => {
  it('makes a folder from which a server starts, and leaves a folder with data as it is', async () => {
    const folder = join(stage.folder, `new-${number++}`)
    expect(await run('initialize', folder, '--id', '7')).toMatchObject({
      code: 0,
      out: `${folder}: ready for a server without data, with id 7\n`,
    })
    expect(readFileSync(join(folder, 'myid'), 'utf8')).toBe('7\n')
    expect(readdirSync(folder).sort()).toEqual(['initialize', 'myid', 'version-2'])
    const before = readdirSync(join(data, 'version-2'))
    expect(await run('initialize', data)).toMatchObject({
      code: 17,
      err: expect.stringContaining('got snapshot.0'),
    })
    expect([existsSync(join(data, 'initialize')), readdirSync(join(data, 'version-2'))]).toEqual([
      false,
      before,
    ])
  })
})

describe('purge', () => {
  it('removes what recovery from the newest snapshots does not need', async () => {
    const server = await createServer({ dataDir: data, clientPort: 0, clientPortAddress: '127.0.0.1' })
    expect((await run('purge', data, '--keep', '3')).code).not.toBe(0)
    await server.close()
    const inner = join(data, 'version-2')
    for (const zxid of [8, 9, 10])
      copyFileSync(join(inner, 'snapshot.0'), join(inner, `snapshot.${zxid.toString(16)}`))
    const { code, out } = await run('purge', data, '--keep', '3')
    expect([code, out]).toEqual([0, 'removed snapshot.0\n1 files removed\n'])
    expect(
      readdirSync(inner)
        .filter((name) => name.startsWith('snapshot.'))
        .sort(),
    ).toEqual(['snapshot.8', 'snapshot.9', 'snapshot.a'])
    expect((await run('purge', data, '--keep', '2')).code).toBe(2)
    expect((await run('purge', join(inner, '..', 'none'), '--keep', '3')).code).toBe(2)
  })
})

describe('recover', () => {
  const epochOf = (zxid: string): number => Number(BigInt(zxid) >> 32n)

  it('needs to be told what to do', async () => {
    const { code, err } = await run('recover', data)
    expect([code, err]).toEqual([2, expect.stringContaining('--renumber')])
  })

  it('refuses a folder without data', async () => {
    const empty = join(stage.folder, 'empty')
    mkdirSync(join(empty, 'version-2'), { recursive: true })
    expect((await run('recover', '--renumber', empty)).err).toContain('Expected data to renumber, got none')
  })

  it('numbers the epochs from 1 again, keeps the former files, and says what to do next', async () => {
    for (const name of ['acceptedEpoch', 'currentEpoch'])
      writeFileSync(join(data, 'version-2', name), '2097150')
    const { code, out } = await run('recover', '--renumber', data)
    expect(code).toBe(0)
    const [, from, to] = /was (0x\w+) and is (0x\w+)/.exec(out)!
    expect(from).toBe(to)
    expect(out).toContain('replace version-2 on every other member')
    const files = readdirSync(join(data, 'version-2'))
    expect(files.filter((name) => name.startsWith('log.'))).toEqual([])
    expect(readdirSync(join(data, 'version-2', 'set-aside')).some((name) => name.includes('log.1'))).toBe(
      true,
    )
    for (const name of ['acceptedEpoch', 'currentEpoch'])
      expect(readFileSync(join(data, 'version-2', name), 'utf8')).toBe(String(epochOf(to!)))
    expect((await run('snapshot', '--check', data)).out).toContain('sound')
  })
})
