import { openSync, readSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { BUSY_FILE, turnLine } from './busy.ts'

/** The interval of the ticks, in milliseconds. */
const TICK_MS = 2
const text = Buffer.alloc(100)

/** Opens the kernel's scheduler statistics of this thread. Returns undefined on systems without them. */
function openTimes(): number | undefined {
  try {
    return openSync('/proc/thread-self/schedstat', 'r')
  } catch {
    return undefined
  }
}

/** Reads how many milliseconds this thread has run, and waited in the run queue, since its start. */
function timesOf(file: number): readonly [ran: number, waited: number] {
  // Linux accounts the running thread only at its own clock tick, every 4 ms on many machines, or when getrusage() is called.
  process.cpuUsage()
  const [ran, waited] = text.toString('latin1', 0, readSync(file, text, 0, text.length, 0)).split(' ')
  return [Number(ran) / 1e6, Number(waited) / 1e6]
}

function watch(times: number, file: number, leastMs: number): void {
  let last = performance.now()
  let [ran, waited] = timesOf(times)
  let idle = performance.nodeTiming.idleTime
  const tick = (): void => {
    const now = performance.now()
    const [ranUntil, waitedUntil] = timesOf(times)
    const idleUntil = performance.nodeTiming.idleTime
    const line = turnLine(
      {
        at: Date.now(),
        held: now - last,
        busy: ranUntil - ran,
        starved: waitedUntil - waited,
        idle: idleUntil - idle,
      },
      leastMs,
    )
    if (line !== '') writeSync(file, line)
    last = now
    ran = ranUntil
    waited = waitedUntil
    idle = idleUntil
  }
  setInterval(tick, TICK_MS).unref()
}

// Worker threads are started with the same flags.
const times = isMainThread ? openTimes() : undefined
// A kernel built without scheduler statistics reports 0.
if (times !== undefined && timesOf(times)[0] > 0) {
  const leastMs = Number(new URL(import.meta.url).searchParams.get('least'))
  watch(times, openSync(join(dirname(process.argv[2]!), BUSY_FILE), 'a'), leastMs)
}
