import { ManualClock, silentLogger } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { quotaWarnings } from './quota-warnings.ts'

const breach = { what: 'nodes', isHard: false, limit: 1, use: 2 } as const

it('exceeded quotas are logged once a minute each, a thousand of them', () => {
  const clock = new ManualClock()
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (_: object, sentence?: string) => void lines.push(sentence!) }
  const warn = quotaWarnings({ clock, logger })
  const warnOf = (from: number, count: number): number => {
    lines.length = 0
    for (let i = from; i < from + count; i++) warn(`/q${i}`, breach)
    return lines.length
  }
  expect([warnOf(0, 1), warnOf(0, 1200), warnOf(0, 1200)]).toEqual([1, 999, 0])
  clock.advance(60_000)
  expect([warnOf(2000, 1), warnOf(0, 1200)]).toEqual([1, 999])
  expect(lines[0]).toBe('/q0 goes beyond its limit of 1 nodes')
})
