import { expect, it } from 'vitest'
import type { SyncPlan } from '../core/zab/index.ts'
import { silentLogger } from '@zabra/runtime'
import type { LearnerConnection } from './learner-connection.ts'
import type { MemberContext } from './context.ts'
import { LearnerSyncs } from './learner-syncs.ts'

const SNAP: SyncPlan = { how: 'snap', reason: 'test', entries: [] }
const DIFF: SyncPlan = { how: 'diff', zxid: 5, entries: [] }

function rig(most: number) {
  const streamed: number[] = []
  const kit = {
    settings: { maxConcurrentSnapSyncs: most },
    ports: { logger: silentLogger },
    vault: {},
  } as unknown as MemberContext
  const transfers = new LearnerSyncs(kit, (to) => streamed.push(to))
  let next = 1
  const begin = (observer: boolean, plan: SyncPlan) => {
    const failures: string[] = []
    const gate: { open: () => void; fail: (error: Error) => void } = { open() {}, fail() {} }
    const synced = new Promise<void>((resolve, reject) =>
      Object.assign(gate, { open: resolve, fail: reject }),
    )
    let begun = false
    const link = {
      id: next++,
      server: 9,
      observer,
      sync: () => ((begun = true), synced),
      fail: (reason: string) => failures.push(reason),
    }
    transfers.start(link as unknown as LearnerConnection, plan)
    return { ...gate, failures, begun: () => begun }
  }
  return { begin, streamed }
}

/** What follows the end of a transfer has been done. */
const settled = (): Promise<void> => new Promise(setImmediate)

it('sends so many observers a snapshot at a time and no more, whatever becomes of each', async () => {
  const { begin, streamed } = rig(2)
  const [first, second, third] = [begin(true, SNAP), begin(true, SNAP), begin(true, SNAP)]
  expect([first, second, third].map(({ begun }) => begun())).toEqual([true, true, false])
  expect(third.failures).toEqual(['2 observers are being sent a snapshot already'])
  first.open()
  second.fail(new Error('a sector is gone'))
  await settled()
  expect([streamed, second.failures]).toEqual([[1], ['it cannot be brought up to date: a sector is gone']])
  expect([begin(true, SNAP), begin(true, SNAP), begin(true, SNAP)].map(({ begun }) => begun())).toEqual([
    true,
    true,
    false,
  ])
})

it('never keeps a voter waiting, nor whoever needs no snapshot', () => {
  const { begin } = rig(1)
  const all = [
    begin(false, SNAP),
    begin(false, SNAP),
    begin(true, DIFF),
    begin(true, SNAP),
    begin(true, DIFF),
    begin(false, SNAP),
  ]
  expect(all.map(({ begun }) => begun())).toEqual(all.map(() => true))
  expect(begin(true, SNAP).begun()).toBe(false)
})
