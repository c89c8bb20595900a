import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A process of ours that runs a program of ours. Messages are what structured cloning can copy. */
export interface ChildProcess {
  /** Sends it a message; one that has ended hears nothing. */
  send(message: unknown): void
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  /** Resolves when it has ended, to why, with the end of what it wrote to its standard error. */
  readonly ended: Promise<string>
}

/** What is kept of a child's standard error, in characters. */
const KEPT = 2000

/** Runs a program in a process of its own, which ends with this one. `heard` is given each of its messages. */
export function startChild(program: URL, heard: (message: unknown) => void): ChildProcess {
  const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const
  // Flags are this program's own: a debugger's port, or what a test runner needs.
  const child = fork(program, { execArgv: [], serialization: 'advanced', stdio: [...stdio] })
  let complaint = ''
  child
    .stderr!.setEncoding('utf8')
    .on('data', (text: string) => (complaint = (complaint + text).slice(-KEPT)))
  child.on('message', heard)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(`${signal ?? `code ${code}`} ${complaint}`.trimEnd()))
  })
  return {
    // Whoever waits for an answer waits for the end as well.
    send: (message) => void (child.connected && child.send(message as object, () => {})),
    signal: (name) => void child.kill(name),
    ended,
  }
}

/** The process that started this one with `startChild`. This one ends when that one goes. */
export function connectToParent(heard: (message: unknown) => void): { send(message: unknown): void } {
  process.on('message', heard)
  process.once('disconnect', () => process.exit())
  return { send: (message) => void process.send?.(message) }
}

/** An empty folder of one's own, and what removes it with all that is in it. */
export async function temporaryFolder(name: string): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), `${name}-`))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
