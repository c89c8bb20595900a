import { fork, type ChildProcess } from 'node:child_process'
import type { Control, Plan } from './plan.ts'
import type { PartResult } from './result.ts'

/** What the processes of a load tell each other. */
type FromWorker =
  | { readonly kind: 'meet'; readonly brought: number }
  | { readonly kind: 'progress'; readonly operations: number }
  | { readonly kind: 'note'; readonly line: string }
  | { readonly kind: 'done'; readonly parts: readonly PartResult[] }
  | { readonly kind: 'failed'; readonly reason: string }

const PROGRESS_MS = 200

/** The other end of `lead`, in a process that it has started. */
export async function runWorker(
  run: (index: number, plan: Plan, control: Control) => Promise<PartResult[]>,
  index: number,
  signal: AbortSignal,
): Promise<void> {
  const tell = (message: FromWorker): Promise<void> =>
    new Promise((resolve) => process.send!(message, () => resolve()))
  let met: (brought: readonly number[]) => void = () => {}
  // Rejects when nobody comes to meet this process any more.
  const alone = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    process.once('disconnect', () => reject(new Error('The process that leads the load is gone')))
  })
  alone.catch(() => {})
  const plan = await new Promise<Plan>((resolve) =>
    process.on('message', (message: Plan | readonly number[]) =>
      'mode' in message ? resolve(message) : met(message),
    ),
  )
  let unsaid = 0
  const timer = setInterval(() => {
    if (unsaid > 0) void tell({ kind: 'progress', operations: unsaid })
    unsaid = 0
  }, PROGRESS_MS)
  const control: Control = {
    signal,
    progress: (operations) => (unsaid += operations),
    note: (line) => void tell({ kind: 'note', line }),
    barrier: async (brought) => {
      signal.throwIfAborted()
      const all = new Promise<readonly number[]>((resolve) => (met = resolve))
      void tell({ kind: 'meet', brought })
      return await Promise.race([all, alone])
    },
  }
  try {
    await tell({ kind: 'done', parts: await run(index, plan, control) })
  } catch (error) {
    await tell({ kind: 'failed', reason: error instanceof Error ? error.message : String(error) })
  } finally {
    clearInterval(timer)
    if (process.connected) process.disconnect()
  }
}

/**
 * Runs a plan in several processes, all of which begin at the same moment. `args` make this program a worker. Rejects
 * with the first failure, after the others were ended.
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
  const end = (): void => children.forEach((child) => child.kill('SIGTERM'))
  signal.addEventListener('abort', end, { once: true })
  let met: number[] = []
  let here = 0
  try {
    return await Promise.all(
      children.map((child, index) =>
        followWorker(child, plan, {
          progress,
          note,
          meet: (brought) => {
            met[index] = brought
            if (++here < processes) return
            for (const each of children) each.send(met)
            met = []
            here = 0
          },
        }),
      ),
    )
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', end)
    end()
  }
}

function followWorker(
  child: ChildProcess,
  plan: Plan,
  heard: { meet(brought: number): void; progress(operations: number): void; note(line: string): void },
): Promise<readonly PartResult[]> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) =>
      reject(new Error(`A process of the load ended with ${signal ?? code} before it was done`)),
    )
    child.on('message', (message: FromWorker) => {
      if (message.kind === 'meet') heard.meet(message.brought)
      else if (message.kind === 'progress') heard.progress(message.operations)
      else if (message.kind === 'note') heard.note(message.line)
      else if (message.kind === 'done') resolve(message.parts)
      else reject(new Error(message.reason))
    })
    child.send(plan)
  })
}
