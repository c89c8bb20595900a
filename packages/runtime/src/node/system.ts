import { readdirSync, readFileSync, statSync } from 'node:fs'
import { monitorEventLoopDelay, PerformanceObserver, type IntervalHistogram } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { arch, freemem, hostname, release, tmpdir, totalmem, type, userInfo } from 'node:os'
import type { System } from '../system.ts'

const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)}MB`

/** A timer of the platform, outside of JavaScript, looks so often how late it is. */
const HOLD_RESOLUTION_MS = 2
let delays: IntervalHistogram | undefined
let longestCollection = 0

/** The platform tells of collections in a later turn of the event loop, so the last one may be missing for a moment. */
function watchCollections(): void {
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longestCollection = Math.max(longestCollection, duration)
  })
  observer.observe({ entryTypes: ['gc'] })
}

/** Names stay those of a JVM so that parsers survive; values are those of Node. */
export const nodeSystem: System = {
  pid: process.pid,
  processIdentity(pid) {
    try {
      process.kill(pid, 0)
    } catch (error) {
      // Without permission to signal it, the process still runs.
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') return undefined
    }
    return hasEnded(pid) ? undefined : `${pid}-${startOf(pid)}`
  },
  environment() {
    const user = userInfo()
    return [
      ['host.name', hostname()],
      ['java.version', process.version],
      ['java.vendor', 'Node.js'],
      ['java.home', process.execPath],
      ['java.class.path', process.argv[1] ?? ''],
      ['java.library.path', ''],
      ['java.io.tmpdir', tmpdir()],
      ['java.compiler', '<NA>'],
      ['os.name', type()],
      ['os.arch', arch()],
      ['os.version', release()],
      ['user.name', user.username],
      ['user.home', user.homedir],
      ['user.dir', process.cwd()],
      ['os.memory.free', megabytes(freemem())],
      ['os.memory.max', megabytes(totalmem())],
      ['os.memory.total', megabytes(process.memoryUsage.rss())],
    ]
  },
  residentMemory: () => process.memoryUsage.rss(),
  maxEventLoopDelay: () => (delays === undefined || delays.max === 0 ? 0 : delays.max / 1e6),
  resetPauses() {
    if (delays === undefined) {
      delays = monitorEventLoopDelay({ resolution: HOLD_RESOLUTION_MS })
      delays.enable()
      watchCollections()
    }
    delays.reset()
    longestCollection = 0
  },
  maxGcPause: () => longestCollection,
  heap() {
    const { used_heap_size: used, external_memory: external } = getHeapStatistics()
    return { used, external }
  },
  fileDescriptors() {
    try {
      const open = openDescriptors()
      const max = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
      return { open, max: max === undefined ? -1 : Number(max) }
    } catch {
      // Only Linux tells; elsewhere the figure is unknown, which is what -1 says.
      return { open: -1, max: -1 }
    }
  },
}

/** Linux tells how many there are from 6.2 on; before, the size is 0, and to list 10,000 of them takes 10 ms and more. */
function openDescriptors(): number {
  const { size } = statSync('/proc/self/fd')
  return size > 0 ? size : readdirSync('/proc/self/fd').length
}

/**
 * Whether nothing is left of a process but its exit code, which its parent has not asked for; where nobody does, as in
 * many containers, it stays like that for good. While one of its threads still ends, it may still write.
 */
function hasEnded(pid: number): boolean {
  try {
    return /^[ZX]/.test(statOf(pid)[0]!) && readdirSync(`/proc/${pid}/task`).length <= 1
  } catch {
    // Only Linux tells.
    return false
  }
}

/** What Linux says of a process behind its name, which may hold anything. */
const statOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')

/** When a process began, in clock ticks since the machine did; 0 where only Linux tells. */
function startOf(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim().slice(0, 8)
    return `${boot}-${statOf(pid)[19]}`
  } catch {
    return '0'
  }
}
