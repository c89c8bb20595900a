import { ManualClock } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { EnsembleStats } from '../connections/ensemble-stats.ts'
import { PacketQueueStats } from './packet-queue-stats.ts'

describe('PacketQueueStats', () => {
  let clock: ManualClock
  let queue: PacketQueueStats
  const figures = () => stats.packetQueueOf(2)
  let stats: EnsembleStats

  beforeEach(() => {
    clock = new ManualClock()
    stats = new EnsembleStats()
    queue = new PacketQueueStats(clock, figures)
  })

  const values = (): number[] => {
    const { size, time } = figures()
    return [size.count, size.sum, time.count, time.sum]
  }

  it('measures the packets of a flush, and how long the first of them has waited', () => {
    queue.added()
    clock.advance(3)
    queue.added()
    queue.flushed(true)
    expect(values()).toEqual([1, 2, 1, 3])
    queue.flushed(true)
    expect(values()).toEqual([1, 2, 1, 3])
  })

  it('counts the packets of a full socket until it has taken them, and those that are added meanwhile after it', () => {
    queue.added()
    queue.flushed(false)
    clock.advance(10)
    queue.added()
    queue.flushed(false)
    expect(values()).toEqual([2, 3, 0, 0])
    queue.added()
    clock.advance(10)
    queue.taken()
    expect(values()).toEqual([2, 3, 1, 20])
    queue.flushed(true)
    expect(values().slice(0, 3)).toEqual([3, 4, 2])
  })

  it('keeps nothing of a server that is no member', () => {
    const unknown = new PacketQueueStats(clock, () => undefined)
    unknown.added()
    unknown.flushed(true)
    expect(stats.packetQueues.size).toBe(0)
  })
})
