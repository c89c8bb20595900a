import { ZooKeeperError, type Client } from '@zabra/client/core'
import type { LockHandle } from '../../handles/types.ts'
import { LeaderElection } from '../../leader-election/index.ts'
import { Lease, type LeaseHandle } from '../../lease/index.ts'
import { MultiLock } from '../../multi-lock/index.ts'
import { Mutex } from '../../mutex/index.ts'
import { ReadWriteLock } from '../../read-write-lock/index.ts'
import { RevocableMutex, revoke } from '../../revocable/index.ts'
import { Semaphore } from '../../semaphore/index.ts'
import { delay } from '../../support/delay.ts'
import type { RandomSource } from '../nemesis.ts'
import type { ExclusionChecker } from '../exclusion-checker.ts'
import type { ScenarioContext } from './context.ts'
import { Fence } from './fence.ts'

/** One way of acquiring a lock. */
type AcquireFunction = (
  client: Client,
  prng: RandomSource,
  signal: AbortSignal,
) => Promise<{ held: LockHandle | LeaseHandle | undefined; weight?: number }>

const naming = (prng: RandomSource): 'recipe' | 'curator' | 'kazoo' =>
  prng.pick(['recipe', 'curator', 'kazoo'] as const)

/**
 * Returns undefined when there are other readers. A reader whose upgrade fails has lost its lock or will be
 * notified of it.
 */
async function upgraded(lock: ReadWriteLock, read: LockHandle): Promise<LockHandle | undefined> {
  try {
    return await lock.tryUpgrade(read)
  } catch (error) {
    await read.release()
    throw error
  }
}

export const lockKinds: Record<string, { limit?: number; long?: number; ask: AcquireFunction }> = {
  mutex: {
    ask: async (client, prng, signal) => {
      const mutex = new Mutex(client, '/lock', { naming: naming(prng), localQueue: prng.chance(50) })
      return { held: prng.chance(20) ? await mutex.tryAcquire({ signal }) : await mutex.acquire({ signal }) }
    },
  },
  'mutex with a lease': {
    long: 40,
    ask: async (client, _dice, signal) => ({
      held: await new Mutex(client, '/lock', { errorPolicy: { lease: {} } }).acquire({ signal }),
    }),
  },
  'read/write lock': {
    limit: 50,
    ask: async (client, prng, signal) => {
      const lock = new ReadWriteLock(client, '/rw')
      if (prng.chance(60)) {
        const read = await lock.read.acquire({ signal })
        const write = prng.chance(30) ? await upgraded(lock, read) : undefined
        return write === undefined ? { held: read, weight: 1 } : { held: write, weight: 50 }
      }
      const write = await lock.write.acquire({ signal })
      if (prng.chance(70)) return { held: write, weight: 50 }
      try {
        return { held: await lock.downgrade(write), weight: 1 }
      } catch (error) {
        await write.release()
        throw error
      }
    },
  },
  semaphore: {
    limit: 3,
    ask: async (client, prng, signal) => {
      const weight = prng.between(1, 4)
      return {
        held: await new Semaphore(client, '/s', { permits: 3 }).acquire({ permits: weight, signal }),
        weight,
      }
    },
  },
  'several locks': {
    ask: async (client, prng, signal) => {
      const paths = ['/x', '/y', prng.pick(['/z', '/w'])]
      const locks = paths.toSorted(() => prng.between(-1, 2)).map((path) => new Mutex(client, path))
      return { held: await new MultiLock(locks).acquire({ signal }) }
    },
  },
  'revocable mutex': {
    ask: async (client, prng, signal) => {
      // Only asks: the holder keeps the lock until it releases it.
      if (prng.chance(30)) await revoke(client, '/lock', { graceMs: 100, signal })
      return { held: await new RevocableMutex(client, '/lock').acquire({ signal }) }
    },
  },
  // The holder learns of its loss after the next holder has the lock: the fence distinguishes them.
  'lock revoked by force': {
    limit: Infinity,
    ask: async (client, prng, signal) => {
      if (prng.chance(50)) {
        const graceMs = prng.between(0, 400)
        await revoke(client, '/lock', { graceMs, force: true, signal })
      }
      return { held: await new RevocableMutex(client, '/lock').acquire({ signal }) }
    },
  },
  lease: {
    ask: async (client, prng, signal) => {
      const options = { holder: `h${prng.between(0, 2 ** 31)}`, durationMs: prng.between(3000, 9000) }
      return { held: await new Lease(client, '/l', options).acquire({ signal, timeoutMs: 15_000 }) }
    },
  },
  'leader election': {
    long: 40,
    ask: async (client, _dice, signal) => {
      const terms = new LeaderElection(client, '/e', { announce: true }).leadership({ signal })
      const { value } = await terms.next()
      return { held: value ?? undefined }
    },
  },
}

/** Runs some rounds of one participant, with random aborts. */
async function participate(
  name: string,
  client: Client,
  ask: AcquireFunction,
  tools: LockRun,
): Promise<void> {
  const { prng, createChecker, fence, long, limit } = tools
  for (let round = 0; round < 3; round++) {
    await delay(client, prng.between(0, 500))
    const stop = new AbortController()
    if (prng.chance(25)) void delay(client, prng.between(1, 4000)).then(() => stop.abort())
    try {
      const { held, weight } = await ask(client, prng, stop.signal)
      if (held === undefined) continue
      createChecker.recordGrant(name, held, weight)
      const alone = weight === undefined || weight === limit
      if ('guard' in held) await fence.write(held, alone)
      await Promise.race([
        delay(client, prng.between(0, prng.chance(long) ? 25_000 : 800)),
        new Promise((resolve) => held.signal.addEventListener('abort', resolve)),
      ])
      if ('guard' in held) await fence.write(held, alone)
      await held.release()
      // A lost leadership keeps its queue entry until the participant stops.
      stop.abort()
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }
}

interface LockRun {
  readonly prng: RandomSource
  readonly createChecker: ExclusionChecker
  readonly fence: Fence
  /** The weight of an exclusive lock. */
  readonly limit: number
  /** Percentage of holds that are longer than the session timeout. */
  readonly long: number
}

/** Runs all participants with one kind of lock for some rounds. Returns the checker with its violations. */
export async function runLocks(way: string, context: ScenarioContext): Promise<ExclusionChecker> {
  const { prng, clients, names, observer, createChecker } = context
  const { ask, limit = 1, long = 10 } = lockKinds[way]!
  const checker = createChecker(limit)
  const fence = await Fence.create(observer)
  const tools = { prng, createChecker: checker, fence, long, limit }
  await Promise.all(clients.map((client, i) => participate(names[i]!, client, ask, tools)))
  checker.violations.push(...fence.violations)
  return checker
}
