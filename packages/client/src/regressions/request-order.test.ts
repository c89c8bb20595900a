import { concatBytes } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { client, other, setupEachTest, world } from '../testing/setup.ts'

setupEachTest({}, {})

it.each([false, true])(
  'an exists watch on a missing znode is ordered before its event (one chunk: %s)',
  async (inOneChunk) => {
    const held: Uint8Array[] = []
    const connection = world.connections[0]!
    if (inOneChunk)
      world.faults.toClient = (chunk, from) => {
        if (from !== connection) return chunk
        held.push(chunk.slice())
        return undefined
      }
    const watching = client.watchOnce('/a', 'exists')
    await world.settle()
    await world.outcome(other.create('/a'))
    await world.settle()
    if (inOneChunk) {
      delete world.faults.toClient
      const all = concatBytes(held)
      connection.deliver(all)
    }
    const watch = await world.outcome(watching)
    const event = await world.outcome(watch.fired)
    expect(watch.order).toBeLessThan(event.order)
  },
)
