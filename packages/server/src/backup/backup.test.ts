import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { nodeCompression, nodeCryptography } from '@zabra/runtime/node'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { localSource } from '../admin/local-source.ts'
import type { AdminTarget } from '../admin/index.ts'
import { readFeatureState } from '../persistence/index.ts'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import { ensureLineage } from './catalog.ts'
import {
  Catalog,
  findPrunable,
  FolderTarget,
  httpSource,
  lastBefore,
  lastBeforeChange,
  loadBackup,
  manifestName,
  parseChange,
  parseKey,
  parseRetention,
  prune,
  removeBackups,
  restoreFolder,
  verifyChain,
  verifyDeep,
  verifyPieces,
  writeBackup,
  type BackupSource,
  type BackupStore,
} from './index.ts'

const compression = nodeCompression
const minute = 60_000
const KEY = 'ab'.repeat(32)
const OTHER_KEY = 'cd'.repeat(32)
const SETTINGS = { adminRoleBackup: ['ip:127.0.0.1'], snapCount: 1000 }

let server: TestServer
let client: RawClient
let disk: MemoryDisk
let store: BackupStore
let xid = 0

beforeEach(async () => {
  server = await TestServer.start(SETTINGS)
  client = await server.connect()
  disk = new MemoryDisk()
  store = storeOn(disk)
})

afterEach(() => server.stop())

const storeOn = (on: MemoryDisk, key?: string, random = new SeededRandom(5)): BackupStore => ({
  target: new FolderTarget('/backup', { disk: on, random }),
  cryptography: nodeCryptography,
  random,
  key: key === undefined ? undefined : parseKey(key, nodeCryptography, 'backup.key'),
})

const sourceOf = (http: TestServer['http']) =>
  httpSource('test', async (method, path, { accepts }) => {
    const { status, headers, bytes, text } = await http.request(path, { method })
    if (!accepts.includes(status)) throw new Error(`${status}: ${text}`)
    return { status, headers, chunks: oneChunk(bytes) }
  })

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const clock = { wall: () => server.clock.wall() }
const backUp = (to = store, logOnly = false) =>
  writeBackup(to, sourceOf(server.http), { clock, compression, snapshot: logOnly ? 'never' : 'always' })

async function write(action: (id: number) => void): Promise<void> {
  if (client.closed) client = await server.connect()
  action(++xid)
  await server.untilIdle()
}
const create = (path: string, data = '', flags = 0) => write((id) => client.create(id, path, flags, data))
const set = (path: string, data: string) => write((id) => client.set(id, path, data))

/** Paths with their data, without those of the server. */
async function nodesAt(upTo?: number, from = store): Promise<Record<string, string>> {
  const catalog = await Catalog.read(from)
  const chain = upTo === undefined ? catalog.newestChain() : catalog.chainTo(upTo)
  const { tree } = await loadBackup(from, chain, upTo ?? chain.upTo, { compression })
  const nodes: Record<string, string> = {}
  const cursor = tree.scan()
  while (
    cursor.next(
      1,
      (node) => (nodes[tree.pathOf(node)] = new TextDecoder().decode(tree.dataOf(node) ?? new Uint8Array(0))),
    )
  );
  cursor.close()
  return Object.fromEntries(
    Object.entries(nodes).filter(([path]) => path !== '/' && !path.startsWith('/zookeeper')),
  )
}

const lastZxid = (): number => server.server.stats().lastZxid

