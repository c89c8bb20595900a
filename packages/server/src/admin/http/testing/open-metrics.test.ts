import { expect, it } from 'vitest'
import { parseOpenMetrics } from './open-metrics.ts'

const text = `# TYPE a counter
# HELP a a
a_total{key="\\"\\\\\\n"} 5.0
# TYPE b_seconds histogram
# UNIT b_seconds seconds
b_seconds_bucket{le="1.0"} 1
b_seconds_bucket{le="+Inf"} 2
b_seconds_sum 3.5
b_seconds_count 2
# TYPE c summary
c{quantile="0.5"} NaN
c_count 0
# EOF
`

it('the parser of OpenMetrics returns families with their samples', () => {
  const families = parseOpenMetrics(text)
  expect([...families].map(([name, { type, samples }]) => [name, type, samples.length])).toEqual([
    ['a', 'counter', 1],
    ['b_seconds', 'histogram', 4],
    ['c', 'summary', 2],
  ])
  expect(families.get('a')!.samples[0]!.labels.get('key')).toBe('"\\\n')
})

it.each([
  ['no end', '# EOF\n', '', 'end with # EOF'],
  ['two ends', '# EOF\n', '# EOF\n# EOF\n', 'of no family'],
  ['text behind the end', '# EOF\n', '# EOF\na_total 1\n', 'end with # EOF'],
  ['a counter without _total', 'a_total{', 'a{', 'of no family'],
  ['_total in the metadata of a counter', /\ba /g, 'a_total ', 'of no family'],
  ['a sample before its metadata', '# TYPE a', 'c_count 0\n# TYPE a', 'of no family'],
  ['metadata behind samples', 'c_count 0', 'c_count 0\n# HELP c c', 'behind a sample'],
  ['metadata that come twice', '# HELP a a', '# HELP a a\n# HELP a a', 'Metadata twice'],
  ['a family that comes twice', '# EOF', '# TYPE a counter\n# EOF', 'family comes twice'],
  ['samples of another family', 'c_count 0', 'a_total 1', 'of no family'],
  ['a comma behind the last label', 'le="1.0"', 'le="1.0",', 'Wrong labels'],
  ['a label without escapes', '\\"', '"', 'Wrong labels'],
  ['a bound that is not canonical', 'le="1.0"', 'le="1"', 'not canonical'],
  ['a quantile of a histogram', 'le="1.0"', 'le="1.0",quantile="0.5"', 'another type'],
  ['a unit that is no suffix', '# UNIT b_seconds seconds', '# UNIT b_seconds bytes', 'wrong unit'],
  ['a histogram without its last bucket', 'b_seconds_bucket{le="+Inf"} 2\n', '', 'buckets'],
  ['a count that is not that of the last bucket', 'b_seconds_count 2', 'b_seconds_count 3', 'buckets'],
  ['a bucket with less than the one before', '"1.0"} 1', '"1.0"} 3', 'buckets'],
  ['a counter that is no number', '} 5.0', '} NaN', 'below 0'],
  ['an infinity of JavaScript', '3.5', 'Infinity', 'No number'],
  ['a gauge with the name of a sample', '# EOF', '# TYPE c_count gauge\nc_count 1\n# EOF', 'Two families'],
  ['a series that comes twice', 'c_count 0', 'c_count 0\nc_count 0', 'series of c'],
  ['samples of a metric that are not together', 'c_count 0', 'c_count{k="1"} 0\nc_sum 0', 'are mixed'],
])('the parser of OpenMetrics refuses %s', (_, right, wrong, rule) => {
  const broken = text.replace(right, wrong)
  expect(broken).not.toBe(text)
  expect(() => parseOpenMetrics(broken)).toThrow(rule)
})
