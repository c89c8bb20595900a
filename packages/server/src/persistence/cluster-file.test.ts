import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { NO_CLUSTER, type ClusterId } from '../core/quorum/index.ts'
import {
  beginNextCluster,
  CLUSTER_FILE,
  drawClusterId,
  readClusterId,
  writeClusterId,
} from './cluster-file.ts'
import { FOLDER } from './testing/log-fixture.ts'

const DIGITS = '0123456789abcdef'.repeat(2)

async function diskWith(text: string): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  await disk.makeFolder(FOLDER)
  disk.putFile(`${FOLDER}/${CLUSTER_FILE}`, new TextEncoder().encode(text))
  return disk
}

const cluster = (generation: number, isProposed = false): ClusterId => ({
  generation,
  bytes: Uint8Array.from(Buffer.from(DIGITS, 'hex')),
  isProposed,
})

describe('the file with the id of the ensemble', () => {
  it.each([
    [`0-${DIGITS}\n`, cluster(0)],
    [`255-${DIGITS}`, cluster(255)],
    [`0-${DIGITS} proposed\n`, cluster(0, true)],
  ])('with %j is read', async (text, expected) => {
    expect(await readClusterId(await diskWith(text), FOLDER)).toEqual(expected)
  })

  it.each([
    '',
    'proposed',
    ' proposed',
    `proposed 0-${DIGITS}`,
    `0-${DIGITS} proposed proposed`,
    `-1-${DIGITS}`,
  ])('with %j is refused', async (text) => {
    await expect(readClusterId(await diskWith(text), FOLDER)).rejects.toThrow(
      'Expected the id of an ensemble',
    )
  })

  it('is read as it was written, and absent before', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder(FOLDER)
    expect(await readClusterId(disk, FOLDER)).toEqual(NO_CLUSTER)
    for (const id of [cluster(0, true), cluster(0), drawClusterId(new SeededRandom(1), 3, true)]) {
      await writeClusterId(disk, FOLDER, id)
      disk.powerCut()
      expect(await readClusterId(disk, FOLDER)).toEqual(id)
    }
  })

  it('gets another id, which is final and of the next generation, with a recovery', async () => {
    for (const [text, generation] of [
      [`0-${DIGITS} proposed\n`, 1],
      [`254-${DIGITS}\n`, 255],
    ] as const) {
      const disk = await diskWith(text)
      await beginNextCluster(disk, new SeededRandom(1), FOLDER)
      const id = await readClusterId(disk, FOLDER)
      expect(id).toMatchObject({ generation, isProposed: false })
      expect(id.bytes).not.toEqual(cluster(0).bytes)
    }
  })

  it('stays as it is where no generation is left', async () => {
    const disk = await diskWith(`255-${DIGITS}\n`)
    await expect(beginNextCluster(disk, new SeededRandom(1), FOLDER)).rejects.toThrow(
      'at most 255 recoveries',
    )
    expect(await readClusterId(disk, FOLDER)).toEqual(cluster(255))
  })
})
