/**
 * Runs an action that uses simulated worlds, and calls `report` for each rejection without a handler, which would end a real process.
 * Resolves or rejects as the action does, once all of them are reported.
 */
export async function withUnhandledRejections<T>(
  report: (what: string) => void,
  run: () => Promise<T>,
): Promise<T> {
  const record = (reason: unknown): void =>
    report(reason instanceof Error ? (reason.stack ?? reason.message) : String(reason))
  process.on('unhandledRejection', record)
  try {
    return await run()
  } finally {
    // Node reports them at the end of a turn, and a turn has thousands of events of a world.
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', record)
  }
}
