import { lazyNetwork } from '@zabra/runtime/node/dial'
import { describe, expect, it } from 'vitest'
import { networkTransport } from '../transport.ts'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

describe('a client whose transport module loads lazily', () => {
  it('waits for the module within the timeout of an attempt, and connects once it is loaded', async () => {
    let loaded: () => void = () => {}
    const load = new Promise<typeof world.network>((resolve) => (loaded = () => resolve(world.network)))
    const errors: string[] = []
    const connecting = world.connect({
      servers: 'tls://a:2181',
      transport: networkTransport({ tls: lazyNetwork('TLS', () => load) }),
      instrumentation: { attempt: ({ error }) => void errors.push(error.message) },
    })
    while (errors.length === 0) await world.advance(1000)
    expect(errors[0]).toMatch(/^tls:\/\/a:2181 did not answer within \d+ ms$/)
    loaded()
    const client = await world.within(12_000, connecting)
    expect(await world.outcome(client.exists('/'))).toBeDefined()
    void client.close()
  })

  it('stops waiting for the module when its signal aborts', async () => {
    const enough = new AbortController()
    const connecting = world.connect({
      servers: 'tls://a:2181',
      transport: networkTransport({ tls: lazyNetwork('TLS', () => new Promise(() => {})) }),
      signal: enough.signal,
    })
    await world.settle()
    enough.abort(new Error('enough'))
    await expect(world.outcome(connecting)).rejects.toThrow('connect: aborted by the caller')
  })
})
