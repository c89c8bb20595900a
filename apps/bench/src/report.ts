import { isNoisy, isReached, median, ratio, formatValue, spread, type Figure } from './figures.ts'
import type { Machine } from './machine.ts'
import type { Series } from './series.ts'
import { timeline } from './timeline.ts'

/** The results of a run, as written to bench.json. */
export interface Run {
  readonly date: string
  readonly machine: Machine
  readonly versions: Readonly<Record<string, string>>
  readonly options: Readonly<Record<string, unknown>>
  readonly rounds: number
  /** Reasons to doubt the figures, such as a busy machine. */
  readonly warnings: readonly string[]
  readonly figures: readonly Figure[]
  /** Samples over the time of long runs. */
  readonly series: readonly Series[]
}

const targetState = (figure: Figure): string => {
  const reached = isReached(figure)
  return reached === undefined ? '' : reached ? 'reached' : 'missed'
}

const aimText = ({ aim, limit, better, unit }: Figure): string =>
  limit !== undefined
    ? `Zabra ≤ ${limit} ${unit}`
    : aim === undefined
      ? ''
      : `${better === 'higher' ? '≥' : '≤'} ${aim.toPrecision(2)}`

const spreads = ({ values }: Figure): string =>
  [values.zabra, values.apache]
    .filter((list) => list.length > 1)
    .map((list) => `±${Math.round(spread(list) * 100)} %`)
    .join(', ')

/** Formats the figures as a Markdown table. */
export function markdown({ figures }: Run): string {
  const head = ['figure', 'Zabra', 'Apache ZooKeeper', 'ratio', 'aim', 'spread']
  const lines = figures.map((figure) => {
    const { name, unit, values } = figure
    const share = ratio(figure)
    const cells = [median(values.zabra), median(values.apache)].map(formatValue)
    const noted = Number.isNaN(share) ? '' : share.toFixed(2)
    return `| ${name} (${unit}) | ${cells.join(' | ')} | ${noted} | ${aimText(figure)} ${targetState(figure)} | ${spreads(figure)} |`
  })
  return [`| ${head.join(' | ')} |`, '| --- | ---: | ---: | ---: | --- | --- |', ...lines].join('\n')
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const BAR = 320
const ROW = 22

/** Draws both medians as bars on one scale, with a tick for each round. */
function plot({ values }: Figure): string {
  const most = Math.max(...values.zabra, ...values.apache)
  const row = (list: readonly number[], at: number, colour: string): string => {
    if (list.length === 0) return ''
    const x = (value: number): number => Math.round((value / most) * BAR)
    const ticks = list.map((value) => `<line x1="${x(value)}" x2="${x(value)}" y1="${at}" y2="${at + 14}"/>`)
    return `<rect x="0" y="${at}" width="${x(median(list))}" height="14" fill="${colour}"/>${ticks.join('')}`
  }
  const bars = row(values.zabra, 4, '#2b7a4b') + row(values.apache, 4 + ROW, '#b9c4cc')
  return `<svg width="${BAR + 2}" height="${2 * ROW + 4}" role="img" stroke="#0006" stroke-width="0">${bars.replaceAll('<line', '<line stroke-width="1"')}</svg>`
}

/** Renders the run as a self-contained HTML page. */
export function html(run: Run): string {
  const { date, machine, versions, rounds, warnings, figures, options, series } = run
  const groups = [...new Set(figures.map(({ caseName }) => caseName))]
  const facts: Record<string, unknown> = { ...machine, ...versions, rounds, ...options }
  const list = Object.entries(facts).map(
    ([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(String(value))}</dd>`,
  )
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Zabra beside Apache ZooKeeper, ${date}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1c2429}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #e3e8eb;vertical-align:middle}
td.n{text-align:right;font-variant-numeric:tabular-nums}dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;color:#55636b}
dd{margin:0}.reached{color:#2b7a4b}.missed{color:#a33}.noisy{color:#a60}.key span{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em}
</style>
<h1>Zabra beside Apache ZooKeeper</h1>
<p>${date}. Both on this machine in one run, interleaved, on fresh data, with durable writes on both sides. Bars are medians, lines in them the rounds.
Absolute figures depend on the machine; read the ratio, Zabra divided by Apache.</p>
<p class="key"><span style="background:#2b7a4b"></span>Zabra<span style="background:#b9c4cc"></span>Apache ZooKeeper</p>
${warnings.length === 0 ? '' : `<p class="noisy"><b>Noisy:</b> ${escaped(warnings.join('; '))}</p>`}
<dl>${list.join('')}</dl>
${groups
  .map((group) =>
    section(
      group,
      figures.filter(({ caseName }) => caseName === group),
      series.filter(({ caseName }) => caseName === group),
    ),
  )
  .join('\n')}
</html>
`
}

function section(name: string, figures: readonly Figure[], series: readonly Series[]): string {
  const rows = figures.map((figure) => {
    const { values, unit } = figure
    const share = ratio(figure)
    const mark = targetState(figure)
    return `<tr><td>${escaped(figure.name)}${isNoisy(figure) ? ' <span class="noisy">noisy</span>' : ''}</td><td>${plot(figure)}</td>
<td class="n">${formatValue(median(values.zabra))}</td><td class="n">${formatValue(median(values.apache))}</td><td>${escaped(unit)}</td>
<td class="n">${Number.isNaN(share) ? '' : share.toFixed(2)}</td><td class="${mark}">${aimText(figure)} ${mark}</td></tr>`
  })
  return `<h2>${escaped(name)}</h2><table><tr><th>figure</th><th></th><th>Zabra</th><th>Apache</th><th></th><th>ratio</th><th>aim</th></tr>${rows.join('\n')}</table>${timelines(series)}`
}

function timelines(series: readonly Series[]): string {
  const names = [...new Set(series.map(({ name }) => name))]
  return names
    .map((name) => {
      const own = series.filter((one) => one.name === name)
      return `<h3>${escaped(name)} (${escaped(own[0]!.unit)})</h3>${timeline(own, formatValue)}`
    })
    .join('\n')
}
