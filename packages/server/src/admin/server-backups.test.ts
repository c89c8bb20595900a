import { MemoryDisk, SeededRandom, silentLogger } from '@zabra/runtime'
import { nodeCryptography } from '@zabra/runtime/node'
import { syncCompression } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import {
  Catalog,
  FolderTarget,
  loadBackup,
  manifestName,
  parseKey,
  verifyDeep,
  verifyPieces,
  type BackupStore,
} from '../backup/index.ts'
import { encodeManifest } from '../backup/manifest.ts'
import { oneChunk } from '../backup/target.ts'
import type { Member } from '../ensemble/member.ts'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import { TestServer } from '../testing/test-server.ts'
import { paced } from './paced.ts'
import { credentialsReader } from './server-backups.ts'

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000
const KEY = 'ab'.repeat(32)

const storeOn = (disk: MemoryDisk, root: string, key?: string): BackupStore => ({
  target: new FolderTarget(root, { disk, random: new SeededRandom(4) }),
  cryptography: nodeCryptography,
  random: new SeededRandom(5),
  key: key === undefined ? undefined : parseKey(key, nodeCryptography, 'key'),
})

/** Returns the paths in the newest backup, by default at its end, without those of the server, after checking all files. */
async function pathsIn(store: BackupStore, moment?: 'exactAt'): Promise<string[]> {
  const catalog = await Catalog.read(store)
  for await (const { defect } of verifyPieces(store, [...catalog.snapshots, ...catalog.logs]))
    expect(defect).toBeUndefined()
  const chain = catalog.newestChain()
  const { exactAt } = chain.snapshot
  const upTo = moment === undefined ? Math.max(chain.upTo, exactAt) : exactAt
  const { tree } = await loadBackup(store, chain, upTo, { compression: syncCompression })
  const paths: string[] = []
  const cursor = tree.scan()
  while (cursor.next(1, (node) => paths.push(tree.pathOf(node))));
  cursor.close()
  return paths.filter((path) => path !== '/' && !path.startsWith('/zookeeper')).toSorted()
}

interface Described {
  readonly onDuty: boolean
  readonly member: string | null
  readonly lastBackup: string | null
  readonly failures: number
  readonly problem: string | null
  readonly snapshots: number | null
}

async function describedBy(http: TestServer['http']): Promise<Described | undefined> {
  const { text } = await http.request('/api/v1/backups')
  return (JSON.parse(text) as { targets: Described[] }).targets[0]
}

const askForBackup = (http: TestServer['http']) => http.request('/api/v1/backups', { method: 'POST' })

/** Starts a server with three small parts of its log in the target, which are merged with the next one. */
async function startWithSmallParts() {
  const server = await TestServer.start({ backupTargets: ['/backup'], maxSessionTimeoutMs: DAY })
  const client = await server.connect({ timeout: DAY })
  for (let at = 0; at < 3; at++) {
    client.create(at, `/n${at}`)
    await server.advance(10_000)
  }
  await server.advance(HOUR)
  return { server, store: storeOn(server.disk, '/backup'), client }
}