describe('writeBackup', () => {
  it.each(['never', 'always'] as const)(
    'ends the log of a server that is behind the backups, where a snapshot is taken %s: its files are kept until then',
    async (snapshot) => {
      await create('/a')
      await backUp()
      const source = sourceOf(server.http)
      let open = 0
      const behind: BackupSource = {
        ...source,
        async readLog(after) {
          // A member that has loaded a snapshot has no log before it.
          if (snapshot === 'always' && after < lastZxid()) return undefined
          const log = (await source.readLog(after))!
          open++
          const iterator = {
            next: () => Promise.reject(new Error('Expected no look at it')),
            return: async () => (open--, { done: true as const, value: undefined }),
          }
          return { ...log, upTo: lastZxid() - 1, chunks: { [Symbol.asyncIterator]: () => iterator } }
        },
      }
      await expect(writeBackup(store, behind, { clock, compression, snapshot })).rejects.toThrow()
      expect(open).toBe(0)
    },
  )

  it('keeps each moment since the first backup', async () => {
    await create('/a', 'one')
    await backUp()
    await set('/a', 'two')
    const two = lastZxid()
    await create('/b')
    await set('/a', 'three')
    await backUp()
    expect(await nodesAt()).toEqual({ '/a': 'three', '/b': '' })
    expect(await nodesAt(two)).toEqual({ '/a': 'two' })
    const { snapshots, logs } = await Catalog.read(store)
    expect(snapshots).toHaveLength(2)
    expect(logs).toMatchObject([
      { upTo: two - 1, transactions: 1 },
      { upTo: two + 2, transactions: 4 },
    ])
  })

  it('ships the log alone', async () => {
    await create('/a')
    await backUp()
    await expect(backUp(storeOn(new MemoryDisk()), true)).rejects.toThrow('Leave out --log-only')
    await create('/b')
    const { snapshot, log } = await backUp(store, true)
    expect([snapshot, log?.upTo]).toEqual([undefined, lastZxid()])
    expect((await backUp(store, true)).log).toBeUndefined()
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '' })
  })

  it('leaves no backup when it is cut short', async () => {
    await create('/a')
    disk.injectFault = (call, path) =>
      call === 'rename' && path.includes('manifest') ? { code: 'EIO' } : undefined
    await expect(backUp()).rejects.toThrow('EIO')
    disk.injectFault = undefined
    expect(await Catalog.read(store)).toMatchObject({ snapshots: [], logs: [] })
    await backUp()
    expect(await nodesAt()).toEqual({ '/a': '' })
  })

  it('leaves no snapshot in the target whose log cannot be written, as where that is almost full', async () => {
    await create('/a')
    await backUp()
    await create('/b')
    const before = disk.paths()
    disk.injectFault = (call, path) =>
      call === 'write' && path.startsWith('/backup/log/') ? { code: 'ENOSPC' } : undefined
    await expect(backUp()).rejects.toThrow('ENOSPC')
    expect(disk.paths()).toEqual(before)
    disk.injectFault = undefined
    await backUp()
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '' })
  })

  it('gives an empty target one lineage where several begin at once', async () => {
    const stores = [6, 7, 8].map((seed) => storeOn(disk, undefined, new SeededRandom(seed)))
    const lineages = await Promise.all(stores.map(ensureLineage))
    expect(lineages).toEqual(Array(3).fill((await Catalog.read(store)).lineage))
    await create('/a')
    await backUp(stores[2])
    expect(await Catalog.read(store)).toMatchObject({ bad: [], lineage: lineages[0] })
    expect(await nodesAt()).toEqual({ '/a': '' })
  })

  it('refuses a target that holds the backups of another ensemble', async () => {
    await create('/a')
    await create('/b')
    await backUp()
    const other = await TestServer.start(SETTINGS)
    const otherClient = await other.connect()
    for (let i = 1; i < 10; i++) otherClient.create(i, `/other-${i}`)
    await other.untilIdle()
    const attempt = writeBackup(store, sourceOf(other.http), {
      clock,
      compression,
      snapshot: 'always' as const,
    })
    await expect(attempt).rejects.toThrow(/backups of another (?:history|ensemble)/)
    await other.stop()
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '' })
  })

  it('keeps each moment of a server that restarts from a snapshot of the last transaction in the target', async () => {
    await create('/a')
    await backUp()
    await server.stop()
    await server.restart()
    client = await server.connect()
    await create('/b')
    const between = lastZxid()
    await create('/c')
    expect(await backUp()).toMatchObject({ hasGap: false })
    expect(await nodesAt(between)).toEqual({ '/a': '', '/b': '' })
  })

  it('says that transactions are in no backup after the log of the server was purged', async () => {
    await create('/a')
    await backUp()
    await create('/b')
    await server.server.snapshot()
    await server.stop()
    for (const path of server.disk.paths()) if (/\/log\.\w+$/.test(path)) await server.disk.remove(path)
    server = await TestServer.start({ ...SETTINGS, snapshotTrustEmpty: true }, server.disk)
    client = await server.connect()
    for (let i = 0; i < 9; i++) await create(`/c${i}`)
    expect(await backUp()).toMatchObject({ hasGap: true })
    expect(Object.keys(await nodesAt())).toContain('/c8')
  })

  it('needs the role', async () => {
    for (const [method, path] of [
      ['POST', '/api/v1/snapshots'],
      ['GET', '/api/v1/snapshots/content?file=snapshot.0'],
      ['GET', '/api/v1/log?after=0x0'],
    ] as const)
      expect((await server.http.request(path, { method, from: '10.0.0.1' })).status).toBe(401)
  })

  it('is refused by the server for what is no snapshot, and no zxid', async () => {
    const ask = async (path: string) => (await server.http.request(`/api/v1/${path}`)).status
    expect(await ask('snapshots/content?file=../myid')).toBe(400)
    expect(await ask('snapshots/content?file=snapshot.ffff')).toBe(404)
    expect(await ask('log?after=12')).toBe(400)
  })
})

