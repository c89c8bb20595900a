import { MemoryDisk, SeededRandom, type Disk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { PathIndex } from '../core/tree/path-index.ts'
import { RecoveryProgress } from '../persistence/index.ts'
import type { Database } from './database.ts'
import { openDatabase, type OpenOptions } from './open-database.ts'
import { DatabaseFixture, FOLDER, LeaderHistory } from './testing/database-fixture.ts'

/** Replaces a file as a process does that is killed before it syncs the folder. */
async function replaceWithoutFolder(disk: Disk, path: string, text: string): Promise<void> {
  const writer = await disk.openWrite(`${path}.tmp`, { create: true, durable: false })
  await writer.write(new TextEncoder().encode(text), 0)
  await writer.sync()
  await writer.close()
  await disk.rename(`${path}.tmp`, path)
}

describe('a member that starts after a kill', () => {
  it.each([
    ['whose log is in a folder of its own', { dataLogDir: '/logs' }, 3],
    ['whose log is beside its epochs', {}, 3],
    ['that has a snapshot and no log', {}, 0],
  ])('%s keeps over a power cut what it has read', async (_, settings, txns) => {
    const fixture = await DatabaseFixture.accepting(1, new MemoryDisk(), settings)
    if (txns > 0) await fixture.runRole(new LeaderHistory().createRange(1, 1, txns).txns)
    await fixture.database.close()
    const { disk } = fixture
    for (const [name, text] of [
      ['acceptedEpoch', '7'],
      ['zabra.level', '0 proposed 1\n'],
    ] as const)
      await replaceWithoutFolder(disk, `${FOLDER}/${name}`, text)
    const { epochs } = await fixture.open()
    expect(epochs.accepted).toBe(7)
    disk.powerCut()
    expect(new TextDecoder().decode(await disk.readFile(`${FOLDER}/acceptedEpoch`))).toBe('7')
    expect(new TextDecoder().decode(await disk.readFile(`${FOLDER}/zabra.level`))).toBe('0 proposed 1\n')
  })
})

it('other work runs every few milliseconds while files are read', async () => {
  const fixture = await DatabaseFixture.accepting(1)
  await fixture.runRole(new LeaderHistory().createRange(1, 1, 30).txns)
  await fixture.database.close()
  const { clock } = fixture
  // Each look at the clock takes a millisecond: there is one after each transaction.
  let now = clock.monotonic()
  clock.monotonic = () => now++
  clock.turns = 0
  await fixture.open()
  expect(clock.turns).toBeGreaterThanOrEqual(7)
})

/** Opens the database of a fixture as another server of the same process would. */
const openBeside = (fixture: DatabaseFixture, options: Partial<OpenOptions> = {}): Promise<Database> =>
  openDatabase(
    fixture.settings,
    { ...fixture.platform(), random: new SeededRandom(6) },
    { isMember: true, ...options },
  )

describe('the folders of a database', () => {
  it('are locked until it is closed', async () => {
    const fixture = await DatabaseFixture.accepting(1, new MemoryDisk(), { dataLogDir: '/logs' })
    await expect(openBeside(fixture)).rejects.toThrow('another server of this process')
    await fixture.database.close()
    await (await openBeside(fixture)).close()
    for (const folder of ['/data', '/logs'])
      expect(await fixture.disk.exists(`${folder}/zabra.lock`)).toBe(false)
  })

  it('are free again when it cannot be opened', async () => {
    const fixture = await DatabaseFixture.accepting(1)
    await fixture.database.close()
    const locked = (): Promise<void> => Promise.reject(new Error('of another ensemble'))
    await expect(openBeside(fixture, { locked })).rejects.toThrow('of another ensemble')
    await (await openBeside(fixture)).close()
  })

  it('are all free again when one of them is locked', async () => {
    const disk = new MemoryDisk()
    await DatabaseFixture.accepting(1, disk, { dataDir: '/other', dataLogDir: '/logs' })
    const fixture = new DatabaseFixture(disk, { dataLogDir: '/logs' })
    await expect(openBeside(fixture)).rejects.toThrow('another server of this process')
    expect(await disk.exists('/data/zabra.lock')).toBe(false)
    expect(await disk.exists('/logs/zabra.lock')).toBe(true)
  })

  it('are made unless the settings say that they are there', async () => {
    const disk = new MemoryDisk()
    await expect(openBeside(new DatabaseFixture(disk, { autoCreateDataDir: false }))).rejects.toThrow()
    expect(await disk.exists('/data')).toBe(false)
    await openBeside(new DatabaseFixture(disk, {}))
    expect(await disk.exists(FOLDER)).toBe(true)
  })
})

describe('a start keeps over a power cut what a killed process has renamed', () => {
  const text = async (disk: Disk, name: string): Promise<string> =>
    new TextDecoder().decode(await disk.readFile(`${FOLDER}/${name}`))

  it('of a standalone server', async () => {
    const fixture = new DatabaseFixture(new MemoryDisk(), { dataLogDir: '/logs' })
    await fixture.open(false)
    await fixture.database.close()
    await replaceWithoutFolder(fixture.disk, `${FOLDER}/zabra.level`, '0 proposed 1\n')
    await openBeside(fixture, { isMember: false })
    fixture.disk.powerCut()
    expect(await text(fixture.disk, 'zabra.level')).toBe('0 proposed 1\n')
  })

  it('of a member that has promised an epoch and has no data', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder(FOLDER)
    await replaceWithoutFolder(disk, `${FOLDER}/acceptedEpoch`, '7')
    const { epochs } = await openBeside(new DatabaseFixture(disk, {}))
    expect(epochs.accepted).toBe(7)
    disk.powerCut()
    expect(await text(disk, 'acceptedEpoch')).toBe('7')
  })
})

