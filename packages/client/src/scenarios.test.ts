import { describe, it } from 'vitest'
import { setupEachTest, world } from './testing/setup.ts'
import { scenarios, type ScenarioContext } from './testing/scenarios.ts'

setupEachTest()

/** A Zabra server on a simulated clock, network and disk. */
function simulated(batchReads: boolean): ScenarioContext {
  /** Holds back bytes in both directions, as the buffers of a stopped process do. */
  const pause = (): (() => void) => {
    const held: (() => void)[] = []
    world.faults.toServer = (chunk, connection) => void held.push(() => connection.send(chunk))
    world.faults.toClient = (chunk, connection) => {
      const copy = chunk.slice()
      held.push(() => connection.deliver(copy))
      return undefined
    }
    return () => {
      delete world.faults.toServer
      delete world.faults.toClient
      for (const go of held) go()
    }
  }
  return {
    shortSession: 4000,
    connect: (options) => world.connect({ batchReads, ...options }),
    cut: () => world.connections.forEach((connection) => connection.cut()),
    isolate() {
      world.connections.forEach((connection) => connection.cut())
      world.refuseConnections()
      return () => delete world.faults.open
    },
    async crash() {
      await world.stop()
      await world.restart()
    },
    pause,
  }
}

describe('scenarios on a simulated network', () => {
  it.each(scenarios)('$name', async ({ run }) => {
    await world.within(120_000, run(simulated(false)))
  })
})

describe('scenarios on a simulated network, with batched reads', () => {
  it.each(scenarios)('$name', async ({ run }) => {
    await world.within(120_000, run(simulated(true)))
  })
})
