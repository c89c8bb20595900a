import { expect, it } from 'vitest'
import { client as a, cutOff, eachTest, meters, other as b, run, world } from '../testdata/each-test.ts'
import { LeaderElection } from './leader-election.ts'

eachTest('a', 'b')

it.each([false, true])(
  'who observes looks once more when the connection is back, and not again and again (leaders announce themselves: %s)',
  async (announce) => {
    const election = new LeaderElection(a, '/e', { id: 'a', announce })
    const stop = new AbortController()
    const leading = election.lead(
      async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      },
      { signal: stop.signal },
    )
    leading.catch(() => {})
    await world.settle()
    const watcher = new LeaderElection(b, '/e', { id: 'b', announce })
    const seen = world.collect(watcher.observe({ signal: stop.signal }))
    await world.settle()
    meters[1]!.take()
    cutOff('b')()
    await world.advance(1000)
    expect(meters[1]!.take().requests.length).toBeLessThanOrEqual(5)
    expect(seen).toHaveLength(1)
    stop.abort()
    await world.settle()
    await run(election[Symbol.asyncDispose]())
  },
)
