import { ZooKeeperError, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import type { LockHandle } from './handles/types.ts'
import { LeaderElection } from './leader-election/index.ts'
import { Lease } from './lease/index.ts'
import { MultiLock } from './multi-lock/index.ts'
import { Mutex } from './mutex/index.ts'
import { ReadWriteLock } from './read-write-lock/index.ts'
import { RevocableMutex, RevocableReadWriteLock, revoke } from './revocable/index.ts'
import { Semaphore } from './semaphore/index.ts'
import {
  FaultFixture,
  faults,
  neighbourFaults,
  occasionsOf,
  placesOf,
  SILENCE,
  type Fault,
  type Victim,
} from './testing/fault-fixture.ts'
import { advanceFor, advanceUntilSettled, leftovers } from './testing/settle.ts'
import { ExclusionChecker } from './testing/exclusion-checker.ts'
import { ManualWorld } from './testing/world.ts'

const VICTIM = 'victim'

/** The participants of a scenario. */
interface Actor {
  readonly name: string
  readonly client: Client
  /** Aborts in one kind of fault. */
  readonly signal: AbortSignal
}

interface Stage {
  readonly ledger: ExclusionChecker
  /** Work that takes a while, unless the lock is lost. */
  work(held: LockHandle): Promise<void>
  sleep(ms: number): Promise<void>
}

type Scenario = (actor: Actor, fixture: Stage) => Promise<void>

/** Errors that an aborted caller, or a caller whose lock is lost, may get. */
async function orGone<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (error instanceof ZooKeeperError) return undefined
    throw error
  }
}

/** A caller that has not aborted must succeed. */
async function unlessAborted<T>({ signal }: Actor, promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if (signal.aborted && error instanceof ZooKeeperError) return undefined
    throw error
  }
}

async function hold(
  actor: Actor,
  fixture: Stage,
  acquired: Promise<LockHandle>,
  weight?: number,
): Promise<void> {
  const held = await unlessAborted(actor, acquired)
  if (held === undefined) return
  fixture.ledger.recordGrant(actor.name, held, weight)
  await fixture.work(held)
  await held.release()
}

const mutex =
  (options: ConstructorParameters<typeof Mutex>[2]): Scenario =>
  async (actor, fixture) => {
    const { client, signal } = actor
    for (let round = 0; round < 2; round++) {
      await hold(actor, fixture, new Mutex(client, '/lock', options).acquire({ signal }))
      // A caller that does not wait gets the SessionExpiredError.
      const tried = await orGone(new Mutex(client, '/lock', options).tryAcquire({ signal }))
      if (tried !== undefined) await hold(actor, fixture, Promise.resolve(tried))
    }
  }

const readWrite: Scenario = async (actor, fixture) => {
  const lock = new ReadWriteLock(actor.client, '/rw')
  const { signal } = actor
  const write = await unlessAborted(actor, lock.write.acquire({ signal }))
  if (write !== undefined) {
    fixture.ledger.recordGrant(actor.name, write)
    const read = await orGone(lock.downgrade(write))
    if (read !== undefined) await hold(actor, fixture, Promise.resolve(read), 1)
    await write.release()
  }
  const read = await unlessAborted(actor, lock.read.acquire({ signal }))
  if (read === undefined) return
  fixture.ledger.recordGrant(actor.name, read, 1)
  const upgraded = await orGone(lock.tryUpgrade(read))
  if (upgraded !== undefined) await hold(actor, fixture, Promise.resolve(upgraded))
  await read.release()
}

const semaphore: Scenario = async (actor, fixture) => {
  const { client, signal } = actor
  const of = new Semaphore(client, '/s', { permits: 2 })
  await hold(actor, fixture, of.acquire({ permits: 2, signal }), 2)
  await Promise.all([
    hold(actor, fixture, of.acquire({ permits: 1, signal }), 1),
    hold(actor, fixture, of.acquire({ permits: 1, signal }), 1),
  ])
}

const permitsWithoutWaiting: Scenario = async (actor, fixture) => {
  const { client, signal } = actor
  for (let round = 0; round < 3; round++) {
    const held = await orGone(new Semaphore(client, '/s', { permits: 2 }).tryAcquire({ permits: 2, signal }))
    if (held !== undefined) await hold(actor, fixture, Promise.resolve(held), 2)
    await fixture.sleep(30)
  }
}

const election: Scenario = async (actor, fixture) => {
  const { client, signal, name } = actor
  const participant = new LeaderElection(client, '/e', { id: name, announce: true })
  let terms = 0
  for await (const leadership of participant.leadership({ signal })) {
    fixture.ledger.recordGrant(name, leadership)
    await fixture.work(leadership)
    if (leadership.signal.aborted) continue
    await leadership.release()
    if (++terms === 2) break
  }
}