describe('encryption', () => {
  const MARKER = 'plaintext-marker'

  it('hides the data, and opens with its key only', async () => {
    store = storeOn(disk, KEY)
    await create('/a', MARKER)
    await create('/big', 'x'.repeat(200_000))
    await backUp()
    for (const path of disk.paths())
      expect(new TextDecoder('latin1').decode(await disk.readFile(path))).not.toContain(MARKER)
    expect((await nodesAt())['/a']).toBe(MARKER)
    await expect(nodesAt(undefined, storeOn(disk))).rejects.toThrow(
      'got no key. Name its file with --key-file',
    )
    await expect(nodesAt(undefined, storeOn(disk, OTHER_KEY))).rejects.toThrow('is encrypted with the key')
  })

  it('opens what earlier keys have sealed with a key file that has these behind the present one', async () => {
    store = storeOn(disk, OTHER_KEY)
    await create('/a')
    await backUp()
    store = storeOn(disk, `${KEY}\n\n${OTHER_KEY}\n`)
    await create('/b')
    await backUp(store, true)
    const { snapshots, logs } = await Catalog.read(store)
    expect([snapshots[0]!.key, logs.at(-1)!.key]).toEqual([
      parseKey(OTHER_KEY, nodeCryptography, 'k').id,
      parseKey(KEY, nodeCryptography, 'k').id,
    ])
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '' })
    for (const text of [`${KEY}\nsecret`, `${KEY} ${KEY}`, '\n'])
      expect(() => parseKey(text, nodeCryptography, 'k')).toThrow(
        /^Expected 64 hexadecimal digits(?!.*secret)/,
      )
  })

  it('stays sound where two members write the same part of the log at once', async () => {
    store = storeOn(disk, KEY)
    const other = storeOn(disk, KEY, new SeededRandom(6))
    await create('/a')
    await backUp()
    await create('/b')
    await Promise.all([backUp(store, true), backUp(other, true)])
    const catalog = await Catalog.read(store)
    for await (const { defect } of verifyPieces(store, catalog.logs)) expect(defect).toBeUndefined()
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '' })
  })

  it('rejects a file that is no key, and repeats nothing of it', () => {
    expect(() => parseKey('secret', nodeCryptography, 'k')).toThrow(
      /^Expected 64 hexadecimal digits(?!.*secret)/,
    )
  })

  it('rejects a piece under the name of another', async () => {
    store = storeOn(disk, KEY)
    await create('/a')
    await backUp()
    for (const path of ['/b', '/c']) {
      await create(path)
      await backUp(store, true)
    }
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '', '/c': '' })
    const [, second, third] = disk.paths().filter((path) => path.includes('/log/'))
    disk.putFile(third!, await disk.readFile(second!))
    await expect(nodesAt()).rejects.toThrow('chunk 0 was changed')
  })
})

describe('verify', () => {
  async function defects(): Promise<string[]> {
    const catalog = await Catalog.read(store)
    const found = catalog.bad.map(({ name }) => name)
    for await (const { defect } of verifyPieces(store, [...catalog.snapshots, ...catalog.logs]))
      if (defect !== undefined) found.push(defect.name)
    return [...found, ...[...verifyChain(catalog)].map(({ name }) => name)]
  }

  it('finds a flipped bit in each file, and a missing one', async () => {
    await create('/a', 'data')
    await backUp()
    await create('/b')
    await backUp()
    expect(await defects()).toEqual([])
    const files = disk.paths().filter((path) => !path.endsWith('/lineage'))
    expect(files.length).toBeGreaterThanOrEqual(6)
    for (const file of files) {
      const bytes = await disk.readFile(file)
      for (const at of [0, bytes.length >> 1, bytes.length - 2]) {
        const flipped = bytes.slice()
        flipped[at]! ^= 1
        disk.putFile(file, flipped)
        expect(await defects(), `${file} ${at}`).not.toEqual([])
      }
      await disk.remove(file)
      if (!file.includes('/manifest/')) expect(await defects()).not.toEqual([])
      disk.putFile(file, bytes)
    }
    expect(await defects()).toEqual([])
  })

  it('finds two files of equal length that were exchanged', async () => {
    await create('/a', 'data')
    await backUp()
    await create('/b', 'date')
    await backUp()
    await create('/c', 'dats')
    await backUp()
    const logs = disk.paths().filter((path) => path.includes('/log/'))
    const [one, other] = await Promise.all(logs.slice(-2).map((path) => disk.readFile(path)))
    expect(one!.length).toBe(other!.length)
    disk.putFile(logs.at(-2)!, other!)
    disk.putFile(logs.at(-1)!, one!)
    expect(await defects()).toHaveLength(2)
  })

  it('finds the manifest of another target', async () => {
    await create('/a')
    await backUp()
    const otherDisk = new MemoryDisk()
    await backUp(storeOn(otherDisk, undefined, new SeededRandom(6)))
    const name = otherDisk.paths().find((path) => path.includes('/manifest/snapshot'))!
    disk.putFile(name.replace('.json', '-other.json'), await otherDisk.readFile(name))
    expect((await Catalog.read(store)).bad[0]?.error.message).toContain(
      'belongs to the backups of another target',
    )
  })

  it('replays a backup and compares nodes and digest', async () => {
    await create('/a')
    await backUp()
    await create('/b')
    await backUp(store, true)
    const catalog = await Catalog.read(store)
    const chain = catalog.newestChain()
    const checked = await verifyDeep(store, chain, { compression, toEnd: true })
    expect(checked).toEqual({ upTo: lastZxid(), defect: undefined })
    const other = { ...chain, snapshot: { ...chain.snapshot, nodes: 99 } }
    expect((await verifyDeep(store, other, { compression, toEnd: false })).defect?.problem).toContain(
      'Expected 99 nodes',
    )
    const forged = { ...chain, snapshot: { ...chain.snapshot, digest: '0'.repeat(16) } }
    expect((await verifyDeep(store, forged, { compression, toEnd: false })).defect?.problem).toContain(
      'Expected the digest',
    )
  })

  it('finds a part of the log that a snapshot needs and lacks', async () => {
    await create('/a')
    await backUp()
    await create('/b')
    const source = sourceOf(server.http)
    // Written between the snapshot and the log: the snapshot contains it in part.
    const racing = {
      ...source,
      readLog: async (after: number) => (await create('/c'), source.readLog(after)),
    }
    await writeBackup(store, racing, { clock, compression, snapshot: 'always' as const })
    const { logs, snapshots } = await Catalog.read(store)
    expect(snapshots[1]!.exactAt).toBe(snapshots[1]!.zxid + 1)
    expect(await defects()).toEqual([])
    await store.target.remove(manifestName(logs[1]!))
    expect(await defects()).toEqual([manifestName(snapshots[1]!)])
  })
})

