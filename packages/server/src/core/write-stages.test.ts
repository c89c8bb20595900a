import { describe, expect, it } from 'vitest'
import { Histogram } from './histogram.ts'
import { WriteStages } from './write-stages.ts'

describe('WriteStages', () => {
  it('divides the time of a write into its stages', () => {
    const stages = new WriteStages()
    stages.begun(32, 11)
    stages.proposed(32, 13)
    stages.proposed(33, 14)
    stages.synced(33, 20, 50)
    stages.committed(32, 60)
    stages.committed(34, 99)
    expect(stages.of(32, 10, 64, 65)).toEqual({
      queue: 1,
      prepare: 2,
      proposal: 7,
      sync: 30,
      commit: 10,
      apply: 4,
      reply: 1,
    })
    // Of the others, the preparation is a part of the queue.
    expect(stages.of(33, 10, 99)).toMatchObject({ queue: 4, prepare: 0, proposal: 6, sync: 30 })
  })

  it('attributes all to the commit where a quorum was faster than the own log, or the server has none', () => {
    const stages = new WriteStages()
    stages.proposed(7, 10)
    stages.committed(7, 30)
    const times = { queue: 0, prepare: 0, proposal: 0, sync: 0, commit: 20, apply: 5, reply: 0 }
    expect(stages.of(7, 10, 35)).toEqual(times)
    stages.synced(7, 31, 34)
    expect(stages.of(7, 10, 35)).toEqual(times)
  })

  it('ends a sync at the commit that a quorum of others made possible', () => {
    const stages = new WriteStages()
    stages.proposed(7, 10)
    stages.synced(7, 12, 40)
    stages.committed(7, 20)
    expect(stages.of(7, 10, 20)).toMatchObject({ proposal: 2, sync: 8, commit: 0 })
  })

  it('says nothing of stages whose times were overwritten or never known, and sums up to the whole', () => {
    const stages = new WriteStages()
    for (let zxid = 1; zxid <= 5000; zxid++) stages.proposed(zxid, 10)
    for (let batch = 1; batch <= 100; batch++) stages.synced(batch * 50, batch, batch)
    for (const zxid of [1, 904, 4000, 5000, 6000]) {
      const times = stages.of(zxid, 5, 200, 210)
      expect(Object.values(times).reduce((sum, ms) => sum + ms, 0)).toBe(205)
      expect(Math.min(...Object.values(times))).toBeGreaterThanOrEqual(0)
    }
    expect(stages.of(1, 5, 200).queue).toBe(0)
  })

  it('measures replies when they are sent, and one write in 32', () => {
    const stages = new WriteStages()
    for (let zxid = 1; zxid <= 320; zxid++) if (stages.isSampled(zxid)) stages.applied(zxid, 0, 10)
    expect([stages.latencies.apply.count, stages.latencies.reply.count, stages.hasUnsent]).toEqual([
      10,
      0,
      true,
    ])
    stages.sent(12)
    expect([stages.latencies.reply.count, stages.latencies.reply.sum, stages.hasUnsent]).toEqual([
      10,
      20,
      false,
    ])
    stages.proposed(352, 0)
    stages.committed(352, 30)
    stages.applied(352, 0, 34)
    stages.sent(35)
    expect([stages.untilAnswered.count, stages.untilAnswered.sum]).toEqual([11, 20 + 5])
  })

  it('adds the ages of the proposals that it knows', () => {
    const stages = new WriteStages()
    const ages = new Histogram()
    stages.proposed(7, 10)
    stages.addAges(6, 3, 15, ages)
    expect([ages.count, ages.sum]).toEqual([1, 5])
  })
})
