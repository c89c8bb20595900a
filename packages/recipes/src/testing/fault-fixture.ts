import { SeededRandom } from '@zabra/runtime'
import type { Client } from '@zabra/client/core'
import { ManualWorld, type TappedConnection } from './world.ts'

/** What can happen at one request of one client. */
export const faults = [
  'cut before the server reads it',
  'cut after it was carried out, before the reply',
  'cut after the reply',
  'session expired before the server reads it',
  'session expired after it was carried out',
  'caller aborted',
] as const
export type Fault = (typeof faults)[number]

/** Long enough for a session of `SimulatedWorld` to end, for servers and client alike. */
const OUTAGE_MS = 20_000

/** A participant whose connections suffer. It is reached under a name of its own. */
export class Victim {
  readonly name: string
  readonly abort = new AbortController()
  frames = 0
  /** What happens at which of its requests, the first being 1; undefined for nothing. */
  plan: { readonly at: number; readonly fault: Fault } | undefined
  client!: Client
  hasStruck = false
  #darkUntil = 0
  #cutAfterReply: 'swallow' | 'deliver' | undefined
  readonly #world: ManualWorld
  #counting = false

  constructor(world: ManualWorld, name: string) {
    this.#world = world
    this.name = name
  }

  get fault(): Fault | undefined {
    return this.hasStruck ? this.plan?.fault : undefined
  }

  /** Counts from here on, and lets the plan happen. */
  start(): void {
    this.#counting = true
  }

  open(): void {
    if (this.#world.clock.monotonic() < this.#darkUntil) throw new Error('no way through')
  }

  toServer(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined {
    if (!this.#counting) return chunk
    for (let at = 0; at < chunk.length;) {
      const next = at + 4 + new DataView(chunk.buffer, chunk.byteOffset + at).getInt32(0)
      if (isRequest(chunk, at)) {
        this.frames++
        if (this.frames === this.plan?.at) return this.#strike(chunk, at, next, connection)
      }
      at = next
    }
    return chunk
  }

  toClient(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined {
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
    if (fault === 'caller aborted') {
      this.abort.abort()
      return chunk
    }
    if (fault.endsWith('reads it')) {
      if (start > 0) connection.send(chunk.slice(0, start))
      this.#world.clock.immediate(() => connection.cut())
      return undefined
    }
    this.#cutAfterReply = fault === 'cut after the reply' ? 'deliver' : 'swallow'
    return chunk.slice(0, end)
  }
}

/** Everything but handshakes and pings. */
function isRequest(chunk: Uint8Array, at: number): boolean {
  const xid = new DataView(chunk.buffer, chunk.byteOffset + at).getInt32(4)
  return xid > 0
}

/** Clients of one world, each with a name under which its connections can be made to suffer. */
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

  /** Waits until what goes on in the background is done, and sessions that died are over. */
  async waitUntilQuiet(): Promise<void> {
    await after(this.world, 1000)
    const dying = [...this.victims.values()].some(({ fault }) => fault?.startsWith('session'))
    if (dying) await after(this.world, OUTAGE_MS + 15_000)
  }
}

/** Resolves after so much time of a world. */
export const after = (world: ManualWorld, ms: number): Promise<void> =>
  new Promise((resolve) => void world.clock.after(ms, 'test', resolve))

/** The scenario of a test: plays with `victim`, whose signal may abort, and throws when something is wrong. */
export type FaultScenario = (stage: FaultFixture, victim: Victim) => Promise<void>

/** Plays a scenario with one fault at one request of its victim, or with none. Returns how many requests there were. */
async function runScenario(scenario: FaultScenario, plan: Victim['plan']): Promise<number> {
  const world = await ManualWorld.start()
  const stage = new FaultFixture(world)
  const victim = await stage.victim('victim')
  victim.plan = plan
  victim.start()
  const done = scenario(stage, victim)
  done.catch(() => {})
  await settledWithin(world, 300_000, done)
  await world.advance(1000)
  const { watches } = world.server.stats()
  if (watches !== 0) throw new Error(`Expected no watch to be left, got ${watches}`)
  await world.end()
  return victim.frames
}

/** What a promise comes to, with time going by in long steps. */
export async function settledWithin<T>(world: ManualWorld, ms: number, promise: Promise<T>): Promise<T> {
  let settled = false
  const settle = (): void => void (settled = true)
  promise.then(settle, settle)
  for (let left = ms; left > 0 && !settled; left -= 200) {
    await world.settle()
    if (settled) break
    world.clock.advance(200)
    await world.settle()
  }
  if (!settled) throw new Error(`Expected the scenario to end within ${ms} ms; it still waits`)
  return promise
}

/** Plays a scenario without a fault, and then once for each request of its victim and each fault there. */
export async function enumerateFaults(
  scenario: FaultScenario,
  kinds: readonly Fault[] = faults,
): Promise<number> {
  const frames = await runScenario(scenario, undefined)
  let played = 0
  for (const fault of kinds) {
    for (let at = 1; at <= frames; at++) {
      try {
        await runScenario(scenario, { at, fault })
        played++
      } catch (error) {
        throw new Error(`With '${fault}' at request ${at} of ${frames}: ${(error as Error).message}`, {
          cause: error,
        })
      }
    }
  }
  return played
}

/** The seeds of a random suite: so many, or as many as `ZABRA_SEEDS` says, or only `ZABRA_SEED`. */
export function seedsOf(count: number): number[] {
  const { ZABRA_SEED, ZABRA_SEEDS } = process.env
  if (ZABRA_SEED !== undefined) return [Number(ZABRA_SEED)]
  return Array.from({ length: Number(ZABRA_SEEDS ?? count) }, (_, n) => n + 1)
}

/**
 * From now on connections break at random with a request or a reply on its way, which is lost; those to `spared` hosts do
 * not. Returns what ends it.
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

/** Runs a test with seeds; the one that fails is named. */
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

/** The paths of a tree, without what servers keep for themselves. */
export async function tree(client: Client, path = '/'): Promise<string[]> {
  const paths: string[] = []
  for await (const at of client.walk(path)) if (!at.startsWith('/zookeeper')) paths.push(at)
  return paths
}

/** Calls with the signal of a victim, and once more without it when that has aborted. */
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
