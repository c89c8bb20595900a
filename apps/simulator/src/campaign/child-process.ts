/**
 * Does a part of a campaign for the process that forked this one, and hands it what came of it. Whoever asked may be killed: at the
 * next end of a seed nobody plays on.
 */
export async function answer(work: () => Promise<unknown>): Promise<void> {
  const outlived = (): never => process.exit(1)
  process.once('disconnect', outlived)
  const outcome = await work()
  process.off('disconnect', outlived)
  process.send?.(outcome, () => process.disconnect())
}
