import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { runChild } from './child.ts'
import type { Io } from './io.ts'

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return 'State: Z'
  }
}

/** Whether a process runs. A zombie, whose parent has not asked for its end, does not. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return !/^State:\s+Z/m.test(readStatus(pid))
}

it.skipIf(process.platform !== 'linux')(
  'a command that is stopped ends with the processes that it has started, which ignore SIGTERM',
  async () => {
    const stdout = new PassThrough()
    const io = {
      stdin: new PassThrough(),
      stdout,
      stderr: new PassThrough(),
      environment: { PATH: process.env['PATH'] },
      signal: new AbortController().signal,
    } as unknown as Io
    const stop = new AbortController()
    const script = `sh -c 'trap "" TERM; echo $$; exec >/dev/null 2>&1; while :; do sleep 0.05; done' & wait`
    const ended = runChild(io, ['sh', '-c', script], { stop: stop.signal, graceMs: 50 })
    const [chunk] = (await once(stdout, 'data')) as [Buffer]
    const pid = Number(chunk.toString())
    expect(isRunning(pid)).toBe(true)
    stop.abort()
    expect(await ended).toBeGreaterThan(128)
    while (isRunning(pid)) await new Promise((resolve) => setImmediate(resolve))
  },
)