describe('moments', () => {
  it('are found by time and by change', async () => {
    await create('/app')
    await create('/app/x', 'kept')
    await backUp()
    await server.advance(1000)
    const before = clock.wall()
    const beforeZxid = lastZxid()
    await server.advance(1000)
    await write((id) => client.delete(id, '/app/x'))
    await write((id) => client.delete(id, '/app'))
    await create('/later')
    await backUp(store, true)
    const catalog = await Catalog.read(store)
    const found = await lastBeforeChange(store, catalog, parseChange('delete /app'))
    expect(found.before).toBe(beforeZxid)
    expect(await nodesAt(found.before)).toEqual({ '/app': '', '/app/x': 'kept' })
    expect(await lastBefore(store, catalog, before)).toBe(beforeZxid)
    expect(await lastBefore(store, catalog, clock.wall())).toBe(lastZxid())
    await expect(lastBefore(store, catalog, clock.wall() + 1)).rejects.toThrow('Expected a time up to')
    await expect(lastBefore(store, catalog, 1)).rejects.toThrow('Expected a time from')
    await expect(lastBeforeChange(store, catalog, parseChange('delete /none'))).rejects.toThrow(
      'got no such change',
    )
    expect(() => parseChange('remove /app')).toThrow('Expected create, set or delete')
  })
})

describe('a time', () => {
  it('is refused where the log between two backups is in none, or was removed by retention', async () => {
    await create('/a')
    await backUp()
    const [time, after] = [clock.wall(), lastZxid()]
    await server.advance(minute)
    await create('/b')
    await create('/c')
    await server.advance(minute)
    await create('/d')
    const source = sourceOf(server.http)
    const readLog = async (from: number) => (from > after ? source.readLog(from) : undefined)
    await writeBackup(store, { ...source, readLog }, { clock, compression, snapshot: 'always' })
    const catalog = await Catalog.read(store)
    expect(await lastBefore(store, catalog, time)).toBe(after)
    for (const later of [1, 1.5 * minute])
      await expect(lastBefore(store, catalog, time + later)).rejects.toThrow(
        new RegExp(
          `--zxid 0x${after.toString(16)},.*--zxid 0x${catalog.snapshots[1]!.exactAt.toString(16)}\\.`,
        ),
      )
    expect(await lastBefore(store, catalog, clock.wall())).toBe(lastZxid())
  })

  it('is that of a snapshot which begins an epoch until the log after it begins, as after a replacement of all data', async () => {
    const start = 0x200000000
    const logs = [
      { after: 0, upTo: 5, firstTime: 1000, lastTime: 2000, time: 2500 },
      { after: start, upTo: start + 3, firstTime: 9000, lastTime: 9500, time: 9600 },
    ]
    const catalog = { snapshots: [{ exactAt: start, time: 5000 }], logs } as unknown as Catalog
    expect(await lastBefore(store, catalog, 7000)).toBe(start)
    await expect(lastBefore(store, catalog, 4000)).rejects.toThrow('the log after')
  })
})

describe('a tree that was deleted node by node', () => {
  it('is found as it was before the first delete, in whatever parts of the log the deletes are', async () => {
    for (const path of ['/other', '/app', '/app/1', '/app/2', '/app/3']) await create(path)
    await write((id) => client.delete(id, '/other'))
    await backUp()
    const begun = lastZxid()
    for (const path of ['/app/1', '/app/2', '/app/3', '/app']) {
      await write((id) => client.delete(id, path))
      await set('/', 'in between')
      await backUp(store, true)
      await server.advance(10_000)
    }
    const { before } = await lastBeforeChange(store, await Catalog.read(store), parseChange('delete /app'))
    expect(before).toBe(begun)
    expect(Object.keys(await nodesAt(before))).toEqual(['/app', '/app/1', '/app/2', '/app/3'])
  })

  it('is found without what was deleted long before', async () => {
    for (const path of ['/app', '/app/1', '/app/2']) await create(path)
    await backUp()
    await write((id) => client.delete(id, '/app/1'))
    await backUp(store, true)
    await server.advance(2 * minute)
    const begun = lastZxid()
    await write((id) => client.delete(id, '/app/2'))
    await backUp(store, true)
    await write((id) => client.delete(id, '/app'))
    await backUp(store, true)
    const { before } = await lastBeforeChange(store, await Catalog.read(store), parseChange('delete /app'))
    expect(Object.keys(await nodesAt(before))).toEqual(['/app', '/app/2'])
    expect(before).toBeGreaterThanOrEqual(begun)
  })
})

