import { setTimeout } from 'node:timers/promises'

/** How long an end waits for calls for files, in milliseconds, and how often it looks. */
const CALLS_MS = 1000
const LOOK_MS = 20

/**
 * Ends the process. `process.exit` waits for the calls for files that are in flight, and one for a disk that hangs, such as a mounted folder
 * whose machine is away, does not return: a signal ends the process then. The code 0 becomes that of SIGTERM, which service managers take for
 * a stop as asked, any other code that of SIGKILL.
 */
export async function endProcess(code: number): Promise<never> {
  for (let waitedMs = 0; hasCallsInFlight(); waitedMs += LOOK_MS) {
    if (waitedMs >= CALLS_MS) {
      process.stderr.write('zabra-server: Ended by a signal: a call for a file did not return.\n')
      process.removeAllListeners('SIGTERM')
      process.kill(process.pid, code === 0 ? 'SIGTERM' : 'SIGKILL')
      // The first process of a container gets no such signals, only those from outside.
      break
    }
    await setTimeout(LOOK_MS)
  }
  process.exit(code)
}

const hasCallsInFlight = (): boolean =>
  process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq') || name === 'CloseReq')