describe('a server with a target of backups', () => {
  it('writes snapshots and the log at their intervals, and removes what no rule keeps', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupSchedule: 2 * MINUTE,
      backupLogIntervalMs: MINUTE,
      backupRetain: '5m:all',
    })
    const client = await server.connect({ timeout: 40_000 })
    const store = storeOn(server.disk, '/backup')
    client.create(1, '/a')
    await server.advance(MINUTE)
    const first = await Catalog.read(store)
    expect([first.snapshots.length, first.logs.length]).toEqual([1, 1])
    const { clusterId } = server.server as Member
    expect([...first.snapshots, ...first.logs].map(({ cluster }) => cluster)).toEqual([clusterId, clusterId])
    expect(clusterId).toBeDefined()
    const later = await server.connect({ timeout: 40_000 })
    later.create(1, '/b')
    await server.advance(MINUTE)
    const second = await Catalog.read(store)
    expect(second.snapshots).toHaveLength(1)
    // Without transactions nothing is written.
    expect(second.logs.every(({ transactions }) => transactions > 0)).toBe(true)
    expect(await pathsIn(store)).toEqual(['/a', '/b'])
    for (let i = 0; i < 6; i++) {
      const writer = await server.connect({ timeout: 40_000 })
      writer.create(1, `/c${i}`)
      await server.advance(2 * MINUTE)
    }
    // Nothing was written since: no more of them.
    await server.advance(5 * MINUTE)
    const last = await Catalog.read(store)
    // Those of five minutes, and the one from which a restore to the first moments of these begins.
    expect(last.snapshots.length).toBe(4)
    expect(server.disk.paths().filter((path) => path.startsWith('/backup/snapshot/'))).toHaveLength(4)
    expect(await describedBy(server.http)).toMatchObject({
      onDuty: true,
      member: '1',
      failures: 0,
      snapshots: 4,
    })
    await server.stop()
  })

  /** Counts calls for files of the target, but for the duty. */
  function countCalls(disk: MemoryDisk): Record<string, number> {
    const counts: Record<string, number> = {}
    disk.injectFault = (call, path) => {
      if (path.startsWith('/backup/') && !path.includes('/duty')) counts[call] = (counts[call] ?? 0) + 1
      return undefined
    }
    return counts
  }

  it('writes a transaction to the target within five seconds, reads nothing for it, and asks for nothing while nothing is committed', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], maxSessionTimeoutMs: HOUR })
    const store = storeOn(server.disk, '/backup')
    const client = await server.connect({ timeout: HOUR })
    await server.advance(20_000)
    for (let at = 0; at < 10; at++) {
      await server.advance(1700 * (at % 3))
      const calls = countCalls(server.disk)
      client.create(at, `/n${at}`)
      await server.advance(5000)
      expect([calls['rename'], calls['read']]).toEqual([2, undefined])
      expect(await pathsIn(store)).toContain(`/n${at}`)
    }
    const { logs, snapshots } = await Catalog.read(store)
    expect([logs.length, snapshots.length]).toEqual([11, 1])
    const idle = countCalls(server.disk)
    await server.advance(5 * MINUTE)
    expect(idle).toEqual({})
    expect((await server.http.request('/metrics')).text).toContain(
      'zabra_backup_failures_total{target="file:///backup"} 0',
    )
    await server.stop()
  })

  it('writes a part before its time once four megabytes have come', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], backupLogIntervalMs: 10 * MINUTE })
    const store = storeOn(server.disk, '/backup')
    const client = await server.connect({ timeout: 40_000 })
    await server.advance(20_000)
    for (let at = 0; at < 3; at++) client.create(at, `/n${at}`, 0, 'x'.repeat(900_000))
    await server.advance(2000)
    expect(await pathsIn(store)).toEqual([])
    for (let at = 3; at < 6; at++) client.create(at, `/n${at}`, 0, 'x'.repeat(900_000))
    await server.advance(2000)
    expect(await pathsIn(store)).toHaveLength(6)
    await server.stop()
  })

  it('merges the parts of an hour, leaves the small ones for another hour, and removes them', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], maxSessionTimeoutMs: DAY })
    const store = storeOn(server.disk, '/backup')
    const client = await server.connect({ timeout: DAY })
    await server.advance(20_000)
    const parts = async (): Promise<[merged: number, small: number]> => {
      const { logs } = await Catalog.read(store)
      const merged = logs.filter((log) => log.merged === true).length
      return [merged, logs.length - merged]
    }
    for (let at = 0; at < 40; at++) {
      client.create(at, `/n${at}`)
      await server.advance(10_000)
    }
    expect(await parts()).toEqual([0, 41])
    await server.advance(HOUR)
    client.create(100, '/later')
    await server.advance(20_000)
    expect(await parts()).toEqual([1, 41])
    expect(await pathsIn(store)).toHaveLength(41)
    await server.advance(61 * MINUTE)
    client.create(101, '/last')
    await server.advance(10_000)
    // The part before the first snapshot belongs to the merged one too.
    expect(await parts()).toEqual([1, 1])
    expect(server.disk.paths().filter((path) => path.startsWith('/backup/log/'))).toHaveLength(2)
    const catalog = await Catalog.read(store)
    expect(catalog.gaps).toEqual([])
    const [first] = catalog.snapshots
    expect(catalog.chainOf(first!).logs).toHaveLength(2)
    const { defect } = await verifyDeep(store, catalog.chainOf(first!), {
      compression: syncCompression,
      toEnd: true,
    })
    expect(defect).toBeUndefined()
    await server.stop()
  })

  it('writes parts in time to a target that lets nothing be removed, with a line each ten minutes', async () => {
    const { server, store, client } = await startWithSmallParts()
    server.disk.injectFault = (call, path) =>
      call === 'remove' && /^\/backup\/(?:log|manifest)\//.test(path) ? { code: 'EACCES' } : undefined
    client.create(3, '/n3')
    await server.advance(61 * MINUTE)
    server.logLines.length = 0
    for (let at = 4; at < 30; at++) {
      client.create(at, `/n${at}`)
      await server.advance(5000)
      expect(await pathsIn(store)).toContain(`/n${at}`)
    }
    expect(server.logLines.filter(({ level }) => level === 'error')).toMatchObject([
      { sentence: 'Old files of backups cannot be removed' },
    ])
    server.disk.injectFault = undefined
    await server.advance(61 * MINUTE)
    client.create(30, '/n30')
    await server.advance(10_000)
    expect((await Catalog.read(store)).replaced(server.clock.wall())).toEqual([])
    await server.stop()
  })

  it('goes on with small parts where a merged one cannot be written', async () => {
    const { server, store, client } = await startWithSmallParts()
    const first = (await Catalog.read(store)).logs[0]!.piece.name.slice(0, 20)
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.startsWith(`/backup/${first}`) ? { code: 'EFBIG' } : undefined
    server.logLines.length = 0
    for (let at = 3; at < 9; at++) {
      client.create(at, `/n${at}`)
      await server.advance(15_000)
      expect(await pathsIn(store)).toContain(`/n${at}`)
    }
    expect(server.logLines.filter(({ level }) => level === 'error' || level === 'warn')).toHaveLength(1)
    await server.stop()
  })

  /** Fills the disk of the target, which has room again once a file of a backup is removed. */
  function fill(disk: MemoryDisk): void {
    disk.injectFault = (call, path) => {
      if (call === 'remove' && /^\/backup\/(?:snapshot|log)\//.test(path)) disk.injectFault = undefined
      return path.startsWith('/backup/') && (call === 'write' || call === 'open')
        ? { code: 'ENOSPC' }
        : undefined
    }
  }

  /** Starts a server whose target has a snapshot that no rule keeps any more. */
  async function startWithExpired() {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupSchedule: 2 * MINUTE,
      backupRetain: '5m:all',
      maxSessionTimeoutMs: DAY,
    })
    const client = await server.connect({ timeout: DAY })
    for (let at = 0; at < 3; at++) {
      client.create(at, `/n${at}`)
      await server.advance(2 * MINUTE)
    }
    await server.advance(20 * MINUTE)
    const store = storeOn(server.disk, '/backup')
    expect((await Catalog.read(store)).snapshots).toHaveLength(3)
    return { server, store }
  }

  it.each(['that has the duty', 'that has to claim it'])(
    'removes what no rule keeps from a full target, and goes on: a member %s',
    async (member) => {
      const { server, store } = await startWithExpired()
      if (member === 'that has to claim it') {
        await server.stop()
        fill(server.disk)
        await server.restart()
      } else fill(server.disk)
      const client = await server.connect()
      client.create(1, '/later')
      await server.advance(2 * MINUTE)
      expect(await pathsIn(store)).toEqual(['/later', '/n0', '/n1', '/n2'])
      expect(await describedBy(server.http)).toMatchObject({ onDuty: true, problem: null })
      await server.stop()
    },
  )

  it('removes nothing from a full target with the backups of another ensemble', async () => {
    const first = await startWithExpired()
    await first.server.stop()
    const disk = new MemoryDisk()
    const files = first.server.disk.paths().filter((path) => path.startsWith('/backup/'))
    for (const path of files) disk.putFile(path, await first.server.disk.readFile(path))
    const id = `0-${'ab'.repeat(16)}\n`
    disk.putFile('/data/version-2/zabra.cluster', new TextEncoder().encode(id))
    fill(disk)
    const server = await TestServer.start({ ...first.server.settings, backupRetain: '1m:all' }, disk)
    server.clock.advance(DAY)
    await server.advance(5 * MINUTE)
    expect((await describedBy(server.http))?.problem).toContain('ENOSPC')
    expect(disk.paths().filter((path) => path.startsWith('/backup/'))).toEqual(files)
    await server.stop()
  })

  it('removes nothing where its history is another one, as after the data were set back', async () => {
    const first = await startWithExpired()
    await first.server.stop()
    const disk = new MemoryDisk()
    const kept = first.server.disk.paths().filter((path) => /^\/backup\/|\/zabra\.cluster$/.test(path))
    for (const path of kept) disk.putFile(path, await first.server.disk.readFile(path))
    const server = await TestServer.start({ ...first.server.settings, backupRetain: '1m:all' }, disk)
    server.clock.advance(DAY)
    const client = await server.connect({ timeout: DAY })
    for (let at = 0; at < 10; at++) client.create(at, `/other${at}`)
    await server.advance(15 * MINUTE)
    expect((await describedBy(server.http))?.problem).toContain('backups of another history')
    expect(disk.paths()).toEqual(expect.arrayContaining(kept))
    await server.stop()
  })

  it('writes the log, with a warning, while a snapshot that is due does not fit into the target', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupSchedule: 2 * MINUTE,
      maxSessionTimeoutMs: DAY,
      adminRoleBackup: ['ip:127.0.0.1'],
    })
    const store = storeOn(server.disk, '/backup')
    const client = await server.connect({ timeout: DAY })
    client.create(0, '/n0')
    await server.advance(MINUTE)
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.startsWith('/backup/snapshot/') ? { code: 'ENOSPC' } : undefined
    server.logLines.length = 0
    for (let at = 1; at < 60; at++) {
      client.create(at, `/n${at}`)
      if (at % 20 === 0) await askForBackup(server.http)
      await server.advance(10_000)
      expect(await pathsIn(store)).toContain(`/n${at}`)
    }
    expect(server.logLines.filter(({ level }) => level !== 'info' && level !== 'debug')).toMatchObject([
      { level: 'warn', stamp: { id: 'backup.no-snapshot' } },
    ])
    const problem = expect.stringMatching(/^no snapshot can be written, the log goes on: .*ENOSPC/) as unknown
    expect(await describedBy(server.http)).toMatchObject({ onDuty: true, snapshots: 1, problem })
    const metrics = async () => (await server.http.request('/metrics')).text
    expect(await metrics()).toContain('zabra_backup_problem{target="file:///backup"} 1')
    const own = server.disk.paths().filter((path) => path.startsWith('/data/version-2/snapshot.'))
    expect(own.length).toBeLessThan(25)
    server.disk.injectFault = undefined
    await server.advance(HOUR)
    expect(await describedBy(server.http)).toMatchObject({ snapshots: 2, problem: null })
    expect(await metrics()).toContain('zabra_backup_problem{target="file:///backup"} 0')
    await server.stop()
  })

  it('writes the log while a snapshot is sent slowly', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupRateBytes: 2000,
      maxSessionTimeoutMs: DAY,
      adminRoleBackup: ['ip:127.0.0.1'],
    })
    const store = storeOn(server.disk, '/backup')
    const client = await server.connect({ timeout: DAY })
    await server.advance(MINUTE)
    client.create(0, '/large', 0, 'x'.repeat(800_000))
    // A part begins with the last transaction of the one before.
    client.create(100, '/small')
    await server.advance(10 * MINUTE)
    expect(await askForBackup(server.http)).toMatchObject({ status: 202 })
    for (let at = 1; at < 20; at++) {
      client.create(at, `/n${at}`)
      await server.advance(10_000)
      expect(await pathsIn(store)).toContain(`/n${at}`)
      expect((await Catalog.read(store)).snapshots).toHaveLength(1)
    }
    await server.advance(20 * MINUTE)
    const catalog = await Catalog.read(store)
    expect([catalog.snapshots.length, catalog.gaps, catalog.bad]).toEqual([2, [], []])
    expect(await pathsIn(store)).toHaveLength(21)
    for (const snapshot of catalog.snapshots) {
      const options = { compression: syncCompression, toEnd: true }
      const { defect } = await verifyDeep(store, catalog.chainOf(snapshot), options)
      expect(defect).toBeUndefined()
    }
    expect(await describedBy(server.http)).toMatchObject({ problem: null, failures: 0 })
    // The last part takes its time, too.
    const closed = server.server.close()
    await server.advance(5000)
    await closed
  })

  it('tries a backup that it was asked for no more often than others while the target cannot be listed', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], adminRoleBackup: ['ip:127.0.0.1'] })
    await server.advance(MINUTE)
    let reads = 0
    server.disk.injectFault = (call, path) => {
      if (call !== 'read' || !path.startsWith('/backup/lineage')) return undefined
      reads++
      return { code: 'EIO' }
    }
    const client = await server.connect()
    client.create(1, '/a')
    await server.advance(MINUTE)
    const before = reads
    expect(await askForBackup(server.http)).toMatchObject({ status: 202 })
    await server.advance(2 * MINUTE)
    expect(reads - before).toBeLessThan(12)
    server.disk.injectFault = undefined
    await server.advance(2 * MINUTE)
    expect(await pathsIn(storeOn(server.disk, '/backup'))).toEqual(['/a'])
    expect((await Catalog.read(storeOn(server.disk, '/backup'))).snapshots).toHaveLength(2)
    await server.stop()
  })

  it('goes on within a minute after a target that was away for hours, with a line each ten minutes that counts', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], maxSessionTimeoutMs: DAY })
    const store = storeOn(server.disk, '/backup')
    const client = await server.connect({ timeout: DAY })
    client.create(1, '/a')
    await server.advance(MINUTE)
    let attempts = 0
    server.disk.injectFault = (call, path) => {
      if (!path.startsWith('/backup')) return undefined
      if (call === 'open' && path.includes('/log/')) attempts++
      return { code: 'EIO' }
    }
    client.create(2, '/b')
    await server.advance(HOUR)
    const lines = server.logLines.filter(({ level }) => level === 'error')
    expect(lines.length).toBeLessThan(10)
    expect(lines.at(-1)?.facts).toMatchObject({ times: expect.any(Number) })
    expect((lines.at(-1)!.facts as { times: number }).times).toBeGreaterThan(10)
    expect(attempts).toBeLessThan(20)
    server.disk.injectFault = undefined
    await server.advance(MINUTE)
    expect(await pathsIn(store)).toEqual(['/a', '/b'])
    expect(await describedBy(server.http)).toMatchObject({ problem: null })
    await server.stop()
  })

  it('goes on after a restart from what is in the target', async () => {
    const settings = { backupTargets: ['/backup'], backupSchedule: 60 * MINUTE }
    const server = await TestServer.start(settings)
    const client = await server.connect()
    client.create(1, '/a')
    await server.advance(MINUTE)
    const later = await server.connect()
    later.create(1, '/rest')
    await server.untilIdle()
    await server.stop()
    const store = storeOn(server.disk, '/backup')
    // A stop writes the rest of the log.
    expect(await pathsIn(store)).toEqual(['/a', '/rest'])
    await server.restart()
    const again = await server.connect()
    again.create(1, '/b')
    await server.advance(2 * MINUTE)
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/rest'])
    await server.stop()
  })

  it('leaves no gap when it has taken snapshots since the last backup, and crashes', async () => {
    const settings = { backupTargets: ['/backup'], backupLogIntervalMs: 2 * MINUTE }
    const server = await TestServer.start(settings)
    const client = await server.connect({ timeout: 40_000 })
    client.create(1, '/a')
    await server.advance(10_000)
    client.create(2, '/b')
    await server.advance(1000)
    await server.server.snapshot()
    client.create(3, '/c')
    await server.advance(1000)
    const disk = server.disk.clone()
    disk.powerCut()
    await server.stop()
    const store = storeOn(disk, '/backup')
    expect(await pathsIn(store)).toEqual(['/a'])
    const restarted = await TestServer.start(settings, disk)
    await restarted.advance(MINUTE)
    expect(restarted.logLines.filter(({ level }) => level === 'warn')).toEqual([])
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c'])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
    await restarted.stop()
  })

  it('leaves no gap when old logs are removed before they are in a backup', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupLogIntervalMs: 2 * MINUTE,
      purgeIntervalMs: 1.5 * MINUTE,
      snapCount: 2,
      snapTreeShare: 0,
    })
    const client = await server.connect({ timeout: 40_000 })
    client.create(1, '/a')
    await server.advance(10_000)
    for (let i = 0; i < 15; i++) {
      client.create(2 + i, `/b${i}`)
      await server.advance(1000)
    }
    await server.advance(3 * MINUTE)
    const files = server.disk.paths().filter((path) => path.startsWith('/data/version-2/snapshot'))
    expect(files).toHaveLength(3)
    expect(server.logLines.filter(({ level }) => level === 'warn')).toEqual([])
    const store = storeOn(server.disk, '/backup')
    expect(await pathsIn(store)).toHaveLength(16)
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
    await server.stop()
  })

  it('keeps neither old logs nor open files for backups that could not begin, since the target refused new files', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      adminRoleBackup: ['ip:127.0.0.1'],
      maxSessionTimeoutMs: DAY,
      purgeIntervalMs: 1.5 * MINUTE,
      snapCount: 2,
      snapTreeShare: 0,
    })
    const { disk } = server
    let open = 0
    disk.openRead = async (path) => {
      const reader = await MemoryDisk.prototype.openRead.call(disk, path)
      open++
      return { ...reader, close: async () => void open-- }
    }
    const logs = () => disk.paths().filter((path) => path.startsWith('/data/version-2/log.'))
    const client = await server.connect({ timeout: DAY })
    client.create(1, '/a')
    await server.advance(10_000)
    const [first] = logs()
    disk.injectFault = (call, path) =>
      call === 'open' && /^\/backup\/(?:log|snapshot)\//.test(path) ? { code: 'EDQUOT' } : undefined
    // A snapshot first, then parts of the log.
    expect(await askForBackup(server.http)).toMatchObject({ status: 202 })
    client.create(2, '/b')
    await server.advance(MINUTE)
    expect((await describedBy(server.http))?.problem).toContain('EDQUOT')
    disk.injectFault = undefined
    for (let i = 0; i < 15; i++) {
      client.create(3 + i, `/c${i}`)
      await server.advance(1000)
    }
    await server.advance(5 * MINUTE)
    expect(await describedBy(server.http)).toMatchObject({ problem: null })
    expect(logs()).not.toContain(first)
    expect(open).toBe(0)
    await server.stop()
  })

  it('waits for one call of a folder at a time, which may not return while its machine is away: the log needs the other threads', async () => {
    const { server } = await startWithSmallParts()
    await server.stop()
    const { disk } = server
    let waiting = 0
    disk.openRead = (path) => {
      if (!path.startsWith('/backup/manifest/')) return MemoryDisk.prototype.openRead.call(disk, path)
      waiting++
      return new Promise(() => {})
    }
    await server.restart()
    await server.advance(MINUTE)
    for (let i = 0; i < 3; i++) void (server.server as Member).backups!.unsavedAfter()
    await server.advance(MINUTE)
    expect(waiting).toBe(1)
  })

  describe('whose folder is on the file system of the data', () => {
    async function warningsWith(
      devices: Readonly<Record<string, number>>,
      settings: { readonly dataLogDir?: string } = {},
    ): Promise<unknown[]> {
      const disk = new MemoryDisk()
      Object.assign(disk, {
        deviceOf: async (path: string) => devices[path] ?? Promise.reject(new Error('ENOENT')),
      })
      const server = await TestServer.start({ backupTargets: ['/mnt/backup'], ...settings }, disk)
      await server.stop()
      return server.logLines.flatMap(({ stamp, facts }) => (stamp.id === 'backup.beside-data' ? [facts] : []))
    }

    it('warns at its start', async () => {
      const warning = { target: 'file:///mnt/backup', folder: '/data' }
      expect(await warningsWith({ '/': 1, '/data': 2, '/mnt/backup': 2 })).toEqual([warning])
      // The folder is not mounted: it is created on the file system of the machine, on which the data are, too.
      expect(await warningsWith({ '/': 1, '/mnt': 1 })).toEqual([warning])
      expect(await warningsWith({ '/': 1, '/data': 1, '/mnt/backup': 3 })).toEqual([])
      expect(await warningsWith({})).toEqual([])
      const beside = { '/': 1, '/data': 2, '/log': 3, '/mnt/backup': 3 }
      expect(await warningsWith(beside, { dataLogDir: '/log' })).toEqual([{ ...warning, folder: '/log' }])
    })

    it('starts while the file system of the folder does not answer', async () => {
      const disk = new MemoryDisk()
      Object.assign(disk, { deviceOf: () => new Promise(() => {}) })
      const server = await TestServer.start({ backupTargets: ['/mnt/backup'] }, disk)
      await server.stop()
    })
  })

  it('encrypts with the key in the settings', async () => {
    const disk = new MemoryDisk()
    disk.putFile('/etc/key', new TextEncoder().encode(`${KEY}\n`))
    const settings = { backupTargets: ['file:///backup'], backupKeyFile: '/etc/key' }
    const server = await TestServer.start(settings, disk)
    const client = await server.connect()
    client.create(1, '/plaintext-marker')
    await server.advance(MINUTE)
    const pieces = disk.paths().filter((path) => /^\/backup\/(?:log|snapshot)\//.test(path))
    expect(pieces.length).toBeGreaterThan(1)
    for (const path of pieces)
      expect(new TextDecoder('latin1').decode(await disk.readFile(path))).not.toContain('plaintext-marker')
    expect(await pathsIn(storeOn(disk, '/backup', KEY))).toEqual(['/plaintext-marker'])
    await server.stop()
  })

  it('reports a target that fails, logs it once, serves meanwhile, and goes on when the target works', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'] })
    const client = await server.connect()
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.startsWith('/backup/') ? { code: 'EIO' } : undefined
    await server.advance(5 * MINUTE)
    const failing = await describedBy(server.http)
    expect(failing?.problem).toContain('EIO')
    expect(failing?.failures).toBeGreaterThan(3)
    expect(server.logLines.filter(({ level }) => level === 'error')).toHaveLength(1)
    expect((await server.http.request('/metrics')).text).toMatch(
      /^zabra_backup_failures_total\{target="file:\/\/\/backup"\} [1-9]/m,
    )
    server.disk.injectFault = undefined
    await server.advance(3 * MINUTE)
    expect(await describedBy(server.http)).toMatchObject({ problem: null, snapshots: 1 })
    const { text } = await server.http.request('/metrics')
    expect(text).toMatch(/^zabra_backup_last_success_seconds\{target="file:\/\/\/backup"\} \d+/m)
    expect(text).toMatch(/^zabra_backup_interval_seconds\{target="file:\/\/\/backup"\} 5$/m)
    expect(client.closed).toBe(true)
    await server.stop()
  })

  it('makes a backup when it is asked to', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], adminRoleBackup: ['ip:127.0.0.1'] })
    await server.advance(MINUTE)
    expect(await askForBackup(server.http)).toMatchObject({ status: 202 })
    await server.untilIdle()
    expect((await Catalog.read(storeOn(server.disk, '/backup'))).snapshots.length).toBeGreaterThan(0)
    await server.stop()
    const without = await TestServer.start({ adminRoleBackup: ['ip:127.0.0.1'] })
    expect((await without.http.request('/api/v1/backups', { method: 'POST' })).status).toBe(404)
    await without.stop()
  })

  it('makes the backup that it is asked for right after its start, as soon as it has the duty', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], adminRoleBackup: ['ip:127.0.0.1'] })
    const asked = askForBackup(server.http)
    await server.advance(5000)
    expect(await asked).toMatchObject({ status: 202 })
    await server.untilIdle()
    expect((await Catalog.read(storeOn(server.disk, '/backup'))).snapshots).toHaveLength(1)
    await server.stop()
  })

  it.each([
    ['', 'that says nothing of what it has saved'],
    [' 0x7fffffff', 'that has saved all'],
  ])(
    'answers within seconds when to ask again, while the claim "%s" of its last run, %s, is not old enough',
    async (saved) => {
      const server = await TestServer.start({ backupTargets: ['/backup'], adminRoleBackup: ['ip:127.0.0.1'] })
      await storeOn(server.disk, '/backup').target.write(
        'duty',
        oneChunk(new TextEncoder().encode(`1 0123456789abcdef 7 0${saved}\n`)),
      )
      const asked = askForBackup(server.http)
      await server.advance(5000)
      const { status, headers, text } = await asked
      expect([status, headers['retry-after']]).toEqual([503, '10'])
      expect(JSON.parse(text)).toMatchObject({
        title: 'No member has the duty yet',
        detail: expect.stringContaining('Ask again in 10 s'),
      })
      await server.advance(40_000)
      const later = askForBackup(server.http)
      await server.advance(5000)
      expect(await later).toMatchObject({ status: 202 })
      await server.stop()
    },
  )

  it('makes the backup that it is asked for also where its first attempt fails', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], adminRoleBackup: ['ip:127.0.0.1'] })
    const client = await server.connect({ timeout: 40_000 })
    client.create(1, '/a')
    await server.advance(MINUTE)
    client.create(2, '/b')
    let faults = 0
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.startsWith('/backup/snapshot/') && faults++ === 0 ? { code: 'EIO' } : undefined
    expect(await askForBackup(server.http)).toMatchObject({ status: 202 })
    await server.advance(MINUTE)
    expect(faults).toBeGreaterThan(0)
    expect((await Catalog.read(storeOn(server.disk, '/backup'))).snapshots).toHaveLength(2)
    await server.stop()
  })

  it('makes the backup that it is asked for while an attempt reads the target, which fails', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], maxSessionTimeoutMs: DAY })
    const client = await server.connect({ timeout: DAY })
    client.create(1, '/a')
    await server.advance(MINUTE)
    let asked: Promise<number> | undefined
    server.disk.injectFault = (call, path) => {
      // What was written is read again after a failure.
      if (call === 'read' && path === '/backup/lineage') asked ??= (server.server as Member).backups!.runNow()
      return call === 'write' && /^\/backup\/(?:log|snapshot)\//.test(path) ? { code: 'EIO' } : undefined
    }
    client.create(2, '/b')
    await server.advance(20_000)
    expect(await asked).toBe(1)
    server.disk.injectFault = undefined
    await server.advance(MINUTE)
    expect((await Catalog.read(storeOn(server.disk, '/backup'))).snapshots).toHaveLength(2)
    await server.stop()
  })

  it('writes snapshots at the times of cron', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupSchedule: '*/2 * * * *',
      backupLogIntervalMs: 0,
    })
    const store = storeOn(server.disk, '/backup')
    for (let minute = 0; minute < 8; minute++) {
      const writer = await server.connect({ timeout: 40_000 })
      writer.create(1, `/n${minute}`)
      await server.advance(MINUTE)
    }
    const times = (await Catalog.read(store)).snapshots.map(({ time }) => time)
    // The first one at once, and then within a look after every second minute.
    expect(times).toHaveLength(5)
    for (const time of times.slice(1)) expect(time % (2 * MINUTE)).toBeLessThan(11_000)
    await server.stop()
  })

  it('writes snapshots after one whose time is far ahead, as of a member whose clock had jumped', async () => {
    const settings = { backupTargets: ['/backup'], backupSchedule: 10 * MINUTE }
    const server = await TestServer.start(settings)
    const store = storeOn(server.disk, '/backup')
    const writer = await server.connect()
    writer.create(1, '/a')
    await server.advance(MINUTE)
    const [snapshot] = (await Catalog.read(store)).snapshots
    const ahead = encodeManifest({ ...snapshot!, time: snapshot!.time + 400 * DAY }, nodeCryptography)
    await store.target.write(manifestName(snapshot!), oneChunk(ahead))
    await server.stop()
    await server.restart()
    const again = await server.connect()
    again.create(1, '/b')
    await server.advance(3 * MINUTE)
    expect((await Catalog.read(store)).snapshots).toHaveLength(2)
    await server.stop()
  })

  it('believes no time of a last backup that is still to come, as of a member whose clock had jumped', async () => {
    const disk = new MemoryDisk()
    const claimed = new TextEncoder().encode(`7 ${'0'.repeat(16)} 1 9000000000000\n`)
    disk.putFile('/backup/duty', claimed)
    const server = await TestServer.start({ backupTargets: ['/backup'], maxSessionTimeoutMs: DAY }, disk)
    await server.advance(10_000)
    expect(await describedBy(server.http)).toMatchObject({ member: '7', lastBackup: null })
    await server.advance(MINUTE)
    const client = await server.connect({ timeout: DAY })
    client.create(1, '/a')
    await server.advance(MINUTE)
    server.disk.injectFault = (_, path) => (path.startsWith('/backup') ? { code: 'EIO' } : undefined)
    const failingSince = server.clock.wall()
    client.create(2, '/b')
    await server.advance(10 * MINUTE)
    const { lastBackup } = (await describedBy(server.http))!
    expect(Date.parse(lastBackup!)).toBeLessThanOrEqual(failingSince)
    server.disk.injectFault = undefined
    const claim = new TextDecoder().decode(await disk.readFile('/backup/duty'))
    expect(claim).toMatch(/^1 /)
    expect(claim).not.toContain('9000000000000')
    await server.stop()
  })

  it('verifies the newest backup by replay at its interval, also over a restart, and reports damage', async () => {
    const server = await TestServer.start({
      backupTargets: ['/backup'],
      backupVerifyMs: 20 * MINUTE,
      adminRoleBackup: ['ip:127.0.0.1'],
    })
    const metrics = async () => (await server.http.request('/metrics')).text
    const done = () =>
      server.logLines.filter(({ sentence }) => sentence.startsWith('Verified the newest')).length
    const client = await server.connect()
    client.create(1, '/a')
    await server.advance(2 * MINUTE)
    expect(done()).toBe(1)
    expect(await metrics()).toMatch(/^zabra_backup_verified\{target="file:\/\/\/backup"\} 1$/m)
    expect(await metrics()).toMatch(
      /^zabra_backup_last_verification_seconds\{target="file:\/\/\/backup"\} \d+/m,
    )
    await server.stop()
    await server.restart()
    await server.advance(5 * MINUTE)
    expect(done()).toBe(1)
    // Nothing was written since: no more snapshots.
    expect(server.disk.paths().filter((path) => path.startsWith('/backup/snapshot/'))).toHaveLength(1)
    for (const path of server.disk.paths())
      if (path.startsWith('/backup/snapshot/')) {
        const bytes = await server.disk.readFile(path)
        server.disk.putFile(path, bytes.slice(0, bytes.length >> 1))
      }
    await server.advance(15 * MINUTE)
    expect(done()).toBe(1)
    expect(await metrics()).toMatch(/^zabra_backup_verified\{target="file:\/\/\/backup"\} 0$/m)
    expect(JSON.parse((await server.http.request('/api/v1/backups')).text)).toMatchObject({
      targets: [{ verificationProblem: expect.any(String), problem: null }],
    })
    expect(server.logLines.at(-1)).toMatchObject({
      level: 'error',
      sentence: 'The newest backup cannot be restored',
    })
    // That of now is verified at once.
    await askForBackup(server.http)
    await server.advance(2 * MINUTE)
    expect(done()).toBe(2)
    expect(await metrics()).toMatch(/^zabra_backup_verified\{target="file:\/\/\/backup"\} 1$/m)
    await server.stop()
  })

  it.each([
    [{ backupTargets: ['backup'] }, 'Expected an absolute folder'],
    [{ backupTargets: ['ftp://host/x'] }, 'Expected an absolute folder'],
    [{ backupTargets: ['s3://bucket/x'] }, 'Expected backup.s3.credentialsFile'],
    [{ backupTargets: ['/backup'], backupKeyFile: '/missing' }, 'ENOENT'],
  ])('refuses to start with settings that cannot be used: %j', async (settings, message) => {
    await expect(TestServer.start(settings)).rejects.toThrow(message)
  })
})

