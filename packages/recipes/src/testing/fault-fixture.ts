import { SeededRandom } from '@zabra/runtime'
import type { Client } from '@zabra/client/core'
import { advanceUntilSettled } from './settle.ts'
import { ManualWorld, type TappedConnection } from './world.ts'

/** The fault that code is most likely to resolve wrongly. */
const LOST_REPLY = 'cut after it was applied, before the reply'

/** The faults that can be injected at a request of one client. */
export const faults = [
  'cut before the server reads it',
  LOST_REPLY,
  'cut after the reply',
  'session expired before the server reads it',
  'session expired after it was applied',
  'caller aborted',
] as const
/** Faults at another write of the same client, which is sent just before the request. */
export const neighbourFaults = [
  'neighbour and request lost',
  'neighbour and request applied, before the replies',
] as const
/** The faults of the connection and of the session: all but those of the caller. */
export const connectionFaults = [...faults, ...neighbourFaults].filter((fault) => fault !== 'caller aborted')
export const SILENCE = 'silence for longer than the timeout'
/** The next request waits for a connection that its session does not get. */
export const EXPIRY_AFTER_REPLY = 'session expired after the reply'
export type Fault =
  | (typeof faults)[number]
  | (typeof neighbourFaults)[number]
  | typeof SILENCE
  | typeof EXPIRY_AFTER_REPLY

/** Longer than the session timeout of `ManualWorld`, for servers and clients. */
const OUTAGE_MS = 20_000
/** Slightly longer than that timeout: the session may live or expire. */
const SILENCE_MS = 13_000
/** Path of the neighbour's write. It is not idempotent, so that the client rejects it when its reply is lost. */
const NEIGHBOUR = '/neighbour'

/** A client whose connections fail. It connects through a host name of its own. */
export class Victim {
  readonly name: string
  readonly abort = new AbortController()
  frames = 0
  /** Number of requests that the client was asked to make. */
  calls = 0
  /** The fault and the number of the request at which it is injected, counted from 1; undefined for none. */
  plan: { readonly at: number; readonly fault: Fault } | undefined
  client!: Client
  hasStruck = false
  #darkUntil = 0
  #cutAfterReply: 'swallow' | 'deliver' | undefined
  readonly #silent = new Set<TappedConnection>()
  readonly #world: ManualWorld
  #counting = false
  #isNeighbourSent = false

  constructor(world: ManualWorld, name: string) {
    this.#world = world
    this.name = name
  }

  get fault(): Fault | undefined {
    return this.hasStruck ? this.plan?.fault : undefined
  }

  /** Starts counting requests and enables the plan. */
  start(): void {
    this.#counting = true
    const { dispatcher } = (this.client as unknown as { sharedSession: { dispatcher: Dispatcher } })
      .sharedSession
    const submit = dispatcher.submit.bind(dispatcher)
    dispatcher.submit = (request) => {
      this.calls++
      if (this.calls === this.plan?.at && isNeighbourFault(this.plan.fault)) this.#sendNeighbour()
      return submit(request)
    }
  }

