import { expect, it } from 'vitest'
import { setupEachTest, world } from './testing/setup.ts'

setupEachTest()

it('invalid options are rejected with a UsageError', async () => {
  for (const wrong of [
    { errorPolicy: { lease: undefined } },
    { auth: [null] },
    { retry: { maxAttempts: 'x' } },
    { retry: { capMs: Number.NaN } },
  ]) {
    await expect(world.connect(wrong as never), JSON.stringify(wrong)).rejects.toMatchObject({
      code: 'USAGE',
    })
  }
  const client = await world.client()
  for (const timeout of [Number.NaN, -1, 'x']) {
    const done = (async () => client.getData('/', { timeoutMs: timeout as never }))()
    await expect(world.outcome(done), String(timeout)).rejects.toMatchObject({ code: 'USAGE' })
  }
})
