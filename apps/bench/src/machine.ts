import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'

/** The machine of a run. */
export interface Machine {
  readonly processor: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
  readonly node: string
  readonly java: string
}

export function machine(): Machine {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `Linux ${release()}`,
    node: process.version,
    java: javaVersion(),
  }
}

function javaVersion(): string {
  try {
    // Java prints its version to standard error.
    const text = execFileSync('sh', ['-c', 'java -version 2>&1'], { encoding: 'utf8' })
    return /"([^"]+)"/.exec(text)?.[1] ?? 'unknown'
  } catch {
    return 'none'
  }
}

interface Ticks {
  readonly busy: number
  readonly stolen: number
  readonly all: number
}

/** Reads the processor times since boot, in ticks. */
function readTicks(): Ticks {
  const [user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, stolen = 0] = readFileSync(
    '/proc/stat',
    'utf8',
  )
    .split('\n', 1)[0]!
    .split(/\s+/)
    .slice(1)
    .map(Number)
  const busy = user + nice + system + irq + soft
  return { busy, stolen, all: busy + idle + wait + stolen }
}

/** Measures the utilization of all processors over a time, as a share of their capacity. */
export async function measureUtilization(ms: number): Promise<number> {
  const before = readTicks()
  await new Promise((resolve) => setTimeout(resolve, ms))
  const after = readTicks()
  return (after.busy + after.stolen - before.busy - before.stolen) / Math.max(1, after.all - before.all)
}

/** Returns a function that gives the share of processor time stolen by the hypervisor since this call. */
export function watchStealTime(): () => number {
  const before = readTicks()
  return () => {
    const after = readTicks()
    return (after.stolen - before.stolen) / Math.max(1, after.all - before.all)
  }
}
