import { expect, it } from 'vitest'
import { nodeServices } from './index.ts'

it('the servers of a service are those of its SRV records', async () => {
  const asked: string[] = []
  const found = await nodeServices('_zk._tcp.example', async (name) => {
    asked.push(name)
    return [{ name: 'zk1.example', port: 2182, priority: 10, weight: 5 }]
  })
  expect(found).toEqual([{ host: 'zk1.example', port: 2182 }])
  expect(asked).toEqual(['_zk._tcp.example'])
})

it('a name without servers rejects, with the name', async () => {
  // `.invalid` never exists, and where there is no resolver at all the question fails too.
  await expect(nodeServices('_zk._tcp.nothing.invalid')).rejects.toThrow('nothing.invalid')
})
