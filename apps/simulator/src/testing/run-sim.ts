import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Runs the command in a process of its own, as `pnpm sim` does. Ends it with SIGTERM when `signal` aborts. */
export function sim(
  args: readonly string[],
  signal?: AbortSignal,
): Promise<{ code: number | null; output: string }> {
  const command = fileURLToPath(new URL('../../bin/sim.mjs', import.meta.url))
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [command, ...args])
    signal?.addEventListener('abort', () => child.kill('SIGTERM'), { once: true })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}
