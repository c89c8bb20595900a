import { aFunction, call, checkArgument, whole, type Rule } from './checks.ts'
import { mapInOrder } from './map-in-order.ts'

const iterable: Rule = [
  'an iterable',
  (value) => {
    const items = Object(value) as Partial<Iterable<unknown> & AsyncIterable<unknown>>
    return call(items[Symbol.iterator]) || call(items[Symbol.asyncIterator])
  },
]
const concurrency: Rule = ['a whole number from 1', whole(1)]

/**
 * Calls `work` for each item, with at most `ahead` calls in flight (default 64), and yields the results in the order of the
 * items. Throws the first failure when its position is reached, and a `UsageError` for wrong arguments.
 */
export async function* mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<R>,
  ahead?: number,
): AsyncGenerator<R, void, undefined> {
  checkArgument('mapConcurrent', 'items', items, iterable)
  checkArgument('mapConcurrent', 'work', work, aFunction)
  if (ahead !== undefined) checkArgument('mapConcurrent', 'ahead', ahead, concurrency)
  yield* mapInOrder(items, work, ahead)
}
