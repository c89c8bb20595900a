/** Default number of calls in flight. */
export const DEFAULT_CONCURRENCY = 64

/**
 * Calls `work` for each item, with at most `ahead` calls in flight, and yields the results in the order of the
 * items. Throws the first failure when its position is reached.
 */
export async function* mapInOrder<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<R>,
  ahead = DEFAULT_CONCURRENCY,
): AsyncGenerator<R, void, undefined> {
  const running: Promise<R>[] = []
  for await (const item of items) {
    const result = Promise.resolve(work(item))
    // The consumer may await this promise only later; until then a rejection must not be reported as unhandled.
    result.catch(() => {})
    running.push(result)
    if (running.length >= ahead) yield await running.shift()!
  }
  for (const result of running) yield await result
}