describe('restoreFolder', () => {
  it('brings back data, access lists, versions, counters, containers and times to live, without ephemeral nodes', async () => {
    await server.stop()
    server = await TestServer.start({ ...SETTINGS, extendedTypesEnabled: true })
    client = await server.connect()
    await create('/a', 'one')
    await set('/a', 'two')
    await create('/a/seq-', '', 2)
    await create('/a/seq-', '', 2)
    await write((id) => client.delete(id, '/a/seq-0000000001'))
    await write((id) => client.createTtl(id, '/ttl', 5000n))
    await create('/lock', 'mine', 1)
    await backUp()
    const chain = (await Catalog.read(store)).newestChain()
    const loaded = await loadBackup(store, chain, chain.upTo, { compression })
    const stat = loaded.tree.statOf(loaded.tree.find('/a'))
    const restored = new MemoryDisk()
    const options = {
      disk: restored,
      compression,
      dataDir: '/data',
      dataLogDir: '/data',
      keepSessions: false,
      lastSeen: chain.upTo,
      now: 5,
    }
    const result = await restoreFolder(loaded, options)
    expect(result).toMatchObject({ closedSessions: 1, snapshot: 'snapshot.100000001' })
    const again = await TestServer.start({ ...SETTINGS, extendedTypesEnabled: true }, restored)
    const reader = await again.connect()
    reader.create(1, '/a/seq-', 2)
    await again.untilIdle()
    const [created] = reader.replies()
    expect(created!.body.string()).toBe('/a/seq-0000000002')
    const report = (again.server as unknown as { service: { tree: typeof loaded.tree } }).service.tree
    expect(report.has('/lock')).toBe(false)
    expect(report.statOf(report.find('/a'))).toMatchObject({
      version: 1,
      czxid: stat.czxid,
      mzxid: stat.mzxid,
    })
    expect(report.owners.ttl.size).toBe(1)
    await again.stop()
    await expect(restoreFolder(loaded, options)).rejects.toThrow(
      'Expected a folder without data, got snapshot.',
    )
  })
})

describe('the feature level of a backup', () => {
  const backUpAt = (level: number) =>
    writeBackup(store, { ...sourceOf(server.http), level }, { clock, compression, snapshot: 'always' })
  const load = async () => {
    const chain = (await Catalog.read(store)).newestChain()
    return loadBackup(store, chain, chain.upTo, { compression })
  }

  it('is the highest of its parts, and that of the folder to which it is restored', async () => {
    await create('/a')
    await backUp()
    expect((await load()).level).toBe(0)
    await create('/b')
    await writeBackup(
      store,
      { ...sourceOf(server.http), level: 1 },
      { clock, compression, snapshot: 'never' },
    )
    const loaded = await load()
    expect(loaded.level).toBe(1)
    const restored = new MemoryDisk()
    const folders = { dataDir: '/data', dataLogDir: '/data' }
    const options = { compression, keepSessions: false, lastSeen: 0, now: 5 }
    await restoreFolder(loaded, { disk: restored, ...folders, ...options })
    expect(await readFeatureState(restored, '/data/version-2')).toEqual({ finalized: 1, proposed: 0 })
  })

  it('above that of this release is refused', async () => {
    await backUpAt(2)
    await expect(load()).rejects.toThrow(
      'Expected a backup of feature level 1 or below, which this release reads, got one of level 2. Use a release of level 2 or later.',
    )
  })

  it('is that of the server that writes it', async () => {
    const source = localSource(server.server as unknown as AdminTarget)
    expect(source.level).toBe(0)
    await (server.server as unknown as AdminTarget).features.finalize()
    expect(source.level).toBe(1)
    await writeBackup(store, source, { clock, compression, snapshot: 'always' })
    expect((await Catalog.read(store)).newestChain().snapshot.level).toBe(1)
  })
})

describe('prune', () => {
  it('keeps what the rules say, and all that a kept backup needs', async () => {
    for (let i = 0; i < 6; i++) {
      await create(`/n${i}`)
      await backUp()
      await server.advance(minute)
    }
    const before = await Catalog.read(store)
    expect(before.snapshots).toHaveLength(6)
    const found = await findPrunable(store, before, parseRetention('2m:all'), clock.wall())
    await prune(store, found)
    const after = await Catalog.read(store)
    expect(after.snapshots).toEqual(before.snapshots.slice(-2))
    for await (const { defect } of verifyPieces(store, [...after.snapshots, ...after.logs]))
      expect(defect).toBeUndefined()
    for (const snapshot of after.snapshots)
      expect(
        (await verifyDeep(store, after.chainOf(snapshot), { compression, toEnd: true })).defect,
      ).toBeUndefined()
    expect(disk.paths().filter((path) => path.includes('/snapshot/'))).toHaveLength(2)
    expect(() => parseRetention('1y:all')).toThrow('Expected rules as AGE:EVERY')
  })

  it('removes what it can where a file cannot be removed, and leaves that backup whole', async () => {
    for (let i = 0; i < 6; i++) {
      await create(`/n${i}`)
      await backUp()
      await server.advance(minute)
    }
    const rules = parseRetention('2m:all')
    const { snapshots } = await Catalog.read(store)
    const stuck = manifestName(snapshots[0]!)
    disk.injectFault = (call, path) =>
      call === 'remove' && path === `/backup/${stuck}` ? { code: 'EACCES' } : undefined
    const found = await findPrunable(store, await Catalog.read(store), rules, clock.wall())
    await expect(prune(store, found)).rejects.toMatchObject({ code: 'EACCES', path: `/backup/${stuck}` })
    const after = await Catalog.read(store)
    expect(after.snapshots.map(manifestName)).toEqual([stuck, ...snapshots.slice(-2).map(manifestName)])
    for await (const { defect } of verifyPieces(store, [...after.snapshots, ...after.logs]))
      expect(defect).toBeUndefined()
    expect(disk.paths().filter((path) => path.includes('/snapshot/'))).toHaveLength(3)
  })

  it('keeps the files of a backup that another program has written in place of one of the same transaction', async () => {
    await create('/a')
    await backUp()
    const known = await Catalog.read(store)
    await server.advance(1000)
    // Nothing was written since: the manifest has the same name, and the file another one.
    await backUp()
    const later = clock.wall() + 2 * 86_400_000
    const rules = parseRetention('90d:all')
    await prune(store, await findPrunable(store, await Catalog.read(store, known), rules, later))
    expect(await nodesAt()).toEqual({ '/a': '' })
    await prune(store, await findPrunable(store, await Catalog.read(store), rules, later))
    expect(disk.paths().filter((path) => path.includes('/snapshot/'))).toHaveLength(1)
  })
})

