import { makeZxid } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Zxid } from '../types.ts'
import { planSync, type SyncSources } from './sync-plan.ts'
import { CommittedWindow, isNextZxid, MIN_WINDOW } from './committed-window.ts'
import { sourcesOf } from './testing/sync-sources.ts'

const z = makeZxid
const payload = (zxid: Zxid): Uint8Array => Uint8Array.of(zxid % 251)

/** Returns a window with these transactions after its base. */
function windowOf(base: Zxid, ...zxids: Zxid[]): CommittedWindow {
  const window = new CommittedWindow(base)
  for (const zxid of zxids) window.add(zxid, payload(zxid))
  return window
}

const range = (epoch: number, from: number, to: number): Zxid[] =>
  Array.from({ length: to - from + 1 }, (_, i) => z(epoch, from + i))

const sources = (window: CommittedWindow, given: Partial<SyncSources> = {}): SyncSources =>
  sourcesOf(window, { diskBytesAfter: () => 100, snapshotBytes: () => 1000, ...given })

/** Returns a sync plan as text. */
function planFor(learner: Zxid, given: SyncSources): string {
  const plan = planSync(learner, given)
  const sent = plan.entries.map(({ zxid }) => zxid.toString(16)).join(' ')
  if (plan.kind === 'snap') return `snap ${sent}`.trim()
  const disk =
    plan.disk === undefined ? '' : ` disk ${plan.disk.after.toString(16)}-${plan.disk.upTo.toString(16)}`
  return `${plan.kind} ${plan.zxid.toString(16)}${disk}: ${sent}`.trim()
}

describe('the sync plan of a learner', () => {
  const seven = windowOf(z(1, 2), ...range(1, 3, 7))

  it('is an empty DIFF when nothing is missing, before and after the leader is established', () => {
    expect(planFor(0, sources(windowOf(0)))).toBe('diff 0:')
    expect(planFor(z(1, 7), sources(seven))).toBe('diff 100000007:')
  })

  it('sends missing transactions from the window', () => {
    expect(planFor(z(1, 4), sources(seven))).toBe('diff 100000007: 100000005 100000006 100000007')
    expect(planFor(z(1, 6), sources(seven))).toBe('diff 100000007: 100000007')
    expect(planFor(z(1, 3), sources(seven))).toBe('diff 100000007: 100000004 100000005 100000006 100000007')
    // The zxid before the oldest: the whole window is missing.
    expect(planFor(z(1, 2), sources(seven))).toMatch(/^diff 100000007: 100000003 .* 100000007$/)
    expect(planFor(0, sources(windowOf(0, z(1, 1))))).toBe('diff 100000001: 100000001')
  })

  it('is a snapshot when transactions before the window are missing and the log does not have them', () => {
    expect(planFor(z(1, 1), sources(seven))).toBe('snap')
    expect(planFor(0, sources(windowOf(z(1, 7))))).toBe('snap')
  })

  it('is a TRUNC when the learner has uncommitted transactions', () => {
    expect(planFor(z(1, 9), sources(seven))).toBe('trunc 100000007:')
    expect(planFor(z(1, 9), sources(windowOf(z(1, 7))))).toBe('trunc 100000007:')
    expect(planFor(z(2, 1), sources(seven))).toBe('trunc 100000007:')
  })

  it('is a snapshot instead of a TRUNC while a snapshot is small', () => {
    expect(planFor(z(1, 9), sources(seven, { truncateFromBytes: 1001 }))).toBe('snap')
    expect(planFor(z(1, 9), sources(seven, { truncateFromBytes: 1000 }))).toBe('trunc 100000007:')
  })

  it('is never a TRUNC across epochs', () => {
    const forked = windowOf(z(2, 0), ...range(2, 1, 3), z(3, 1))
    expect(planFor(z(2, 5), sources(forked))).toBe('snap')
    expect(planFor(z(2, 3), sources(forked))).toBe('diff 300000001: 300000001')
  })

  it('treats a learner at the start of an epoch as having all earlier history', () => {
    const later = windowOf(z(1, 5), ...range(1, 6, 7), ...range(3, 1, 2))
    expect(planFor(z(3, 0), sources(later))).toBe('diff 300000002: 300000001 300000002')
    expect(planFor(z(2, 0), sources(later))).toBe('diff 300000002: 300000001 300000002')
    // An epoch without transactions: there is no zxid to truncate to.
    expect(planFor(z(4, 0), sources(later))).toBe('snap')
  })

  it('is a snapshot because of the data of the learner when it does not trust them', () => {
    expect(planSync(-1, sources(seven))).toMatchObject({ reason: 'the learner does not trust its data' })
  })

  it('is a snapshot when the learner does not trust its data, or with forceSnapshotSync', () => {
    expect(planFor(-1, sources(windowOf(0)))).toBe('snap')
    expect(planFor(z(1, 7), sources(seven, { forceSnapshot: true }))).toBe('snap')
  })

  it('sends committed transactions that are not in the tree yet after a snapshot', () => {
    expect(planFor(z(1, 1), sources(seven, { applied: () => z(1, 5) }))).toBe('snap 100000006 100000007')
  })
})

