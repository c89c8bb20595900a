import { table } from '../text/table.ts'
import type { Histogram } from './histogram.ts'
import type { Figures } from './result.ts'

const WIDTH = 40

/** Formats a time in microseconds with a readable unit. */
export function showTime(us: number): string {
  if (us < 1000) return `${Math.round(us)} µs`
  if (us < 1_000_000) return `${(us / 1000).toPrecision(3)} ms`
  return `${(us / 1_000_000).toPrecision(3)} s`
}

const grouped = (value: number): string => Math.round(value).toLocaleString('en')

/** Formats a table with one line per kind of operation. */
export function figureLines(figures: readonly Figures[]): string[] {
  const head = ['', 'operations', 'seconds', 'per second', 'mean', 'p50', 'p95', 'p99', 'p99.9', 'max']
  const rows = figures.map(({ name, operations, seconds, perSecond, mean, p50, p95, p99, p999, max }) => [
    name,
    grouped(operations),
    seconds.toFixed(2),
    grouped(perSecond),
    ...[mean, p50, p95, p99, p999, max].map((time) => (max === 0 ? '' : showTime(time))),
  ])
  return table(head, rows)
}

/** Formats the latency distribution with one bar per power of two. */
export function histogramLines(histogram: Histogram): string[] {
  const doublings = new Map<number, number>()
  for (const { upTo, count } of histogram.buckets()) {
    const doubling = Math.floor(Math.log2(Math.max(1, upTo)))
    doublings.set(doubling, (doublings.get(doubling) ?? 0) + count)
  }
  const most = Math.max(...doublings.values())
  return [...doublings].map(([doubling, count]) => {
    const bar = '#'.repeat(Math.max(1, Math.round((count / most) * WIDTH)))
    const share = ((count / histogram.count) * 100).toFixed(1)
    return `${showTime(2 ** doubling).padStart(9)} and more  ${share.padStart(5)} %  ${bar}`
  })
}
