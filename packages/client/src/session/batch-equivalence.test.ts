import { SeededRandom, type Random } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { bytes, text, ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'

type Call = (client: Client, chrootClient: Client) => Promise<unknown>

/** Makes one turn of random calls: mostly reads of existing, missing and forbidden znodes. */
function drawn(random: Random): Call {
  const path = ['/a', '/b', '/t', '/t/1', '/t/2', '/none', '/secret', '/large'][random.below(8)]!
  const inner = ['/', '/1', '/2', '/none'][random.below(4)]!
  switch (random.below(14)) {
    case 0:
      return (client) => client.setData(path, bytes(`${path} ${random.below(1000)}`))
    case 1:
      return (client) => client.create(path, { data: bytes('new') })
    case 2:
      return (client) => client.delete(path)
    case 3:
      return (client) => client.exists(path)
    case 4:
      return (client) => client.watchOnce(path, 'data')
    case 5:
      return (client) => client.getChildren(path)
    case 6:
      return (client) => client.multiRead([{ op: 'getData', path }])
    case 7:
      return (client) => client.getData(path, { signal: AbortSignal.abort() })
    case 8:
    case 9:
      return (_, chrootClient) => chrootClient.getData(inner)
    case 10:
      return (client) => client.withCodec({ encode: bytes, decode: text }).get(path)
    default:
      return (client) => client.getData(path)
  }
}

const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value ?? null, (key, item: unknown) => {
      // When a write is applied depends on the reads before it.
      if (['order', 'ctime', 'mtime'].includes(key)) return undefined
      return typeof item === 'bigint' ? `${item}n` : item
    }),
  )

/** Describes the outcome of a call, without its counters and times. */
const fateOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(plain, (error: Error & { code?: string; path?: string; maybeApplied?: boolean }) => [
    error.name,
    error.code,
    error.path,
    error.maybeApplied,
    error.message,
  ])

/** Runs the calls of a seed; `cuts` breaks connections between and within turns. */
async function runCalls(
  seed: number,
  batchReads: boolean | { maxReads: number },
  cuts: boolean,
): Promise<{ outcomes: unknown[]; received: string[]; frames: number }> {
  const world = await ManualWorld.start()
  const random = new SeededRandom(seed)
  const received: string[] = []
  const client = await world.client({
    batchReads,
    instrumentation: {
      request: ({ operation, path }) => {
        received.push(`${operation} ${path}`)
        return ({ error }) => void received.push(`${operation} ${path} ${error?.code ?? 'ok'}`)
      },
    },
  })
  for (const path of ['/a', '/b', '/t', '/t/1', '/t/2'])
    await world.outcome(client.create(path, { data: bytes(path) }))
  await world.outcome(client.create('/large', { data: new Uint8Array(90_000) }))
  await world.outcome(
    client.create('/secret', { data: bytes('x'), acl: [{ perms: 31, scheme: 'digest', id: 'x:y' }] }),
  )
  const chrootClient = client.chroot('/t')
  let frames = 0
  world.faults.toServer = (chunk) => {
    frames += chunk.length
    return chunk
  }
  const outcomes: unknown[] = []
  for (let turn = 0; turn < 12; turn++) {
    const calls = Array.from({ length: random.below(40) }, () => drawn(random))
    const reads = calls.map((call) => fateOf(call(client, chrootClient)))
    if (cuts && random.below(10) < 4) {
      if (random.below(2) === 0) world.lastConnection.cut()
      else world.clock.immediate(() => world.clock.immediate(() => world.lastConnection.cut()))
    }
    outcomes.push(...(await world.within(30_000, Promise.all(reads))))
  }
  await world.end()
  return { outcomes, received, frames }
}

it('calls have the same outcomes with and without batchReads', async () => {
  let unbatched = 0
  let batched = 0
  for (let seed = 1; seed <= 20; seed++) {
    const without = await runCalls(seed, false, false)
    const maxReads = 2 + (seed % 5)
    const withBatches = await runCalls(seed, seed % 2 === 0 ? true : { maxReads }, false)
    expect(withBatches.outcomes, `seed ${seed}`).toEqual(without.outcomes)
    expect(withBatches.received, `seed ${seed}`).toEqual(without.received)
    unbatched += without.frames
    batched += withBatches.frames
  }
  expect(batched).not.toBe(unbatched)
})

it('the instrumentation receives one end for every call while connections break', async () => {
  for (let seed = 100; seed < 115; seed++) {
    const { received } = await runCalls(seed, true, true)
    const begun = received.filter((word) => word.split(' ').length === 2)
    const ended = received
      .filter((word) => word.split(' ').length === 3)
      .map((word) => word.replace(/ \S+$/, ''))
    expect(ended.toSorted(), `seed ${seed}`).toEqual(begun.toSorted())
  }
})