describe('an ensemble with a target of backups', () => {
  const SHARED = { backupTargets: ['/shared/backup'], backupLogIntervalMs: 5000 }

  const holders = async (ensemble: Ensemble): Promise<number[]> => {
    const held: number[] = []
    for (const { id, server, http } of ensemble.members.values())
      if (server !== undefined && (await describedBy(http))?.onDuty) held.push(id)
    return held
  }

  async function create(ensemble: Ensemble, path: string): Promise<void> {
    const client = await ensemble.client(ensemble.leader!)
    expect(await ensemble.create(client, path)).toBe('1:0')
  }

  it('has one member on duty, which is not the leader, and another one when it dies or stops', async () => {
    const ensemble = await Ensemble.start(3, SHARED)
    const store = storeOn(ensemble.sharedDisk, '/shared/backup')
    await create(ensemble, '/a')
    await ensemble.advance(MINUTE)
    const [first, ...others] = await holders(ensemble)
    expect(others).toEqual([])
    expect(first).not.toBe(ensemble.leader)
    expect(await pathsIn(store)).toEqual(['/a'])
    for (const { http } of ensemble.members.values())
      expect(await describedBy(http)).toMatchObject({ member: String(first), lastBackup: expect.any(String) })

    await ensemble.member(first!).crash()
    await create(ensemble, '/b')
    await ensemble.advance(MINUTE)
    const [second] = await holders(ensemble)
    expect(second).toBeDefined()
    expect(second).not.toBe(ensemble.leader)
    expect(await pathsIn(store)).toEqual(['/a', '/b'])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)

    await ensemble.member(first!).start()
    await ensemble.allServe()
    await ensemble.advance(2 * MINUTE)
    expect(await holders(ensemble)).toEqual([second])
    await ensemble.member(second!).stop()
    await create(ensemble, '/c')
    // Given up: no member waits for its next claim.
    await ensemble.advance(30_000)
    expect(await holders(ensemble)).toEqual([first])
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c'])
  })

  it('asks the target for little while nothing is committed, keeps the duty where it is, and goes on at once', async () => {
    const ensemble = await Ensemble.start(3, SHARED)
    const store = storeOn(ensemble.sharedDisk, '/shared/backup')
    await create(ensemble, '/a')
    await ensemble.advance(2 * MINUTE)
    const [onDuty] = await holders(ensemble)
    let claims = 0
    const others = new Set<string>()
    ensemble.sharedDisk.injectFault = (call, path) => {
      if (!path.startsWith('/shared/backup/')) return undefined
      if (call === 'rename' && path.includes('/duty')) claims++
      else if (!path.includes('/duty')) others.add(`${call} ${path}`)
      return undefined
    }
    await ensemble.advance(10 * MINUTE)
    expect([claims, [...others]]).toEqual([10, []])
    for (const { http } of ensemble.members.values()) {
      const { member, lastBackup } = (await describedBy(http))!
      expect([member, Date.parse(lastBackup!)]).toEqual([String(onDuty), Math.floor(ensemble.clock.wall())])
    }
    ensemble.sharedDisk.injectFault = undefined
    // At times between two looks of each member.
    for (let at = 0; at < 5; at++) {
      await create(ensemble, `/n${at}`)
      await ensemble.advance(5000)
      expect(await pathsIn(store)).toContain(`/n${at}`)
      await ensemble.advance(61_000 + 13_000 * at)
      expect(await holders(ensemble)).toEqual([onDuty])
    }
    const claim = new TextDecoder().decode(await ensemble.sharedDisk.readFile('/shared/backup/duty'))
    expect(claim.split(' ')[0]).toBe(String(onDuty))
  })

  it('has no problem any more once all members reach a target again, where nothing is to be written', async () => {
    const ensemble = await Ensemble.start(3, SHARED)
    await create(ensemble, '/a')
    await ensemble.advance(2 * MINUTE)
    const problems = async () =>
      Promise.all([...ensemble.members.values()].map(async ({ http }) => (await describedBy(http))?.problem))
    ensemble.sharedDisk.injectFault = (_, path) =>
      path.startsWith('/shared/backup') ? { code: 'EIO' } : undefined
    await ensemble.advance(1.5 * MINUTE)
    expect(await problems()).toEqual(Array(3).fill(expect.stringContaining('EIO')))
    ensemble.sharedDisk.injectFault = undefined
    await ensemble.advance(MINUTE)
    expect(await problems()).toEqual([null, null, null])
  })

  it('gets the last transactions of a leader that stops, and no alarm', async () => {
    const settings = { ...SHARED, backupLogIntervalMs: 60_000, backupMember: '3' }
    const ensemble = await Ensemble.start(3, settings)
    const leader = 3
    expect(ensemble.leader).toBe(leader)
    await ensemble.advance(2 * MINUTE)
    expect(await holders(ensemble)).toEqual([leader])
    await create(ensemble, '/last')
    ensemble.lines.length = 0
    await ensemble.member(leader).stop()
    expect(ensemble.lines.filter((line) => / (?:warn|error) /.test(line))).toEqual([])
    expect(await pathsIn(storeOn(ensemble.sharedDisk, '/shared/backup'))).toEqual(['/last'])
  })

  it('names the member on duty to those who ask another one', async () => {
    const ensemble = await Ensemble.start(3, {
      ...SHARED,
      backupMember: '3',
      adminRoleBackup: ['ip:127.0.0.1'],
    })
    await ensemble.advance(MINUTE)
    expect(await askForBackup(ensemble.member(1).http)).toMatchObject({
      status: 409,
      text: expect.stringContaining('member 3'),
    })
    expect(await askForBackup(ensemble.member(3).http)).toMatchObject({ status: 202 })
  })

  /**
   * Returns a settled ensemble whose learners are always sent a snapshot, with one backup, and its members. The leader has no target
   * where it `isWithoutTarget`.
   */
  async function sentSnapshots(
    settings: Partial<typeof SHARED> & { backupMember?: string } = {},
    { isWithoutTarget = false } = {},
  ) {
    const ensemble = new Ensemble(3, { ...SHARED, forceSnapshotSync: true, ...settings })
    const third = ensemble.member(3)
    if (isWithoutTarget) third.settings = Object.freeze({ ...third.settings, backupTargets: [] })
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    expect(ensemble.leader).toBe(3)
    await create(ensemble, '/a')
    await ensemble.advance(MINUTE)
    const onDuty = (await holders(ensemble))[0]!
    const leader = ensemble.leader!
    const other = [1, 2, 3].find((id) => id !== onDuty && id !== leader)!
    return { ensemble, store: storeOn(ensemble.sharedDisk, '/shared/backup'), onDuty, leader, other }
  }

  const gapsIn = ({ lines }: Ensemble): string[] =>
    lines.filter((line) => line.includes('Transactions since the last backup are in none'))

  it('leaves a free duty to a member whose log reaches back to the last backup, also to the leader', async () => {
    const { ensemble, store, onDuty, leader, other } = await sentSnapshots({
      backupLogIntervalMs: 2 * MINUTE,
    })
    await ensemble.member(other).crash()
    await create(ensemble, '/b')
    await ensemble.startServing(other)
    await ensemble.member(onDuty).crash()
    await create(ensemble, '/c')
    await ensemble.advance(1.5 * MINUTE)
    expect(await holders(ensemble)).toEqual([leader])
    expect(gapsIn(ensemble)).toEqual([])
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c'])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
  })

  it('takes the duty with the snapshot of its leader and a warning when no member has such a log', async () => {
    const settings = { backupLogIntervalMs: 2 * MINUTE }
    const { ensemble, store, onDuty, other } = await sentSnapshots(settings, { isWithoutTarget: true })
    await ensemble.member(other).crash()
    await create(ensemble, '/b')
    await ensemble.startServing(other)
    await ensemble.member(onDuty).crash()
    await create(ensemble, '/c')
    await ensemble.advance(85_000)
    expect(await holders(ensemble)).toEqual([])
    await ensemble.advance(45_000)
    expect(await holders(ensemble)).toEqual([other])
    expect(gapsIn(ensemble)).toHaveLength(1)
    expect((await ensemble.member(other).http.request('/metrics')).text).toMatch(
      /^zabra_backup_gaps_total\{target="file:\/\/\/shared\/backup"\} 1$/m,
    )
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c'])
    const catalog = await Catalog.read(store)
    expect(catalog.snapshots).toHaveLength(2)
    expect(catalog.gaps).toEqual([
      { after: catalog.snapshots[0]!.exactAt, before: catalog.snapshots[1]!.exactAt },
    ])
    // The gap ends at the snapshot of the leader, not where the member took the duty.
    expect(await pathsIn(store, 'exactAt')).toEqual(['/a', '/b'])
    const { defect } = await verifyDeep(store, catalog.newestChain(), {
      compression: syncCompression,
      toEnd: true,
    })
    expect(defect).toBeUndefined()
  })

  it('leaves no gap when all members have taken snapshots since the last backup, and crash', async () => {
    const ensemble = await Ensemble.start(3, { ...SHARED, backupLogIntervalMs: 2 * MINUTE })
    const store = storeOn(ensemble.sharedDisk, '/shared/backup')
    await create(ensemble, '/a')
    await ensemble.advance(MINUTE)
    expect(await holders(ensemble)).toHaveLength(1)
    await create(ensemble, '/b')
    for (const { server } of ensemble.members.values()) await server!.snapshot()
    await create(ensemble, '/c')
    for (const member of ensemble.members.values()) await member.crash()
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    await create(ensemble, '/d')
    await ensemble.advance(MINUTE)
    expect(gapsIn(ensemble)).toEqual([])
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c', '/d'])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
  })

  it('leaves no gap when another leader was elected between the last backup and snapshots of all members, which crash', async () => {
    const ensemble = await Ensemble.start(3, SHARED)
    const store = storeOn(ensemble.sharedDisk, '/shared/backup')
    await create(ensemble, '/a')
    await ensemble.advance(MINUTE)
    expect(await pathsIn(store)).toEqual(['/a'])
    ensemble.sharedDisk.injectFault = (call, path) =>
      call === 'write' && path.startsWith('/shared/backup/log/') ? { code: 'EIO' } : undefined
    await create(ensemble, '/b')
    await ensemble.member(ensemble.leader!).crash()
    await ensemble.until('another leader', () => ensemble.leader !== undefined)
    await create(ensemble, '/c')
    for (const member of ensemble.members.values()) if (member.server === undefined) await member.start()
    await ensemble.allServe()
    for (const { server } of ensemble.members.values()) await server!.snapshot()
    await create(ensemble, '/d')
    for (const member of ensemble.members.values()) await member.crash()
    ensemble.sharedDisk.injectFault = undefined
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    await create(ensemble, '/e')
    await ensemble.advance(3 * MINUTE)
    expect(gapsIn(ensemble)).toEqual([])
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c', '/d', '/e'])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
  })

  const PURGING = {
    ...SHARED,
    backupLogIntervalMs: 10 * MINUTE,
    purgeIntervalMs: MINUTE,
    snapCount: 2,
    snapTreeShare: 0,
  }

  it('leaves no gap when members without the duty remove old logs before one of them takes it', async () => {
    const ensemble = await Ensemble.start(3, PURGING)
    const store = storeOn(ensemble.sharedDisk, '/shared/backup')
    await create(ensemble, '/a')
    await ensemble.advance(MINUTE)
    const [onDuty] = await holders(ensemble)
    const paths = Array.from({ length: 9 }, (_, i) => `/b${i}`)
    for (const path of paths) await create(ensemble, path)
    await ensemble.advance(2 * MINUTE)
    for (const { disk } of ensemble.members.values())
      expect(disk.paths().filter((path) => path.startsWith('/data/version-2/snapshot'))).toHaveLength(3)
    await ensemble.member(onDuty!).crash()
    await ensemble.advance(2 * MINUTE)
    expect(await holders(ensemble)).toHaveLength(1)
    expect(gapsIn(ensemble)).toEqual([])
    expect(await pathsIn(store)).toEqual(['/a', ...paths])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
  })

  it('removes old files, and no log that may be in no backup, where the target does not answer', async () => {
    const ensemble = await Ensemble.start(3, PURGING)
    const { disk } = ensemble.member(1)
    disk.list = function (path) {
      const own = MemoryDisk.prototype.list.bind(this)
      return path.startsWith('/shared/') ? new Promise(() => {}) : own(path)
    }
    for (let i = 0; i < 9; i++) await create(ensemble, `/a${i}`)
    const files = (kind: string) => disk.paths().filter((path) => path.startsWith(`/data/version-2/${kind}.`))
    const logs = files('log')
    expect(files('snapshot').length).toBeGreaterThan(3)
    await ensemble.advance(1.5 * MINUTE)
    expect(files('snapshot')).toHaveLength(3)
    expect(files('log')).toEqual(expect.arrayContaining(logs))
  })

  it.each([5000, 2 * MINUTE])(
    'gives the duty up after its leader has sent it a snapshot (%i ms)',
    async (ms) => {
      const { ensemble, store, onDuty, other } = await sentSnapshots({ backupLogIntervalMs: ms })
      const ends = () =>
        ensemble.lines.filter((line) => line.includes('data of the leader are on disk')).length
      const before = ends()
      ensemble.cut(onDuty)
      await create(ensemble, '/b')
      ensemble.heal(onDuty)
      await ensemble.until('a snapshot from the leader', () => ends() > before)
      await ensemble.allServe()
      await ensemble.advance(3 * MINUTE)
      expect(await holders(ensemble)).toEqual([other])
      expect(gapsIn(ensemble)).toEqual([])
      expect(await pathsIn(store)).toEqual(['/a', '/b'])
    },
  )

  it('takes the duty once when all members that may have it were sent snapshots', async () => {
    const settings = { backupLogIntervalMs: 10 * MINUTE, backupMember: 'follower' }
    const { ensemble, store, onDuty, other } = await sentSnapshots(settings, { isWithoutTarget: true })
    ensemble.cut(onDuty)
    await create(ensemble, '/b')
    ensemble.heal(onDuty)
    await ensemble.allServe()
    await ensemble.restart(other)
    await ensemble.advance(2 * MINUTE)
    const first = await holders(ensemble)
    expect(first).toHaveLength(1)
    expect(gapsIn(ensemble)).toHaveLength(1)
    expect(await pathsIn(store)).toEqual(['/a', '/b'])
    await ensemble.advance(2 * MINUTE)
    expect(await holders(ensemble)).toEqual(first)
    expect((await Catalog.read(store)).snapshots).toHaveLength(2)
  })

  it('leaves the duty to the member in the settings', async () => {
    const ensemble = await Ensemble.start(3, { ...SHARED, backupMember: '3' })
    await ensemble.advance(MINUTE)
    expect(await holders(ensemble)).toEqual([3])
  })

  const substitutesIn = ({ lines }: Ensemble): string[] =>
    lines.filter((line) => line.includes('Took the duty of backups, which backup.member leaves to others'))

  it('leaves no gap where no log of the members in the settings reaches back, and gives the duty back', async () => {
    const settings = { backupLogIntervalMs: 2 * MINUTE, backupMember: 'follower' }
    const { ensemble, store, onDuty, leader, other } = await sentSnapshots(settings)
    await ensemble.member(other).crash()
    await create(ensemble, '/b')
    await ensemble.startServing(other)
    await ensemble.member(onDuty).crash()
    await create(ensemble, '/c')
    await ensemble.advance(3 * MINUTE)
    expect(await holders(ensemble)).toEqual([other])
    expect(substitutesIn(ensemble)).toEqual([expect.stringContaining(` ${leader} warn `)])
    expect(gapsIn(ensemble)).toEqual([])
    expect(await pathsIn(store)).toEqual(['/a', '/b', '/c'])
    expect((await Catalog.read(store)).snapshots).toHaveLength(1)
  })

  it('goes on with other members while that in the settings is away, and with it when it is back', async () => {
    const ensemble = await Ensemble.start(3, { ...SHARED, backupMember: '1' })
    const store = storeOn(ensemble.sharedDisk, '/shared/backup')
    await create(ensemble, '/a')
    await ensemble.advance(MINUTE)
    expect(await holders(ensemble)).toEqual([1])
    await ensemble.member(1).crash()
    await create(ensemble, '/b')
    await ensemble.advance(2 * MINUTE)
    // The leader is the last one, also among those that are not named.
    expect(await holders(ensemble)).toEqual([2])
    expect(await pathsIn(store)).toEqual(['/a', '/b'])
    await ensemble.startServing(1)
    await ensemble.advance(30_000)
    expect(await holders(ensemble)).toEqual([1])
    expect(substitutesIn(ensemble)).toHaveLength(1)
    expect(gapsIn(ensemble)).toEqual([])
  })

  it('begins no backups where none of its members is in the settings', async () => {
    const settings = { ...SHARED, backupMember: 'observer', adminRoleBackup: ['ip:127.0.0.1'] }
    const ensemble = await Ensemble.start(3, settings)
    const asked = askForBackup(ensemble.member(1).http)
    await ensemble.advance(5000)
    expect(await asked).toMatchObject({
      status: 503,
      text: expect.stringContaining('backup.member=observer'),
    })
    await ensemble.advance(5 * MINUTE)
    expect(await holders(ensemble)).toEqual([])
    expect(ensemble.sharedDisk.paths()).toEqual([])
  })
})

