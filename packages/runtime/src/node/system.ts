import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { IntervalHistogram, PerformanceEntry } from 'node:perf_hooks'
import { arch, freemem, hostname, release, tmpdir, totalmem, type, userInfo } from 'node:os'
import type { Pauses, System } from '../system.ts'
import { builtinModule } from './builtin-module.ts'
import { LongHolds } from './long-holds.ts'

const megabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)}MB`

/**
 * Interval at which the platform samples the delay of the event loop: a sample is the time between two timers, and 2 ms took 2.3 % of a
 * processor in an idle server, 10 ms take 0.8.
 */
const DELAY_RESOLUTION_MS = 10
let delays: IntervalHistogram | undefined
/** Of a monitor of its own, since it is reset. Both begin in one turn, so their timers wake the process together. */
let holds: LongHolds | undefined
let maxPause = 0

/** Upper bounds of the buckets of `PauseCounts`, in milliseconds. */
const BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] as const

class PauseCounts implements Pauses {
  count = 0
  sum = 0
  readonly #buckets = BOUNDS_MS.map(() => 0)

  add(ms: number): void {
    this.count++
    this.sum += ms
    const bucket = BOUNDS_MS.findIndex((bound) => ms <= bound)
    if (bucket >= 0) this.#buckets[bucket]!++
  }

  countUpTo(ms: number): number {
    return this.#buckets.reduce((sum, count, i) => (BOUNDS_MS[i]! <= ms ? sum + count : sum), 0)
  }
}

const collections = new Map(
  ['minor', 'major', 'incremental', 'weak_callbacks'].map((kind) => [kind, new PauseCounts()]),
)

/** Returns the name of a kind of garbage collection by its number in `performance`. */
function kindOf(detail: unknown): string {
  const { constants } = builtinModule('node:perf_hooks')
  const kind = (detail as { readonly kind?: number } | undefined)?.kind
  if (kind === constants.NODE_PERFORMANCE_GC_MINOR) return 'minor'
  if (kind === constants.NODE_PERFORMANCE_GC_INCREMENTAL) return 'incremental'
  return kind === constants.NODE_PERFORMANCE_GC_WEAKCB ? 'weak_callbacks' : 'major'
}

function monitorDelays(): IntervalHistogram {
  const monitor = builtinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  monitor.enable()
  return monitor
}

/** What Node documents of an entry of the type `gc`, and its types leave out. */
interface CollectionEntry extends PerformanceEntry {
  readonly detail?: unknown
}

/** Node reports garbage collections in a later turn of the event loop, so the last one may be missing for a moment. */
function watchCollections(): void {
  const observer = new (builtinModule('node:perf_hooks').PerformanceObserver)((list) => {
    for (const { duration, detail } of list.getEntries() as readonly CollectionEntry[]) {
      maxPause = Math.max(maxPause, duration)
      collections.get(kindOf(detail))!.add(duration)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
}

/** What Java shows for a property that the system does not know. */
const UNKNOWN = '?'

/** Returns what the system says; undefined for a user without a name, as in many containers, and for a working folder that is removed. */
function ofSystem<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** `environment` keeps the names of the JVM, for parsers of the `envi` command; the values are those of Node. */
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
    const user = ofSystem(() => userInfo())
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
      ['user.name', user?.username ?? String(process.getuid?.() ?? UNKNOWN)],
      ['user.home', user?.homedir ?? process.env['HOME'] ?? UNKNOWN],
      ['user.dir', ofSystem(() => process.cwd()) ?? UNKNOWN],
      ['os.memory.free', megabytes(freemem())],
      ['os.memory.max', megabytes(totalmem())],
      ['os.memory.total', megabytes(process.memoryUsage.rss())],
    ]
  },
  residentMemory: () => process.memoryUsage.rss(),
  maxEventLoopDelay: () => holds?.max ?? 0,
  longHolds: () => holds?.take() ?? { count: 0, last: [] },
  resetPauses() {
    if (holds === undefined) {
      delays = monitorDelays()
      holds = new LongHolds(monitorDelays(), DELAY_RESOLUTION_MS)
      watchCollections()
    }
    holds.reset()
    maxPause = 0
  },
  maxGcPause: () => maxPause,
  gcPauses: () => collections,
  cpuTime() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
  eventLoopActive: () => builtinModule('node:perf_hooks').performance.eventLoopUtilization().active,
  eventLoopDelays() {
    if (delays === undefined || delays.count === 0) return { count: 0, sum: 0, countUpTo: () => 0 }
    const { count, mean, percentiles } = delays
    // The samples are the times between two timers: the resolution is no delay.
    const sum = Math.max(0, (mean / 1e6 - DELAY_RESOLUTION_MS) * count)
    return {
      count,
      sum,
      countUpTo(ms) {
        let share = 0
        for (const [percent, ns] of percentiles)
          if (ns / 1e6 - DELAY_RESOLUTION_MS <= ms) share = Math.max(share, percent / 100)
        return Math.round(share * count)
      },
    }
  },
  heap() {
    const { used_heap_size: used, external_memory: external } = builtinModule('node:v8').getHeapStatistics()
    return { used, external }
  },
  memoryLimits() {
    const constrained = process.constrainedMemory()
    // 0 is "unknown", and without a limit some kernels report a number near 2^63.
    const limit = constrained > 0 && constrained <= Number.MAX_SAFE_INTEGER ? constrained : totalmem()
    return { heap: builtinModule('node:v8').getHeapStatistics().heap_size_limit, process: limit }
  },
  fileDescriptors() {
    try {
      const open = openDescriptors()
      const max = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
      return { open, max: max === undefined ? -1 : Number(max) }
    } catch {
      // Known on Linux only.
      return { open: -1, max: -1 }
    }
  },
}

/** The size of the folder is the number from Linux 6.2 on; before, it is 0, and listing 10,000 of them takes 10 ms or more. */
function openDescriptors(): number {
  const { size } = statSync('/proc/self/fd')
  return size > 0 ? size : readdirSync('/proc/self/fd').length
}

/**
 * Returns whether a process is a zombie, which its parent has not reaped; in many containers nothing reaps it. While one of its
 * threads is still ending, it may still write, and counts as running.
 */
function hasEnded(pid: number): boolean {
  try {
    return /^[ZX]/.test(statOf(pid)[0]!) && readdirSync(`/proc/${pid}/task`).length <= 1
  } catch {
    // Known on Linux only.
    return false
  }
}

/** Returns the fields of /proc/<pid>/stat after the name of the process, which may contain any characters. */
const statOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')

/** Returns the id of the boot and the start of a process in clock ticks since it; 0 on other systems than Linux. */
function startOf(pid: number): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim().slice(0, 8)
    return `${boot}-${statOf(pid)[19]}`
  } catch {
    return '0'
  }
}