describe('prune between snapshots', () => {
  it('keeps each moment of the time for which all snapshots are kept, also before the first of them', async () => {
    const expected: Record<string, string> = {}
    for (let i = 0; i < 6; i++) {
      await create(`/n${i}`)
      if (i < 4) expected[`/n${i}`] = ''
      await server.advance(minute)
      await backUp()
      await server.advance(9 * minute)
      await create(`/m${i}`)
      if (i < 4) expected[`/m${i}`] = ''
      await server.advance(minute)
      await backUp(store, true)
    }
    // 15 minutes ago: between the snapshots of the fifth and the sixth round.
    expected['/n4'] = ''
    const rules = parseRetention('15m:all,1w:1w')
    const found = await findPrunable(store, await Catalog.read(store), rules, clock.wall())
    expect(found.manifests).not.toEqual([])
    await prune(store, found)
    const catalog = await Catalog.read(store)
    const moment = await lastBefore(store, catalog, clock.wall() - 15 * minute)
    expect(await nodesAt(moment)).toEqual(expected)
    expect(catalog.gaps).toEqual([])
  })
})

describe('parts of the log of two members that have written at once', () => {
  it('are restored, whatever number of transactions they have in common', async () => {
    await create('/a')
    const source = localSource(server.server as unknown as AdminTarget)
    const writePart = async (catalog: Catalog) =>
      (await writeBackup(store, source, { clock, compression, snapshot: 'if-needed', catalog })).log!
    const setMany = async (times: number): Promise<void> => {
      for (let done = 0; done < times; done += 500) {
        for (let i = 0; i < 500; i++) client.set(++xid, '/a', String(done + i))
        await server.untilIdle()
      }
    }
    await backUp()
    const known = await Catalog.read(store)
    await setMany(500)
    const first = await writePart(known)
    await setMany(17_000)
    await writePart(known)
    await setMany(500)
    await writePart(known.with([first]))
    const chain = (await Catalog.read(store)).newestChain()
    expect(chain.logs).toHaveLength(2)
    for (const at of [chain.upTo, chain.upTo - 1, chain.upTo - 700])
      expect((await loadBackup(store, chain, at, { compression })).lastZxid).toBe(at)
    expect(await nodesAt()).toEqual({ '/a': '499' })
  })
})

describe('the catalog of a target', () => {
  it('is what a reader finds after backups were written and removed, without reading them', async () => {
    await create('/n')
    await backUp()
    let known = await Catalog.read(store)
    const seen = (catalog: Catalog) => [
      catalog.snapshots,
      catalog.logs,
      catalog.unmerged,
      catalog.end,
      catalog.gaps,
      catalog.replaced(clock.wall() + 60 * minute),
      catalog.snapshots.map((snapshot) => catalog.chainOf(snapshot)),
    ]
    for (let part = 0; part < 12; part++) {
      await server.advance(1000)
      if (part % 4 > 0) await create(`/n/${part}`)
      const { snapshot, log } = await writeBackup(store, sourceOf(server.http), {
        clock,
        compression,
        catalog: known,
        snapshot: part % 4 === 3 ? 'always' : 'if-needed',
        merges: true,
      })
      known = known.with([snapshot, log].filter((one) => one !== undefined))
      if (part % 3 === 2) {
        const replaced = known.replaced(clock.wall() + 60 * minute)
        await removeBackups(store, replaced)
        known = known.with([], replaced)
      }
      expect(seen(known)).toEqual(seen(await Catalog.read(store)))
    }
    // Nothing is new: the snapshot takes the place of the one before.
    const { snapshot } = await backUp()
    known = known.with([snapshot!])
    expect(known.snapshots).toEqual((await Catalog.read(store)).snapshots)
    expect(known.logs.some(({ merged }) => merged)).toBe(true)
  })
})

