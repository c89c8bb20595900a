import { utf8, type Client } from '@zabra/client/core'
import { describe, expect, it } from 'vitest'
import { Mutex } from '../mutex/index.ts'
import { Queue } from '../queue/index.ts'
import { pausableClock } from '../testing/world.ts'
import { setupEachTest, run, world } from '../testing/setup.ts'

setupEachTest()

/** The part of a handle that the tests check. */
type Grant = (of: Client) => Promise<{ readonly signal: AbortSignal }>

const grants: Record<string, Grant> = {
  'a lock': (of) => new Mutex(of, '/lock').acquire(),
  'a message': async (of) => {
    const queue = new Queue(of, '/q', { codec: utf8 })
    await queue.put('work')
    const { value } = await queue.receive().next()
    return value!
  },
}

/** A client whose process can pause while the reply to a ping is in flight. */
async function sleeper(): Promise<{ asleep: Client; standStill: (ms: number) => Promise<void> }> {
  const process = pausableClock(world)
  const asleep = await world.client({ platform: { clock: process.clock }, sessionTimeoutMs: 12_000 })
  const standStill = async (ms: number): Promise<void> => {
    const underWay: Uint8Array[] = []
    world.faults.toClient = (chunk) => {
      underWay.push(chunk)
      return undefined
    }
    while (underWay.length === 0) await world.advance(100)
    delete world.faults.toClient
    // The server has lost power meanwhile and answers no new request.
    world.faults.toServer = () => undefined
    process.standStill(ms)
    for (const chunk of underWay) world.lastConnection.deliver(chunk)
    await world.advance(1)
  }
  return { asleep, standStill }
}

describe.each(Object.entries(grants))('a holder of %s', (_name, grant) => {
  it('learns of its loss right after a pause, although an old reply makes the connection look healthy', async () => {
    const { asleep, standStill } = await sleeper()
    const { signal } = await run(grant(asleep))
    await world.advance(100)
    await standStill(15_000)
    expect(asleep.state).toBe('connected')
    expect(signal.reason).toMatchObject({ name: 'LostError', reason: 'suspended' })
  })

  it('keeps it while a reply arrives within each session timeout', async () => {
    const { asleep, standStill } = await sleeper()
    const { signal } = await run(grant(asleep))
    await world.advance(60_000)
    await standStill(2000)
    expect(signal.aborted).toBe(false)
  })
})
