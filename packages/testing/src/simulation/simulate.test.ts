import { describe, expect, it } from 'vitest'
import { simulate } from '../index.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('simulate', () => {
  it('the same seed gives the same result and the same event hash', async () => {
    const scenario = (seed: number): Promise<[number, number]> =>
      simulate({ seed, servers: 3 }, async (simulation) => {
        const client = await simulation.client()
        await client.create('/a', { data: bytes('1') })
        simulation.crash(3)
        await simulation.sleep(5000)
        await client.setData('/a', bytes('2'), { idempotent: true })
        return [simulation.world.now, simulation.world.hash]
      })
    expect(await scenario(7)).toEqual(await scenario(7))
    expect((await scenario(8))[1]).not.toBe((await scenario(7))[1])
  })

  it('the ephemeral znode of a crashed client is deleted after the session timeout, not before', async () => {
    const seen = await simulate({ seed: 1 }, async (simulation) => {
      const [holder, other] = [
        await simulation.client({ sessionTimeoutMs: 10_000 }),
        await simulation.client(),
      ]
      await holder.create('/held', { data: null, mode: 'ephemeral' })
      simulation.crash(holder)
      await simulation.sleep(5000)
      const early = await other.exists('/held')
      await simulation.sleep(10_000)
      return [early !== undefined, await other.exists('/held')]
    })
    expect(seen).toEqual([true, undefined])
  })

  it('a scenario that never settles rejects', async () => {
    await expect(simulate({ seed: 1, limitMs: 1000 }, () => new Promise(() => {}))).rejects.toThrow(
      'still pending',
    )
    await expect(
      simulate({ seed: 1 }, (simulation) => Promise.resolve(simulation.server(2))),
    ).rejects.toThrow('from 1 to 1')
  })

  it('an isolated client reconnects after healing', async () => {
    const states = await simulate({ seed: 3, servers: 3 }, async (simulation) => {
      const client = await simulation.client({ sessionTimeoutMs: 20_000 })
      await client.create('/a')
      simulation.isolate(client)
      await simulation.sleep(15_000)
      const away = client.state
      simulation.heal()
      await client.setData('/a', bytes('x'), { idempotent: true })
      return [away === 'connected', client.state]
    })
    expect(states).toEqual([false, 'connected'])
  })
})
