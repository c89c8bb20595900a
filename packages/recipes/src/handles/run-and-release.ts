/** Runs the body, then the release. Rejects with the only error, or with an `AggregateError` of both. */
export async function runAndRelease<T>(body: () => Promise<T>, release: () => Promise<void>): Promise<T> {
  let result: T
  try {
    result = await body()
  } catch (error) {
    try {
      await release()
    } catch (second) {
      throw new AggregateError([error, second], 'Both the body and the release of its lock failed', {
        cause: error,
      })
    }
    throw error
  }
  await release()
  return result
}
