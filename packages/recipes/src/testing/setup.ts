import type { Client } from '@zabra/client/core'
import { afterEach, beforeEach } from 'vitest'
import { metered, ManualWorld, type Meter } from './world.ts'

/** The world of the current test, with a new server. */
export let world: ManualWorld
/** Client of the first host. */
export let client: Client
/** Client of the second host. */
export let other: Client
/** Client of the third host, if there are three. */
export let third: Client
/** The meters of these clients, in their order. */
export let meters: readonly Meter[]

/**
 * Before each test of a file or `describe`, creates a world and a client for each host; ends the world after it.
 * The exports of this module belong to the running test.
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

/** Returns the result of a promise without advancing the clock. */
export const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)

/**
 * Cuts the connections to a host and refuses new ones until the returned function is called. Clients that connect
 * through a host name of their own are affected alone.
 */
export function cutOff(host = 'a'): () => void {
  world.faults.open = (server) => {
    if (server.host === host) throw new Error('cut off by the test')
  }
  for (const connection of world.connections)
    if (connection.server.host === host && !connection.isCut) connection.cut()
  return () => void delete world.faults.open
}

/** Cuts a host off until the sessions of its clients have expired on both sides, then lets them start new ones. */
export async function expireSession(host = 'a'): Promise<void> {
  const restore = cutOff(host)
  await world.advance(20_000)
  restore()
  await world.advance(12_000)
}
