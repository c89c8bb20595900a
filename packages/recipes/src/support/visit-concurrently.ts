/**
 * Visits an item and all that a visit leads to, so many at a time. Rejects with the first failure, and begins no visit
 * after it.
 */
export function visitConcurrently<T>(
  first: T,
  width: number,
  visit: (item: T) => Promise<readonly T[]>,
): Promise<void> {
  const waiting = [first]
  let running = 0
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      waiting.length = 0
      running = Infinity
      reject(error as Error)
    }
    const goOn = (): void => {
      while (running < width && waiting.length > 0) {
        running++
        visit(waiting.pop()!).then((more) => {
          // A list can be too long for the arguments of one call.
          for (const item of more) waiting.push(item)
          running--
          goOn()
        }, fail)
      }
      if (running === 0) resolve()
    }
    goOn()
  })
}
