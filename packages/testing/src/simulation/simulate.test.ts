import { describe, expect, it } from 'vitest'
import { simulate } from '../index.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('a story in a simulated world', () => {
  it('gives the same end and the same history for the same seed', async () => {
    const story = (seed: number): Promise<[number, number]> =>
      simulate({ seed, servers: 3 }, async (stage) => {
        const client = await stage.client()
        await client.create('/a', bytes('1'))
        stage.crash(3)
        await stage.sleep(5000)
        await client.setData('/a', bytes('2'), { idempotent: true })
        return [stage.world.now, stage.world.hash]
      })
    expect(await story(7)).toEqual(await story(7))
    expect((await story(8))[1]).not.toBe((await story(7))[1])
  })

  it('lets the ephemeral znode of a client go whose machine is gone, and not before its time', async () => {
    const seen = await simulate({ seed: 1 }, async (stage) => {
      const [holder, other] = [await stage.client({ sessionTimeout: 10_000 }), await stage.client()]
      await holder.create('/held', null, { mode: 'ephemeral' })
      stage.crash(holder)
      await stage.sleep(5000)
      const early = await other.exists('/held')
      await stage.sleep(10_000)
      return [early !== undefined, await other.exists('/held')]
    })
    expect(seen).toEqual([true, undefined])
  })

  it('tells who waits for something that never comes', async () => {
    await expect(simulate({ seed: 1, limitMs: 1000 }, () => new Promise(() => {}))).rejects.toThrow(
      'still waits',
    )
    await expect(simulate({ seed: 1 }, (stage) => Promise.resolve(stage.server(2)))).rejects.toThrow(
      'from 1 to 1',
    )
  })

  it('cuts off clients and servers, and lets them come back', async () => {
    const states = await simulate({ seed: 3, servers: 3 }, async (stage) => {
      const client = await stage.client({ sessionTimeout: 20_000 })
      await client.create('/a')
      stage.isolate(client)
      await stage.sleep(15_000)
      const away = client.state
      stage.heal()
      await client.setData('/a', bytes('x'), { idempotent: true })
      return [away === 'connected', client.state]
    })
    expect(states).toEqual([false, 'connected'])
  })
})
