import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { System } from '@zabra/runtime'
import type { MachineFacts } from './check-machine.ts'

/** Reads what `checkMachine` checks. Files under /proc, /sys and /run exist on Linux only. */
export function readMachineFacts(system: System): MachineFacts {
  return {
    maxOpenFiles: system.fileDescriptors().max,
    hugePages: readIfExists('/sys/kernel/mm/transparent_hugepage/enabled'),
    swaps: readIfExists('/proc/swaps'),
    backlog: readIfExists('/proc/sys/net/core/somaxconn'),
    cores: coresOf(readIfExists('/sys/fs/cgroup/cpu.max'), availableParallelism()),
    timeServices: timeServices(existsSync),
  }
}

/** Returns the cores under the limit of a control group, such as `150000 100000` for one and a half. */
export function coresOf(limit: string | undefined, cores: number): number {
  const [quota, period] = (limit ?? '').trim().split(/\s+/).map(Number)
  if (quota === undefined || period === undefined || !(quota > 0) || !(period > 0)) return cores
  return Math.min(cores, quota / period)
}

/** Files that tell that a program runs which sets the clock, without whether it has. */
const RUNNING_FILES = {
  chrony: ['/run/chrony/chronyd.pid', '/run/chronyd.pid', '/run/chrony/chronyd.sock'],
  ntpd: ['/run/ntpd.pid', '/run/ntpsec/ntpd.pid'],
} as const

/** Finds the programs that set the clock: systemd-timesyncd writes down that it has, chrony and ntpd do not. */
export function timeServices(exists: (path: string) => boolean): MachineFacts['timeServices'] {
  const found = new Map<string, boolean | undefined>()
  if (exists('/run/systemd/timesync'))
    found.set('systemd-timesyncd', exists('/run/systemd/timesync/synchronized'))
  for (const [name, paths] of Object.entries(RUNNING_FILES))
    if (paths.some(exists)) found.set(name, undefined)
  return found
}

/** Returns the text of a file; undefined when there is none, or this user may not read it. */
export function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
