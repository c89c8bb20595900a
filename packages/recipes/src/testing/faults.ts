import type { Client } from '@zabra/client/core'
import type { TappedConnection, ManualWorld } from './world.ts'

/** What happens to one client at one of the frames that it sends. */
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
  /** Counts from 1; handshakes and pings do not count. */
  readonly frame: number
}

/** The host by which the client connects that the fault is meant for. */
export const VICTIM = 'victim'
const SESSION_MS = 12_000
const PING = -2

/** Strikes once, at one frame of the victim; without a fault it only counts. */
export class Injector {
  frames = 0
  /** What happened, for who has to find out why. */
  struck = false
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
    world.faults.toServer = (chunk, wire) => (wire.server.host === VICTIM ? this.#sent(chunk, wire) : chunk)
    world.faults.toClient = (chunk, wire) =>
      wire.server.host === VICTIM ? this.#received(chunk, wire) : chunk
  }

  #sent(chunk: Uint8Array, wire: TappedConnection): Uint8Array | undefined {
    if (this.#silent.has(wire)) return undefined
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    for (let at = 0; at < chunk.length;) {
      const length = 4 + view.getInt32(at)
      const counts = this.#greeted.has(wire) && view.getInt32(at + 4) !== PING
      this.#greeted.add(wire)
      if (counts && ++this.frames === this.#fault?.frame && !this.struck) {
        return this.#strike(this.#fault.kind, chunk, at, wire)
      }
      at += length
    }
    return chunk
  }

  #strike(kind: FaultKind, chunk: Uint8Array, at: number, wire: TappedConnection): Uint8Array | undefined {
    this.struck = true
    const before = at === 0 ? undefined : chunk.subarray(0, at)
    switch (kind) {
      case 'cut before the server reads it':
        this.#world.clock.immediate(() => wire.cut())
        return before
      case 'cut after it was applied, before the reply':
        this.#onReply.set(wire, 'swallow')
        return chunk
      case 'cut after the reply':
        this.#onReply.set(wire, 'deliver')
        return chunk
      case 'session expired there':
        this.#refusedUntil = this.#world.clock.monotonic() + SESSION_MS + 6000
        this.#world.clock.immediate(() => wire.cut())
        return before
      case 'silence for longer than the timeout':
        this.#silent.add(wire)
        this.#refusedUntil = this.#world.clock.monotonic() + SESSION_MS + 1000
        return before
      case 'caller aborted':
        this.#abort.abort()
        return chunk
    }
  }

  #received(chunk: Uint8Array, wire: TappedConnection): Uint8Array | undefined {
    if (this.#silent.has(wire)) return undefined
    const then = this.#onReply.get(wire)
    if (then === undefined) return chunk
    this.#world.clock.immediate(() => wire.cut())
    if (then === 'deliver') this.#onReply.delete(wire)
    return then === 'deliver' ? chunk : undefined
  }
}

/** Lets time pass from timer to timer until the promise settles. */
export async function pass<T>(world: ManualWorld, ms: number, promise: Promise<T>): Promise<T> {
  let settled = false
  const settle = (): void => void (settled = true)
  promise.then(settle, settle)
  await world.settle()
  const end = world.clock.monotonic() + ms
  while (!settled && world.clock.monotonic() < end) await step(world, end)
  if (!settled) throw new Error(`Somebody is stuck: nothing came of it within ${ms} ms`)
  return promise
}

/** Lets all of this time pass. */
export async function idle(world: ManualWorld, ms: number): Promise<void> {
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

/** What is left when everybody has gone: nodes of live sessions, watches on the server and in the clients. */
export async function leftovers(
  world: ManualWorld,
  witness: Client,
  clients: readonly Client[],
): Promise<string[]> {
  const found: string[] = []
  for await (const path of witness.walk('/')) {
    const stat = await witness.exists(path)
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