describe('the sync plan with a verified log range', () => {
  const window = windowOf(z(3, 2), ...range(3, 3, 4))
  const disk = () => ({ after: z(1, 3), upTo: z(3, 4), epochEnds: [z(1, 9), z(2, 4), z(3, 4)] })

  it('sends transactions of the log up to the base of the window', () => {
    expect(planFor(z(2, 4), sources(window, { disk }))).toBe(
      'diff 300000004 disk 200000004-300000002: 300000003 300000004',
    )
    expect(planFor(z(1, 3), sources(window, { disk }))).toMatch(/disk 100000003-300000002/)
    expect(planFor(z(1, 9), sources(window, { disk }))).toMatch(/disk 100000009-300000002/)
    expect(planFor(z(3, 0), sources(window, { disk }))).toMatch(/disk 300000000-300000002/)
  })

  it('is a snapshot when the last transaction of the learner is not in the range', () => {
    expect(planFor(z(1, 2), sources(window, { disk }))).toBe('snap')
    // The start of an epoch whose first transactions are not in the range.
    expect(planFor(z(1, 0), sources(window, { disk }))).toBe('snap')
    // Uncommitted transactions of epochs 1 and 2.
    expect(planFor(z(1, 10), sources(window, { disk }))).toBe('snap')
    expect(planFor(z(2, 5), sources(window, { disk }))).toBe('snap')
  })

  it('is a snapshot when there is a gap between the range and the window', () => {
    const early = () => ({ after: z(1, 3), upTo: z(3, 1), epochEnds: [z(1, 9), z(2, 4), z(3, 1)] })
    expect(planFor(z(2, 4), sources(window, { disk: early }))).toBe('snap')
  })

  it('sends all of a range that begins after an epoch', () => {
    const later = () => ({ after: z(1, 9), upTo: z(3, 4), epochEnds: [z(2, 4), z(3, 4)] })
    expect(planFor(z(1, 9), sources(window, { disk: later }))).toMatch(/^diff .* disk 100000009-300000002/)
  })

  it('sends transactions of a range that ends at the base of the window', () => {
    const upToBase = () => ({ after: z(1, 3), upTo: z(3, 2), epochEnds: [z(1, 9), z(2, 4), z(3, 2)] })
    expect(planFor(z(2, 4), sources(window, { disk: upToBase }))).toMatch(/^diff .* disk 200000004-300000002/)
  })

  it('is a snapshot when the log is too large relative to a snapshot', () => {
    const given = { disk, diskBytesAfter: () => 331 }
    expect(planFor(z(2, 4), sources(window, given))).toBe('snap')
    expect(planFor(z(2, 4), sources(window, { ...given, diskBytesAfter: () => 330 }))).toMatch(/^diff/)
    expect(planFor(z(2, 4), sources(window, { ...given, snapshotSizeFactor: 0 }))).toMatch(/^diff/)
    expect(planFor(z(2, 4), sources(window, { ...given, snapshotSizeFactor: -1 }))).toBe('snap')
  })
})

