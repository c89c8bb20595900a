import { builtinModule } from './builtin-module.ts'

/** How long an end waits for calls for files, in milliseconds, and how often it looks. */
const CALLS_MS = 1000
const LOOK_MS = 20

const BY_SIGNAL = 'Ended by a signal: a call for a file did not return.\n'

/**
 * Ends the process of a program. `process.exit` waits for the calls for files that are in flight, and one for a disk that hangs, such as a
 * mounted folder whose machine is away, does not return: a signal ends the process then. The code 0 becomes that of SIGTERM, which service
 * managers take for a stop as asked, any other code that of SIGKILL.
 */
export async function endProcess(program: string, code: number): Promise<never> {
  for (let waitedMs = 0; hasCallsInFlight(); waitedMs += LOOK_MS) {
    if (waitedMs >= CALLS_MS) {
      process.stderr.write(`${program}: ${BY_SIGNAL}`)
      process.removeAllListeners('SIGTERM')
      process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL')
      // The first process of a container gets no such signals, only those from outside.
      break
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  process.exit(code)
}

/**
 * Ends the process in this turn of the event loop: its state is unknown, and nothing more of it may run. `process.exit` would wait for a call
 * for a file that does not return, so another process then ends this one by SIGKILL.
 */
export function exitAtOnce(program: string, code: number): never {
  if (hasCallsInFlight()) startKiller(program)
  process.exit(code)
}

/** Starts a process that kills this one in a second, and ends when this one does. */
function startKiller(program: string): void {
  const said = JSON.stringify(`${program}: ${BY_SIGNAL}`)
  const kill = `process.stderr.write(${said}); process.kill(${process.pid}, 'SIGKILL')`
  const script = `setTimeout(() => { ${kill} }, ${CALLS_MS}); process.stdin.resume().on('close', () => process.exit())`
  try {
    // Without the options of this process, such as the port of a debugger, and in a group of its own: a further Ctrl-C would end it.
    builtinModule('node:child_process').spawn(process.execPath, ['-e', script], {
      env: {},
      stdio: ['pipe', 'ignore', 'inherit'],
      detached: true,
      windowsHide: true,
    })
  } catch {
    // No process may be started here.
  }
}

const hasCallsInFlight = (): boolean =>
  process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq') || name === 'CloseReq')
