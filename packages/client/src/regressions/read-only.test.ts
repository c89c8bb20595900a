import { ErrorCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

/** Sets the read-only byte of the next connect response. */
function connectReadOnly(): void {
  let isDone = false
  world.faults.toClient = (chunk) => {
    if (isDone || chunk.length !== 41) return chunk
    isDone = true
    return Uint8Array.of(...chunk.subarray(0, 40), 1)
  }
}

it('a probe that throws counts as an unknown result, and the timer does not throw', async () => {
  connectReadOnly()
  const { transport } = world
  const client = await world.client({
    readOnly: true,
    transport: {
      ...transport,
      probe: () => {
        throw new Error('no such thing')
      },
    },
  })
  expect(client.state).toBe('connectedReadOnly')
  await world.advance(10_000)
  expect(client.state).toBe('connected')
})

it('a session that only read-only servers know is requested with an empty password', async () => {
  const passwords: string[] = []
  connectReadOnly()
  const client = await world.client({ readOnly: true })
  expect(client.state).toBe('connectedReadOnly')
  world.faults.toServer = (chunk) => {
    if (chunk.length === 49) passwords.push(Buffer.from(chunk.subarray(32, 48)).toString('hex'))
    return chunk
  }
  const waiting = client.create('/a', { waitForReadWrite: true })
  await world.advance(3000)
  expect(client.state).toBe('connected')
  await waiting
  expect(new Set(passwords)).toEqual(new Set(['0'.repeat(32)]))
})

it('requests that waited for a read-write server are sent before later ones', async () => {
  const client = await world.client()
  world.answerWith(ErrorCode.NOTREADONLY)
  const parent = client.create('/p', { waitForReadWrite: true })
  await world.settle()
  world.lastConnection.cut()
  await world.settle()
  const child = client.create('/p/c', { waitForReadWrite: true })
  const results = await world.within(5000, Promise.allSettled([parent, child]))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
})

it.each([{ retry: false }, { retry: { maxAttempts: 1 } }, { retry: { maxElapsedMs: 100 } }] as const)(
  'a write that waits for a read-write server is sent there, whatever its retries: %j',
  async (limits) => {
    const client = await world.client()
    world.answerWith(ErrorCode.NOTREADONLY)
    const write = client.create('/a', { waitForReadWrite: true, ...limits })
    await world.advance(500)
    world.lastConnection.cut()
    expect((await world.within(5000, write)).path).toBe('/a')
  },
)