describe('any learner and any history of a leader', () => {
  it('are equal after the sync plan', () => {
    const anyHistory = fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 })), {
      maxLength: 4,
    })
    fc.assert(
      fc.property(
        anyHistory,
        fc.nat(20),
        fc.nat(20),
        fc.nat(4),
        fc.boolean(),
        (steps, kept, had, tail, fork) => {
          let epoch = 0
          const history = steps.flatMap(([skip, count]) => range((epoch += skip), 1, count))
          const from = Math.min(kept, history.length)
          const window = windowOf(history[from - 1] ?? 0, ...history.slice(from))
          // The learner has a prefix of the history, and perhaps transactions of its own.
          const own = history.slice(0, had)
          const last = own.at(-1) ?? 0
          const branch =
            fork &&
            own.length < history.length &&
            epochOfNext(history, own.length) === Math.floor(last / 2 ** 32)
          if (last > 0 && !branch) for (let i = 1; i <= tail; i++) own.push(last + i)
          const ends = history.filter((zxid, i) => !follows0(zxid, history[i + 1]))
          const disk = () =>
            history.length === 0 ? undefined : { after: 0, upTo: history.at(-1)!, epochEnds: ends }
          const plan = planSync(own.at(-1) ?? 0, sources(window, { disk, snapshotSizeFactor: 0 }))
          const result =
            plan.kind === 'snap'
              ? [...history]
              : own.filter((zxid) => plan.kind === 'diff' || zxid <= plan.zxid)
          if (plan.kind !== 'snap' && plan.disk !== undefined) {
            const { after, upTo } = plan.disk
            result.push(...history.filter((zxid) => zxid > after && zxid <= upTo))
          }
          if (plan.kind !== 'snap') result.push(...plan.entries.map(({ zxid }) => zxid))
          expect(result).toEqual(history)
        },
      ),
    )
  })

  const epochOfNext = (history: Zxid[], at: number): number => Math.floor(history[at]! / 2 ** 32)
  const follows0 = (zxid: Zxid, next: Zxid | undefined): boolean => next === zxid + 1
})

describe('a window', () => {
  it('keeps the last ones, and 500 at least', () => {
    const window = new CommittedWindow(0, 3)
    for (const zxid of range(1, 1, MIN_WINDOW + 20)) window.add(zxid, payload(zxid))
    expect(window.after(0).length).toBe(MIN_WINDOW)
    expect([window.base, window.min, window.max]).toEqual([z(1, 20), z(1, 21), z(1, MIN_WINDOW + 20)])
    expect(window.contains(z(1, 20))).toBe(true)
    expect(window.contains(z(1, 19))).toBe(false)
    expect(window.after(0)[0]).toEqual({ zxid: z(1, 21), payload: payload(z(1, 21)) })
  })

  it('has no holes: it takes what comes next, in the epoch or in a later one', () => {
    const window = windowOf(z(1, 4), z(1, 5))
    for (const zxid of [z(1, 4), z(1, 5), z(1, 7), z(2, 0), z(2, 2), z(0, 1)])
      expect(() => window.add(zxid, payload(zxid)), zxid.toString(16)).toThrow(RangeError)
    window.add(z(3, 1), payload(1))
    expect(window.max).toBe(z(3, 1))
    window.reset(z(4, 0))
    expect([window.after(0).length, window.min, window.max]).toEqual([0, z(4, 0), z(4, 0)])
    window.add(z(4, 1), payload(1))
  })

  it('begins after the last counter of an epoch with the next epoch only', () => {
    expect(isNextZxid(z(1, 0xffff_ffff), z(2, 0))).toBe(false)
    expect(isNextZxid(z(1, 0xffff_ffff), z(2, 1))).toBe(true)
    expect(isNextZxid(z(2, 5), z(2, 1))).toBe(false)
  })
})
