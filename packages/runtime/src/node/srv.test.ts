import { expect, it } from 'vitest'
import { resolveSrv } from './index.ts'

it('resolveSrv returns the hosts and ports of the SRV records', async () => {
  const requested: string[] = []
  const found = await resolveSrv('_zk._tcp.example', async (name) => {
    requested.push(name)
    return [{ name: 'zk1.example', port: 2182, priority: 10, weight: 5 }]
  })
  expect(found).toEqual([{ host: 'zk1.example', port: 2182 }])
  expect(requested).toEqual(['_zk._tcp.example'])
})
