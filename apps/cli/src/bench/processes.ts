import { fork, type ChildProcess } from 'node:child_process'
import type { Control, Plan } from './plan.ts'
import type { PartResult } from './result.ts'

/** Messages from a worker to the coordinator. */
type FromWorker =
  | { readonly kind: 'barrier'; readonly value: number }
  | { readonly kind: 'progress'; readonly operations: number }
  | { readonly kind: 'note'; readonly line: string }
  | { readonly kind: 'done'; readonly parts: readonly PartResult[] }
  | { readonly kind: 'failed'; readonly reason: string }

const PROGRESS_MS = 200

/** Runs the part of a load in a process that `runCoordinator` has started. */
export async function runWorker(
  run: (index: number, plan: Plan, control: Control) => Promise<PartResult[]>,
  index: number,
  signal: AbortSignal,
): Promise<void> {
  const send = (message: FromWorker): Promise<void> =>
    new Promise((resolve) => process.send!(message, () => resolve()))
  let releaseBarrier: (values: readonly number[]) => void = () => {}
  // Rejects when the barrier can no longer be released.
  const lost = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    process.once('disconnect', () => reject(new Error('The coordinator of the load has exited')))
  })
  lost.catch(() => {})
  const plan = await new Promise<Plan>((resolve) =>
    process.on('message', (message: Plan | readonly number[]) =>
      'mode' in message ? resolve(message) : releaseBarrier(message),
    ),
  )
  let unreported = 0
  const timer = setInterval(() => {
    if (unreported > 0) void send({ kind: 'progress', operations: unreported })
    unreported = 0
  }, PROGRESS_MS)
  const control: Control = {
    signal,
    progress: (operations) => (unreported += operations),
    note: (line) => void send({ kind: 'note', line }),
    barrier: async (value) => {
      signal.throwIfAborted()
      const all = new Promise<readonly number[]>((resolve) => (releaseBarrier = resolve))
      void send({ kind: 'barrier', value })
      return await Promise.race([all, lost])
    },
  }
  try {
    await send({ kind: 'done', parts: await run(index, plan, control) })
  } catch (error) {
    await send({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) })
  } finally {
    clearInterval(timer)
    if (process.connected) process.disconnect()
  }
}

/**
 * Runs a plan in several processes that start at the same time. `args` returns the command line of a worker. On the first
 * failure terminates the other workers and rejects.
 */
export async function runCoordinator(
  plan: Plan,
  processes: number,
  args: (index: number) => readonly string[],
  { progress, note, signal }: Omit<Control, 'barrier'>,
): Promise<(readonly PartResult[])[]> {
  const children = Array.from({ length: processes }, (_, index) =>
    fork(process.argv[1]!, args(index), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }),
  )
  const terminate = (): void => children.forEach((child) => child.kill('SIGTERM'))
  signal.addEventListener('abort', terminate, { once: true })
  let values: number[] = []
  let arrived = 0
  try {
    return await Promise.all(
      children.map((child, index) =>
        followWorker(child, plan, {
          progress,
          note,
          barrier: (value) => {
            values[index] = value
            if (++arrived < processes) return
            for (const each of children) each.send(values)
            values = []
            arrived = 0
          },
        }),
      ),
    )
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', terminate)
    terminate()
  }
}

function followWorker(
  child: ChildProcess,
  plan: Plan,
  handlers: { barrier(value: number): void; progress(operations: number): void; note(line: string): void },
): Promise<readonly PartResult[]> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) =>
      reject(new Error(`A worker process exited with ${signal ?? code} before it was done`)),
    )
    child.on('message', (message: FromWorker) => {
      if (message.kind === 'barrier') handlers.barrier(message.value)
      else if (message.kind === 'progress') handlers.progress(message.operations)
      else if (message.kind === 'note') handlers.note(message.line)
      else if (message.kind === 'done') resolve(message.parts)
      else reject(new Error(message.reason))
    })
    child.send(plan)
  })
}
