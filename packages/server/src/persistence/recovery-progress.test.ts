import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { RecoveryProgress, type RecoveryState } from './recovery-progress.ts'

/** Reads parts of a file of 1000 bytes, and returns the state after each. */
async function read(
  progress: RecoveryProgress,
  parts: readonly (readonly [position: number, length: number])[],
): Promise<(RecoveryState | undefined)[]> {
  const disk = new MemoryDisk()
  disk.putFile('/a', new Uint8Array(1000))
  const reader = await progress.counting(disk).openRead('/a')
  const states = []
  for (const [position, length] of parts) {
    await reader.read(new Uint8Array(length), position)
    states.push(progress.state)
  }
  return states
}

const percents = (states: readonly (RecoveryState | undefined)[]): unknown[] =>
  states.map((state) => state?.percent)

describe('the progress of a recovery', () => {
  it('is that of all bytes, over both phases, and never 100 %', async () => {
    const progress = new RecoveryProgress(() => 0)
    const unknown = { phase: 'snapshot', percent: undefined, etaSeconds: undefined }
    expect(progress.state).toEqual(unknown)
    await progress.during(async () => {
      expect(progress.state).toEqual(unknown)
      progress.begin('snapshot', 4000)
      expect(
        percents(
          await read(progress, [
            [0, 500],
            [500, 500],
          ]),
        ),
      ).toEqual([12, 25])
      progress.begin('replay', 3000)
      expect(progress.state).toMatchObject({ phase: 'replay', percent: 25 })
      for (const expected of [50, 75, 99])
        expect(percents(await read(progress, [[0, 1000]]))).toEqual([expected])
    })
    expect(progress.state).toBeUndefined()
  })

  it('does not count what is read again', async () => {
    const progress = new RecoveryProgress(() => 0)
    await progress.during(async () => {
      progress.begin('replay', 1000)
      expect(
        percents(
          await read(progress, [
            [0, 400],
            [200, 100],
            [300, 300],
            [0, 600],
          ]),
        ),
      ).toEqual([40, 40, 60, 60])
    })
  })

  it('does not go back where a snapshot turns out to be damaged', async () => {
    const progress = new RecoveryProgress(() => 0)
    await progress.during(async () => {
      progress.begin('snapshot', 1250)
      expect(percents(await read(progress, [[0, 1000]]))).toEqual([80])
      progress.begin('snapshot', 9000)
      expect(progress.state?.percent).toBe(80)
      for (let i = 0; i < 8; i++) await read(progress, [[0, 1000]])
      expect(progress.state?.percent).toBe(90)
    })
  })

  it('is the time that the rest takes at the same pace, once a second of it is over', async () => {
    let now = 5000
    const progress = new RecoveryProgress(() => now)
    const eta = async (): Promise<unknown> => (await read(progress, [[0, 1000]]))[0]?.etaSeconds
    await progress.during(async () => {
      progress.begin('snapshot', 10_000)
      now += 999
      expect(await eta()).toBeUndefined()
      now += 1001
      expect(await eta()).toBe(8)
      now += 3000
      expect(await eta()).toBe(12)
    })
  })

  it('says no time while less than one hundredth was read', async () => {
    let now = 0
    const progress = new RecoveryProgress(() => now)
    await progress.during(async () => {
      progress.begin('snapshot', 100_000)
      now = 60_000
      expect((await read(progress, [[0, 999]]))[0]?.etaSeconds).toBeUndefined()
      expect((await read(progress, [[0, 1]]))[0]?.etaSeconds).toBe(5940)
    })
  })

  it('begins again with the next recovery', async () => {
    const progress = new RecoveryProgress(() => 0)
    await expect(progress.during(() => Promise.reject(new Error('damaged')))).rejects.toThrow('damaged')
    expect(progress.state).toBeUndefined()
    await progress.during(async () => {
      progress.begin('replay', 2000)
      expect(percents(await read(progress, [[0, 1000]]))).toEqual([50])
    })
    // A check of a copy counts for nothing.
    progress.begin('replay', 2000)
    expect(progress.state).toBeUndefined()
  })

  it('takes no bytes away that are read again, and has a time after exactly a second', async () => {
    let now = 0
    const progress = new RecoveryProgress(() => now)
    await progress.during(async () => {
      progress.begin('snapshot', 1000)
      now = 1000
      const states = await read(progress, [
        [0, 600],
        [0, 100],
      ])
      expect(states.map((state) => state?.etaSeconds)).toEqual([1, 1])
    })
  })

  it('reads the size of a file, and closes it', async () => {
    const disk = new MemoryDisk()
    disk.putFile('/a', new Uint8Array(1000))
    const openRead = disk.openRead.bind(disk)
    let closed = 0
    disk.openRead = async (path) => {
      const reader = await openRead(path)
      return {
        ...reader,
        read: reader.read.bind(reader),
        size: () => reader.size(),
        close: async () => void closed++,
      }
    }
    const reader = await new RecoveryProgress(() => 0).counting(disk).openRead('/a')
    expect(await reader.size()).toBe(1000)
    await reader.close()
    expect(closed).toBe(1)
  })
})