describe('merged parts of the log', () => {
  const MOMENTS = 6
  const merging = { snapshot: 'always', merges: true } as const
  const partsIn = async () =>
    (await Catalog.read(store)).logs.map(({ merged = false, upTo }) => [merged, upTo])

  /** Writes small parts after a backup. Resolves to the transactions that end them. */
  async function writeParts(): Promise<number[]> {
    await create('/n')
    await backUp()
    const ends: number[] = []
    for (let part = 0; part < MOMENTS; part++) {
      await create(`/n/${part}`)
      await set('/n', String(part))
      await backUp(store, true)
      ends.push(lastZxid())
    }
    return ends
  }

  /** Expects that each moment can be restored, and that no file is damaged or missing. */
  async function expectSound(ends: readonly number[], from: BackupStore): Promise<void> {
    const catalog = await Catalog.read(from)
    expect(catalog.gaps).toEqual([])
    expect([...verifyChain(catalog)]).toEqual([])
    for await (const { defect } of verifyPieces(from, [...catalog.snapshots, ...catalog.logs]))
      expect(defect).toBeUndefined()
    for (const [part, end] of ends.entries())
      expect((await nodesAt(end, from))['/n'], `part ${part}`).toBe(String(part))
  }

  it('take the place of the small ones, in whatever step of it a crash comes', async () => {
    const ends = await writeParts()
    await server.advance(61 * minute)
    await create('/last')
    const before = disk.clone()
    let steps = 0
    for (let crashAt = 0; crashAt <= steps; crashAt++) {
      const crashed = before.clone()
      const on = storeOn(crashed, undefined, new SeededRandom(crashAt))
      steps = 0
      crashed.injectFault = (call) =>
        (call === 'rename' || call === 'remove') && steps++ === crashAt ? { code: 'EIO' } : undefined
      const run = async (): Promise<void> => {
        const options = { clock, compression, snapshot: 'never', merges: true } as const
        await writeBackup(on, localSource(server.server as unknown as AdminTarget), options)
        await removeBackups(on, (await Catalog.read(on)).replaced(clock.wall() + 61 * minute))
      }
      await run().catch(() => {})
      crashed.injectFault = undefined
      await expectSound(ends, on)
      await run()
      await expectSound(ends, on)
    }
    // The piece and the manifest of the merged part, and those of seven small ones.
    expect(steps).toBe(2 + 2 * (MOMENTS + 1))
  })

  it('need no longer log than the server has', async () => {
    const ends = await writeParts()
    const source = sourceOf(server.http)
    const readLog = async (after: number) => (after < ends[2]! ? undefined : source.readLog(after))
    await create('/last')
    await writeBackup(store, { ...source, readLog }, { clock, compression, ...merging })
    const catalog = await Catalog.read(store)
    const [merged] = catalog.logs.filter((log) => log.merged)
    expect(merged!.after).toBeGreaterThanOrEqual(ends[2]!)
    await removeBackups(store, catalog.replaced(clock.wall() + 61 * minute))
    await expectSound(ends, store)
    expect((await partsIn()).length).toBeLessThanOrEqual(MOMENTS)
  })

  it('are not written where nothing is new, nor of the history of another server', async () => {
    await writeParts()
    const before = await partsIn()
    await writeBackup(store, sourceOf(server.http), { clock, compression, ...merging })
    expect(await partsIn()).toEqual(before)
    const other = await TestServer.start(SETTINGS)
    const otherClient = await other.connect()
    for (let i = 1; i < 40; i++) otherClient.create(i, `/other-${i}`)
    await other.untilIdle()
    await expect(
      writeBackup(store, sourceOf(other.http), { clock, compression, ...merging }),
    ).rejects.toThrow('backups of another history')
    await other.stop()
    expect(await partsIn()).toEqual(before)
  })

  it('leave the small ones where the store has changed what it was given', async () => {
    const ends = await writeParts()
    await create('/last')
    const damaging: BackupStore = {
      ...store,
      target: Object.assign(Object.create(store.target) as typeof store.target, {
        url: store.target.url,
        write: async (name: string, chunks: AsyncIterable<Uint8Array>) => {
          const bytes = await store.target.write(name, chunks)
          if (!name.startsWith('log/')) return bytes
          const spoiled = await disk.readFile(`/backup/${name}`)
          spoiled[60]! ^= 1
          disk.putFile(`/backup/${name}`, spoiled)
          return bytes
        },
        list: (folder: string) => store.target.list(folder),
        open: (name: string) => store.target.open(name),
      }),
    }
    const options = { clock, compression, ...merging }
    await expect(writeBackup(damaging, sourceOf(server.http), options)).rejects.toThrow(
      'its sum is another one',
    )
    await expectSound(ends, store)
  })
})

