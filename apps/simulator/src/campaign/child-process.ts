/**
 * Runs one part of a campaign for the parent process and sends it the result. Exits when the parent is killed, after
 * the current seed.
 */
export async function runForParent(work: () => Promise<unknown>): Promise<void> {
  const outlived = (): never => process.exit(1)
  process.once('disconnect', outlived)
  const outcome = await work()
  process.off('disconnect', outlived)
  process.send?.(outcome, () => process.disconnect())
}
