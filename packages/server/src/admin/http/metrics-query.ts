import { OPEN_METRICS_WRITER, TEXT_WRITERS, type MetricsWriter } from './metrics-writer.ts'
import type { ServerSettings } from '../../settings/index.ts'

/** Characters of a wrong parameter that an answer repeats. */
const MAX_REPEATED = 40

/** Returns the writer of the form that a query asks for, or what is wrong with it. The header `Accept` has no say: names would change with it. */
export function writerFor(query: URLSearchParams, { metricsNames }: ServerSettings): MetricsWriter | string {
  const format = query.get('format')
  if (format === null) return TEXT_WRITERS[metricsNames]
  if (format === 'openmetrics') return OPEN_METRICS_WRITER
  const given = JSON.stringify(format.slice(0, MAX_REPEATED))
  return `Expected format=openmetrics, but got ${given}. Leave format out for the text format of Prometheus.`
}

/** Yields the families of a text of metrics that have one of the names, or a sample that has. */
export function* familiesNamed(text: string, names: ReadonlySet<string>): Generator<string> {
  const asked = [...names]
  // Not the flag `m`: values of labels may contain other separators of lines.
  for (const family of text.split(/(?<=\n)(?=# (?:HELP|EOF))/)) {
    const [, own] = /^# HELP (\S+)/.exec(family) ?? []
    const prefix = `${own}_`
    const isAsked = (name: string): boolean =>
      name === own ||
      (name.startsWith(prefix) && (family.includes(`\n${name} `) || family.includes(`\n${name}{`)))
    yield own === undefined || asked.some(isAsked) ? family : ''
  }
}
