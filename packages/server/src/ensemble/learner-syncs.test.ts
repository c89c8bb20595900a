import { ServerStats } from '../connections/stats.ts'
import { ManualClock, silentLogger } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { SyncPlan } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import type { LearnerConnection } from './learner-connection.ts'
import { LearnerSyncs } from './learner-syncs.ts'
import { LimitedLog } from './limited-log.ts'

const SNAP: SyncPlan = { kind: 'snap', reason: 'test', entries: [] }
/** A server that no configuration names. */
const UNKNOWN = 99
const DIFF: SyncPlan = { kind: 'diff', zxid: 5, entries: [] }

function fixture(maxConcurrentSnapSyncs: number) {
  const streamed: number[] = []
  const context = {
    settings: { maxConcurrentSnapSyncs },
    membership: { member: (id: number) => (id === UNKNOWN ? undefined : {}) },
    stats: new ServerStats(),
    database: {},
  } as unknown as MemberContext
  const syncs = new LearnerSyncs(context, new LimitedLog(new ManualClock(), silentLogger), (to) =>
    streamed.push(to),
  )
  let nextId = 1
  const start = (isObserver: boolean, plan: SyncPlan, serverId = 9) => {
    const failures: string[] = []
    const gate: { complete: () => void; fail: (error: Error) => void } = { complete() {}, fail() {} }
    const synced = new Promise<void>((resolve, reject) =>
      Object.assign(gate, { complete: resolve, fail: reject }),
    )
    let isStarted = false
    const learner = {
      id: nextId++,
      serverId,
      accepted: { remote: { host: '10.0.0.9', port: 1 } },
      isObserver,
      sync: () => ((isStarted = true), synced),
      fail: (reason: string) => failures.push(reason),
    } satisfies Partial<Record<keyof LearnerConnection, unknown>>
    syncs.start(learner as unknown as LearnerConnection, plan)
    return { ...gate, failures, isStarted: () => isStarted }
  }
  return { start, streamed }
}

/** Waits until the callbacks of settled syncs have run. */
const callbacksRun = (): Promise<void> => new Promise(setImmediate)

it('observers that are sent a snapshot at a time are bounded, whether a snapshot succeeds or fails', async () => {
  const { start, streamed } = fixture(2)
  const [first, second, third] = [start(true, SNAP), start(true, SNAP), start(true, SNAP)]
  expect([first, second, third].map(({ isStarted }) => isStarted())).toEqual([true, true, false])
  expect(third.failures).toEqual(['2 servers without a vote are being sent a snapshot already'])
  first.complete()
  second.fail(new Error('a sector is gone'))
  await callbacksRun()
  expect([streamed, second.failures]).toEqual([[1], ['it cannot be brought up to date: a sector is gone']])
  const next = [start(true, SNAP), start(true, SNAP), start(true, SNAP)]
  expect(next.map(({ isStarted }) => isStarted())).toEqual([true, true, false])
})

it('voters, and observers that need no snapshot, are not bounded', () => {
  const { start } = fixture(1)
  const all = [
    start(false, SNAP),
    start(false, SNAP),
    start(true, DIFF),
    start(true, SNAP),
    start(true, DIFF),
    start(false, SNAP),
  ]
  expect(all.map(({ isStarted }) => isStarted())).toEqual(all.map(() => true))
  expect(start(true, SNAP).isStarted()).toBe(false)
})

it('servers that no configuration names are bounded with observers, whatever they say they are', () => {
  const { start } = fixture(2)
  const all = [start(false, SNAP, UNKNOWN), start(true, SNAP), start(false, SNAP, UNKNOWN)]
  expect(all.map(({ isStarted }) => isStarted())).toEqual([true, true, false])
})
