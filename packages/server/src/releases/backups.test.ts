import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { nodeCompression, nodeCryptography } from '@zabra/runtime/node'
import {
  plain,
  putFiles,
  readFixture,
  releases,
  toHex,
  writeFixture,
  writtenRelease,
} from '@zabra/testkit/release-fixtures'
import { describe, expect, it } from 'vitest'
import {
  Catalog,
  FolderTarget,
  loadBackup,
  nodesOf,
  parseKey,
  restoreFolder,
  verifyChain,
  verifyDeep,
  verifyPieces,
  type BackupStore,
} from '../backup/index.ts'
import { TestServer } from '../testing/test-server.ts'

const FOLDER = '/backup'
const KEY_FILE = '/backup.key'
const KEY = 'ab'.repeat(32)
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const compression = nodeCompression

interface Fixture {
  /** The files of a target, by paths. */
  readonly files: Readonly<Record<string, string>>
  /** The key with which they are sealed. */
  readonly key: string | null
  /** What the target holds at some moments, by zxid. */
  readonly moments: Readonly<Record<string, unknown>>
}

function storeOf({ files, key }: Pick<Fixture, 'files' | 'key'>): BackupStore {
  const disk = new MemoryDisk()
  putFiles(disk, files)
  const random = new SeededRandom(5)
  return {
    target: new FolderTarget(FOLDER, { disk, random }),
    cryptography: nodeCryptography,
    random,
    key: key === null ? undefined : parseKey(key, nodeCryptography, KEY_FILE),
  }
}

/** Returns what a target holds at a moment. */
async function readMoment(store: BackupStore, zxid: number): Promise<unknown> {
  const catalog = await Catalog.read(store)
  const { tree, lastZxid, level } = await loadBackup(store, catalog.chainTo(zxid), zxid, { compression })
  return plain({ lineage: catalog.lineage, lastZxid, level, nodes: [...nodesOf(tree)] })
}

/** Has a server write snapshots, parts of its log and merged ones to a folder. Returns the files and what they hold. */
async function capture(key: string | null): Promise<Fixture> {
  const disk = new MemoryDisk()
  if (key !== null) disk.putFile(KEY_FILE, new TextEncoder().encode(key))
  const settings = { backupTargets: [FOLDER], extendedTypesEnabled: true, maxSessionTimeoutMs: DAY_MS }
  const server = await TestServer.start(
    { ...settings, ...(key === null ? {} : { backupKeyFile: KEY_FILE }) },
    disk,
  )
  const client = await server.connect({ timeout: DAY_MS })
  await server.advance(10_000)
  const moments: number[] = []
  const write = async (action: () => void): Promise<void> => {
    action()
    await server.untilIdle()
    moments.push(server.server.stats().lastZxid)
    await server.advance(10_000)
  }
  await write(() => client.create(1, '/plain', 0, 'data'))
  await write(() => client.create(2, '/plain/sequential-', 2))
  await write(() => client.create(3, '/ephemeral', 1))
  await server.advance(HOUR_MS)
  await write(() => client.createTtl(4, '/ttl', BigInt(DAY_MS)))
  await write(() => client.set(5, '/plain', 'changed'))
  await write(() => client.delete(6, '/plain/sequential-0000000000'))
  await server.stop()
  const files: Record<string, string> = {}
  for (const path of disk.paths().toSorted())
    if (path.startsWith(`${FOLDER}/`)) files[path] = toHex(await disk.readFile(path))
  const store = storeOf({ files, key })
  const held: Record<string, unknown> = {}
  for (const zxid of moments) held[zxid] = await readMoment(store, zxid)
  return { files, key, moments: held }
}

if (writtenRelease !== undefined)
  it('a server writes backups, plain and sealed', async () => {
    writeFixture('backup', await capture(null))
    writeFixture('sealed-backup', await capture(KEY))
  })

describe.each(releases)('a target of backups that release %s has written', (release) => {
  describe.each(['backup', 'sealed-backup'])('as %s', (name) => {
    const fixture = readFixture<Fixture>(release, name)

    it('has snapshots, parts of the log and a merged one, without damage and gaps', async () => {
      const store = storeOf(fixture)
      const catalog = await Catalog.read(store)
      const all = [...catalog.snapshots, ...catalog.logs]
      expect(catalog.bad).toEqual([])
      expect([...verifyChain(catalog)]).toEqual([])
      for await (const { defect } of verifyPieces(store, all)) expect(defect).toBeUndefined()
      const deep = await verifyDeep(store, catalog.newestChain(), { compression, toEnd: true })
      expect(deep.defect).toBeUndefined()
      expect([catalog.snapshots.length > 1, catalog.logs.some(({ merged }) => merged === true)]).toEqual([
        true,
        true,
      ])
    })

    it('holds each moment as it was', async () => {
      const store = storeOf(fixture)
      for (const [zxid, held] of Object.entries(fixture.moments))
        expect(await readMoment(store, Number(zxid))).toEqual(held)
    })

    it('is restored to a folder on which a server starts', async () => {
      const store = storeOf(fixture)
      const chain = (await Catalog.read(store)).newestChain()
      const disk = new MemoryDisk()
      await restoreFolder(await loadBackup(store, chain, chain.upTo, { compression }), {
        disk,
        compression,
        dataDir: '/data',
        dataLogDir: '/data',
        keepSessions: false,
        lastSeen: chain.upTo,
        now: 5,
      })
      const server = await TestServer.start({ extendedTypesEnabled: true }, disk)
      const client = await server.connect()
      client.create(1, '/plain/sequential-', 2)
      expect(await client.received()).toEqual(['1:0'])
      await server.stop()
    })
  })
})
