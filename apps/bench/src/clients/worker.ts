import type { HeapProfiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import { median } from '../figures.ts'
import { open, type BenchClient, type Library } from './library.ts'

export interface ClientTask {
  readonly library: Library
  readonly folder: string
  readonly port: number
  readonly work: 'get' | 'set' | 'one get' | 'one set' | 'garbage' | 'memory'
  readonly seconds: number
  /** Requests in flight, over all connections together. */
  readonly depth: number
  /** Clients with a connection each. Requests go to them in rotation. */
  readonly connections: number
  readonly size: number
  readonly clients: number
}

export interface ClientResult {
  /** Operations per second, median latency in microseconds, or bytes per client, depending on the work. */
  readonly value: number
  /** Processor time of the whole process, in microseconds per operation. */
  readonly cpu?: number
  /** Heap bytes per client; only for memory. */
  readonly heap?: number
  /** Resident bytes per client right after all have connected; only for memory. */
  readonly burst?: number
  /** Resident bytes of the whole idle process; only for memory. */
  readonly whole?: number
}

const idle = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Idle time after which V8 has returned the memory that it kept for the burst of connects. V8 checks every eight seconds whether
 * it is idle, and the first check may come too soon after the burst, so this leaves time for a second one.
 */
const IDLE_MS = 20_000

const path = '/bench-clients'

/** Keeps `depth` requests in flight for some seconds. Resolves to the number of completed requests. */
function keepInFlight(
  call: (done: (error?: unknown) => void) => void,
  depth: number,
  seconds: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const end = performance.now() + seconds * 1000
    let count = 0
    let inFlight = 0
    const done = (error?: unknown): void => {
      if (error !== undefined) return reject(error as Error)
      count++
      inFlight--
      next()
    }
    const next = (): void => {
      if (performance.now() < end) {
        inFlight++
        call(done)
      } else if (inFlight === 0) resolve(count)
    }
    for (let i = 0; i < depth; i++) next()
  })
}

async function throughput(clients: readonly BenchClient[], task: ClientTask): Promise<ClientResult> {
  const data = Buffer.alloc(task.size, 120)
  let turn = 0
  const next = (): BenchClient => clients[turn++ % clients.length]!
  const call =
    task.work === 'get'
      ? (done: (error?: unknown) => void): void => next().get(path, done)
      : (done: (error?: unknown) => void): void => next().set(path, data, done)
  await keepInFlight(call, task.depth, task.seconds / 4)
  const before = process.cpuUsage()
  const began = performance.now()
  const count = await keepInFlight(call, task.depth, task.seconds)
  const { user, system } = process.cpuUsage(before)
  return { value: (count * 1000) / (performance.now() - began), cpu: (user + system) / count }
}

async function oneAtATime(client: BenchClient, task: ClientTask): Promise<ClientResult> {
  const data = Buffer.alloc(task.size, 120)
  const samples: number[] = []
  const end = performance.now() + task.seconds * 1000
  while (performance.now() < end) {
    const began = performance.now()
    await new Promise<void>((resolve, reject) => {
      const done = (error?: unknown): void => (error === undefined ? resolve() : reject(error as Error))
      if (task.work === 'one get') client.get(path, done)
      else client.set(path, data, done)
    })
    samples.push((performance.now() - began) * 1000)
  }
  return { value: median(samples.slice(samples.length >> 2)) }
}

async function memory(task: ClientTask): Promise<ClientResult> {
  const { library, port, folder } = task
  const first = await open(library, port, folder)
  globalThis.gc?.()
  const before = process.memoryUsage()
  const clients = [first]
  for (let i = 0; i < task.clients; i += 50) {
    clients.push(...(await Promise.all(Array.from({ length: 50 }, () => open(library, port, folder)))))
  }
  // No collection here: a forced one keeps V8 from shrinking its heap while idle.
  const burst = (process.memoryUsage().rss - before.rss) / task.clients
  await idle(IDLE_MS)
  // The first collection frees pages; only the second one returns them to the system.
  globalThis.gc?.()
  await idle(1000)
  globalThis.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  for (const client of clients) void client.close()
  return {
    value: (rss - before.rss) / task.clients,
    heap: (heapUsed - before.heapUsed) / task.clients,
    burst,
    whole: rss,
  }
}

/** Measures the heap bytes that a get allocates, by V8's sampling profiler. Memory outside of the heap is not included. */
async function garbage(client: BenchClient, task: ClientTask): Promise<ClientResult> {
  const call = (done: (error?: unknown) => void): void => client.get(path, done)
  await keepInFlight(call, task.depth, task.seconds / 2)
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: 4096,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  const count = await keepInFlight(call, task.depth, task.seconds)
  const { profile } = await session.post('HeapProfiler.stopSampling')
  const sizeOf = ({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number =>
    children.reduce((sum, child) => sum + sizeOf(child), selfSize)
  return { value: sizeOf(profile.head) / count }
}

async function run(task: ClientTask): Promise<ClientResult> {
  if (task.work === 'memory') return memory(task)
  const client = await open(task.library, task.port, task.folder)
  await client.create(path, Buffer.alloc(task.size, 120)).catch(() => {})
  if (task.work === 'garbage') return garbage(client, task)
  if (task.work.startsWith('one')) return oneAtATime(client, task)
  const others = Array.from({ length: task.connections - 1 }, () =>
    open(task.library, task.port, task.folder),
  )
  return throughput([client, ...(await Promise.all(others))], task)
}

const result = await run(JSON.parse(process.argv[2] ?? '{}') as ClientTask)
process.send?.(result, () => process.exit())
