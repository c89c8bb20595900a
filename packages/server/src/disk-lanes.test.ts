import { MemoryDisk, type FileReads, type TlsOptions } from '@zabra/runtime'
import { fixedSystem, ManualPlatform } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { DiskLanes } from './disk-lanes.ts'
import { createServer } from './server.ts'
import { defaults } from './settings/index.ts'
import { TestServer } from './testing/test-server.ts'

/** Returns a disk that can hang: calls for some paths, those of open files included, do not return from then on. */
function hangingDisk(): { disk: MemoryDisk; hang: (what: RegExp) => void; inFlight: string[] } {
  const inFlight: string[] = []
  let hangs = /^$/
  const wrap = <T extends object>(object: T, opened?: string): T =>
    new Proxy(object, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return (...given: unknown[]) => {
          const path = opened ?? given[0]
          if (typeof path === 'string' && hangs.test(path)) {
            inFlight.push(`${String(key)} ${path}`)
            return new Promise(() => {})
          }
          const result = (value as (...all: unknown[]) => unknown).apply(target, given)
          return key === 'openRead' || key === 'openWrite'
            ? (result as Promise<object>).then((file) => wrap(file, path as string))
            : result
        }
      },
    })
  return { disk: wrap(new MemoryDisk()), hang: (what) => (hangs = what), inFlight }
}

const untilIdle = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

const settings = defaults({
  clientPort: 0,
  dataDir: '/data',
  dataLogDir: '/data/log',
  backupTargets: ['/mnt/a', 'file:///mnt/b', '/mnt/c/', '/data/log/backup', 's3://bucket'],
  auditFile: '/var/audit.log',
})

describe('the lanes of a disk', () => {
  it('leave a call to the log and the small files of the data, whatever hangs', async () => {
    const { disk, hang, inFlight } = hangingDisk()
    const lanes = new DiskLanes(disk, settings)
    await lanes.disk.makeFolder('/data/log/version-2')
    const log = await lanes.disk.openWrite('/data/log/version-2/log.1', { create: true, durable: true })
    const snapshot = await lanes.disk.openWrite('/data/version-2/snapshot.1', {
      create: true,
      durable: false,
    })
    hang(/^\/(?!data\/log\/version-2)/)
    for (const folder of ['/mnt/a', '/mnt/b', '/mnt/c', '/data/log/backup', '/data/version-2', '/etc'])
      for (let i = 0; i < 3; i++) {
        void lanes.disk.list(folder)
        void lanes.disk.space(folder)
        void lanes.disk.openRead(`${folder}/file`)
      }
    for (let i = 0; i < 3; i++) void lanes.disk.size(`/var/audit.log.${i}`)
    void snapshot.write(new Uint8Array(1), 0)
    void lanes.ofFiles.run(() => disk.readFile('/etc/key.pem'))
    await untilIdle()
    expect(inFlight).toEqual(['list /mnt/a', 'list /data/version-2', 'list /etc'])
    await log.write(new Uint8Array(1), 0)
    expect(await lanes.disk.size('/data/log/version-2/log.1')).toBe(1)
    void lanes.disk.replaceFile('/data/version-2/currentEpoch', new Uint8Array(1))
    await untilIdle()
    expect(inFlight.slice(3)).toEqual(['replaceFile /data/version-2/currentEpoch'])
  })

  it('go on in all others while two of them do not answer', async () => {
    const files: readonly (readonly [path: string, lane: RegExp])[] = [
      ['/mnt/a/x', /^\/mnt|\/backup/],
      ['/mnt/b/x', /^\/mnt|\/backup/],
      ['/data/log/backup/x', /^\/mnt|\/backup/],
      ['/var/audit.log', /^\/var/],
      ['/var/audit.log.1', /^\/var/],
      ['/data/version-2/x', /^\/data\/version-2/],
      ['/etc/x', /^\/etc/],
    ]
    const paths = files.map(([path]) => path)
    for (const [, one] of files)
      for (const [, other] of files) {
        const { disk, hang } = hangingDisk()
        const lanes = new DiskLanes(disk, settings)
        for (const path of paths) disk.putFile(path, new Uint8Array(1))
        hang(new RegExp(`${one.source}|${other.source}`))
        const answered: string[] = []
        for (const path of [...paths, ...paths]) void lanes.disk.size(path).then(() => answered.push(path))
        await untilIdle()
        const others = paths.filter((path) => !one.test(path) && !other.test(path))
        expect(new Set(answered), `${one.source} ${other.source}`).toEqual(new Set(others))
      }
  })

  it('are those of the whole names of folders and files', async () => {
    const { disk, hang, inFlight } = hangingDisk()
    const lanes = new DiskLanes(disk, settings)
    hang(/keys|audit/)
    for (const path of ['/data.keys/x', '/data.keys/y', '/var/audit.log.keys']) void lanes.disk.readFile(path)
    await untilIdle()
    expect(inFlight).toEqual(['readFile /data.keys/x'])
  })

  it('make the next call after one that fails, and the calls of an open file one at a time', async () => {
    const disk = new MemoryDisk()
    const lanes = new DiskLanes(disk, settings)
    disk.putFile('/mnt/a/x', new Uint8Array([1, 2, 3]))
    const reader = await lanes.disk.openRead('/mnt/a/x')
    const writer = await lanes.disk.openWrite('/mnt/b/y', { create: true, durable: false })
    let release = (): void => {}
    disk.beforeWrite = () => new Promise((resolve) => (release = resolve))
    const done: string[] = []
    const note = (what: string) => () => void done.push(what)
    const calls = [
      writer.write(new Uint8Array([7]), 0).then(note('write')),
      lanes.disk.openRead('/mnt/c/none').catch(note('open')),
      reader.read(new Uint8Array(3), 0).then(note('read')),
    ]
    await untilIdle()
    expect(done).toEqual([])
    release()
    await Promise.all(calls)
    expect(done).toEqual(['write', 'open', 'read'])
  })
})

