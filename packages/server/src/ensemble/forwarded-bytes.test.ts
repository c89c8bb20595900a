import { expect, it } from 'vitest'
import type { Identity } from '../core/types.ts'
import { ForwardedBytes, forwardLimitOf } from './forwarded-bytes.ts'

const LIMIT = { maxBytes: 1000, requestBytes: 10 }

/** Counts requests whose earlier ones are finished when the test says so. */
function fixture() {
  const forwarded = new ForwardedBytes(LIMIT)
  const points: (() => void)[] = []
  const count = (bytes: number, identities: readonly Identity[] | null = null): boolean => {
    const isWithin = forwarded.count(new Uint8Array(bytes), identities)
    if (forwarded.isDue) forwarded.notePoint((done) => points.push(done))
    return isWithin
  }
  return { forwarded, points, count }
}

it('a learner may forward as much as the limit again and again while earlier requests are finished', () => {
  const { points, count } = fixture()
  for (let round = 1; round <= 5; round++) {
    for (let at = 0; at < 10; at++) expect(count(90)).toBe(true)
    expect(points).toHaveLength(round)
    points.at(-1)!()
  }
})

it('a learner that forwards as much as the limit while an earlier request is in flight exceeds it', () => {
  const { forwarded, points, count } = fixture()
  expect([count(990), count(500), count(469)]).toEqual([true, true, true])
  let isFinished = false
  expect(count(1)).toBe(false)
  expect(forwarded.reason).toContain('1000 bytes while an earlier one is in flight, of 1000 at most')
  forwarded.onceFinished(() => (isFinished = true))
  expect(isFinished).toBe(false)
  points[0]!()
  expect(isFinished).toBe(true)
  expect(count(1)).toBe(true)
})

it('the identities of a request count', () => {
  const { points, count } = fixture()
  const identities = [{ scheme: 'digest', id: 'x'.repeat(500) }]
  expect([count(0, identities), points.length]).toEqual([true, 0])
  expect([count(0, identities), points.length]).toEqual([true, 1])
})

it('a follower may forward what all members of its kind let their clients have in flight', () => {
  const requests = 1000 / 2
  const apache = forwardLimitOf({ isObserver: false, extension: undefined })
  expect(apache.maxBytes).toBeGreaterThanOrEqual(requests * (2 ** 20 + apache.requestBytes))
  expect(forwardLimitOf({ isObserver: false, extension: undefined }, 2 ** 31)).toEqual(apache)
  const member = forwardLimitOf({ isObserver: false, extension: {} })
  expect(member.maxBytes).toBeGreaterThanOrEqual(64 << 20)
})

it.each([
  [1024, 256],
  [512, 128],
  [128, 64],
])(
  'a follower of Apache ZooKeeper, or what says that it is one, has half of %i MiB of memory in flight, or as much as a member',
  (memory, most) => {
    const { maxBytes } = forwardLimitOf({ isObserver: false, extension: undefined }, memory << 20)
    expect(maxBytes >> 20).toBe(most)
  },
)
