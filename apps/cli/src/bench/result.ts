import { Histogram, type Counts } from './histogram.ts'

/** Measurement of one kind of operation. Times in microseconds. */
export interface PartResult {
  readonly name: string
  readonly operations: number
  readonly seconds: number
  readonly latency: { readonly counts: Counts; readonly sum: number; readonly max: number }
}

/** Merges the results of concurrent processes: adds operations and takes the longest duration. */
export function mergeResults(results: readonly (readonly PartResult[])[]): PartResult[] {
  const names = [...new Set(results.flat().map(({ name }) => name))]
  return names.map((name) => {
    const parts = results.flat().filter((part) => part.name === name)
    const latency = new Histogram()
    for (const part of parts) latency.merge(part.latency)
    return {
      name,
      operations: parts.reduce((sum, part) => sum + part.operations, 0),
      seconds: Math.max(...parts.map(({ seconds }) => seconds)),
      latency: latency.export(),
    }
  })
}

/** The printed figures of one kind of operation. Times in microseconds. */
export interface Figures {
  readonly name: string
  readonly operations: number
  readonly seconds: number
  readonly perSecond: number
  readonly mean: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly max: number
}

export function figuresOf({ name, operations, seconds, latency: exported }: PartResult): Figures {
  const latency = histogramOf(exported)
  const [p50, p95, p99, p999] = [0.5, 0.95, 0.99, 0.999].map((share) => latency.percentile(share))
  return {
    name,
    operations,
    seconds,
    perSecond: seconds > 0 ? operations / seconds : 0,
    mean: latency.mean,
    p50: p50!,
    p95: p95!,
    p99: p99!,
    p999: p999!,
    max: latency.max,
  }
}

export function histogramOf(exported: PartResult['latency']): Histogram {
  const histogram = new Histogram()
  histogram.merge(exported)
  return histogram
}
