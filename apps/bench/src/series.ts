import type { PeerKind } from './peers.ts'

/** A value of one server at a moment of a long run. */
export interface Point {
  /** Seconds since the run began. */
  readonly at: number
  readonly value: number
}

/** One quantity of one peer over the time of a run. */
export interface Series {
  readonly name: string
  /** The case that measured it. */
  readonly caseName: string
  readonly unit: string
  readonly kind: PeerKind
  readonly points: readonly Point[]
}

/** The points from the middle of the time on, when what is filled once is full. */
export function secondHalf(points: readonly Point[]): readonly Point[] {
  if (points.length === 0) return []
  const middle = (points[0]!.at + points.at(-1)!.at) / 2
  return points.filter(({ at }) => at >= middle)
}

/** The slope of the straight line that fits best, per second; NaN of fewer than two moments. */
export function slope(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const at = mean((point) => point.at)
  const value = mean((point) => point.value)
  const across = mean((point) => (point.at - at) * (point.value - value))
  return across / mean((point) => (point.at - at) ** 2)
}

/** By how much a value grew along that line, from the first point to the last; negative when it fell. */
export const rise = (points: readonly Point[]): number => slope(points) * (points.at(-1)!.at - points[0]!.at)

/** The same as a share of its mean. */
export function growth(points: readonly Point[]): number {
  const mean = points.reduce((sum, { value }) => sum + value, 0) / points.length
  return rise(points) / mean
}

/** The figures of `mntr` by name, without the prefix that all of them have; what is no number is left out. */
export function mntrFigures(text: string): Map<string, number> {
  const figures = new Map<string, number>()
  for (const [, name, value] of text.matchAll(/^zk_(\S+)\t(\S+)$/gm)) {
    const number = Number(value)
    if (!Number.isNaN(number)) figures.set(name!, number)
  }
  return figures
}
