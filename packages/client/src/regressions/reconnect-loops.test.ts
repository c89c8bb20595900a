import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { text } from '../testing/manual-world.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('a request that makes the server close the connection each time is rejected in the end', async () => {
  const client = await world.client()
  await world.outcome(client.create('/a'))
  // The server has a lower jute.maxbuffer than this client assumes: it closes the connection instead of replying.
  world.faults.toServer = (chunk, connection) => {
    if (chunk.length < 3000) return chunk
    connection.cut()
    return undefined
  }
  let settled = false
  client.setData('/a', new Uint8Array(5000), { version: 0 }).catch(() => (settled = true))
  const before = world.connections.length
  await world.advance(120_000)
  expect({ settled, reconnects: world.connections.length - before < 20 }).toEqual({
    settled: true,
    reconnects: true,
  })
})

it('a server that closes each connection after the handshake is retried with growing delays', async () => {
  const client = await world.client({ sessionTimeoutMs: 3000 })
  let connections = 0
  world.faults.toServer = (chunk, connection) => {
    if (chunk.length === 49) {
      connections++
      world.clock.after(1, 'drop', () => connection.cut())
    }
    return chunk
  }
  world.lastConnection.cut()
  await world.advance(60_000)
  expect(client.session.generation).toBe(1)
  expect(connections).toBeLessThan(90)
})

it('connect never resolves with a closed client', async () => {
  const abort = new AbortController()
  const outcome = await world.within(
    5000,
    world
      .connect({
        signal: abort.signal,
        instrumentation: {
          state: ({ state }: { state: string }) =>
            state === 'connected' && queueMicrotask(() => abort.abort()),
        },
      } as never)
      .then(
        ({ state }) => state as string,
        (error: Error) => error.name,
      ),
  )
  expect(['connected', 'AbortError']).toContain(outcome)
})

it('a createMissing that races with the removal of containers backs off, up to eight tries', async () => {
  const client = await world.client()
  const refused = world.answerWith(ErrorCode.NONODE, {
    times: 7,
    matches: ({ frame }) => text(frame.subarray(16, 20)) === '/a/b',
  })
  let done = false
  void client.createMissing(['/a/b']).then(() => (done = true))
  await world.settle()
  expect(refused()).toBeGreaterThan(0)
  // Eight tries without a delay are no backoff.
  expect(done).toBe(false)
  await world.advance(20_000)
  expect(done).toBe(true)
})