describe('the gaps of a target', () => {
  it('are the times between two backups that cannot be restored, by what servers had no log of or what is lost', async () => {
    await create('/a')
    await backUp()
    await create('/b')
    await backUp(store, true)
    const lost = lastZxid()
    await create('/c')
    await create('/c/c')
    await backUp(store, true)
    await create('/d')
    await backUp()
    const { exactAt } = (await Catalog.read(store)).snapshots.at(-1)!
    await create('/e')
    await create('/e/e')
    await backUp(store, true)
    const catalog = await Catalog.read(store)
    expect(catalog.gaps).toEqual([])
    // A part of the log repeats the last transaction of the part before.
    await store.target.remove(manifestName(catalog.logs.find(({ upTo }) => upTo === lost + 2)!))
    expect((await Catalog.read(store)).gaps).toEqual([{ after: lost, before: exactAt }])
    const last = catalog.logs.at(-1)!
    await create('/f')
    await backUp(store, true)
    await store.target.remove(manifestName(last))
    expect((await Catalog.read(store)).gaps).toEqual([
      { after: lost, before: exactAt },
      { after: exactAt, before: undefined },
    ])
  })

  it('end at the snapshot of a server that had no log any more', async () => {
    await create('/a')
    await backUp()
    const after = lastZxid()
    await create('/b')
    await create('/c')
    const source = sourceOf(server.http)
    const options = { clock, compression, snapshot: 'always' as const }
    const forgetful = {
      ...source,
      readLog: async (from: number) => (from > after ? source.readLog(from) : undefined),
    }
    expect(await writeBackup(store, forgetful, options)).toMatchObject({ hasGap: true })
    expect((await Catalog.read(store)).gaps).toEqual([{ after, before: lastZxid() }])
  })

  it('are named behind the first backup too, until retention has removed the log around them', async () => {
    const begun = clock.wall()
    await create('/a')
    // The log of this backup reaches no further than its snapshot needs.
    await writeBackup(store, writingMeanwhile(sourceOf(server.http)), {
      clock,
      compression,
      snapshot: 'always',
    })
    const after = lastZxid()
    const { snapshots } = await Catalog.read(store)
    expect(snapshots).toMatchObject([{ zxid: after - 1, exactAt: after }])
    await server.advance(10 * minute)
    await create('/b')
    await create('/c')
    const source = sourceOf(server.http)
    const readLog = async (from: number) => (from > after ? source.readLog(from) : undefined)
    await writeBackup(store, { ...source, readLog }, { clock, compression, snapshot: 'always' })
    const gap = { after, before: lastZxid() }
    expect((await Catalog.read(store)).gaps).toEqual([gap])
    for (const path of ['/d', '/e', '/f', '/g']) {
      await create(path)
      await server.advance(10 * minute)
      await backUp()
    }
    expect((await Catalog.read(store)).gaps).toEqual([gap])
    const age = Math.ceil((clock.wall() - begun) / minute)
    const rules = parseRetention(`5m:all,${age + 1}m:1m`)
    await prune(store, await findPrunable(store, await Catalog.read(store), rules, clock.wall()))
    const pruned = await Catalog.read(store)
    expect(pruned.snapshots.map(({ exactAt }) => exactAt)).toContain(gap.before)
    expect(pruned.gaps).toEqual([])
  })
})

/** Returns a source with a transaction during each snapshot. */
const writingMeanwhile = (source: BackupSource): BackupSource => ({
  ...source,
  async takeSnapshot() {
    const snapshot = await source.takeSnapshot()
    await create('/meanwhile')
    return snapshot
  },
})

describe('prune after a crash', () => {
  it('removes what writes of more than a day ago have left, and no file of another name', async () => {
    let later = 0
    const now = (): number => clock.wall() + later
    disk.now = now
    await create('/a')
    await backUp()
    const stale = [
      'duty.0a1b2c3d.unfinished',
      'lineage.0a1b2c3d.unfinished',
      'manifest/snapshot-00000000000001.json.0a1b2c3d.unfinished',
      `snapshot/0000000000000001-${clock.wall()}-0a1b2c3d.gz.0a1b2c3d.unfinished`,
    ]
    const foreign = ['notes.unfinished', 'manifest/other.json.unfinished', 'photos.0a1b2c3d.unfinished']
    for (const name of [...stale, ...foreign]) disk.putFile(`/backup/${name}`, new Uint8Array(1))
    const remaining = () => disk.paths().filter((path) => path.includes('unfinished'))
    const run = async () =>
      prune(store, await findPrunable(store, await Catalog.read(store), parseRetention('9d:all'), now()))
    await run()
    expect(remaining()).toHaveLength(7)
    later = 86_400_001
    disk.putFile('/backup/duty.ffffffff.unfinished', new Uint8Array(1))
    await run()
    expect(remaining().toSorted()).toEqual(
      [...foreign, 'duty.ffffffff.unfinished'].map((name) => `/backup/${name}`).toSorted(),
    )
  })
})

describe('a backup of an ensemble', () => {
  it('goes on with another member, across epochs', async () => {
    const ensemble = await Ensemble.start(3, { adminRoleBackup: ['ip:127.0.0.1'] })
    const options = { clock: { wall: () => ensemble.clock.wall() }, compression, snapshot: 'always' as const }
    const first = await ensemble.client(ensemble.leader!)
    await ensemble.create(first, '/a')
    await writeBackup(store, sourceOf(ensemble.member(ensemble.leader!).http), options)
    await ensemble.member(ensemble.leader!).crash()
    await ensemble.until('a leader', () => ensemble.leader !== undefined)
    const follower = [...ensemble.members.values()].find(
      ({ id, server: running }) => running !== undefined && id !== ensemble.leader,
    )!
    await writeBackup(store, sourceOf(follower.http), options)
    const second = await ensemble.client(ensemble.leader!)
    await ensemble.create(second, '/b')
    await ensemble.advance(1000)
    await writeBackup(store, sourceOf(follower.http), { ...options, snapshot: 'never' })
    expect(await nodesAt()).toEqual({ '/a': '', '/b': '' })
    const catalog = await Catalog.read(store)
    for (const snapshot of catalog.snapshots)
      expect(
        (await verifyDeep(store, catalog.chainOf(snapshot), { compression, toEnd: true })).defect,
      ).toBeUndefined()
  })
})
