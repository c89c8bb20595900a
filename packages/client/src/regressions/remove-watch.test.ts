import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'
import { bytes } from '../testing/manual-world.ts'

setupEachTest()

it('closing a persistent watch while a one-shot watch is open removes it from the server in the end', async () => {
  const received: number[] = []
  const client = await world.client({
    instrumentation: { event: ({ watchers }) => void received.push(watchers) },
  })
  const other = await world.client()
  await world.outcome(client.create('/a', { data: bytes('') }))
  const watcher = await world.outcome(client.watch('/a'))
  const once = await world.outcome(client.watchOnce('/a', 'data'))
  await world.outcome(watcher.close())
  await world.outcome(once.close())
  for (let i = 0; i < 5; i++) await world.outcome(other.setData('/a', bytes(`${i}`)))
  await world.settle()
  expect(received).toEqual([])
})
