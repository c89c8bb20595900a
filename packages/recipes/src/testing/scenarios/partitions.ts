import type { Client } from '@zabra/client/core'
import { Partitioner, type Share } from '../../partitioner/index.ts'
import { pauseFor } from '../../waiting/pause.ts'
import { expectEqual, type ScenarioContext } from './context.ts'
import { Fence } from './fence.ts'

/** What a member does with what it gets, and what was wrong with that. */
interface Work {
  readonly body: (client: Client, name: string, share: Share) => Promise<void>
  readonly wrong: () => readonly string[]
}

const told = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))

/** Members that come, go and lose their connections. */
async function play(
  { prng: dice, clients, names, observer: witness, waitUntilHealed: calm }: ScenarioContext,
  work: (items: string[]) => Promise<Work>,
): Promise<void> {
  const items = Array.from({ length: dice.between(1, 9) }, (_, i) => `item-${i}`)
  const { body, wrong } = await work(items)
  const stays = new AbortController()
  const member = async (client: Client, name: string, last: boolean): Promise<void> => {
    for (let life = 0; life < 3; life++) {
      await pauseFor(client, dice.between(0, 3000))
      const stop = new AbortController()
      const staying = last && life === 2
      if (staying) stays.signal.addEventListener('abort', () => stop.abort())
      else void pauseFor(client, dice.between(1000, 9000)).then(() => stop.abort())
      const partitioner = new Partitioner(client, '/p', items, { id: name, settleMs: dice.between(0, 300) })
      await partitioner.run((share) => body(client, name, share), { signal: stop.signal })
    }
  }
  const done = clients.map((client, i) => member(client, names[i]!, i % 2 === 0))
  for (const each of done) each.catch(() => {})
  await pauseFor(witness, 60_000)
  await calm()
  expectEqual('items that two had', wrong(), [])
  for (const item of items) {
    await witness.sync(`/p/locks/${item}`)
    const { children } = await witness.getChildren(`/p/locks/${item}`)
    // Names tell who stands there, for whoever has to find out why.
    if (children.length !== 1)
      throw new Error(`${item} has ${children.length} in its line at rest: ${children.join()}`)
  }
  stays.abort()
  await Promise.all(done)
}

/** Everybody stops in time when told to, so that nobody ever believes to have what somebody else has. */
export function runPartitioner(cast: ScenarioContext): Promise<void> {
  const { prng: dice, ledger } = cast
  return play(cast, async (items) => {
    const ledgers = new Map(items.map((item) => [item, ledger()]))
    return {
      body: async (client, name, { item, held, signal }) => {
        ledgers.get(item)!.enter(name, held)
        await told(signal)
        if (!held.signal.aborted) await pauseFor(client, dice.between(0, 500))
      },
      wrong: () => [...ledgers.values()].flatMap((each) => each.wrong),
    }
  })
}

/** Nobody is believed: what an item protects takes writes of whoever has it, and of nobody who had it before. */
export function runFencedPartitioner(cast: ScenarioContext): Promise<void> {
  const { prng: dice, observer: witness } = cast
  return play(cast, async (items) => {
    const fences = new Map<string, Fence>()
    for (const item of items) fences.set(item, await Fence.raise(witness, `/fenced-${item}`))
    return {
      body: async (client, _name, { item, held, signal }) => {
        const fence = fences.get(item)!
        await fence.write(held, true)
        await Promise.race([told(signal), pauseFor(client, dice.between(0, 6000))])
        // Some go on although they were told to stop, until they come to an end or the item is taken away.
        if (dice.chance(50)) await pauseFor(client, dice.between(0, 15_000))
        await fence.write(held, true)
      },
      wrong: () => [...fences.values()].flatMap((each) => each.wrong),
    }
  })
}