it('a server reads the files of certificates in the lane of the files that settings name', async () => {
  const seen: unknown[] = []
  const tls = (_options: TlsOptions, reads?: FileReads): never => {
    seen.push(reads)
    throw new Error('seen')
  }
  const secure = defaults({
    dataDir: '/data',
    secureClientPort: 2281,
    sslKeyStoreLocation: '/key.pem',
    sslClientAuth: 'none',
  })
  const start = createServer(
    { ...secure, clientPort: undefined },
    { ...new ManualPlatform().platform(), networkFactories: { tls } },
  )
  await expect(start).rejects.toThrow('seen')
  expect(seen).toEqual([{ run: expect.any(Function) as unknown }])
})

it('a server whose disks beside that of the log hang holds three calls for them, and writes', async () => {
  const { disk, hang, inFlight } = hangingDisk()
  const server = await TestServer.start(
    {
      dataDir: '/data',
      dataLogDir: '/log',
      backupTargets: ['/mnt/a', '/mnt/b', '/mnt/c', '/mnt/d'],
      auditEnabled: true,
      auditFile: '/var/audit.log',
      auditEvents: ['writes'],
      adminRoleBackup: ['ip:127.0.0.1'],
    },
    disk,
  )
  await server.advance(10_000)
  hang(/^\/(?:data|mnt|var)/)
  const client = await server.connect()
  for (let turn = 0; turn < 6; turn++) {
    for (const path of ['/metrics', '/commands/dirs', '/commands/lsnp', '/api/v1/members/self'])
      void server.http.request(path)
    for (const path of ['/api/v1/snapshots', '/api/v1/backups', '/commands/snapshot'])
      void server.http.request(path, { method: 'POST', body: '' })
    client.create(turn, `/a${turn}`)
    await server.advance(10_000)
  }
  expect(inFlight.length, inFlight.join()).toBeLessThanOrEqual(3)
  expect(server.server.stats().nodes).toBeGreaterThan(6)
})

it('a server stops, and keeps its audit file, while the folder of backups and the tokens file hang', async () => {
  const { disk, hang, inFlight } = hangingDisk()
  disk.putFile('/etc/tokens', new Uint8Array(0))
  const server = await TestServer.start(
    {
      backupTargets: ['/mnt/a'],
      auditEnabled: true,
      auditFile: '/var/audit.log',
      auditEvents: ['writes'],
      adminTokensFile: '/etc/tokens',
    },
    disk,
  )
  await server.advance(10_000)
  const client = await server.connect()
  hang(/^\/(?:mnt|etc)/)
  void server.server.reload()
  await server.advance(10_000)
  expect(inFlight.map((call) => call.split(' ')[1])).toEqual(['/etc/tokens', '/mnt/a/duty'])
  client.create(1, '/a')
  await server.advance(1000)
  let isStopped = false
  void server.server.close().then(() => (isStopped = true))
  await server.advance(10_000)
  expect(isStopped).toBe(true)
  hang(/^$/)
  expect(new TextDecoder().decode(await disk.readFile('/var/audit.log'))).toContain('znode=/a')
})

it('a server stops while the folder of its data hangs, and has what it acknowledged in its log', async () => {
  const { disk, hang, inFlight } = hangingDisk()
  const settings = { dataDir: '/data', dataLogDir: '/log' }
  const server = await TestServer.start(settings, disk)
  const client = await server.connect()
  hang(/^\/data/)
  void server.server.snapshot()
  client.create(1, '/a')
  await server.advance(1000)
  expect(client.takeReceived()).toEqual(['1:0'])
  expect(inFlight).toHaveLength(1)
  let isStopped = false
  void server.server.close().then(() => (isStopped = true))
  await server.advance(20_000)
  expect(isStopped).toBe(true)
  expect(await server.server.failed).toBeUndefined()
  expect(server.logLines.map(({ stamp }) => stamp.id)).toContain('server.files-left')
  hang(/^$/)
  // The process has ended, and with it what it held.
  const system = {
    ...fixedSystem,
    pid: 8,
    processIdentity: (pid: number) => (pid === 8 ? 'next' : undefined),
  }
  const next = await createServer(server.settings, { ...new ManualPlatform(disk).platform(), system })
  expect(next.stats().nodes).toBe(server.server.stats().nodes)
})

it('a server waits at a stop until its log is written', async () => {
  const { disk, hang } = hangingDisk()
  const server = await TestServer.start({ dataDir: '/data', dataLogDir: '/log' }, disk)
  const client = await server.connect()
  hang(/^\/log/)
  client.create(1, '/a')
  await server.advance(1000)
  let isStopped = false
  void server.server.close().then(() => (isStopped = true))
  await server.advance(60_000)
  expect(isStopped).toBe(false)
})
