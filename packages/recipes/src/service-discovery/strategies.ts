import { UsageError } from '@zabra/client/core'
import type { Instance } from './instance.ts'

/** Chooses one of the instances that are there, sorted by id; `draw` gives a number from 0 up to, without, its argument. */
export type Strategy<T = unknown> = (
  instances: readonly Instance<T>[],
  draw: (end: number) => number,
) => Instance<T> | undefined

/** One after the other. It goes by ids, so that who comes or goes makes nobody's turn come twice. */
function roundRobin<T>(): Strategy<T> {
  let last: string | undefined
  return (instances) => {
    const previous = last
    const next =
      previous === undefined ? instances[0] : (instances.find(({ id }) => id > previous) ?? instances[0])
    last = next?.id
    return next
  }
}

/** Any of them. */
const random =
  <T>(): Strategy<T> =>
  (instances, draw) =>
    instances[draw(instances.length)]

/** The same one as long as it is there, and then another that `inner` chooses. */
function sticky<T>(inner: Strategy<T> = random()): Strategy<T> {
  let mine: string | undefined
  return (instances, draw) => {
    const chosen = instances.find(({ id }) => id === mine) ?? inner(instances, draw)
    mine = chosen?.id
    return chosen
  }
}

/** More often those of more weight. Weights are whole numbers; those below 1 are never chosen. */
function weighted<T>(weightOf: (instance: Instance<T>) => number): Strategy<T> {
  return (instances, draw) => {
    const weights = instances.map((instance) => {
      const weight = weightOf(instance)
      if (!Number.isInteger(weight)) throw new UsageError(`Expected a whole number as weight, got ${weight}`)
      return Math.max(0, weight)
    })
    const sum = weights.reduce((total, weight) => total + weight, 0)
    if (sum === 0) return undefined
    let left = draw(sum)
    return instances[weights.findIndex((weight) => (left -= weight) < 0)]
  }
}

/** Those that need to be told nothing. */
export const simpleStrategies = { roundRobin, random, sticky } as const

export const strategies = { ...simpleStrategies, weighted } as const
