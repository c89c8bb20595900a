import type { PeerKind } from './peers.ts'

/** A sample of one quantity in a long run. */
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

/** Returns the points of the second half of the time, after caches and pools have filled. */
export function secondHalf(points: readonly Point[]): readonly Point[] {
  if (points.length === 0) return []
  const middle = (points[0]!.at + points.at(-1)!.at) / 2
  return points.filter(({ at }) => at >= middle)
}

/** Returns the slope of the least-squares line, per second; NaN for fewer than two points in time. */
export function slope(points: readonly Point[]): number {
  const mean = (of: (point: Point) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const at = mean((point) => point.at)
  const value = mean((point) => point.value)
  const across = mean((point) => (point.at - at) * (point.value - value))
  return across / mean((point) => (point.at - at) ** 2)
}

/** Returns the growth along the least-squares line from the first point to the last; negative when the value fell. */
export const rise = (points: readonly Point[]): number => slope(points) * (points.at(-1)!.at - points[0]!.at)

/** Returns the growth as a share of the mean. */
export function growth(points: readonly Point[]): number {
  const mean = points.reduce((sum, { value }) => sum + value, 0) / points.length
  return rise(points) / mean
}

/** Parses the numeric figures of `mntr` by name, without the prefix `zk_`. */
export function mntrFigures(text: string): Map<string, number> {
  const figures = new Map<string, number>()
  for (const [, name, value] of text.matchAll(/^zk_(\S+)\t(\S+)$/gm)) {
    const number = Number(value)
    if (!Number.isNaN(number)) figures.set(name!, number)
  }
  return figures
}
