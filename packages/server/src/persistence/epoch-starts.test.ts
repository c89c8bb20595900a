import { makeZxid } from '@zabra/protocol'
import { MemoryDisk } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { addEpochStarts, readEpochStarts } from './epoch-starts.ts'

const PATH = '/data/zabra.epochs'

it('the file of epochs keeps the newest 100 of those that were added, and is written only for new ones', async () => {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  expect(await readEpochStarts(disk, '/data')).toEqual(new Map())
  await addEpochStarts(disk, '/data', new Map())
  expect(await disk.exists(PATH)).toBe(false)
  for (let epoch = 2; epoch <= 130; epoch++)
    await addEpochStarts(disk, '/data', new Map([[epoch, makeZxid(epoch - 1, 7)]]))
  const known = await readEpochStarts(disk, '/data')
  expect([...known.keys()]).toEqual(Array.from({ length: 100 }, (_, index) => 31 + index))
  expect(known.get(130)).toBe(makeZxid(129, 7))
  disk.injectFault = (call) => (call === 'read' ? undefined : { code: 'EIO' })
  await addEpochStarts(disk, '/data', new Map([[130, makeZxid(129, 7)]]))
  await expect(addEpochStarts(disk, '/data', new Map([[131, 5]]))).rejects.toThrow('EIO')
})

it('lines of the file of epochs that are damaged count as absent', async () => {
  const disk = new MemoryDisk()
  disk.putFile(PATH, new TextEncoder().encode('2 100000007\n3 2000000zz\n-4 1\n5 30000'))
  expect(await readEpochStarts(disk, '/data')).toEqual(
    new Map([
      [2, makeZxid(1, 7)],
      [5, 0x30000],
    ]),
  )
})
