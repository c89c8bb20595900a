import { MemoryDisk } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { initializeData, RecoveryError } from './index.ts'

const text = async (disk: MemoryDisk, path: string): Promise<string> =>
  new TextDecoder().decode(await disk.readFile(path))

it('the folders of a new server have its id and the mark of a first start', async () => {
  const disk = new MemoryDisk()
  await initializeData(disk, { dataDir: '/data', dataLogDir: '/logs' }, 7)
  expect(disk.paths().toSorted()).toEqual(['/data/initialize', '/data/myid'])
  expect([await text(disk, '/data/myid'), await text(disk, '/data/initialize')]).toEqual(['7\n', ''])
  expect(await Promise.all(['/data/version-2', '/logs/version-2'].map((path) => disk.exists(path)))).toEqual([
    true,
    true,
  ])
})

it('the folder of a new server keeps its id where none is given', async () => {
  const disk = new MemoryDisk()
  await initializeData(disk, { dataDir: '/data', dataLogDir: '/data' })
  expect(disk.paths()).toEqual(['/data/initialize'])
  disk.putFile('/data/myid', new TextEncoder().encode('3\n'))
  await initializeData(disk, { dataDir: '/data', dataLogDir: '/data' })
  expect(await text(disk, '/data/myid')).toBe('3\n')
})

it('the folders of a new server are made durable where each is, once', async () => {
  const disk = new MemoryDisk()
  const synced: string[] = []
  disk.injectFault = (call, path) => void (call === 'sync' && synced.push(path))
  await initializeData(disk, { dataDir: '/data', dataLogDir: '/data' })
  await initializeData(disk, { dataDir: '/other', dataLogDir: '/logs' })
  expect(synced).toEqual(['/data', '/other', '/logs'])
})

it.each(['/data/version-2/snapshot.1', '/data/version-2/log.1', '/logs/version-2/log.1'])(
  'the folders of a server that has data are refused, and get no mark: %s',
  async (path) => {
    const disk = new MemoryDisk()
    disk.putFile(path, new Uint8Array(1))
    const made = initializeData(disk, { dataDir: '/data', dataLogDir: '/logs' }, 7)
    await expect(made).rejects.toThrow(RecoveryError)
    await expect(made).rejects.toThrow(
      `Expected a folder without data, got ${path.slice(path.lastIndexOf('/') + 1)}`,
    )
    expect(disk.paths()).toEqual([path])
  },
)
