import { availableParallelism } from 'node:os'
import type { Crew } from './crew.ts'

/** More than a thread for each other processor cannot help, and more than so many have not. */
const MOST_THREADS = 3

let crew: Crew | 'starting' | 'impossible' | undefined

/** The crew of this process, which the first call starts; undefined until it is ready, and where there can be none. */
export function theCrew(): Crew | undefined {
  if (crew === undefined) {
    crew = 'starting'
    void start(Math.min(MOST_THREADS, availableParallelism() - 1)).then((started) => (crew = started))
  }
  return typeof crew === 'string' ? undefined : crew
}

async function start(threads: number): Promise<Crew | 'impossible'> {
  // Other run times have threads and descriptors of their own kind.
  const { platform, versions } = process
  if (
    threads === 0 ||
    platform === 'win32' ||
    versions['bun'] !== undefined ||
    versions['deno'] !== undefined
  )
    return 'impossible'
  // Loaded when it is wanted, which most processes never do.
  const { Crew } = await import('./crew.ts')
  const starting = new Crew()
  try {
    await Promise.all(Array.from({ length: threads }, () => starting.addThread()))
    return starting
  } catch {
    // Where threads are not allowed, the sockets are written to one after the other.
    await starting.end()
    return 'impossible'
  }
}