/** Chunks of 1000 bytes at a rate, with a clock that waits for nothing. */
function pacedChunks(bytesPerSecond: () => number) {
  let isStopped = false
  const clock = {
    now: 0,
    monotonic: () => clock.now,
    after: (ms: number, _: string, action: () => void) => {
      clock.now += ms
      action()
      return () => {}
    },
  }
  async function* chunks() {
    for (;;) yield new Uint8Array(1000)
  }
  const source = paced(chunks(), { clock, bytesPerSecond, isStopped: () => isStopped })
  return { clock, next: () => source.next(), stop: () => (isStopped = true) }
}

describe('paced', () => {
  it('passes chunks on at its rate, and ends when the server stops', async () => {
    const { clock, next, stop } = pacedChunks(() => 10_000)
    for (let i = 0; i < 11; i++) await next()
    expect(clock.now).toBe(1000)
    stop()
    await expect(next()).rejects.toThrow('The server stops')
  })

  it('takes another rate within a second, and ends within a second when the server stops', async () => {
    const { clock, next } = pacedChunks(() => (clock.now < 5000 ? 1 : 0))
    await next()
    await next()
    expect(clock.now).toBe(5000)
    const stopping = pacedChunks(() => 1)
    await stopping.next()
    stopping.stop()
    await expect(stopping.next()).rejects.toThrow('The server stops')
    expect(stopping.clock.now).toBe(1000)
  })

  it('takes a lower rate at once, though its source was slower than the rate before', async () => {
    let rate = 1_000_000
    const { clock, next } = pacedChunks(() => rate)
    for (let i = 0; i < 100; i++) {
      await next()
      clock.now += 1000
    }
    rate = 100
    await next()
    const before = clock.now
    for (let i = 0; i < 3; i++) await next()
    expect(clock.now - before).toBeGreaterThan(25_000)
  })

  it('writes few snapshots to its own disk while the target has no space for them', async () => {
    const server = await TestServer.start({ backupTargets: ['/backup'], purgeIntervalMs: 24 * 60 * MINUTE })
    server.disk.injectFault = (call, path) =>
      call === 'write' && path.startsWith('/backup/snapshot/') ? { code: 'ENOSPC' } : undefined
    for (let minute = 0; minute < 50; minute++) {
      const client = await server.connect({ timeout: 40_000 })
      client.create(1, `/n${minute}`)
      for (let i = 0; i < 6; i++) await server.advance(10_000)
    }
    const snapshots = server.disk.paths().filter((path) => path.startsWith('/data/version-2/snapshot.'))
    expect(snapshots.length).toBeLessThan(12)
    await server.stop()
  })
})

