import { openSync, readSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { BUSY_FILE, busyLine } from './busy.ts'

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

/** Milliseconds for which this thread had a processor, since it began. */
function ranMs(times: number): number {
  // Linux adds what runs now at its own clock tick only, every 4 ms on many machines, and when a process asks for its usage.
  process.cpuUsage()
  return Number.parseInt(text.toString('latin1', 0, readSync(times, text, 0, text.length, 0)), 10) / 1e6
}

function watch(times: number, file: number): void {
  let [last, ranUntil] = [performance.now(), ranMs(times)]
  const tick = (): void => {
    const [now, ran] = [performance.now(), ranMs(times)]
    const line = busyLine(now - last, ran - ranUntil)
    if (line !== '') writeSync(file, line)
    last = now
    ranUntil = ran
  }
  setInterval(tick, TICK_MS).unref()
}

// The Node of a worker takes the same flags.
const times = isMainThread ? openTimes() : undefined
// A kernel that was built without it counts nothing.
if (times !== undefined && ranMs(times) > 0)
  watch(times, openSync(join(dirname(process.argv[2]!), BUSY_FILE), 'a'))
