import { ManualClock, MemoryDisk, SeededRandom } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { BackupDuty } from './duty.ts'
import { FolderTarget } from './target.ts'

const TIMES = { ifFreeMs: 0, ifSilentMs: 1000 }

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

  it('stays with a silent member while others have nothing that it has not saved, and for as long after that', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    for (let looks = 0; looks < 2; looks++) await first.claim({ ...TIMES, savedUpTo: 0x1_0000_0005 }, 7)
    expect(first.isHeld).toBe(true)
    const look = (applied: number) => second.claim({ ...TIMES, applied }, 0)
    for (let looks = 0; looks < 5; looks++) {
      clock.advance(5000)
      expect(await look(0x1_0000_0005)).toBe(false)
      expect(second.savedUpTo).toBe(0x1_0000_0005)
    }
    expect(await look(0x1_0000_0006)).toBe(false)
    expect(second.holder).toBe('1')
    clock.advance(999)
    await look(0x1_0000_0006)
    expect(second.holder).toBe('1')
    clock.advance(1)
    await look(0x1_0000_0006)
    expect(await look(0x1_0000_0006)).toBe(true)
  })

  it('goes within minutes from a member that is gone, also while others have nothing that it has not saved', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    const saved = { ...TIMES, savedUpTo: 0x5_0000_0005 }
    const look = () => second.claim({ ...TIMES, applied: 0x1_0000_0001 }, 0)
    for (let minutes = 0; minutes < 5; minutes++) {
      await first.claim(saved, 7)
      expect(await look()).toBe(false)
      clock.advance(60_000)
    }
    // Its last sign was a minute ago.
    for (let minutes = 1; minutes < 3; minutes++) {
      expect(await look()).toBe(false)
      expect(second.savedUpTo).toBe(saved.savedUpTo)
      clock.advance(60_000)
    }
    expect(await look()).toBe(false)
    // Until it knows whether it has got the duty, it has no reason to look seldom.
    expect(second.savedUpTo).toBeUndefined()
    expect(await look()).toBe(true)
  })

  it('goes as soon as ever from an earlier run of the same member', async () => {
    const first = memberOf(1)
    const later = new BackupDuty(
      { target: new FolderTarget('/backup', { disk, random: new SeededRandom(7) }) },
      '1',
      {
        clock,
        random: new SeededRandom(8),
      },
    )
    for (let looks = 0; looks < 2; looks++) await first.claim({ ...TIMES, savedUpTo: 5 }, 7)
    await later.claim({ ...TIMES, applied: 5 }, 0)
    clock.advance(1000)
    await later.claim({ ...TIMES, applied: 5 }, 0)
    expect(await later.claim({ ...TIMES, applied: 5 }, 0)).toBe(true)
  })

  it('is not taken by a member that has not looked for long', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    for (let looks = 0; looks < 2; looks++) await first.claim(TIMES, 0)
    await second.claim(TIMES, 0)
    clock.advance(60_000)
    await second.claim(TIMES, 0)
    expect(await second.claim(TIMES, 0)).toBe(false)
    expect(second.holder).toBe('1')
  })

  it('goes after the delay to a member that waits longer, which is asked once for each claim', async () => {
    let asked = 0
    const delayed = async (): Promise<number> => {
      asked++
      return 500
    }
    const [first, second] = [memberOf(1), memberOf(2)]
    expect(await first.claim({ ...TIMES, delayMs: delayed }, 0)).toBe(false)
    clock.advance(499)
    await first.claim({ ...TIMES, delayMs: delayed }, 0)
    expect(disk.paths()).toEqual([])
    clock.advance(1)
    await first.claim({ ...TIMES, delayMs: delayed }, 0)
    expect(await first.claim({ ...TIMES, delayMs: delayed }, 0)).toBe(true)
    expect(asked).toBe(1)

    await second.claim({ ...TIMES, delayMs: delayed }, 0)
    clock.advance(999)
    await second.claim({ ...TIMES, delayMs: delayed }, 0)
    // The claim is not old enough: the answer would not matter.
    expect(asked).toBe(1)
    clock.advance(501)
    await second.claim({ ...TIMES, delayMs: delayed }, 0)
    expect(await second.claim({ ...TIMES, delayMs: delayed }, 0)).toBe(true)
    expect(asked).toBe(2)
  })

  it('stays with a member that claims it while another one finds out how long to wait', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    await first.claim(
      {
        ...TIMES,
        delayMs: async () => {
          await second.claim(TIMES, 0)
          return 0
        },
      },
      0,
    )
    expect(await second.claim(TIMES, 0)).toBe(true)
    expect(await first.claim(TIMES, 0)).toBe(false)
    expect(first.holder).toBe('2')
  })

  it('stays with a member whose claim came while another one was writing its first one', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    let isHeld: boolean | undefined
    disk.beforeWrite = async () => {
      disk.beforeWrite = undefined
      await first.claim(TIMES, 0)
      isHeld = await first.claim(TIMES, 0)
    }
    await second.claim(TIMES, 0)
    expect(isHeld).toBe(true)
    expect(await second.claim(TIMES, 0)).toBe(false)
    expect(second.holder).toBe('1')
    expect(await first.claim(TIMES, 0)).toBe(true)
  })

  it('passes from a substitute to another member at once, and to another substitute when it is silent', async () => {
    const [first, second, named] = [memberOf(1), memberOf(2), memberOf(3)]
    const substitute = { ...TIMES, isSubstitute: true }
    await first.claim(substitute, 0)
    expect(await first.claim(substitute, 0)).toBe(true)
    expect(await second.claim(substitute, 0)).toBe(false)
    expect(second.holder).toBe('1')
    expect(await named.claim({ ...TIMES, delayMs: () => Promise.resolve(Infinity) }, 0)).toBe(false)
    expect(await first.claim(substitute, 1)).toBe(true)
    await named.claim(TIMES, 0)
    expect(await first.claim(substitute, 0)).toBe(false)
    expect(await named.claim(TIMES, 0)).toBe(true)
    expect(first.holder).toBe('3')
    await first.claim(substitute, 0)
    clock.advance(1000)
    await first.claim(substitute, 0)
    expect(await first.claim(substitute, 0)).toBe(true)
    await first.release()
    expect(disk.paths()).toEqual([])
  })

  it('is left alone by a substitute for ever, but not once that is none any more', async () => {
    const member = memberOf(1)
    await member.claim({ ...TIMES, isSubstitute: true, delayMs: () => Promise.resolve(Infinity) }, 0)
    expect(disk.paths()).toEqual([])
    await member.claim(TIMES, 0)
    expect(await member.claim(TIMES, 0)).toBe(true)
  })

  it('is looked at by a member without the log once for each backup of a substitute, not at each sign of it', async () => {
    let asked = 0
    const withoutLog = async (): Promise<number> => {
      asked++
      return 500
    }
    const [substitute, named] = [memberOf(1), memberOf(2)]
    const look = async (lastBackupAt: number): Promise<void> => {
      await substitute.claim({ ...TIMES, isSubstitute: true }, lastBackupAt)
      expect(await named.claim({ ...TIMES, delayMs: withoutLog }, 0)).toBe(false)
      clock.advance(100)
    }
    for (let i = 0; i < 10; i++) await look(7)
    expect(asked).toBe(1)
    await look(8)
    await look(8)
    expect(asked).toBe(2)
  })
})
