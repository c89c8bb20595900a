import { ManualClock, MemoryDisk, SeededRandom } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { BackupDuty } from './duty.ts'
import { FolderTarget } from './target.ts'

describe('the duty of backups', () => {
  let clock: ManualClock
  let disk: MemoryDisk

  beforeEach(() => {
    clock = new ManualClock()
    disk = new MemoryDisk()
  })

  const memberOf = (id: number): BackupDuty => {
    const random = new SeededRandom(id)
    return new BackupDuty({ target: new FolderTarget('/backup', { disk, random }) }, String(id), {
      clock,
      random,
    })
  }

  it('goes after the delay to a member that waits longer, which is asked once for each claim', async () => {
    let asked = 0
    const delayed = async (): Promise<number> => {
      asked++
      return 500
    }
    const [first, second] = [memberOf(1), memberOf(2)]
    expect(await first.claim(0, 1000, 0, delayed)).toBe(false)
    clock.advance(499)
    await first.claim(0, 1000, 0, delayed)
    expect(disk.paths()).toEqual([])
    clock.advance(1)
    await first.claim(0, 1000, 0, delayed)
    expect(await first.claim(0, 1000, 0, delayed)).toBe(true)
    expect(asked).toBe(1)

    await second.claim(0, 1000, 0, delayed)
    clock.advance(999)
    await second.claim(0, 1000, 0, delayed)
    // The claim is not old enough: the answer would not matter.
    expect(asked).toBe(1)
    clock.advance(501)
    await second.claim(0, 1000, 0, delayed)
    expect(await second.claim(0, 1000, 0, delayed)).toBe(true)
    expect(asked).toBe(2)
  })

  it('stays with a member that claims it while another one finds out how long to wait', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    await first.claim(0, 1000, 0, async () => {
      await second.claim(0, 1000, 0)
      return 0
    })
    expect(await second.claim(0, 1000, 0)).toBe(true)
    expect(await first.claim(0, 1000, 0)).toBe(false)
    expect(first.holder).toBe('2')
  })
})
