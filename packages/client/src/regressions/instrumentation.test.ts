import { inspect } from 'node:util'
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

it.each(['ws://alice:s3cret@a:99999/zabra', 'ws://alice:s3cret@a:0/?token=t0ken'])(
  'the error of a URL with a wrong port has none of its secrets: %s',
  async (servers) => {
    const error = await world.connect({ servers }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'USAGE', message: expect.stringContaining('ws://a:') })
    expect(inspect(error)).not.toMatch(/alice|s3cret|t0ken/)
  },
)

it('the user, password and query of a URL reach no observer and no error', async () => {
  const seen: unknown[] = []
  const note = (...parts: readonly unknown[]): void => void seen.push(...parts)
  const client = await world.client({
    servers: 'ws://alice:s3cret@a:2181/zabra?token=t0ken',
    transport: {
      open: (_server, signal) => world.transport.open({ scheme: 'tcp', host: 'a', port: 2181 }, signal),
    },
    onAttemptFailed: ({ server, error }) => note(server, error.message),
    instrumentation: {
      request: ({ server }) => note(server),
      state: ({ server, cause }) => note(server, cause?.message),
    },
  })
  expect(client.server).toBe('ws://a:2181/zabra')
  await world.outcome(client.exists('/'))
  // The server closes a connection, does not answer, and ends the session.
  const restore = world.refuseConnections()
  world.lastConnection.cut()
  await world.advance(2000)
  restore()
  world.faults.toClient = () => undefined
  await world.advance(20_000)
  expect(seen.length).toBeGreaterThan(5)
  expect(seen.join()).toContain('ws://a:2181/zabra did not answer')
  expect(seen.join()).not.toMatch(/alice|s3cret|t0ken/)
})
