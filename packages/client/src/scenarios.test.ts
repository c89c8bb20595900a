import { afterEach, beforeEach, describe, it } from 'vitest'
import { scenarios, type Stage } from './testdata/scenarios.ts'
import { World } from './testdata/world.ts'

let world: World
beforeEach(async () => {
  world = await World.start()
})
afterEach(() => world.end())

/** A server of ours on a simulated clock, network and disk. */
function simulated(batchReads: boolean): Stage {
  /** Bytes wait on both ways, as in the buffers of a process that stands still. */
  const pause = (): (() => void) => {
    const held: (() => void)[] = []
    world.interference.toServer = (chunk, wire) => void held.push(() => wire.send(chunk))
    world.interference.toClient = (chunk, wire) => {
      const copy = chunk.slice()
      held.push(() => wire.deliver(copy))
      return undefined
    }
    return () => {
      delete world.interference.toServer
      delete world.interference.toClient
      for (const go of held) go()
    }
  }
  return {
    shortSession: 4000,
    connect: (options) => world.connecting({ batchReads, ...options }),
    cut: () => world.wires.forEach((wire) => wire.cut()),
    isolate() {
      world.wires.forEach((wire) => wire.cut())
      world.interference.open = () => {
        throw new Error('unreachable')
      }
      return () => delete world.interference.open
    },
    async crash() {
      await world.stop()
      await world.restart()
    },
    pause,
  }
}

describe('on a simulated network', () => {
  it.each(scenarios)('$name', async ({ play }) => {
    await world.within(120_000, play(simulated(false)))
  })
})

describe('on a simulated network, with reads that leave together', () => {
  it.each(scenarios)('$name', async ({ play }) => {
    await world.within(120_000, play(simulated(true)))
  })
})
