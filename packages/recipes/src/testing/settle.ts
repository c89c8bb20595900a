import type { Client } from '@zabra/client/core'
import type { ManualWorld } from './world.ts'

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
