/**
 * Visits an item and all items that visits return, at most `width` at a time. Rejects with the first failure and
 * starts no visit after it.
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
          // Spreading a long list into one call could exceed the limit of arguments.
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
