import type { Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import { FaultFixture, sampleOf } from './testing/fault-fixture.ts'
import { lives, type Life } from './testing/lives.ts'
import { advanceFor, advanceUntilSettled } from './testing/settle.ts'
import { ManualWorld } from './testing/world.ts'

/** The part of a client that makes requests. */
interface Dispatcher {
  submit(request: unknown): Promise<unknown>
}

/** Longer than any life takes without a fault. */
const LIFE_MS = 30_000

/**
 * Plays a life whose client closes right after it has made the request number `at`, counted from 1, connected or cut off; 0 for never.
 * Returns the number of requests, and the names of the timers that remain when the other client has closed, too.
 */
async function play(life: Life, at: number): Promise<{ requests: number; timers: string[] }> {
  const world = await ManualWorld.start()
  const fixture = new FaultFixture(world)
  const observer = await world.client()
  const { client } = await fixture.victim('victim')
  const { faults } = world
  const open = faults.open!.bind(faults)
  let isCutOff = false
  faults.open = (server) => {
    if (isCutOff && server.host === 'victim') throw new Error('cut off by the test')
    open(server)
  }
  let requests = 0
  let close = (_closing: Promise<void>): void => {}
  const closed = new Promise<void>((resolve) => (close = resolve))
  const { dispatcher } = (client as unknown as { sharedSession: { dispatcher: Dispatcher } }).sharedSession
  const submit = dispatcher.submit.bind(dispatcher)
  dispatcher.submit = (request) => {
    const made = submit(request)
    if (++requests === at) {
      isCutOff = at % 2 === 0
      if (isCutOff)
        for (const each of world.connections) if (each.server.host === 'victim' && !each.isCut) each.cut()
      close(client.close())
    }
    return made
  }
  // What it expects does not come when its client closes.
  const over = life(client, observer, fixture).catch(() => {})
  await advanceUntilSettled(world, LIFE_MS, Promise.race([over, closed]))
  const made = requests
  await advanceUntilSettled(world, LIFE_MS, Promise.all([client.close(), observer.close()]))
  await advanceFor(world, 100)
  const timers = world.clock.pendingTimers().flatMap(({ name }) => (name === 'test' ? [] : [name]))
  await world.end()
  return { requests: made, timers }
}

const idle: Life = (client: Client) => client.exists('/')

it.each(Object.entries(lives))(
  'a client that closes at any request leaves no timer, connected or cut off: %s',
  async (_name, life) => {
    const ofServer = new Set((await play(idle, 1)).timers)
    const { requests } = await play(life, 0)
    const left: string[] = []
    for (const at of sampleOf(requests)) {
      const { timers } = await play(life, at)
      for (const name of timers) if (!ofServer.has(name)) left.push(`request ${at} of ${requests}: ${name}`)
    }
    expect(requests).toBeGreaterThan(1)
    expect(left).toEqual([])
  },
)
