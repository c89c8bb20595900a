import { fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A child process that runs one of our programs. Messages are copied by the structured clone algorithm. */
export interface ChildProcess {
  /** Sends a message. Does nothing when the process has ended. */
  send(message: unknown): void
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void
  /** Resolves when the process has ended, to the reason, with the last output on its standard error. */
  readonly ended: Promise<string>
}

/** Characters of a child's standard error that are kept. */
const STDERR_CHARS = 2000

/** Runs a program in a child process, which ends with this process. `onMessage` receives its messages. */
export function startChild(program: URL, onMessage: (message: unknown) => void): ChildProcess {
  const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const
  // Without the flags of this process, such as the port of a debugger.
  const child = fork(program, { execArgv: [], serialization: 'advanced', stdio: [...stdio] })
  let errorOutput = ''
  child
    .stderr!.setEncoding('utf8')
    .on('data', (text: string) => (errorOutput = (errorOutput + text).slice(-STDERR_CHARS)))
  child.on('message', onMessage)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(`${signal ?? `code ${code}`} ${errorOutput}`.trimEnd()))
  })
  return {
    // The callback ignores errors: a caller that waits for a reply waits for `ended` too.
    send: (message) => void (child.connected && child.send(message as object, () => {})),
    signal: (name) => void child.kill(name),
    ended,
  }
}

/** Connects to the process that started this one with `startChild`. This process exits when the parent ends. */
export function connectToParent(onMessage: (message: unknown) => void): { send(message: unknown): void } {
  process.on('message', onMessage)
  process.once('disconnect', () => process.exit())
  return { send: (message) => void process.send?.(message) }
}

/** Creates an empty temporary folder. `remove` deletes it with its contents. */
export async function temporaryFolder(name: string): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), `${name}-`))
  return { path, remove: () => rm(path, { recursive: true, force: true }) }
}
