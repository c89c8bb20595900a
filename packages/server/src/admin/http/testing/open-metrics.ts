export interface Sample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: number
}

export interface Family {
  readonly type: string
  readonly samples: readonly Sample[]
}

/** What samples of a type may have behind the name of their family. */
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: ['_total'],
  gauge: [''],
  info: ['_info'],
  summary: ['', '_count', '_sum'],
  histogram: ['_bucket', '_count', '_sum'],
}
const NUMBER = /^(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[+-]Inf|NaN)$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"/

/** Returns the families of a text of OpenMetrics 1.0, as far as this server uses it. Throws at the first line that breaks a rule. */
export function parseOpenMetrics(text: string): Map<string, Family> {
  const families = new Map<
    string,
    { type: string; unit?: string; samples: Sample[]; metadata: Set<string> }
  >()
  const lines = text.split('\n')
  if (lines.pop() !== '' || lines.pop() !== '# EOF') throw new Error('The text does not end with # EOF')
  let current = ''
  for (const line of lines) {
    const check = (isRight: boolean, rule: string): void => {
      if (!isRight) throw new Error(`${rule}: ${line}`)
    }
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE|UNIT) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line) ?? []
    if (kind !== undefined) {
      if (name !== current) {
        check(!families.has(name), 'A family comes twice')
        families.set((current = name), { type: 'unknown', samples: [], metadata: new Set() })
      }
      const family = families.get(name)!
      check(family.samples.length === 0, 'Metadata behind a sample')
      check(!family.metadata.has(kind), 'Metadata twice')
      family.metadata.add(kind)
      if (kind === 'TYPE') family.type = rest
      if (kind === 'TYPE') check(SUFFIXES[rest] !== undefined, 'An unknown type')
      if (kind === 'UNIT') check(name.endsWith(`_${rest}`) && family.type !== 'info', 'A wrong unit')
      continue
    }
    const [, sample = '', inBraces, value = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/s.exec(line) ?? []
    const family = families.get(current)
    const suffix = sample.startsWith(current) ? sample.slice(current.length) : undefined
    check(SUFFIXES[family?.type ?? '']?.includes(suffix!) === true, 'A sample of no family')
    check(NUMBER.test(value), 'No number')
    const labels = new Map<string, string>()
    let left = inBraces ?? ''
    while (left !== '') {
      const [whole, label = '', content = ''] = new RegExp(`^${LABEL.source}(?:,(?=.)|$)`).exec(left) ?? []
      check(whole !== undefined && !labels.has(label), 'Wrong labels')
      labels.set(
        label,
        content.replaceAll(/\\(.)/gs, (_, char: string) => (char === 'n' ? '\n' : char)),
      )
      left = left.slice(whole!.length)
    }
    check(
      labels.has('quantile') === (family!.type === 'summary' && suffix === '') &&
        labels.has('le') === (suffix === '_bucket'),
      'A label that belongs to another type',
    )
    const number = Number(value.replace('Inf', 'Infinity'))
    if (family!.type !== 'gauge' && suffix !== '') check(number >= 0, 'A count or sum below 0')
    const bound = labels.get('le') ?? labels.get('quantile') ?? '+Inf'
    check(/^(?:\d+\.\d+|\d(?:\.\d+)?e-\d\d|\+Inf)$/.test(bound), 'A bound that is not canonical')
    family!.samples.push({ name: sample, labels, value: number })
  }
  checkNames(families)
  for (const [name, { type, samples }] of families) {
    checkSeries(name, samples)
    if (type === 'histogram') checkHistogram(name, samples)
  }
  return families
}

/** Throws where samples of two families could have the same name. */
function checkNames(families: ReadonlyMap<string, Family>): void {
  const taken = new Set<string>()
  for (const [name, { type }] of families)
    for (const suffix of new Set(['', '_created', ...SUFFIXES[type]!])) {
      if (suffix === '_created' && (type === 'gauge' || type === 'info')) continue
      if (taken.has(`${name}${suffix}`)) throw new Error(`Two families have ${name}${suffix}`)
      taken.add(`${name}${suffix}`)
    }
}

/** Returns the labels that tell one metric of a family from another. */
const groupOf = ({ labels }: Sample): string =>
  JSON.stringify([...labels].filter(([label]) => label !== 'le' && label !== 'quantile'))

/** Throws at a series that comes twice, and at a metric whose samples are not together. */
function checkSeries(name: string, samples: readonly Sample[]): void {
  const series = new Set(samples.map((sample) => `${sample.name}${JSON.stringify([...sample.labels])}`))
  if (series.size < samples.length) throw new Error(`A series of ${name} comes twice`)
  const runs = samples.map(groupOf).filter((group, i, all) => group !== all[i - 1])
  if (new Set(runs).size < runs.length) throw new Error(`Samples of ${name} are mixed`)
}

function checkHistogram(name: string, samples: readonly Sample[]): void {
  for (const group of new Set(samples.map(groupOf))) {
    const own = samples.filter((sample) => groupOf(sample) === group)
    const buckets = own.filter((sample) => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => Number(labels.get('le')!.replace('+Inf', 'Infinity')))
    const count = own.find((sample) => sample.name === `${name}_count`)?.value
    const isRising = (numbers: readonly number[]) =>
      numbers.every((number, i) => i === 0 || number >= numbers[i - 1]!)
    if (
      bounds.at(-1) !== Infinity ||
      !isRising(bounds) ||
      !isRising(buckets.map(({ value }) => value)) ||
      buckets.at(-1)!.value !== count
    )
      throw new Error(`The buckets of ${name}${group} are wrong`)
  }
}
