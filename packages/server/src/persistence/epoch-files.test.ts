import { silentLogger, type MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { openEpochFiles, readEpochs } from './epoch-files.ts'
import { RecoveryError } from './errors.ts'

const FOLDER = '/data/version-2'
const at = (epoch: number, counter = 1): number => epoch * 2 ** 32 + counter
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

async function folder(files: Record<string, string>): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  for (const [name, text] of Object.entries(files)) disk.putFile(`${FOLDER}/${name}`, bytes(text))
  return disk
}

async function read(disk: MemoryDisk, name: string): Promise<string> {
  return new TextDecoder().decode(await disk.readFile(`${FOLDER}/${name}`))
}

describe('openEpochFiles', () => {
  it.each([
    ['no files beside an empty history', {}, 0, [0, 0]],
    ['no files beside a history', {}, at(4), [4, 4]],
    ['the files of Apache ZooKeeper', { acceptedEpoch: '5', currentEpoch: '3' }, at(3), [5, 3]],
    ['files that end with a newline', { acceptedEpoch: '5\n', currentEpoch: '5\r\n' }, at(4), [5, 5]],
    ['epochs of several digits', { acceptedEpoch: '1234', currentEpoch: '1200' }, at(1199), [1234, 1200]],
    ['no acceptedEpoch', { currentEpoch: '6' }, at(3), [6, 6]],
    ['no currentEpoch', { acceptedEpoch: '6' }, at(3), [6, 3]],
    [
      'a currentEpoch that a crash left behind the history',
      { acceptedEpoch: '7', currentEpoch: '3' },
      at(6),
      [7, 6],
    ],
    [
      'a currentEpoch whose replacement a crash cut short',
      { acceptedEpoch: '7', currentEpoch: '3', 'currentEpoch.tmp': '' },
      at(7, 0),
      [7, 7],
    ],
    [
      'an acceptedEpoch whose replacement a crash cut short',
      { acceptedEpoch: '3', currentEpoch: '3', 'acceptedEpoch.tmp': '4' },
      at(3),
      [3, 3],
    ],
  ])('completes the epochs: %s', async (_, files, last, [accepted, current]) => {
    const disk = await folder(files)
    const epochs = await openEpochFiles(disk, silentLogger, FOLDER, last)
    expect([epochs.accepted, epochs.current]).toEqual([accepted, current])
    disk.powerCut()
    // The result is durable, and a further start changes nothing.
    const again = await openEpochFiles(disk, silentLogger, FOLDER, last)
    expect([again.accepted, again.current]).toEqual([accepted, current])
    expect((await disk.list(FOLDER)).toSorted()).toEqual(['acceptedEpoch', 'currentEpoch'])
  })

  it('warns when it raises the epoch that a crash has left behind, and not otherwise', async () => {
    const warnings: object[] = []
    const logger = { ...silentLogger, warn: (context: object) => void warnings.push(context) }
    for (const files of [{}, { acceptedEpoch: '7', currentEpoch: '6' }])
      await openEpochFiles(await folder(files), logger, FOLDER, at(6))
    expect(warnings).toEqual([])
    await openEpochFiles(await folder({ acceptedEpoch: '7', currentEpoch: '3' }), logger, FOLDER, at(6))
    expect(warnings).toEqual([
      { id: 'recovery.epoch-raised', folder: FOLDER, from: 3, to: 6, lastZxid: '600000001' },
    ])
  })

  it.each(['-5', '+5', ' 5', '5 ', '1e3', '0x10', '5.5', '9007199254740993'])(
    'rejects an epoch that is not written in digits (%j)',
    async (text) => {
      const disk = await folder({ acceptedEpoch: text })
      await expect(openEpochFiles(disk, silentLogger, FOLDER, 0)).rejects.toThrow(
        `got ${JSON.stringify(text)}`,
      )
    },
  )

  it('shows the first 40 characters of a file that holds no epoch', async () => {
    const disk = await folder({ acceptedEpoch: 'x'.repeat(100) })
    await expect(openEpochFiles(disk, silentLogger, FOLDER, 0)).rejects.toThrow(`got "${'x'.repeat(40)}"`)
  })

  it.each([
    [
      'a history of an epoch that was never accepted',
      { acceptedEpoch: '3', currentEpoch: '3' },
      at(4),
      /acceptedEpoch of at least 4, as the last transaction 0x400000001 has it, got 3.*Bring the right acceptedEpoch/,
    ],
    [
      'a current epoch above the accepted one',
      { acceptedEpoch: '3', currentEpoch: '4' },
      at(3),
      /at least 4, the currentEpoch, got 3.*write 4 into acceptedEpoch/,
    ],
    [
      'an empty file',
      { acceptedEpoch: '', currentEpoch: '4' },
      at(3),
      /an epoch in acceptedEpoch .*Bring the file back/,
    ],
    [
      'a word',
      { acceptedEpoch: '4', currentEpoch: 'four' },
      at(3),
      /an epoch in currentEpoch .Expected a decimal number in the first line of \/data\/version-2\/currentEpoch, got "four"/,
    ],
  ])('rejects %s and writes nothing', async (_, files, last, message) => {
    const disk = await folder(files)
    const opening = openEpochFiles(disk, silentLogger, FOLDER, last)
    await expect(opening).rejects.toThrow(message)
    await expect(opening).rejects.toThrow(RecoveryError)
    for (const [name, text] of Object.entries(files)) expect(await read(disk, name)).toBe(text)
  })
})

