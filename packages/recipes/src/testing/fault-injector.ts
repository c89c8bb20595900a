import type { Client } from '@zabra/client/core'
import type { TappedConnection, ManualWorld } from './world.ts'

/** The faults that can be injected at one frame of a client. */
export const faultKinds = [
  'cut before the server reads it',
  'cut after it was applied, before the reply',
  'cut after the reply',
  'session expired there',
  'silence for longer than the timeout',
  'caller aborted',
] as const
export type FaultKind = (typeof faultKinds)[number]

export interface Fault {
  readonly kind: FaultKind
  /** Number of the frame, counted from 1; handshakes and pings do not count. */
  readonly frame: number
}

/** Host name of the client that the fault affects. */
export const VICTIM = 'victim'
const SESSION_MS = 12_000
const PING = -2

/** Injects one fault at one frame of the victim; without a fault it only counts frames. */
export class FaultInjector {
  frames = 0
  /** True once the fault was injected. */
  hasStruck = false
  readonly #world: ManualWorld
  readonly #fault: Fault | undefined
  readonly #abort: AbortController
  readonly #greeted = new Set<TappedConnection>()
  readonly #onReply = new Map<TappedConnection, 'deliver' | 'swallow'>()
  readonly #silent = new Set<TappedConnection>()
  #refusedUntil = 0

  constructor(world: ManualWorld, abort: AbortController, fault?: Fault) {
    this.#world = world
    this.#fault = fault
    this.#abort = abort
    world.faults.open = ({ host }) => {
      if (host === VICTIM && world.clock.monotonic() < this.#refusedUntil)
        throw new Error('refused by the test')
    }
    world.faults.toServer = (chunk, connection) =>
      connection.server.host === VICTIM ? this.#sent(chunk, connection) : chunk
    world.faults.toClient = (chunk, connection) =>
      connection.server.host === VICTIM ? this.#received(chunk, connection) : chunk
  }

  #sent(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined {
    if (this.#silent.has(connection)) return undefined
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    for (let at = 0; at < chunk.length;) {
      const length = 4 + view.getInt32(at)
      const counts = this.#greeted.has(connection) && view.getInt32(at + 4) !== PING
      this.#greeted.add(connection)
      if (counts && ++this.frames === this.#fault?.frame && !this.hasStruck) {
        return this.#strike(this.#fault.kind, chunk, at, connection)
      }
      at += length
    }
    return chunk
  }

  #strike(
    kind: FaultKind,
    chunk: Uint8Array,
    at: number,
    connection: TappedConnection,
  ): Uint8Array | undefined {
    this.hasStruck = true
    const before = at === 0 ? undefined : chunk.subarray(0, at)
    switch (kind) {
      case 'cut before the server reads it':
        this.#world.clock.immediate(() => connection.cut())
        return before
      case 'cut after it was applied, before the reply':
        this.#onReply.set(connection, 'swallow')
        return chunk
      case 'cut after the reply':
        this.#onReply.set(connection, 'deliver')
        return chunk
      case 'session expired there':
        this.#refusedUntil = this.#world.clock.monotonic() + SESSION_MS + 6000
        this.#world.clock.immediate(() => connection.cut())
        return before
      case 'silence for longer than the timeout':
        this.#silent.add(connection)
        this.#refusedUntil = this.#world.clock.monotonic() + SESSION_MS + 1000
        return before
      case 'caller aborted':
        this.#abort.abort()
        return chunk
    }
  }

  #received(chunk: Uint8Array, connection: TappedConnection): Uint8Array | undefined {
    if (this.#silent.has(connection)) return undefined
    const then = this.#onReply.get(connection)
    if (then === undefined) return chunk
    this.#world.clock.immediate(() => connection.cut())
    if (then === 'deliver') this.#onReply.delete(connection)
    return then === 'deliver' ? chunk : undefined
  }
}

/** Advances the clock from timer to timer until the promise settles. */
export async function advanceUntilSettled<T>(
  world: ManualWorld,
  ms: number,
  promise: Promise<T>,
): Promise<T> {
  let settled = false
  const settle = (): void => void (settled = true)
  promise.then(settle, settle)
  await world.settle()
  const end = world.clock.monotonic() + ms
  while (!settled && world.clock.monotonic() < end) await step(world, end)
  if (!settled) throw new Error(`The promise has not settled within ${ms} ms`)
  return promise
}

/** Advances the clock by `ms` milliseconds. */
export async function advanceFor(world: ManualWorld, ms: number): Promise<void> {
  const end = world.clock.monotonic() + ms
  await world.settle()
  while (world.clock.monotonic() < end) await step(world, end)
}

async function step(world: ManualWorld, end: number): Promise<void> {
  const now = world.clock.monotonic()
  const next = Math.min(world.clock.pendingTimers()[0]?.at ?? end, end)
  world.clock.advance(Math.max(0, next - now))
  await world.settle()
}

/** Returns what clients left behind: ephemeral znodes, and watches on the server and in the clients. */
export async function leftovers(
  world: ManualWorld,
  observer: Client,
  clients: readonly Client[],
): Promise<string[]> {
  const found: string[] = []
  for await (const path of observer.walk('/')) {
    const stat = await observer.exists(path)
    if (stat !== undefined && stat.ephemeralOwner !== 0n) found.push(`node ${path}`)
  }
  const { watches } = world.server.stats()
  if (watches > 0) found.push(`${watches} watches on the server`)
  for (const client of clients) {
    const { size } = (client as unknown as { sharedSession: { watches: { size: number } } }).sharedSession
      .watches
    if (size > 0) found.push(`${size} watches in a client`)
  }
  for (const { name } of world.clock.pendingTimers()) {
    if (/lease|revocation/.test(name)) found.push(`timer ${name}`)
  }
  return found
}
