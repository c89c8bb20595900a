import type { Client } from '@zabra/client/core'
import { Partitioner } from '../../partitioner/index.ts'
import { pauseFor } from '../../waiting/pause.ts'
import { demand, type Cast } from './cast.ts'

/** Members that come, go and lose their connections. */
export async function playPartitions({ dice, clients, names, witness, ledger, calm }: Cast): Promise<void> {
  const items = Array.from({ length: dice.between(1, 9) }, (_, i) => `item-${i}`)
  const ledgers = new Map(items.map((item) => [item, ledger()]))
  const stays = new AbortController()
  const member = async (client: Client, name: string, last: boolean): Promise<void> => {
    for (let life = 0; life < 3; life++) {
      await pauseFor(client, dice.between(0, 3000))
      const stop = new AbortController()
      const staying = last && life === 2
      if (staying) stays.signal.addEventListener('abort', () => stop.abort())
      else void pauseFor(client, dice.between(1000, 9000)).then(() => stop.abort())
      const partitioner = new Partitioner(client, '/p', items, { id: name, settleMs: dice.between(0, 300) })
      await partitioner.run(
        async ({ item, held, signal }) => {
          ledgers.get(item)!.enter(name, held)
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
          if (!held.signal.aborted) await pauseFor(client, dice.between(0, 500))
        },
        { signal: stop.signal },
      )
    }
  }
  const done = clients.map((client, i) => member(client, names[i]!, i % 2 === 0))
  for (const each of done) each.catch(() => {})
  await pauseFor(witness, 60_000)
  await calm()
  demand('items that two had', [...ledgers.values()].flatMap(({ wrong }) => wrong), [])
  for (const item of items) {
    await witness.sync(`/p/locks/${item}`)
    const { children } = await witness.getChildren(`/p/locks/${item}`)
    // Names tell who stands there, for whoever has to find out why.
    if (children.length !== 1) throw new Error(`${item} has ${children.length} in its line at rest: ${children.join()}`)
  }
  stays.abort()
  await Promise.all(done)
}