describe('readEpochs', () => {
  it('reads both epochs of a stopped member, and changes no file', async () => {
    const disk = await folder({ acceptedEpoch: '5', currentEpoch: '3' })
    expect(await readEpochs(disk, FOLDER)).toEqual({ accepted: 5, current: 3 })
    expect(await readEpochs(await folder({}), FOLDER)).toEqual({ accepted: undefined, current: undefined })
    await expect(readEpochs(await folder({ currentEpoch: '' }), FOLDER)).rejects.toThrow(RecoveryError)
  })
})

describe('EpochFiles', () => {
  it('goes up to the last epoch that a zxid can have', async () => {
    const epochs = await openEpochFiles(await folder({}), silentLogger, FOLDER, at(3))
    await epochs.accept(2 ** 21 - 1)
    await epochs.setCurrent(2 ** 21 - 1)
    expect([epochs.accepted, epochs.current]).toEqual([2 ** 21 - 1, 2 ** 21 - 1])
  })

  it('raises epochs durably and rejects lower ones', async () => {
    const disk = await folder({ acceptedEpoch: '4', currentEpoch: '3' })
    const epochs = await openEpochFiles(disk, silentLogger, FOLDER, at(3))
    await expect(epochs.accept(3)).rejects.toThrow(
      'Expected an epoch from 4 to 2097151 for acceptedEpoch, got 3',
    )
    await expect(epochs.setCurrent(2)).rejects.toThrow('Expected an epoch from 3')
    await expect(epochs.setCurrent(5)).rejects.toThrow('Expected an epoch up to 4, the accepted one, got 5')
    await expect(epochs.accept(2 ** 21)).rejects.toThrow(RangeError)
    await Promise.all([epochs.accept(6), epochs.setCurrent(6)])
    disk.powerCut()
    // The bytes that Apache ZooKeeper writes: digits and nothing else (disk-format 2.2).
    expect([await read(disk, 'acceptedEpoch'), await read(disk, 'currentEpoch')]).toEqual(['6', '6'])
  })

  it('does not write an unchanged epoch, and keeps the old one when the disk fails', async () => {
    const disk = await folder({ acceptedEpoch: '4', currentEpoch: '4' })
    const epochs = await openEpochFiles(disk, silentLogger, FOLDER, at(3))
    disk.injectFault = () => ({ code: 'EIO' })
    await epochs.accept(4)
    await expect(epochs.accept(5)).rejects.toMatchObject({ code: 'EIO' })
    expect(epochs.accepted).toBe(4)
    disk.injectFault = undefined
    await epochs.accept(5)
    expect(await read(disk, 'acceptedEpoch')).toBe('5')
  })
})
