/** A sample of a metric, with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Metrics in Prometheus' text format, by name. */
export class MetricsText {
  readonly #samples = new Map<string, Sample[]>()

  constructor(text: string) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
      if (name === undefined) continue
      const samples = this.#samples.get(name)
      const sample = { labels: labelsOf(labels), value: value === '+Inf' ? Infinity : Number(value) }
      if (samples === undefined) this.#samples.set(name, [sample])
      else samples.push(sample)
    }
  }

  /** Returns the samples of a metric; none where there is no such metric. */
  samples(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? []
  }

  /** Returns the sample of a metric that has one; undefined where there is none. */
  value(name: string): number | undefined {
    return this.#samples.get(name)?.[0]?.value
  }

  /** Returns the sum of all samples of a metric; undefined where there are none. */
  sum(name: string): number | undefined {
    return this.#samples.get(name)?.reduce((sum, { value }) => sum + value, 0)
  }

  /** Returns the share of the observations of a histogram that are above a bound, from 0 to 1; 0 without observations. */
  shareAbove(name: string, bound: number): number {
    const count = this.value(`${name}_count`) ?? 0
    const bounds = this.samples(`${name}_bucket`).map(({ labels, value }) => ({
      le: Number(labels['le']),
      value,
    }))
    const within = bounds.filter(({ le }) => le >= bound).toSorted((a, b) => a.le - b.le)[0]
    return count === 0 || within === undefined ? 0 : (count - within.value) / count
  }
}

function labelsOf(text: string): Record<string, string> {
  const pairs = text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)
  return Object.fromEntries(
    [...pairs].map(([, key = '', value = '']) => [
      key,
      value.replace(/\\(.)/g, (_, one: string) => (one === 'n' ? '\n' : one)),
    ]),
  )
}