describe('what a start takes from its settings and its platform', () => {
  const textOf = async (disk: Disk, path: string): Promise<string> =>
    new TextDecoder().decode(await disk.readFile(path))

  it('a random token locks both folders, and its first half is the key by which trees index paths', async () => {
    const disk = new MemoryDisk()
    const fixture = new DatabaseFixture(disk, { dataLogDir: '/logs' })
    const bytes = Uint8Array.of(0x0a, 0xbc, 1, 0xff, 2, 3, 0x1b, 5)
    const platform = { ...fixture.platform(), random: { below: () => 0, bytes: () => bytes } }
    const { tree } = await openDatabase(fixture.settings, platform, { isMember: true })
    for (const folder of ['/data', '/logs'])
      expect((await textOf(disk, `${folder}/zabra.lock`)).split(' ')[1]).toBe('0abc01ff02031b05')
    expect(tree.store.hash('/a')).toBe(new PathIndex(0x0abc_01ff).hash('/a'))
  })

  it.each([
    [
      { extendedTypesEnabled: true, digestEnabled: true },
      { extendedTypes: true, digest: true },
    ],
    [
      { extendedTypesEnabled: false, digestEnabled: false },
      { extendedTypes: false, digest: false },
    ],
  ])('trees follow %j, and share what they measure', async (settings, expected) => {
    const fixture = await DatabaseFixture.open(new MemoryDisk(), settings)
    const { tree } = fixture.database
    expect(tree.options).toMatchObject(expected)
    expect(tree.options.traffic).toBeDefined()
    await fixture.database.acceptEpoch(1)
    await fixture.receiveFrom(new LeaderHistory().createRange(1, 1, 3))
    await fixture.database.installSnapshot()
    expect(fixture.database.tree).not.toBe(tree)
    expect(fixture.database.tree.options.traffic).toBe(tree.options.traffic)
  })

  it('folders are made, or asked for, as the settings say', async () => {
    const disk = new MemoryDisk()
    for (const folder of ['/data', '/logs']) await disk.makeFolder(folder)
    const settings = { dataLogDir: '/logs', autoCreateDataDir: false }
    await expect(openBeside(new DatabaseFixture(disk, settings))).rejects.toThrow('datadir.autocreate=true')
    for (const folder of ['/data', '/logs']) {
      expect(await disk.exists(`${folder}/version-2`)).toBe(false)
      expect(await disk.exists(`${folder}/zabra.lock`)).toBe(false)
      await disk.makeFolder(`${folder}/version-2`)
    }
    await (await openBeside(new DatabaseFixture(disk, settings))).close()
  })

  it('logs without a snapshot are read where the settings trust them', async () => {
    const fixture = await DatabaseFixture.accepting(1)
    await fixture.runRole(new LeaderHistory().createRange(1, 1, 3).txns)
    await fixture.database.close()
    for (const name of fixture.fileNames().filter((one) => one.startsWith('snapshot.')))
      await fixture.disk.remove(`${FOLDER}/${name}`)
    await expect(openBeside(fixture)).rejects.toThrow('snapshot')
    const trusting = new DatabaseFixture(fixture.disk, { snapshotTrustEmpty: true })
    expect((await openBeside(trusting)).lastZxid).toBe(fixture.database.lastZxid)
  })

  it('a member has epochs and a say whether it may vote, a standalone server has neither', async () => {
    const member = new DatabaseFixture(new MemoryDisk())
    expect((await member.open()).epochs.accepted).toBe(0)
    expect(await member.disk.exists(`${FOLDER}/currentEpoch`)).toBe(true)
    const standalone = new DatabaseFixture(new MemoryDisk(), { autoCreateDatabase: false })
    const database = await standalone.open(false)
    expect(database.isEligibleToVote).toBe(true)
    for (const name of ['distrusted', 'currentEpoch'])
      expect(await standalone.disk.exists(`${FOLDER}/${name}`)).toBe(false)
    await database.close()
    const lost = new DatabaseFixture(new MemoryDisk(), { autoCreateDatabase: false })
    expect((await lost.open()).isEligibleToVote).toBe(false)
  })

  it('a member with data needs no permission to start empty', async () => {
    const fixture = await DatabaseFixture.accepting(1)
    await fixture.runRole(new LeaderHistory().createRange(1, 1, 3).txns)
    await fixture.database.close()
    const strict = new DatabaseFixture(fixture.disk, { autoCreateDatabase: false })
    expect((await strict.open()).isEligibleToVote).toBe(true)
  })

  it('counts how far it is, until it is open', async () => {
    const fixture = await DatabaseFixture.accepting(1)
    await fixture.runRole(new LeaderHistory().createRange(1, 1, 30).txns)
    await fixture.database.close()
    const progress = new RecoveryProgress(() => 0)
    const seen = new Set<unknown>()
    const openRead = fixture.disk.openRead.bind(fixture.disk)
    fixture.disk.openRead = (path) => (seen.add(progress.state?.phase), openRead(path))
    await openBeside(fixture, { progress })
    expect([...seen]).toEqual(expect.arrayContaining(['snapshot', 'replay']))
    expect(progress.state).toBeUndefined()
  })

  it('the folders are locked before anything in them is read', async () => {
    const fixture = new DatabaseFixture(new MemoryDisk(), { dataLogDir: '/logs' })
    const seen: unknown[] = []
    const locked: OpenOptions['locked'] = async (folders) => {
      seen.push(folders, fixture.disk.paths().toSorted())
    }
    await openBeside(fixture, { locked })
    const folders = { snapshots: FOLDER, logs: '/logs/version-2' }
    expect(seen).toEqual([folders, ['/data/zabra.lock', '/logs/zabra.lock']])
  })

  it('the folders are unlocked in the order opposite to that of the locks', async () => {
    const fixture = new DatabaseFixture(new MemoryDisk(), { dataLogDir: '/logs' })
    await fixture.open()
    const removed: string[] = []
    const remove = fixture.disk.remove.bind(fixture.disk)
    fixture.disk.remove = (path) => (removed.push(path), remove(path))
    await fixture.database.close()
    expect(removed.filter((path) => path.endsWith('.lock'))).toEqual(['/logs/zabra.lock', '/data/zabra.lock'])
  })

  it('no folder is synced where recovery has done so, or where there is nothing that counts', async () => {
    const synced = async (fixture: DatabaseFixture, isMember: boolean): Promise<boolean> => {
      let count = 0
      const syncFolder = fixture.disk.syncFolder.bind(fixture.disk)
      fixture.disk.syncFolder = (folder) => {
        if (folder === FOLDER) count++
        return syncFolder(folder)
      }
      const database = await openBeside(fixture, { isMember })
      fixture.disk.syncFolder = syncFolder
      await database.close()
      return count > 0
    }
    const empty = new DatabaseFixture(new MemoryDisk())
    expect([await synced(empty, true), await synced(empty, false)]).toEqual([false, false])
  })
})
