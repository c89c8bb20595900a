import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { setAside } from './set-aside.ts'
import { FOLDER } from './testing/log-fixture.ts'

const TARGET = `${FOLDER}/set-aside`
const NAMES = ['log.3', 'log.2', 'log.1']

async function diskWith(...paths: readonly string[]): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  await disk.makeFolder(FOLDER)
  for (const path of paths) disk.putFile(`${FOLDER}/${path}`, new Uint8Array(1))
  return disk
}

const pathsOf = (disk: MemoryDisk): string[] =>
  disk
    .paths()
    .map((path) => path.slice(FOLDER.length + 1))
    .toSorted()

describe('setAside', () => {
  it.each([false, true])(
    'loses no file in a power cut before any operation, also with anyOrder %j',
    async (anyOrder) => {
      for (let operations = 0; ; operations++) {
        const disk = await diskWith(...NAMES)
        let left = operations
        disk.injectFault = () => {
          if (left-- === 0) throw new Error('crash')
        }
        const isDone = await setAside(disk, silentLogger, FOLDER, NAMES, 'x', { anyOrder }).then(
          () => true,
          () => false,
        )
        disk.injectFault = () => {}
        disk.powerCut()
        const kept = pathsOf(disk)
        const moved = NAMES.filter((name) => kept.includes(`set-aside/1.${name}`) && !kept.includes(name))
        expect(kept.length).toBeGreaterThanOrEqual(NAMES.length)
        if (!anyOrder) expect(moved).toEqual(NAMES.slice(0, moved.length))
        if (!isDone) continue
        expect(kept).toEqual(['set-aside/1.log.1', 'set-aside/1.log.2', 'set-aside/1.log.3'])
        expect(operations).toBeGreaterThan(NAMES.length)
        return
      }
    },
  )

  it('makes each move durable before the next one, and with anyOrder all at the end', async () => {
    const count = async (anyOrder?: boolean): Promise<number> => {
      const disk = await diskWith(...NAMES)
      let syncs = 0
      const syncFolder = disk.syncFolder.bind(disk)
      disk.syncFolder = (folder) => {
        syncs++
        return syncFolder(folder)
      }
      await (anyOrder === undefined
        ? setAside(disk, silentLogger, FOLDER, NAMES, 'x')
        : setAside(disk, silentLogger, FOLDER, NAMES, 'x', { anyOrder }))
      return syncs
    }
    expect([await count(), await count(false), await count(true)]).toEqual([7, 7, 3])
  })

  it('gives each set the next number, removes those before the last six, and says what it did', async () => {
    const others = ['set-aside/notes', 'set-aside/x1.log.1', 'set-aside/0.log.5']
    const disk = await diskWith('log.1', 'snapshot.1', ...others)
    for (const number of [5, 6, 7, 11]) disk.putFile(`${TARGET}/${number}.log.9`, new Uint8Array(1))
    disk.putFile(`${TARGET}/6.snapshot.9`, new Uint8Array(1))
    const lines: unknown[] = []
    const note = (context: unknown, text: string): unknown => lines.push([context, text])
    const logger = { ...silentLogger, info: note, warn: note }
    await setAside(disk, logger, FOLDER, ['log.1', 'snapshot.1'], 'a test')
    const kept = ['7.log.9', '11.log.9', '12.log.1', '12.snapshot.1'].map((name) => `set-aside/${name}`)
    expect(pathsOf(disk)).toEqual([...kept, ...others].toSorted())
    const files = ['log.1', 'snapshot.1']
    expect(lines).toEqual([
      [{ id: 'log.files-set-aside', folder: TARGET, number: 12, files }, 'Set 2 files aside: a test'],
      [
        {
          id: 'log.old-files-removed',
          folder: TARGET,
          files: expect.arrayContaining(['5.log.9', '6.log.9', '6.snapshot.9']) as unknown,
        },
        'Removed 3 files that were set aside long ago',
      ],
    ])
    disk.powerCut()
    expect(pathsOf(disk)).toEqual([...kept, ...others].toSorted())
  })

  it('says nothing of removed files where none are, and does nothing without names', async () => {
    const disk = await diskWith('log.1')
    const lines: string[] = []
    const note = (_: unknown, text: string): unknown => lines.push(text)
    const logger = { ...silentLogger, info: note, warn: note }
    await setAside(disk, logger, FOLDER, [], 'x')
    expect([lines, pathsOf(disk)]).toEqual([[], ['log.1']])
    await setAside(disk, logger, FOLDER, ['log.1'], 'x')
    expect(lines).toEqual(['Set 1 files aside: x'])
  })
})
