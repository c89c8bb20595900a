import type { Client } from '@zabra/client/core'
import { afterEach, beforeEach } from 'vitest'
import { metered, ManualWorld, type Meter } from './world.ts'

/** What each test of a file begins with: a server of its own, and clients that know nothing yet. */
export let world: ManualWorld
/** The first client. */
export let client: Client
/** The second one. */
export let other: Client
/** The third one, where three hosts were asked for. */
export let third: Client
/** Of these clients, in their order. */
export let meters: readonly Meter[]

/**
 * Begins each test of a file, or of a `describe`, with a new world and with a client for each of these hosts; ends the world
 * behind it. The exports of this module are those of the test that runs.
 */
export function setupEachTest(...hosts: readonly string[]): void {
  beforeEach(async () => {
    world = await ManualWorld.start()
    const all = []
    for (const host of hosts) all.push(await metered(world, { servers: `${host}:2181` }))
    ;[client, other, third] = all.map((each) => each.client) as [Client, Client, Client]
    meters = all.map(({ meter }) => meter)
  })
  afterEach(() => world.end())
}

/** What a promise comes to in the world of the test, without any time. */
export const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)

/**
 * Cuts the connections to a host, and refuses new ones until the returned function is called. Clients that were begun with
 * a host of their own are cut off alone.
 */
export function cutOff(host = 'a'): () => void {
  world.faults.open = (server) => {
    if (server.host === host) throw new Error('cut off by the test')
  }
  for (const connection of world.connections)
    if (connection.server.host === host && !connection.isCut) connection.cut()
  return () => void delete world.faults.open
}

/** Cuts off a host until the sessions of its clients are over, for them as well, and lets them begin new ones. */
export async function expireSession(host = 'a'): Promise<void> {
  const restore = cutOff(host)
  await world.advance(20_000)
  restore()
  await world.advance(12_000)
}
