import type { Client } from '@zabra/client/core'
import { Partitioner, type Share } from '../../partitioner/index.ts'
import { delay } from '../../support/delay.ts'
import { expectEqual, type ScenarioContext } from './context.ts'
import { Fence } from './fence.ts'

/** The body that members run, and the violations that it found. */
interface Work {
  readonly body: (client: Client, name: string, share: Share) => Promise<void>
  readonly violations: () => readonly string[]
}

const waitForAbort = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))

/** Runs members that join, leave and lose their connections. */
async function runMembers(
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
  expectEqual('items with two holders', violations(), [])
  for (const item of items) {
    await observer.sync(`/p/locks/${item}`)
    const { children } = await observer.getChildren(`/p/locks/${item}`)
    // The names in the message show which contenders wait.
    if (children.length !== 1)
      throw new Error(`${item} has ${children.length} contenders in its queue in the end: ${children.join()}`)
  }
  stays.abort()
  await Promise.all(done)
}

/** Every body stops in time, so that the local views of members never overlap. */
export function runPartitioner(context: ScenarioContext): Promise<void> {
  const { prng, createChecker } = context
  return runMembers(context, async (items) => {
    const checkers = new Map(items.map((item) => [item, createChecker()]))
    return {
      body: async (client, name, { item, lock: held, signal }) => {
        checkers.get(item)!.recordGrant(name, held)
        await waitForAbort(signal)
        if (!held.signal.aborted) await delay(client, prng.between(0, 500))
      },
      violations: () => [...checkers.values()].flatMap((each) => each.violations),
    }
  })
}

/** Bodies may overlap; the znode protected by an item must accept writes of the current holder only. */
export function runFencedPartitioner(context: ScenarioContext): Promise<void> {
  const { prng, observer } = context
  return runMembers(context, async (items) => {
    const fences = new Map<string, Fence>()
    for (const item of items) fences.set(item, await Fence.create(observer, `/fenced-${item}`))
    return {
      body: async (client, _name, { item, lock: held, signal }) => {
        const fence = fences.get(item)!
        await fence.write(held, true)
        await Promise.race([waitForAbort(signal), delay(client, prng.between(0, 6000))])
        // Some bodies ignore the request to stop until they end or the item is taken away.
        if (prng.chance(50)) await delay(client, prng.between(0, 15_000))
        await fence.write(held, true)
      },
      violations: () => [...fences.values()].flatMap((each) => each.violations),
    }
  })
}
