import { expect, it } from 'vitest'
import { setupEachTest, world } from '../testing/setup.ts'

setupEachTest()

it('the instrumentation receives each call once, with one end', async () => {
  const begun: string[] = []
  const ended: string[] = []
  const client = await world.client({
    offlineQueue: 1,
    instrumentation: {
      request: ({ operation, path }) => {
        begun.push(`${operation} ${path}`)
        return ({ error }) => void ended.push(`${operation} ${path} ${error?.code ?? 'ok'}`)
      },
    },
  })
  world.lastConnection.cut()
  await world.settle()
  client.getData('/').catch(() => {})
  client.getData('/full').catch(() => {})
  await world.advance(3000)
  expect(begun.length).toBe(ended.length)
  expect(begun).toEqual(['getData /', 'getData /full'])
})
