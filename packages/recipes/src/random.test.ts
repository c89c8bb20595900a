import { ZooKeeperError, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import type { Held } from './held/types.ts'
import { LeaderElection } from './leader-election/index.ts'
import { lease, type Lease } from './lease/index.ts'
import { acquireAll } from './multi-lock/index.ts'
import { Mutex } from './mutex/index.ts'
import { ReadWriteLock } from './read-write-lock/index.ts'
import { RevocableMutex, revoke } from './revocable/index.ts'
import { Semaphore } from './semaphore/index.ts'
import { Chaos, Dice } from './testdata/chaos.ts'
import { idle, leftovers, pass } from './testdata/faults.ts'
import { Ledger } from './testdata/ledger.ts'
import { seedsOf } from './testdata/stage.ts'
import { World } from './testdata/world.ts'
import { pauseFor } from './waiting/pause.ts'

/** Everybody asks in one of these ways. */
type Ask = (
  client: Client,
  dice: Dice,
  signal: AbortSignal,
) => Promise<{ held: Held | Lease | undefined; weight?: number }>

const naming = (dice: Dice): 'recipe' | 'curator' | 'kazoo' =>
  dice.oneOf(['recipe', 'curator', 'kazoo'] as const)

const ways: Record<string, { limit?: number; ask: Ask }> = {
  mutex: {
    ask: async (client, dice, signal) => {
      const mutex = new Mutex(client, '/lock', { naming: naming(dice), localQueue: dice.chance(50) })
      return { held: dice.chance(20) ? await mutex.tryAcquire({ signal }) : await mutex.acquire({ signal }) }
    },
  },
  'mutex with a lease': {
    ask: async (client, _dice, signal) => ({
      held: await new Mutex(client, '/lock', { errorPolicy: { lease: {} } }).acquire({ signal }),
    }),
  },
  'read/write lock': {
    limit: 50,
    ask: async (client, dice, signal) => {
      const lock = new ReadWriteLock(client, '/rw')
      if (dice.chance(60)) return { held: await lock.read.acquire({ signal }), weight: 1 }
      const write = await lock.write.acquire({ signal })
      if (dice.chance(70)) return { held: write, weight: 50 }
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
    ask: async (client, dice, signal) => {
      const weight = dice.between(1, 4)
      return { held: await new Semaphore(client, '/s', { permits: 3 }).acquire(weight, { signal }), weight }
    },
  },
  'several locks': {
    ask: async (client, dice, signal) => {
      const paths = ['/x', '/y', dice.oneOf(['/z', '/w'])]
      const locks = paths.toSorted(() => dice.between(-1, 2)).map((path) => new Mutex(client, path))
      return { held: await acquireAll(locks, { signal }) }
    },
  },
  'revocable mutex': {
    ask: async (client, dice, signal) => {
      // Asking is all that it does: whoever has the lock keeps it until it is released.
      if (dice.chance(30)) await revoke(client, '/lock', { graceMs: 100, signal })
      return { held: await new RevocableMutex(client, '/lock').acquire({ signal }) }
    },
  },
  lease: {
    ask: async (client, dice, signal) => {
      const options = { holder: `h${dice.between(0, 2 ** 31)}`, durationMs: dice.between(3000, 9000), signal }
      for (let tries = 0; tries < 30; tries++) {
        const held = await lease(client, '/l', options)
        if (held !== undefined) return { held }
        await pauseFor(client, 500, signal)
      }
      return { held: undefined }
    },
  },
  'leader election': {
    ask: async (client, _dice, signal) => {
      const terms = new LeaderElection(client, '/e', { announce: true }).leadership({ signal })
      const { value } = await terms.next()
      return { held: value ?? undefined }
    },
  },
}

/** Some rounds of one participant, who gives up now and then. */
async function participate(name: string, client: Client, ask: Ask, tools: Tools): Promise<void> {
  const { dice, ledger, sleep } = tools
  for (let round = 0; round < 3; round++) {
    await sleep(dice.between(0, 500))
    const stop = new AbortController()
    if (dice.chance(25)) void sleep(dice.between(1, 4000)).then(() => stop.abort())
    try {
      const { held, weight } = await ask(client, dice, stop.signal)
      if (held === undefined) continue
      ledger.enter(name, held, weight)
      await Promise.race([
        // Some hold it for longer than a session lives without a connection.
        sleep(dice.between(0, dice.chance(10) ? 25_000 : 800)),
        new Promise((resolve) => held.signal.addEventListener('abort', resolve)),
      ])
      await held.release()
      // A leader whose leadership was lost keeps its place in line until it gives up.
      stop.abort()
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }
}

interface Tools {
  readonly dice: Dice
  readonly ledger: Ledger
  readonly sleep: (ms: number) => Promise<void>
}

async function play(seed: number): Promise<void> {
  const dice = new Dice(seed)
  const { ZABRA_WAY } = process.env
  const asked = Object.entries(ways).filter(([name]) => ZABRA_WAY === undefined || name === ZABRA_WAY)
  const [way, { ask, limit }] = dice.oneOf(asked)
  const world = await World.start()
  const hosts = Array.from({ length: dice.between(3, 21) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const witness = await world.client()
  const chaos = new Chaos(world, dice, hosts)
  const ledger = new Ledger(limit)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const done = Promise.all(
    clients.map((client, i) => participate(hosts[i]!, client, ask, { dice, ledger, sleep })),
  )
  world.clock.after(30_000, 'end of the chaos', () => chaos.stop())
  const story = (): string =>
    `${way}, ${hosts.length} participants\n${[...chaos.log, ...ledger.history].join('\n')}`
  await pass(world, 400_000, done)
  chaos.stop()
  await idle(world, 40_000)
  expect(ledger.wrong, story()).toEqual([])
  expect(await pass(world, 10_000, leftovers(world, witness, clients)), story()).toEqual([])
  await world.end()
}

/** `ZABRA_SEED=7` plays one; `ZABRA_SEEDS=5000` plays so many; `ZABRA_WAY=mutex` plays only that. */
const seeds = seedsOf(240)

it(`random participants under random faults exclude each other, are never stuck and leave nothing (${seeds.length} seeds)`, async () => {
  const failures: string[] = []
  for (const seed of seeds) {
    if (failures.length === 5) break
    try {
      await play(seed)
    } catch (error) {
      failures.push(`ZABRA_SEED=${seed} fails: ${String(error)}`)
    }
  }
  expect(failures).toEqual([])
}, 600_000)
