import type { Series } from './series.ts'

const WIDTH = 640
const HEIGHT = 120
const LEFT = 70

const colours = { zabra: '#2b7a4b', apache: '#8a98a3' } as const

/** Draws series over time on one scale that begins at zero, one line for each run of a peer. */
export function timeline(series: readonly Series[], shown: (value: number) => string): string {
  const points = series.flatMap((one) => one.points)
  const lastAt = Math.max(1, ...points.map(({ at }) => at))
  const most = Math.max(Number.MIN_VALUE, ...points.map(({ value }) => value))
  const x = (at: number): string => (LEFT + (at / lastAt) * WIDTH).toFixed(1)
  const y = (value: number): string => (4 + HEIGHT - (value / most) * HEIGHT).toFixed(1)
  const lines = series.map(({ kind, points: own }) => {
    const path = own.map(({ at, value }) => `${x(at)},${y(value)}`).join(' ')
    return `<polyline fill="none" stroke="${colours[kind]}" stroke-width="1.5" points="${path}"/>`
  })
  const axis = `<path d="M${LEFT} 4V${HEIGHT + 4}H${LEFT + WIDTH}" fill="none" stroke="#b9c4cc"/>`
  const label = (text: string, at: number): string =>
    `<text x="${LEFT - 6}" y="${at}" text-anchor="end">${text}</text>`
  const labels = label(shown(most), 14) + label('0', HEIGHT + 4)
  const end = `<text x="${LEFT + WIDTH}" y="${HEIGHT + 20}" text-anchor="end">${shown(lastAt / 60)} minutes</text>`
  return `<svg width="${LEFT + WIDTH + 4}" height="${HEIGHT + 26}" role="img" font-size="12" fill="#55636b">${axis}${lines.join('')}${labels}${end}</svg>`
}
