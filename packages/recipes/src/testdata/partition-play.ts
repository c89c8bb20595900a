import type { Client } from '@zabra/client/core'
import { Partitioner } from '../partitioner/index.ts'
import { Chaos, Dice } from './chaos.ts'
import { idle, leftovers, pass } from './faults.ts'
import { Ledger } from './ledger.ts'
import { World } from './world.ts'

/** Members that come, go and lose their connections; gives what went wrong. */
export async function playPartitions(seed: number): Promise<string[]> {
  const dice = new Dice(seed)
  const world = await World.start()
  const hosts = Array.from({ length: dice.between(2, 6) }, (_, i) => `p${i}`)
  const clients: Client[] = []
  for (const host of hosts) clients.push(await world.client({ servers: `${host}:2181` }))
  const items = Array.from({ length: dice.between(1, 9) }, (_, i) => `item-${i}`)
  const ledgers = new Map(items.map((item) => [item, new Ledger()]))
  const chaos = new Chaos(world, dice, hosts)
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void world.clock.after(ms, 'work of a test', resolve))
  const stays = new AbortController()
  const member = async (client: Client, name: string, last: boolean): Promise<void> => {
    for (let life = 0; life < 3; life++) {
      await sleep(dice.between(0, 3000))
      const stop = new AbortController()
      const staying = last && life === 2
      if (staying) stays.signal.addEventListener('abort', () => stop.abort())
      else void sleep(dice.between(1000, 9000)).then(() => stop.abort())
      const partitioner = new Partitioner(client, '/p', items, { id: name, settleMs: dice.between(0, 300) })
      await partitioner.run(
        async ({ item, held, signal }) => {
          ledgers.get(item)!.enter(name, held)
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
          if (!held.signal.aborted) await sleep(dice.between(0, 500))
        },
        { signal: stop.signal },
      )
    }
  }
  const done = clients.map((client, i) => member(client, hosts[i]!, i % 2 === 0))
  for (const each of done) each.catch(() => {})
  world.clock.after(25_000, 'end of the chaos', () => chaos.stop())
  await idle(world, 100_000)
  const witness = await world.client()
  const wrong = [...ledgers.values()].flatMap((ledger) => ledger.wrong)
  for (const item of items) {
    const holders = await pass(world, 1000, witness.getChildren(`/p/locks/${item}`))
    if (holders.children.length !== 1) wrong.push(`${item} has ${holders.children.length} in its line at rest`)
  }
  stays.abort()
  await pass(world, 60_000, Promise.all(done))
  await idle(world, 1000)
  wrong.push(...(await pass(world, 10_000, leftovers(world, witness, clients))))
  await world.end()
  return wrong
}
