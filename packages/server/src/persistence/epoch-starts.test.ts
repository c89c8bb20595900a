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

it('a file of epochs that cannot be read, or is far too long, counts as absent and is replaced', async () => {
  const disk = new MemoryDisk()
  disk.putFile(PATH, new TextEncoder().encode('2 100000007\n'.repeat(10_000)))
  expect(await readEpochStarts(disk, '/data')).toEqual(new Map())
  disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
  await addEpochStarts(disk, '/data', new Map([[3, makeZxid(2, 7)]]))
  disk.injectFault = undefined
  expect(await readEpochStarts(disk, '/data')).toEqual(new Map([[3, makeZxid(2, 7)]]))
})

it('epochs above those of the history, as before a renumbering, are forgotten and take no places', async () => {
  const disk = new MemoryDisk()
  const last = 2 ** 32 - 1
  const lines = Array.from({ length: 100 }, (_, index) => `${last - index} 5\n`)
  disk.putFile(PATH, new TextEncoder().encode(lines.join('')))
  await addEpochStarts(disk, '/data', new Map([[3, makeZxid(2, 7)]]))
  expect(await readEpochStarts(disk, '/data')).toEqual(new Map([[3, makeZxid(2, 7)]]))
})

it('epochs that are added at once, in any order, are written in their order, and the newest are kept', async () => {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  const epochs = Array.from({ length: 104 }, (_, at) => 105 - at)
  await addEpochStarts(disk, '/data', new Map(epochs.map((epoch) => [epoch, epoch])))
  const text = new TextDecoder().decode(await disk.readFile(PATH))
  const kept = Array.from({ length: 100 }, (_, at) => 6 + at)
  expect(text).toBe(kept.map((epoch) => `${epoch} ${epoch.toString(16)}\n`).join(''))
})

it('the longest file of epochs is read, and an error that is none of the disk is not swallowed', async () => {
  const disk = new MemoryDisk()
  disk.putFile(PATH, new TextEncoder().encode('2 100000007\n'.repeat(833).padEnd(10_000, '\n')))
  expect(await readEpochStarts(disk, '/data')).toEqual(new Map([[2, makeZxid(1, 7)]]))
  disk.size = () => Promise.reject(new TypeError('a mistake'))
  await expect(readEpochStarts(disk, '/data')).rejects.toThrow('a mistake')
})
