import { ManualClock, MemoryDisk, SeededRandom } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { BackupDuty } from './duty.ts'
import { FolderTarget } from './target.ts'

const TIMES = { ifFreeMs: 0, ifSilentMs: 60_000 }
const FILE = '/backup/duty'

describe('a claim of the duty of backups', () => {
  let clock: ManualClock
  let disk: MemoryDisk

  beforeEach(() => {
    clock = new ManualClock()
    disk = new MemoryDisk()
  })

  const targetOf = (random: SeededRandom): FolderTarget => new FolderTarget('/backup', { disk, random })
  const memberOf = (id: number): BackupDuty => {
    const random = new SeededRandom(id)
    return new BackupDuty({ target: targetOf(random) }, String(id), { clock, random })
  }
  /** Has a member look at each interval. Resolves to how often it did until it had the duty, and no more often than 20 times. */
  const looksUntilHeld = async (member: BackupDuty, intervalMs: number, options = {}): Promise<number> => {
    for (let looks = 1; looks <= 20; looks++) {
      if (await member.claim({ ...TIMES, ...options }, 0)) return looks
      clock.advance(intervalMs)
    }
    return Infinity
  }
  const seenBy = ({ isHeld, holder, lastBackupAt, savedUpTo, isSubstitute }: BackupDuty) => ({
    isHeld,
    holder,
    lastBackupAt,
    savedUpTo,
    isSubstitute,
  })
  const NOTHING = {
    isHeld: false,
    holder: undefined,
    lastBackupAt: 0,
    savedUpTo: undefined,
    isSubstitute: false,
  }
  const putDuty = (text: string): void => disk.putFile(FILE, new TextEncoder().encode(text))
  const duty = async (): Promise<string> => new TextDecoder().decode(await disk.readFile(FILE))

  it('says which member has it, whether that is a substitute, and what it has saved', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    expect(seenBy(first)).toEqual(NOTHING)
    await second.claim({ ...TIMES, ifFreeMs: 5 }, 0)
    expect(seenBy(second)).toEqual(NOTHING)
    for (let looks = 0; looks < 2; looks++)
      await first.claim({ ...TIMES, isSubstitute: true, savedUpTo: 0xab }, 7)
    await second.claim({ ...TIMES, isSubstitute: true }, 0)
    const seen = { isHeld: false, holder: '1', lastBackupAt: 7, savedUpTo: 0xab, isSubstitute: true }
    expect(seenBy(second)).toEqual(seen)
    expect(seenBy(first)).toEqual({ ...seen, isHeld: true })
    await first.claim(TIMES, 8)
    await second.claim(TIMES, 0)
    expect(seenBy(second)).toEqual({ ...seen, lastBackupAt: 8, savedUpTo: undefined, isSubstitute: false })
    await first.release()
    await second.claim({ ...TIMES, ifFreeMs: 5 }, 0)
    expect(seenBy(second)).toEqual(NOTHING)
  })

  it.each([
    // A minute, and a look that finds out whether the claim was taken.
    { intervalMs: 20_000, looks: 5 },
    // Three minutes.
    { intervalMs: 20_001, looks: 11 },
    { intervalMs: 20_000, applied: 5, looks: 11 },
    { intervalMs: 90_000, looks: 4 },
    { intervalMs: 90_001, looks: Infinity },
  ])(
    'of a silent member ends for one that looks often enough: %j',
    async ({ looks, intervalMs, applied }) => {
      const first = memberOf(1)
      for (let time = 0; time < 2; time++) await first.claim({ ...TIMES, savedUpTo: 5 }, 0)
      expect(await looksUntilHeld(memberOf(2), intervalMs, { applied })).toBe(looks)
    },
  )

  it('that is damaged, or too long, ends like one that is not renewed', async () => {
    for (const text of ['', 'nonsense', 'x'.repeat(65_536)]) {
      putDuty(text)
      const member = memberOf(2)
      expect(await looksUntilHeld(member, 20_000), text.slice(0, 9)).toBe(5)
      expect(seenBy(member)).toMatchObject({ isHeld: true, holder: '2' })
      await member.release()
    }
  })

  it('is not made, and none is given up, where the target cannot be read', async () => {
    const member = memberOf(1)
    await looksUntilHeld(member, 0)
    disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    await expect(member.claim(TIMES, 0)).rejects.toThrow('EIO')
    await expect(memberOf(2).claim(TIMES, 0)).rejects.toThrow('EIO')
    await expect(member.release()).rejects.toThrow('EIO')
    expect(member.isHeld).toBe(false)
    // One that has claimed nothing has nothing to give up.
    await memberOf(3).release()
    disk.injectFault = undefined
    await member.release()
    expect(disk.paths()).toEqual([])
    putDuty('unreadable')
    disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    await member.release()
  })

  it('of another member stays when one gives up what it had', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    await first.claim(TIMES, 0)
    await disk.remove(FILE)
    await looksUntilHeld(second, 0)
    await first.release()
    expect(await duty()).toMatch(/^2 /)
    expect(await second.claim(TIMES, 0)).toBe(true)
  })

  it('is not held by a member if another one claims while it computes its delay', async () => {
    const [first, second] = [memberOf(1), memberOf(2)]
    const delayMs = async (): Promise<number> => {
      await second.claim(TIMES, 0)
      return 0
    }
    expect(await first.claim({ ...TIMES, delayMs }, 0)).toBe(false)
    expect(await duty()).toMatch(/^2 /)
  })

  it('makes a member compute its delay again after a substitute has overwritten it', async () => {
    const [substitute, member] = [memberOf(1), memberOf(2)]
    for (let looks = 0; looks < 2; looks++) await substitute.claim({ ...TIMES, isSubstitute: true }, 7)
    const before = await duty()
    let asked = 0
    const look = () => member.claim({ ...TIMES, delayMs: async () => (asked++, 0) }, 0)
    await look()
    expect(await duty()).toMatch(/^2 /)
    putDuty(before.replace(/ \d+ 7\n$/, ' 9 7\n'))
    await look()
    putDuty(before)
    await look()
    expect(asked).toBe(3)
  })

  it('of a new run of a substitute makes others compute their delay again, also without a new backup', async () => {
    const [substitute, member] = [memberOf(1), memberOf(2)]
    let asked = 0
    const look = () => member.claim({ ...TIMES, delayMs: async () => (asked++, 500) }, 0)
    for (const run of [
      substitute,
      new BackupDuty({ target: targetOf(new SeededRandom(9)) }, '1', { clock, random: new SeededRandom(9) }),
    ]) {
      await disk.remove(FILE).catch(() => {})
      for (let looks = 0; looks < 2; looks++) {
        await run.claim({ ...TIMES, isSubstitute: true }, 7)
        await look()
      }
    }
    expect(asked).toBe(2)
  })
})
