import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { openDataFolders, removeTemporaryFiles } from './data-folders.ts'

const ONE = { dataDir: '/data', dataLogDir: '/data' }
const TWO = { dataDir: '/data', dataLogDir: '/logs' }
const [DATA, LOGS] = ['/data/version-2', '/logs/version-2']

async function diskWith(paths: readonly string[]): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  for (const folder of [DATA, LOGS]) await disk.makeFolder(folder)
  for (const path of paths) disk.putFile(path, Uint8Array.of(1))
  return disk
}

describe('the data folders', () => {
  it.each([
    [ONE, [DATA]],
    [TWO, [DATA, LOGS]],
  ])('of %j are made, and the folders above them are synced', async (settings, made) => {
    const disk = new MemoryDisk()
    const synced: string[] = []
    const syncFolder = disk.syncFolder.bind(disk)
    disk.syncFolder = (folder) => (synced.push(folder), syncFolder(folder))
    const folders = await openDataFolders(disk, settings, true)
    expect(folders).toEqual({ snapshots: DATA, logs: made.at(-1) })
    for (const folder of made) expect(await disk.exists(folder)).toBe(true)
    expect(synced).toEqual(made.map((folder) => folder.replace('/version-2', '')))
    expect(await openDataFolders(disk, settings, false)).toEqual(folders)
    expect(synced).toHaveLength(made.length)
  })

  it.each([
    [[], ONE, DATA],
    [[], TWO, DATA],
    [[DATA], TWO, LOGS],
  ])('are not made where only %j are there and the settings forbid it', async (there, settings, missing) => {
    const disk = new MemoryDisk()
    for (const folder of there) await disk.makeFolder(folder)
    await expect(openDataFolders(disk, settings, false)).rejects.toMatchObject({
      name: 'RecoveryError',
      folder: missing,
      action: expect.stringContaining('datadir.autocreate=true'),
    })
    expect(await disk.exists(missing)).toBe(false)
  })

  it.each([
    [`${DATA}/log.1`, DATA, 'Expected logs in /logs/version-2 only, as dataLogDir says, got log.1'],
    [`${LOGS}/snapshot.2.gz`, LOGS, 'Expected snapshots in /data/version-2 only, as dataDir says, got'],
  ])('are refused with %s, which the other one should hold', async (path, folder, message) => {
    const disk = await diskWith([path])
    await expect(openDataFolders(disk, TWO, true)).rejects.toMatchObject({
      name: 'RecoveryError',
      folder,
      message: expect.stringContaining(message),
      action: expect.stringMatching(/^Move all (?:log|snapshot)\.\* files to the folder of data/),
    })
  })

  it('may hold anything else, and one folder may hold both kinds', async () => {
    const disk = await diskWith([`${DATA}/snapshot.1`, `${LOGS}/log.1`, `${LOGS}/acceptedEpoch`])
    expect(await openDataFolders(disk, TWO, true)).toEqual({ snapshots: DATA, logs: LOGS })
    disk.putFile(`${DATA}/log.1`, Uint8Array.of(1))
    expect(await openDataFolders(disk, ONE, true)).toEqual({ snapshots: DATA, logs: DATA })
  })
})

it('removeTemporaryFiles removes what an unfinished write has left in both folders, and no other file', async () => {
  const temporary = ['writing.1.tmp', 'writing.snapshot.1.gz.tmp', 'space-probe.tmp', 'restoring']
  const others = ['writing.1', 'xwriting.1.tmp', 'writing.1.tmpx', 'writing1.tmp', 'space-probe.tmp2']
  const more = ['a-space-probe.tmp', 'space-probeXtmp', 'restoring.zip', 'restoring.gz.gz', 'notrestoring']
  const compressed = ['restoring.gz', 'restoring.snappy']
  const within = (names: readonly string[]): string[] =>
    [DATA, LOGS].flatMap((folder) => names.map((name) => `${folder}/${name}`))
  const kept = within([...others, ...more, 'snapshot.1', 'log.1'])
  const disk = await diskWith([...within([...temporary, ...compressed]), ...kept])
  await removeTemporaryFiles(disk, { snapshots: DATA, logs: LOGS })
  expect(disk.paths().toSorted()).toEqual(kept.toSorted())
})
