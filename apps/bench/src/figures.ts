import type { PeerKind } from './peers.ts'

/** One measured quantity of both peers, a value for each round. */
export interface Figure {
  readonly name: string
  /** The case that measured it. */
  readonly caseName: string
  readonly unit: string
  readonly better: 'higher' | 'lower'
  /** What is to be reached: ours divided by the peer's, at least or at most, as `better` has it. */
  readonly aim?: number
  /** What ours is to stay at or below, whatever the peer does. */
  readonly limit?: number
  readonly values: Readonly<Record<PeerKind, number[]>>
}

/** Takes a value of the peer that is being measured. */
export type Note = (figure: Omit<Figure, 'values' | 'caseName'>, value: number) => void

/** The middle value; of an even number of values the mean of the two in the middle. NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Half of the distance from the smallest to the largest value, as a share of the median: how noisy the runs were. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / 2 / median(values)
}

/** Ours divided by the peer's; NaN when one of them is missing. */
export const ratio = ({ values }: Figure): number => median(values.zabra) / median(values.apache)

/** Whether the aim is reached; undefined when there is none, or nothing to compare with. */
export function isReached(figure: Figure): boolean | undefined {
  if (figure.limit !== undefined && figure.values.zabra.length > 0)
    return Math.max(...figure.values.zabra) <= figure.limit
  const reached = ratio(figure)
  if (figure.aim === undefined || Number.isNaN(reached)) return undefined
  return figure.better === 'higher' ? reached >= figure.aim : reached <= figure.aim
}

/** A value as a person reads it. */
export const formatValue = (value: number): string => {
  if (Number.isNaN(value)) return ''
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}

/** Figures whose values of one peer lie more than this apart are called noisy. */
export const NOISY = 0.15

export const isNoisy = ({ values }: Figure): boolean =>
  [values.zabra, values.apache].some((list) => list.length > 1 && spread(list) > NOISY)