  #sendNeighbour(): void {
    this.hasStruck = true
    this.#isNeighbourSent = true
    // Rejected by design.
    this.client.setData(NEIGHBOUR, null).catch(() => {})
  }

  open(): void {
    if (this.#world.clock.monotonic() < this.#darkUntil) throw new Error('no way through')
  }

  toServer(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined {
    if (this.#silent.has(connection)) return undefined
    if (!this.#counting) return chunk
    for (let at = 0; at < chunk.length;) {
      const next = at + 4 + new DataView(chunk.buffer, chunk.byteOffset + at).getInt32(0)
      if (isRequest(chunk, at)) {
        const isNeighbour = this.#isNeighbourSent && holdsPath(chunk.subarray(at, next), NEIGHBOUR)
        if (isNeighbour) this.#isNeighbourSent = false
        else this.frames++
        const fault = this.plan?.fault
        const isDue = isNeighbourFault(fault) ? isNeighbour : this.frames === this.plan?.at
        if (isDue) return this.#strike(chunk, at, next, connection)
      }
      at = next
    }
    return chunk
  }

  toClient(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined {
    if (this.#silent.has(connection)) return undefined
    const what = this.#cutAfterReply
    if (what === undefined) return chunk
    this.#cutAfterReply = undefined
    if (what === 'deliver') connection.deliver(chunk)
    connection.cut()
    return undefined
  }

  #strike(
    chunk: Uint8Array,
    start: number,
    end: number,
    connection: TappedConnection,
  ): Uint8Array | undefined {
    const { fault } = this.plan!
    this.hasStruck = true
    if (fault.startsWith('session')) this.#darkUntil = this.#world.clock.monotonic() + OUTAGE_MS
    if (fault === SILENCE) {
      this.#darkUntil = this.#world.clock.monotonic() + SILENCE_MS
      this.#silent.add(connection)
      return start === 0 ? undefined : chunk.slice(0, start)
    }
    if (fault === 'caller aborted') {
      this.abort.abort()
      return chunk
    }
    if (fault === 'neighbour and request applied, before the replies') {
      this.#cutAfterReply = 'swallow'
      return chunk
    }
    if (fault.endsWith('reads it') || fault === 'neighbour and request lost') {
      if (start > 0) connection.send(chunk.slice(0, start))
      this.#world.clock.immediate(() => connection.cut())
      return undefined
    }
    this.#cutAfterReply = fault.endsWith('after the reply') ? 'deliver' : 'swallow'
    return chunk.slice(0, end)
  }
}

/** The part of the client that makes requests. */
interface Dispatcher {
  submit(request: unknown): Promise<unknown>
}

const isNeighbourFault = (fault: Fault | undefined): boolean =>
  neighbourFaults.some((neighbour) => neighbour === fault)

/** Returns whether the first field of a request is this path. */
const holdsPath = (frame: Uint8Array, path: string): boolean =>
  new TextDecoder().decode(frame.subarray(16, 16 + path.length)) === path

/** Returns whether the frame is a request other than a handshake or ping. */
function isRequest(chunk: Uint8Array, at: number): boolean {
  const xid = new DataView(chunk.buffer, chunk.byteOffset + at).getInt32(4)
  return xid > 0
}

/** Clients of one world, each with a host name by which faults find its connections. */
export class FaultFixture {
  readonly world: ManualWorld
  readonly victims = new Map<string, Victim>()

  constructor(world: ManualWorld) {
    this.world = world
    const hooks = world.faults
    hooks.open = ({ host }) => this.victims.get(host)?.open()
    hooks.toServer = (chunk, connection) => {
      const victim = this.victims.get(connection.server.host)
      return victim === undefined ? chunk : victim.toServer(chunk, connection)
    }
    hooks.toClient = (chunk, connection) => {
      const victim = this.victims.get(connection.server.host)
      return victim === undefined ? chunk : victim.toClient(chunk, connection)
    }
  }

  async victim(name: string): Promise<Victim> {
    const victim = new Victim(this.world, name)
    this.victims.set(name, victim)
    victim.client = await this.world.client({ servers: `${name}:2181` })
    return victim
  }

  /** Waits until background work is done and lost sessions have expired. */
  async waitUntilQuiet(): Promise<void> {
    await after(this.world, 1000)
    const dying = [...this.victims.values()].some(({ fault }) => fault?.startsWith('session'))
    if (dying) await after(this.world, OUTAGE_MS + 15_000)
  }
}

/** Resolves after `ms` milliseconds of the world's clock. */
export const after = (world: ManualWorld, ms: number): Promise<void> =>
  new Promise((resolve) => void world.clock.after(ms, 'test', resolve))

/** A test scenario: works with `victim`, whose signal may abort, and throws on a violation. */
export type FaultScenario = (fixture: FaultFixture, victim: Victim) => Promise<void>

/** Runs a scenario with at most one fault at one request of its victim. */
async function runScenario(scenario: FaultScenario, plan: Victim['plan']): Promise<Victim> {
  const world = await ManualWorld.start()
  const fixture = new FaultFixture(world)
  const victim = await fixture.victim('victim')
  victim.plan = plan
  victim.start()
  const done = scenario(fixture, victim)
  done.catch(() => {})
  await advanceUntilSettled(world, 300_000, done)
  await world.advance(1000)
  const { watches } = world.server.stats()
  if (watches !== 0) throw new Error(`Expected no watches, got ${watches}`)
  await world.end()
  return victim
}

/** Returns at how many requests of a victim that had no fault this one can be injected. */
export const occasionsOf = (fault: Fault, { frames, calls }: Victim): number =>
  isNeighbourFault(fault) ? calls : frames

export const IS_LONG = process.env['ZABRA_LONG_TESTS'] === '1'

/** Short runs play each kind of fault at about every third request of a long scenario; ZABRA_LONG_TESTS=1 at every request. */
const STRIDE = IS_LONG ? 1 : 3

/** Scenarios of up to so many requests are played whole: their requests hardly repeat. */
const MAX_WHOLE = 18

const allOf = (occasions: number): number[] => Array.from({ length: occasions }, (_, n) => n + 1)

/**
 * Returns the requests at which a run plays the fault with the index `kind`. Each kind starts at another request, and each group of requests
 * shifts the sample, so that repeated requests get every kind.
 */
export const sampleOf = (occasions: number, kind = 0): number[] =>
  allOf(occasions).filter(
    (at) => occasions <= MAX_WHOLE || (at + Math.floor(at / STRIDE) + kind) % STRIDE === 0,
  )

/** Returns the requests at which a run plays a fault: every request for a lost reply, a sample for other kinds. */
export const placesOf = (fault: Fault, kinds: readonly Fault[], occasions: number): number[] =>
  fault === LOST_REPLY ? allOf(occasions) : sampleOf(occasions, kinds.indexOf(fault))

/**
 * Runs a scenario without faults, then once for each fault and place: those of `placesOf`, or all with `everywhere`. Returns the number of all
 * possible places, over all kinds.
 */
export async function enumerateFaults(
  scenario: FaultScenario,
  kinds: readonly Fault[] = [...faults, ...neighbourFaults],
  { everywhere = false } = {},
): Promise<number> {
  const undisturbed = await runScenario(scenario, undefined)
  let possible = 0
  for (const fault of kinds) {
    const occasions = occasionsOf(fault, undisturbed)
    possible += occasions
    for (const at of everywhere ? allOf(occasions) : placesOf(fault, kinds, occasions)) {
      try {
        await runScenario(scenario, { at, fault })
      } catch (error) {
        throw new Error(`With '${fault}' at request ${at} of ${occasions}: ${(error as Error).message}`, {
          cause: error,
        })
      }
    }
  }
  return possible
}

/**
 * Returns the seeds of a random suite: `count`, three times as many with ZABRA_LONG_TESTS=1, as many as `ZABRA_SEEDS` says, or only
 * `ZABRA_SEED`.
 */
export function seedsOf(count: number): number[] {
  const { ZABRA_SEED, ZABRA_SEEDS } = process.env
  if (ZABRA_SEED !== undefined) return [Number(ZABRA_SEED)]
  return Array.from({ length: Number(ZABRA_SEEDS ?? (IS_LONG ? 3 * count : count)) }, (_, n) => n + 1)
}

/**
 * Breaks connections at random with a request or reply in flight, which is lost; connections to `spared` hosts are
 * not affected. Returns a function that stops this.
 */
export function dropInFlight(
  world: ManualWorld,
  random: SeededRandom,
  spared: readonly string[] = [],
): () => void {
  const strike = (chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined => {
    if (spared.includes(connection.server.host) || random.below(100) >= 4) return chunk
    world.clock.immediate(() => connection.cut())
    return undefined
  }
  world.faults.toServer = strike
  world.faults.toClient = strike
  return () => {
    delete world.faults.toServer
    delete world.faults.toClient
  }
}

/** Cuts random connections `steps` times, and loses what is in flight meanwhile; the steps are up to `maxStepMs` apart. */
export async function cutAtRandom(
  world: ManualWorld,
  random: SeededRandom,
  steps: number,
  maxStepMs: number,
  spared: readonly string[] = [],
): Promise<void> {
  const heal = dropInFlight(world, random, spared)
  for (let step = 0; step < steps; step++) {
    const connection = world.connections[random.below(world.connections.length)]!
    if (!spared.includes(connection.server.host)) connection.cut()
    await world.advance(random.below(maxStepMs))
  }
  heal()
}

/** Runs a test for each seed; names the failing seed. */
export async function withSeeds(
  seeds: readonly number[],
  test: (random: SeededRandom, seed: number) => Promise<void>,
): Promise<void> {
  for (const seed of seeds) {
    try {
      await test(new SeededRandom(seed), seed)
    } catch (error) {
      throw new Error(`With ZABRA_SEED=${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
}

/** Returns the paths of a tree, without the znodes of the servers. */
export async function tree(client: Client, path = '/'): Promise<string[]> {
  const paths: string[] = []
  for await (const at of client.walk(path)) if (!at.startsWith('/zookeeper')) paths.push(at)
  return paths
}

/** Calls with the victim's signal, and once more without it if it has aborted. */
export async function retryWithoutSignal<T>(
  victim: Victim,
  call: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  try {
    return await call(victim.abort.signal)
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error
    return call(undefined)
  }
}
