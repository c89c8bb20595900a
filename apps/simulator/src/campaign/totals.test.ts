import { expect, it } from 'vitest'
import { batchesOf, formatTotals, nextSeed, totalsOf, withBatch, type CampaignTotals } from './totals.ts'

const outcome = { eventCount: 1000, virtualMs: 60_000, counts: { writes: 20 }, failures: [] }
const failure = {
  seed: 14,
  checker: 'reads',
  message: 'A read shows\nwhat is not there',
  replay: 'pnpm sim --seed 14',
}
const none: CampaignTotals = { commits: [] }

const play = (totals: CampaignTotals, from: number, to: number, commit = 'aaa'): CampaignTotals =>
  withBatch(totals, commit, '', { range: [from, to], outcome, processorMs: 10 })

it('a campaign that goes on plays the seeds that it has not finished, in batches', () => {
  expect([...batchesOf([1, 25], [], 10)]).toEqual([
    [1, 10],
    [11, 20],
    [21, 25],
  ])
  expect([
    ...batchesOf(
      [1, 25],
      [
        [11, 20],
        [5, 6],
      ],
      10,
    ),
  ]).toEqual([
    [1, 4],
    [7, 10],
    [21, 25],
  ])
  expect([...batchesOf([1, 25], [[1, 30]], 10)]).toEqual([])
  expect([...batchesOf([11, 25], [[1, 12]], 100)]).toEqual([[13, 25]])
})

it('batches that end in any order add up to one range', () => {
  const totals = play(play(play(none, 11, 20), 31, 40), 1, 10)
  expect(totalsOf(totals, 'aaa', '')).toMatchObject({
    played: [
      [1, 20],
      [31, 40],
    ],
    eventCount: 3000,
    writes: 60,
    processorMs: 30,
  })
})

it('seeds of another commit or with other options are counted on their own', () => {
  const totals = play(play(none, 1, 10), 1, 10, 'bbb')
  expect(totals.commits.map(({ commit }) => commit)).toEqual(['aaa', 'bbb'])
  expect(totalsOf(totals, 'aaa', '--servers 3').played).toEqual([])
  expect(nextSeed(totals, 5)).toBe(11)
  expect(nextSeed(totals, 100)).toBe(100)
})

it('the page names each violation with the line that replays it', () => {
  const totals = withBatch(none, 'aaa', '--minutes 0.05', {
    range: [11, 20],
    outcome: { ...outcome, failures: [failure] },
    processorMs: 10,
  })
  const page = formatTotals(totals)
  expect(page).toContain('| aaa | --minutes 0.05 | 11 to 20 | 10 | 1,000 | 100,000 | 20 | 0.0 | 1 |')
  expect(page).toContain('- aaa, reads: A read shows what is not there\n  `pnpm sim --seed 14`')
})
