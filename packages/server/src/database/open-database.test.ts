import { MemoryDisk, SeededRandom, type Disk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
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
