import { expect, it } from 'vitest'
import { Histogram } from '../core/histogram.ts'
import { ServerStats } from './stats.ts'

/** Returns the histograms that an object holds, at any depth, by their paths. */
function histogramsIn(value: unknown, path = ''): (readonly [path: string, values: Histogram])[] {
  if (value instanceof Histogram) return [[path, value]]
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return []
  const entries = value instanceof Map ? [...value] : Object.entries(value)
  return entries.flatMap(([name, part]) => histogramsIn(part, `${path}.${String(name)}`))
}

it('each percentile of the statistics ends with its window', () => {
  const stats = new ServerStats()
  stats.ensemble.ackLatency.set(2, new Histogram())
  const all = histogramsIn(stats)
  for (const [, values] of all) values.add(7)
  for (let part = 0; part < 5; part++) stats.rotate()
  expect(all.length).toBeGreaterThan(30)
  expect(
    all.filter(([, values]) => !Number.isNaN(values.recentPercentile(0.5))).map(([path]) => path),
  ).toEqual([])
})
