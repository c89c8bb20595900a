import { expect, it } from 'vitest'
import { ClosedError } from '@zabra/client/core'
import { client as a, cutOff, setupEachTest, meters, other as b, run, world } from '../testing/setup.ts'
import { text } from '../testing/world.ts'
import { LeaderElection } from './leader-election.ts'

setupEachTest('a', 'b')

it.each([false, true])(
  'an observer reads once after a reconnect, without a loop (announce: %s)',
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

it.each([false, true])(
  'an observer continues when its reads lose the connection repeatedly (announce: %s)',
  async (announce) => {
    const watcher = new LeaderElection(b, '/e', { id: 'b', announce })
    const stop = new AbortController()
    const seen = world.collect(watcher.observe({ signal: stop.signal }))
    await world.settle()
    expect(seen).toEqual([undefined])
    let left = 7
    world.faults.toServer = (chunk, wire) => {
      if (left === 0 || wire.server.host !== 'b' || !text(chunk).includes('/e')) return chunk
      left--
      wire.cut()
      return undefined
    }
    const election = new LeaderElection(a, '/e', { id: 'a', announce })
    const leading = election.lead(
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
      {
        signal: stop.signal,
      },
    )
    leading.catch(() => {})
    await world.advance(30_000)
    expect(left).toBe(0)
    expect(seen).toMatchObject([undefined, { id: 'a' }])
    stop.abort()
    await world.advance(1000)
    await run(election[Symbol.asyncDispose]())
    expect(world.server.stats().watches).toBe(0)
  },
)

it('an observer ends with its client, and rejects for a finished client', async () => {
  const watcher = new LeaderElection(b, '/e', { id: 'b' })
  const seen: unknown[] = []
  const watching = (async () => {
    for await (const leader of watcher.observe()) seen.push(leader)
  })()
  await world.settle()
  await world.within(1000, b.close())
  await run(watching)
  expect(seen).toEqual([undefined])
  await expect(run(watcher.observe().next())).rejects.toBeInstanceOf(ClosedError)
})