it('the last credentials for S3 stay in use while their file cannot be used, which is said once without its contents', async () => {
  const disk = new MemoryDisk()
  const put = (text: string): void => disk.putFile('/s3', new TextEncoder().encode(text))
  const lines: string[] = []
  const logger = {
    ...silentLogger,
    error: (facts: object, line: string) => void lines.push(`${line} ${JSON.stringify(facts)}`),
  }
  const read = credentialsReader({ backupS3CredentialsFile: '/s3' }, { disk, logger })
  await expect(read()).rejects.toThrow('/s3')
  const first = 'aws_access_key_id = ada\naws_secret_access_key = hidden\n'
  put(first)
  expect(await read()).toMatchObject({ accessKeyId: 'ada', secretAccessKey: 'hidden' })
  for (const spoiled of ['', first.slice(0, 40), 'hidden \0 garbage', undefined]) {
    if (spoiled === undefined) await disk.remove('/s3')
    else put(spoiled)
    for (let again = 0; again < 3; again++) expect(await read()).toMatchObject({ accessKeyId: 'ada' })
  }
  // Of damage, and of the absence.
  expect(lines).toHaveLength(2)
  expect(lines.join()).not.toContain('hidden')
  put(first.replace('ada', 'bob'))
  expect(await read()).toMatchObject({ accessKeyId: 'bob' })
  put('')
  await read()
  expect(lines).toHaveLength(3)
})
