import { afterEach, beforeEach, describe, it } from 'vitest'
import { scenarios, type ScenarioContext } from './testing/scenarios.ts'
import { ManualWorld } from './testing/manual-world.ts'

let world: ManualWorld
beforeEach(async () => {
  world = await ManualWorld.start()
})
afterEach(() => world.end())

/** A server of ours on a simulated clock, network and disk. */
function simulated(batchReads: boolean): ScenarioContext {
  /** Bytes wait on both ways, as in the buffers of a process that stands still. */
  const pause = (): (() => void) => {
    const held: (() => void)[] = []
    world.faults.toServer = (chunk, wire) => void held.push(() => wire.send(chunk))
    world.faults.toClient = (chunk, wire) => {
      const copy = chunk.slice()
      held.push(() => wire.deliver(copy))
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
    cut: () => world.connections.forEach((wire) => wire.cut()),
    isolate() {
      world.connections.forEach((wire) => wire.cut())
      world.faults.open = () => {
        throw new Error('unreachable')
      }
      return () => delete world.faults.open
    },
    async crash() {
      await world.stop()
      await world.restart()
    },
    pause,
  }
}

describe('on a simulated network', () => {
  it.each(scenarios)('$name', async ({ run: play }) => {
    await world.within(120_000, play(simulated(false)))
  })
})

describe('on a simulated network, with reads that leave together', () => {
  it.each(scenarios)('$name', async ({ run: play }) => {
    await world.within(120_000, play(simulated(true)))
  })
})
