import { openSync, readSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { BUSY_FILE, turnLine } from './busy.ts'

/** As often as our server looks how long its event loop is held. */
const TICK_MS = 2
const text = Buffer.alloc(100)

/** What Linux tells of this thread; undefined elsewhere. */
function openTimes(): number | undefined {
  try {
    return openSync('/proc/thread-self/schedstat', 'r')
  } catch {
    return undefined
  }
}

/** Milliseconds for which this thread had a processor, and for which it was ready and had none, since it began. */
function timesOf(file: number): readonly [ran: number, waited: number] {
  // Linux adds what runs now at its own clock tick only, every 4 ms on many machines, and when a process asks for its usage.
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

// The Node of a worker takes the same flags.
const times = isMainThread ? openTimes() : undefined
// A kernel that was built without it counts nothing.
if (times !== undefined && timesOf(times)[0] > 0) {
  const leastMs = Number(new URL(import.meta.url).searchParams.get('least'))
  watch(times, openSync(join(dirname(process.argv[2]!), BUSY_FILE), 'a'), leastMs)
}