const revocable: Scenario = async (actor, fixture) => {
  const { client, signal } = actor
  await hold(actor, fixture, new RevocableMutex(client, '/lock').acquire({ signal }).catch(revoked(actor)))
  await orGone(revoke(client, '/lock', { signal, graceMs: 50, force: true }))
}

const revocableReadWrite: Scenario = async (actor, fixture) => {
  const { client, signal } = actor
  const lock = new RevocableReadWriteLock(client, '/rw')
  const write = await orGone(lock.write.acquire({ signal }))
  if (write !== undefined) {
    const read = await orGone(lock.downgrade(write))
    if (read !== undefined) await hold(actor, fixture, Promise.resolve(read), 1)
    await write.release()
  }
  await orGone(revoke(client, '/rw', { signal, graceMs: 50, force: true }))
}

/** A revoked waiter queues again. */
const revoked =
  (actor: Actor) =>
  (error: unknown): Promise<LockHandle> => {
    if (!(error instanceof Error && 'reason' in error && error.reason === 'revoked')) throw error
    return new RevocableMutex(actor.client, '/lock').acquire({ signal: actor.signal }).catch(revoked(actor))
  }

const several: Scenario = async (actor, fixture) => {
  const { client, signal, name } = actor
  const paths = name === VICTIM ? ['/x', '/y'] : ['/y', '/x']
  for (let round = 0; round < 2; round++) {
    const locks = paths.map((path) => new Mutex(client, path))
    await hold(actor, fixture, new MultiLock(locks).acquire({ signal }))
  }
}

const timed: Scenario = async (actor, fixture) => {
  const { client, signal, name } = actor
  for (let round = 0; round < 3; round++) {
    const held = await orGone(
      new Lease(client, '/l', { holder: name, durationMs: 500 }).tryAcquire({ signal }),
    )
    if (held !== undefined) {
      fixture.ledger.recordGrant(name, held as unknown as LockHandle)
      await fixture.sleep(100)
      await orGone(held.renew())
      await fixture.sleep(100)
      await orGone(held.release())
    }
    await fixture.sleep(400)
  }
}

const scenarios: Record<string, { run: Scenario; limit?: number }> = {
  mutex: { run: mutex({}) },
  'mutex with a lease': { run: mutex({ errorPolicy: { lease: {} } }) },
  // Holders may overlap by design: the test only requires that it ends, leaves nothing and keeps tokens in order.
  'mutex until expiry': { run: mutex({ errorPolicy: 'session' }), limit: Infinity },
  'mutex with the naming of kazoo': { run: mutex({ naming: 'kazoo' }) },
  'read/write lock': { run: readWrite, limit: 10 },
  semaphore: { run: semaphore, limit: 2 },
  'semaphore without waiting': { run: permitsWithoutWaiting, limit: 2 },
  'leader election': { run: election },
  'revocable mutex': { run: revocable },
  'revocable read/write lock': { run: revocableReadWrite, limit: 10 },
  'several locks': { run: several },
  lease: { run: timed },
}

/** Runs a scenario with two participants, and returns the victim. */
async function play(
  { run, limit = 1 }: { run: Scenario; limit?: number },
  plan?: Victim['plan'],
): Promise<Victim> {
  const world = await ManualWorld.start()
  const victim = await new FaultFixture(world).victim(VICTIM)
  victim.plan = plan
  victim.start()
  const rival = await world.client()
  const ledger = new ExclusionChecker(limit)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const work = async ({ signal }: LockHandle): Promise<void> => {
    await Promise.race([sleep(100), new Promise((resolve) => signal.addEventListener('abort', resolve))])
  }
  const fixture = { ledger, sleep, work }
  const all = [
    run({ name: VICTIM, client: victim.client, signal: victim.abort.signal }, fixture),
    run({ name: 'rival', client: rival, signal: new AbortController().signal }, fixture),
  ]
  await advanceUntilSettled(world, 120_000, Promise.all(all))
  await advanceFor(world, 30_000)
  expect(ledger.violations, ledger.history.join('\n')).toEqual([])
  expect(await advanceUntilSettled(world, 10_000, leftovers(world, rival, [victim.client, rival]))).toEqual(
    [],
  )
  await world.end()
  return victim
}

const kinds: readonly Fault[] = [...faults, ...neighbourFaults, SILENCE]

describe.each(Object.entries(scenarios))('%s', (_name, scenario) => {
  it('keeps mutual exclusion, ends and leaves nothing behind under any fault at any frame', async () => {
    const undisturbed = await play(scenario)
    expect(undisturbed.frames).toBeGreaterThan(5)
    const failures: string[] = []
    for (const fault of kinds) {
      const occasions = occasionsOf(fault, undisturbed)
      for (const at of placesOf(fault, kinds, occasions)) {
        try {
          await play(scenario, { fault, at })
        } catch (error) {
          failures.push(`request ${at} of ${occasions}, ${fault}: ${String(error)}`)
        }
      }
    }
    expect(failures).toEqual([])
  }, 300_000)
})
