import { DiskError, MemoryDisk, SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { FolderTarget, oneChunk } from './target.ts'

it.each(['write', 'sync', 'rename'] as const)(
  'a file that a full folder does not take leaves nothing there, and says why: %s, where its close fails too',
  async (failing) => {
    const disk = new MemoryDisk()
    const openWrite = disk.openWrite.bind(disk)
    disk.openWrite = async (path, options) => ({
      ...(await openWrite(path, options)),
      close: () => Promise.reject(new DiskError('EIO', 'EIO', path)),
    })
    disk.injectFault = (call) => (call === failing ? { code: 'EDQUOT', writtenBytes: 1 } : undefined)
    const target = new FolderTarget('/backup', { disk, random: new SeededRandom(1) })
    const code = failing === 'rename' ? 'EIO' : 'EDQUOT'
    await expect(target.write('log/x', oneChunk(new Uint8Array(9)))).rejects.toMatchObject({ code })
    expect(disk.paths()).toEqual([])
  },
)

it('a file that cannot get its name leaves nothing', async () => {
  const disk = new MemoryDisk()
  disk.injectFault = (call) => (call === 'rename' ? { code: 'EACCES' } : undefined)
  const target = new FolderTarget('/backup', { disk, random: new SeededRandom(1) })
  await expect(target.write('log/x', oneChunk(new Uint8Array(9)))).rejects.toMatchObject({ code: 'EACCES' })
  expect(disk.paths()).toEqual([])
})
