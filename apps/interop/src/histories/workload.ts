import type { Client } from '@zabra/client'
import type { Prng } from '../harness/prng.ts'

export const REGISTERS = ['/register/0', '/register/1', '/register/2'] as const
export const isRegister = (path: string): boolean => (REGISTERS as readonly string[]).includes(path)
export const LOCKS = ['/lock/0', '/lock/1'] as const
export const SET = '/set'
const ELEMENTS = 12
/** Between two requests of a client: the history of a long run stays small enough to be judged. */
const PACE_MS = 15
const once = { retry: false, timeoutMs: 20_000 } as const

const encoder = new TextEncoder()

/** Creates the parents and the registers, whose initial value is the empty string. */
export async function prepare(client: Client): Promise<void> {
  for (const path of ['/register', '/lock', SET]) await client.create(path, { data: null })
  for (const path of REGISTERS) await client.create(path, { data: encoder.encode('') })
}

/**
 * Writes registers, also by compare-and-set, takes and releases locks, adds to and removes from a set, and reads with and without a
 * sync, one request after another, until `signal` aborts. Values are unique. Results are in the recording.
 */
export async function runWorkload(
  name: string,
  client: Client,
  prng: Prng,
  signal: AbortSignal,
): Promise<void> {
  const versions = new Map<string, number>()
  const write = async (n: number): Promise<void> => {
    const path = prng.pick(REGISTERS)
    const version = prng.int(2) === 0 ? (versions.get(path) ?? 0) : -1
    await client.setData(path, encoder.encode(`${name}-${n}`), { ...once, version })
  }
  const read = async (path: string): Promise<void> => {
    const { stat } = await client.getData(path, once)
    versions.set(path, stat.version)
  }
  const lock = async (n: number): Promise<void> => {
    const path = prng.pick(LOCKS)
    if (prng.int(2) === 0) await client.delete(path, once)
    else await client.create(path, { data: encoder.encode(`${name}-${n}`), ...once, protected: false })
  }
  const change = async (): Promise<void> => {
    const path = `${SET}/${prng.int(ELEMENTS)}`
    if (prng.int(2) === 0) await client.delete(path, once)
    else await client.create(path, { data: null, ...once, protected: false })
  }
  // Both are sent in one turn of the event loop, so one member processes them in order.
  const synced = async (next: Promise<unknown>[]): Promise<void> => {
    const failed = (await Promise.allSettled(next)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }
  for (let n = 1; !signal.aborted; n++) {
    const kind = prng.int(20)
    try {
      if (kind < 6) await write(n)
      else if (kind < 9) await synced([client.sync('/', once), read(prng.pick(REGISTERS))])
      else if (kind < 13) await read(prng.pick(REGISTERS))
      else if (kind < 15) await lock(n)
      else if (kind < 16) await synced([client.sync('/', once), client.getData(prng.pick(LOCKS), once)])
      else if (kind < 19) await change()
      else await synced([client.sync('/', once), client.getChildren(SET, once)])
    } catch {
      // The recording has the error code, or no reply.
    }
    await new Promise((done) => setTimeout(done, PACE_MS))
  }
}
