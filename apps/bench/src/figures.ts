import type { PeerKind } from './peers.ts'

/** One measured quantity of both peers, with a value per round. */
export interface Figure {
  readonly name: string
  /** The case that measured it. */
  readonly caseName: string
  readonly unit: string
  readonly better: 'higher' | 'lower'
  /** Target for the ratio of Zabra's value to Apache's: a minimum when higher is better, else a maximum. */
  readonly aim?: number
  /** Upper bound for Zabra's value, independent of Apache's. */
  readonly limit?: number
  readonly values: Readonly<Record<PeerKind, number[]>>
}

/** Records a value of the peer that is being measured. */
export type Note = (figure: Omit<Figure, 'values' | 'caseName'>, value: number) => void

/** Returns the median, or NaN for an empty list. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Returns half of the range as a share of the median: the noise of the rounds. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / 2 / median(values)
}

/** Returns the ratio of the medians, Zabra to Apache; NaN when one of them is missing. */
export const ratio = ({ values }: Figure): number => median(values.zabra) / median(values.apache)

/** Returns whether the limit is kept or the aim reached, or undefined without either or without values to compare. */
export function isReached(figure: Figure): boolean | undefined {
  if (figure.limit !== undefined && figure.values.zabra.length > 0)
    return Math.max(...figure.values.zabra) <= figure.limit
  const reached = ratio(figure)
  if (figure.aim === undefined || Number.isNaN(reached)) return undefined
  return figure.better === 'higher' ? reached >= figure.aim : reached <= figure.aim
}

/** Formats a value for the report: three significant digits, or thousands separators. */
export const formatValue = (value: number): string => {
  if (Number.isNaN(value)) return ''
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
}

/** A spread above this makes a figure noisy. */
export const NOISY = 0.15

export const isNoisy = ({ values }: Figure): boolean =>
  [values.zabra, values.apache].some((list) => list.length > 1 && spread(list) > NOISY)
