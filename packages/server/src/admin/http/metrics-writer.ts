import type { Pauses } from '@zabra/runtime'
import type { Histogram } from '../../core/histogram.ts'
import type { ServerSettings } from '../../settings/index.ts'

type FamilyType = 'counter' | 'gauge' | 'info' | 'summary' | 'histogram'

/** A release of Apache ZooKeeper whose names metrics have. */
type MetricNames = ServerSettings['metricsNames']

/** What a name of OpenMetrics lacks in the lines about a family, and its samples have. */
const SUFFIXES: Partial<Record<FamilyType, string>> = { counter: '_total', info: '_info' }

/** Bounds of the histograms of times in milliseconds: every seventh bucket, which is about twice the one before, to 16 s. */
const TIME_BUCKETS = [17, 7, 152] as const
/** Bounds of the histograms of counts: every seventh bucket, from about 1 to 4096. */
const COUNT_BUCKETS = [49, 7, 137] as const
const PAUSE_BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] as const

/**
 * Writes families of metrics in Prometheus' text format or in OpenMetrics, with the names of a release of Apache ZooKeeper. Names of other
 * counters end in `_total`, and gauges and summaries have the same names in all forms.
 */
export class MetricsWriter {
  /** Scrapers refuse an answer without one. */
  readonly contentType: string
  /** What ends the text. */
  readonly end: string
  readonly names: MetricNames
  readonly #isOpenMetrics: boolean

  constructor(names: MetricNames, { isOpenMetrics = false } = {}) {
    this.names = names
    this.#isOpenMetrics = isOpenMetrics
    this.contentType = isOpenMetrics
      ? 'application/openmetrics-text; version=1.0.0; charset=utf-8'
      : 'text/plain; version=0.0.4; charset=utf-8'
    this.end = isOpenMetrics ? '# EOF\n' : ''
  }

  /** Returns the lines before the samples of a family, whose name is that of its samples. */
  family(name: string, type: FamilyType): string {
    if (!this.#isOpenMetrics)
      return `# HELP ${name} ${name}\n# TYPE ${name} ${type === 'info' ? 'gauge' : type}\n`
    const bare = name.slice(0, name.length - (SUFFIXES[type]?.length ?? 0))
    const [, unit] = /_(bytes|seconds)$/.exec(bare) ?? []
    const lines = `# HELP ${bare} ${bare}\n# TYPE ${bare} ${type}\n`
    return unit === undefined ? lines : `${lines}# UNIT ${bare} ${unit}\n`
  }

  gauge(name: string, value: number, labels = ''): string {
    return `${this.family(name, 'gauge')}${name}${labels} ${value}\n`
  }

  counter(name: string, value: number): string {
    return `${this.family(name, 'counter')}${name} ${value}\n`
  }

  // Families of Apache ZooKeeper

  /** Returns a counter or gauge of Apache ZooKeeper. */
  single(name: string, type: 'counter' | 'gauge', value: number): string {
    const own = this.#nameOf(name, type)
    return `${this.family(own, type)}${own} ${decimal(value)}\n`
  }

  /** Returns a counter or gauge of Apache ZooKeeper with a sample for each key. */
  keyed(
    name: string,
    type: 'counter' | 'gauge',
    byKey: Iterable<readonly [key: string, value: number]>,
  ): string {
    const own = this.#nameOf(name, type)
    const samples = [...byKey].map(
      ([key, value]) => `${own}${this.#braced([keyLabel(key)])} ${decimal(value)}\n`,
    )
    return `${this.family(own, type)}${samples.join('')}`
  }

  /** Returns a summary of Apache ZooKeeper. */
  summary(name: string, values: Histogram, quantiles: readonly number[]): string {
    return `${this.family(name, 'summary')}${this.#summarySamples(name, values, quantiles, [])}`
  }

  /** The same with samples for each key. */
  keyedSummary(
    name: string,
    byKey: Iterable<readonly [key: string | number, values: Histogram]>,
    quantiles: readonly number[],
  ): string {
    const samples = [...byKey].map(([key, values]) =>
      this.#summarySamples(name, values, quantiles, [keyLabel(String(key))]),
    )
    return `${this.family(name, 'summary')}${samples.join('')}`
  }

  #summarySamples(
    name: string,
    values: Histogram,
    quantiles: readonly number[],
    labels: readonly string[],
  ): string {
    const lines = quantiles.map((of39) => {
      const quantile = of39 === 0.9 && this.names === '3.10' ? 0.95 : of39
      return `${name}${this.#braced([...labels, `quantile="${quantile}"`])} ${decimal(values.recentPercentile(quantile))}\n`
    })
    const all = labels.length === 0 ? '' : this.#braced(labels)
    return `${lines.join('')}${name}_count${all} ${decimal(values.totalCount)}\n${name}_sum${all} ${decimal(values.totalSum)}\n`
  }

