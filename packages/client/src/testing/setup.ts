import { afterEach, beforeEach } from 'vitest'
import type { Client } from '../client-api.ts'
import type { ConnectOptions } from '../connect.ts'
import { ManualWorld } from './manual-world.ts'

/** The world of the running test. */
export let world: ManualWorld
/** The first client of the running test. */
export let client: Client
/** The second client of the running test. */
export let other: Client

/** Starts a world before each test of a file, with a client for each of these options, and ends it after the test. */
export function setupEachTest(...clients: readonly Partial<ConnectOptions>[]): void {
  beforeEach(async () => {
    world = await ManualWorld.start()
    const connected: Client[] = []
    for (const options of clients) connected.push(await world.client(options))
    ;[client, other] = connected as [Client, Client]
  })
  afterEach(() => world.end())
}

/** Returns the result of a promise without advancing the clock. */
export const run = <T>(promise: Promise<T>): Promise<T> => world.outcome(promise)
