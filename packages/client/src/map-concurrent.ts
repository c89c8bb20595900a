/** Calls that are under way at once unless somebody says otherwise. */
export const DEFAULT_CONCURRENCY = 64

/**
 * Calls `work` for each item, at most `ahead` at once, and yields the results in the order of the items. The first
 * failure ends it when its turn comes.
 */
export async function* mapConcurrent<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<R>,
  ahead = DEFAULT_CONCURRENCY,
): AsyncGenerator<R, void, undefined> {
  const running: Promise<R>[] = []
  for await (const item of items) {
    const result = work(item)
    // Whoever awaits it later hears of its failure; until then nobody does, and that is no crash.
    result.catch(() => {})
    running.push(result)
    if (running.length >= ahead) yield await running.shift()!
  }
  for (const result of running) yield await result
}
