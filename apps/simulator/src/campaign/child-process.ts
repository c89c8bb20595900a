import { fork } from 'node:child_process'

/** Runs a part in a child process, which reports its result in one message. Rejects when the child ends without one. */
export function runInChild<Outcome>(args: readonly string[], what: string): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = fork(process.argv[1]!, args)
    let outcome: Outcome | undefined
    child.on('message', (message) => (outcome = message as Outcome))
    child.on('error', reject)
    child.on('exit', (code, signal) =>
      outcome === undefined
        ? reject(new Error(`Expected an outcome of ${what}, but their process ended with ${signal ?? code}`))
        : resolve(outcome),
    )
  })
}

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
