import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { NOT_FINALIZED } from '../core/quorum/index.ts'
import { FEATURE_FILE, readFeatureState, writeFeatureState } from './feature-file.ts'
import { FOLDER } from './testing/log-fixture.ts'

async function diskWith(text: string): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  await disk.makeFolder(FOLDER)
  disk.putFile(`${FOLDER}/${FEATURE_FILE}`, new TextEncoder().encode(text))
  return disk
}

describe('the file with the feature levels', () => {
  it.each([
    ['1\n', { finalized: 1, proposed: 0 }],
    ['65535', { finalized: 65_535, proposed: 0 }],
    ['0 proposed 1\n', { finalized: 0, proposed: 1 }],
    ['1 proposed 3\n', { finalized: 1, proposed: 3 }],
    ['1 proposed 65535\n', { finalized: 1, proposed: 65_535 }],
  ])('with %j is read', async (text, expected) => {
    expect(await readFeatureState(await diskWith(text), FOLDER)).toEqual(expected)
  })

  it.each(['', 'proposed 1', '-1', '65536', '1 proposed', '1 proposed 65536', '1 2', '0x1'])(
    'with %j is refused',
    async (text) => {
      await expect(readFeatureState(await diskWith(text), FOLDER)).rejects.toThrow('Expected a feature level')
    },
  )

  it.each([
    [{ finalized: 1, proposed: 0 }, '1\n'],
    [{ finalized: 1, proposed: 1 }, '1\n'],
    [{ finalized: 1, proposed: 2 }, '1 proposed 2\n'],
  ])('holds of %j only a level that is not finalized yet', async (state, text) => {
    const disk = await diskWith('')
    await writeFeatureState(disk, FOLDER, state)
    expect(new TextDecoder().decode(await disk.readFile(`${FOLDER}/${FEATURE_FILE}`))).toBe(text)
  })

  it('is read as it was written, and absent before', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder(FOLDER)
    expect(await readFeatureState(disk, FOLDER)).toEqual(NOT_FINALIZED)
    for (const [finalized, proposed] of [
      [0, 1],
      [1, 0],
      [1, 2],
      [0, 0],
    ] as const) {
      await writeFeatureState(disk, FOLDER, { finalized, proposed })
      disk.powerCut()
      expect(await readFeatureState(disk, FOLDER)).toEqual({ finalized, proposed })
    }
  })
})
