import { ManualClock, silentLogger, type Logger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import type { Database } from './database.ts'
import { SnapshotScheduler } from './snapshot-scheduler.ts'

/** A scheduler whose database waits for the test. */
function given({ purgeIntervalMs = 1000, purgeRetainCount = 3, unsavedAfter = Promise.resolve(77) } = {}) {
  const clock = new ManualClock()
  const lines: string[] = []
  const note =
    (level: string) =>
    (facts: object, sentence: string): void =>
      void lines.push(`${level} ${sentence} ${JSON.stringify(facts)}`)
  const logger: Logger = { ...silentLogger, info: note('info'), error: note('error') }
  const times: number[] = []
  const stats = { snapshotTime: { add: (ms: number) => void times.push(ms) }, snapshotErrors: 0 }
  /** The snapshots in progress. */
  const taking: {
    readonly sessions: readonly (readonly [bigint, number])[]
    readonly signal: AbortSignal
    readonly finish: () => void
    readonly fail: (error: Error) => void
  }[] = []
  const purges: number[] = []
  let purge = async (): Promise<string[]> => []
  const sessions = new SessionMap([[1n, 5000]])
  const database = {
    sessions,
    takeSnapshot: (list: Iterable<readonly [bigint, number]>, signal: AbortSignal) =>
      new Promise((resolve, fail) => {
        signal.addEventListener('abort', () => fail(signal.reason))
        taking.push({
          sessions: list as (readonly [bigint, number])[],
          signal,
          finish: () => resolve({ file: 'snapshot.1', nodes: 4, bytes: 500 }),
          fail,
        })
      }),
    purge: (retain: number, unsavedAfter: number) => {
      expect(unsavedAfter).toBe(77)
      purges.push(retain)
      return purge()
    },
  } as unknown as Database
  const scheduler = new SnapshotScheduler({
    settings: { purgeIntervalMs, purgeRetainCount },
    clock,
    logger,
    database,
    stats,
    unsavedAfter: () => unsavedAfter,
  })
  return {
    clock,
    scheduler,
    lines,
    stats,
    times,
    taking,
    purges,
    sessions,
    purgeBy: (action: () => Promise<string[]>) => void (purge = action),
  }
}

/** Lets promises settle that are resolved already. */
const settled = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

describe('SnapshotScheduler', () => {
  it('takes one snapshot at a time, and says how long it took', async () => {
    const { scheduler, taking, clock, lines, times, stats } = given()
    const first = scheduler.take()
    expect([scheduler.take() === first, taking.length]).toEqual([true, 1])
    clock.advance(20.4)
    taking[0]!.finish()
    expect(await first).toBe(true)
    expect(times).toEqual([expect.closeTo(20.4)])
    expect(lines).toEqual(['info Took a snapshot {"file":"snapshot.1","nodes":4,"bytes":500,"ms":20}'])
    const second = scheduler.take()
    expect([second === first, taking.length]).toEqual([false, 2])
    taking[1]!.finish()
    expect([await second, stats.snapshotErrors]).toEqual([true, 0])
  })

  it('takes the sessions of the database, whose writer keeps them as they are', async () => {
    const { scheduler, taking, sessions } = given()
    const done = scheduler.take()
    expect(taking[0]!.sessions).toBe(sessions)
    taking[0]!.finish()
    await done
  })

  it('counts and reports a snapshot that failed, and takes the next one', async () => {
    const { scheduler, taking, lines, times, stats } = given()
    const failed = scheduler.take()
    taking[0]!.fail(new Error('EIO'))
    expect([await failed, stats.snapshotErrors, times]).toEqual([false, 1, []])
    expect(lines).toEqual([expect.stringMatching(/^error A snapshot failed.*\{"error":"Error: EIO"\}$/)])
    const next = scheduler.take()
    taking[1]!.finish()
    expect([await next, stats.snapshotErrors]).toEqual([true, 1])
  })

  it('stops a snapshot in progress, which is no failure, and waits for its end', async () => {
    const { scheduler, taking, lines, stats } = given()
    const taken = scheduler.take()
    await scheduler.stop()
    expect(taking[0]!.signal.reason).toEqual(new Error('The server is stopping'))
    expect([await taken, stats.snapshotErrors, lines]).toEqual([false, 0, []])
  })

  describe('removes old files', () => {
    it('at each interval, once the purge before has ended, and says how many', async () => {
      const { scheduler, clock, purges, purgeBy, lines } = given()
      let end: (removed: string[]) => void = () => {}
      purgeBy(() => new Promise((resolve) => (end = resolve)))
      scheduler.start()
      clock.advance(999)
      expect(purges).toEqual([])
      clock.advance(1)
      await settled()
      expect(purges).toEqual([3])
      clock.advance(5000)
      await settled()
      expect(purges).toEqual([3])
      end(['log.1', 'snapshot.1'])
      await settled()
      expect(lines).toEqual(['info Removed old snapshots and logs {"removed":2}'])
      clock.advance(1000)
      await settled()
      expect(purges).toEqual([3, 3])
      end([])
      await settled()
      expect(lines.length).toBe(1)
    })

    it('again after a failure, which it reports', async () => {
      const { scheduler, clock, purges, purgeBy, lines } = given()
      purgeBy(() => Promise.reject(new Error('EIO')))
      scheduler.start()
      clock.advance(1000)
      await settled()
      expect(lines).toEqual([
        'error Old snapshots and logs could not be removed; trying again at the next interval {"error":"Error: EIO"}',
      ])
      clock.advance(1000)
      await settled()
      expect(purges.length).toBe(2)
    })

    it('not once it is stopped while it waits for what the next backup needs', async () => {
      let answer: (unsavedAfter: number) => void = () => {}
      const { scheduler, clock, purges } = given({
        unsavedAfter: new Promise<number>((resolve) => (answer = resolve)),
      })
      scheduler.start()
      clock.advance(1000)
      await scheduler.stop()
      answer(77)
      await settled()
      expect(purges).toEqual([])
    })

    it('never without an interval, and not once it is stopped', async () => {
      for (const purgeIntervalMs of [0, -1]) {
        const { scheduler, clock, purges } = given({ purgeIntervalMs })
        scheduler.start()
        clock.advance(100_000)
        await settled()
        expect(purges).toEqual([])
      }
      const { scheduler, clock, purges } = given()
      scheduler.start()
      await scheduler.stop()
      scheduler.start()
      clock.advance(100_000)
      await settled()
      expect(purges).toEqual([])
    })
  })
})
