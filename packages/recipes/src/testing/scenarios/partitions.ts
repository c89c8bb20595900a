import type { Client } from '@zabra/client/core'
import { Partitioner, type Share } from '../../partitioner/index.ts'
import { delay } from '../../support/delay.ts'
import { expectEqual, type ScenarioContext } from './context.ts'
import { Fence } from './fence.ts'

/** What a member does with what it gets, and what was wrong with that. */
interface Work {
  readonly body: (client: Client, name: string, share: Share) => Promise<void>
  readonly violations: () => readonly string[]
}

const waitForAbort = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))

/** Members that come, go and lose their connections. */
async function play(
  { prng, clients, names, observer, waitUntilHealed }: ScenarioContext,
  work: (items: string[]) => Promise<Work>,
): Promise<void> {
  const items = Array.from({ length: prng.between(1, 9) }, (_, i) => `item-${i}`)
  const { body, violations } = await work(items)
  const stays = new AbortController()
  const member = async (client: Client, name: string, last: boolean): Promise<void> => {
    for (let life = 0; life < 3; life++) {
      await delay(client, prng.between(0, 3000))
      const stop = new AbortController()
      const staying = last && life === 2
      if (staying) stays.signal.addEventListener('abort', () => stop.abort())
      else void delay(client, prng.between(1000, 9000)).then(() => stop.abort())
      const partitioner = new Partitioner(client, '/p', items, { id: name, settleMs: prng.between(0, 300) })
      await partitioner.run((share) => body(client, name, share), { signal: stop.signal })
    }
  }
  const done = clients.map((client, i) => member(client, names[i]!, i % 2 === 0))
  for (const each of done) each.catch(() => {})
  await delay(observer, 60_000)
  await waitUntilHealed()
  expectEqual('items that two had', violations(), [])
  for (const item of items) {
    await observer.sync(`/p/locks/${item}`)
    const { children } = await observer.getChildren(`/p/locks/${item}`)
    // Names tell who stands there, for whoever has to find out why.
    if (children.length !== 1)
      throw new Error(`${item} has ${children.length} in its line at rest: ${children.join()}`)
  }
  stays.abort()
  await Promise.all(done)
}

/** Everybody stops in time when told to, so that nobody ever believes to have what somebody else has. */
export function runPartitioner(context: ScenarioContext): Promise<void> {
  const { prng, createChecker } = context
  return play(context, async (items) => {
    const ledgers = new Map(items.map((item) => [item, createChecker()]))
    return {
      body: async (client, name, { item, lock: held, signal }) => {
        ledgers.get(item)!.recordGrant(name, held)
        await waitForAbort(signal)
        if (!held.signal.aborted) await delay(client, prng.between(0, 500))
      },
      violations: () => [...ledgers.values()].flatMap((each) => each.violations),
    }
  })
}

/** Nobody is believed: what an item protects takes writes of whoever has it, and of nobody who had it before. */
export function runFencedPartitioner(context: ScenarioContext): Promise<void> {
  const { prng, observer } = context
  return play(context, async (items) => {
    const fences = new Map<string, Fence>()
    for (const item of items) fences.set(item, await Fence.create(observer, `/fenced-${item}`))
    return {
      body: async (client, _name, { item, lock: held, signal }) => {
        const fence = fences.get(item)!
        await fence.write(held, true)
        await Promise.race([waitForAbort(signal), delay(client, prng.between(0, 6000))])
        // Some go on although they were told to stop, until they come to an end or the item is taken away.
        if (prng.chance(50)) await delay(client, prng.between(0, 15_000))
        await fence.write(held, true)
      },
      violations: () => [...fences.values()].flatMap((each) => each.violations),
    }
  })
}
