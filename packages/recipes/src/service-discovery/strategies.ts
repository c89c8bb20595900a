import { UsageError } from '@zabra/client/core'
import { aFunction, checkArgument } from '../support/checks.ts'
import type { Instance } from './instance.ts'

/** Chooses one of the available instances, sorted by id; `draw(n)` returns a random integer in [0, n). */
export type Strategy<T = unknown> = (
  instances: readonly Instance<T>[],
  draw: (end: number) => number,
) => Instance<T> | undefined

/** Chooses one after the other, ordered by id, so that joins and leaves do not repeat an instance. */
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

/** Chooses at random. */
const random =
  <T>(): Strategy<T> =>
  (instances, draw) =>
    instances[draw(instances.length)]

/** Keeps the same instance while it exists, then takes another that `inner` chooses. */
function sticky<T>(inner: Strategy<T> = random()): Strategy<T> {
  checkArgument('sticky', 'a strategy', inner, aFunction)
  let mine: string | undefined
  return (instances, draw) => {
    const chosen = instances.find(({ id }) => id === mine) ?? inner(instances, draw)
    mine = chosen?.id
    return chosen
  }
}

/** Chooses in proportion to weights, which are integers; an instance with a weight below 1 is never chosen. */
function weighted<T>(weightOf: (instance: Instance<T>) => number): Strategy<T> {
  checkArgument('weighted', 'weightOf', weightOf, aFunction)
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

/** Strategies without parameters. */
export const simpleStrategies = { roundRobin, random, sticky } as const

export const strategies = { ...simpleStrategies, weighted } as const
