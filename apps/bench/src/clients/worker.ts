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
  /** Clients with a connection each, among which the requests of a flow take turns. */
  readonly connections: number
  readonly size: number
  readonly clients: number
}

export interface ClientResult {
  /** Operations a second, microseconds of the middle one, or bytes for each client. */
  readonly value: number
  /** Processor time of the whole process, in microseconds an operation. */
  readonly cpu?: number
  /** Bytes of JavaScript objects for each client, where `value` is resident memory. */
  readonly heap?: number
  /** Resident bytes for each client as soon as all are connected, where `value` is what is held at rest. */
  readonly burst?: number
  /** Resident bytes of the whole process with all its clients, at rest. */
  readonly whole?: number
}

const idle = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Within this time without work the platform gives back what it kept ready for a burst, such as that of connecting. It looks
 * every eight seconds whether it is idle, and at the first look the burst may be too near: there is time for a second one.
 */
const IDLE_MS = 20_000

const path = '/bench-clients'

/** Keeps `depth` requests in flight for so long, and counts them. */
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
  // Without a collection in between: one that is asked for keeps the platform from resting later.
  const burst = (process.memoryUsage().rss - before.rss) / task.clients
  await idle(IDLE_MS)
  // The first collection finds the pages that are free, and only a second one finds them given back.
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

/** Bytes that a get allocates, as the sampling profiler of the platform sees it; outside of JavaScript it sees nothing. */
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