  /** Returns the name of samples. The client library of release 3.10 has counters that end in `_total`. */
  #nameOf(name: string, type: 'counter' | 'gauge'): string {
    return type === 'gauge' || this.names === '3.9' || name.endsWith('_total') ? name : `${name}_total`
  }

  /** Release 3.9 writes a comma behind the last label, which OpenMetrics does not allow. */
  #braced(labels: readonly string[]): string {
    return `{${labels.join(',')}${this.names === '3.9' ? ',' : ''}}`
  }

  // Histograms: `labels` are empty, or end with a comma.

  *pauses(name: string, pauses: Pauses, labels = ''): Generator<string> {
    for (const bound of PAUSE_BOUNDS_MS)
      yield this.#bucket(name, labels, bound / 1000, pauses.countUpTo(bound))
    yield this.#histogramEnd(name, labels, pauses.count, pauses.sum / 1000)
  }

  *times(name: string, values: Histogram, labels = ''): Generator<string> {
    for (const [ms, count] of values.cumulative(...TIME_BUCKETS))
      yield this.#bucket(name, labels, Number((ms / 1000).toPrecision(3)), count)
    yield this.#histogramEnd(name, labels, values.totalCount, values.totalSum / 1000)
  }

  *counts(name: string, values: Histogram): Generator<string> {
    for (const [bound, count] of values.cumulative(...COUNT_BUCKETS))
      yield this.#bucket(name, '', Number(bound.toPrecision(3)), count)
    yield this.#histogramEnd(name, '', values.totalCount, values.totalSum)
  }

  #bucket(name: string, labels: string, bound: number, count: number): string {
    return `${name}_bucket{${labels}le="${this.#isOpenMetrics ? canonical(bound) : bound}"} ${count}\n`
  }

  #histogramEnd(name: string, labels: string, count: number, sum: number): string {
    const suffix = labels === '' ? '' : `{${labels.slice(0, -1)}}`
    return `${name}_bucket{${labels}le="+Inf"} ${count}\n${name}_sum${suffix} ${sum}\n${name}_count${suffix} ${count}\n`
  }
}

/** The writers of Prometheus' text format, by whose names they use. */
export const TEXT_WRITERS: Readonly<Record<MetricNames, MetricsWriter>> = {
  '3.9': new MetricsWriter('3.9'),
  '3.10': new MetricsWriter('3.10'),
}
export const OPEN_METRICS_WRITER = new MetricsWriter('3.10', { isOpenMetrics: true })

export const labelValue = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

const keyLabel = (key: string): string => `key="${labelValue(key)}"`

const decimal = (value: number): string => (Number.isInteger(value) ? `${value}.0` : String(value))

/** Returns a bound as OpenMetrics writes it, which is what Go does: `1.0`, `5.05e-05`. */
const canonical = (bound: number): string =>
  bound < 1e-4 ? bound.toExponential().replace(/-(\d)$/, '-0$1') : decimal(bound)
