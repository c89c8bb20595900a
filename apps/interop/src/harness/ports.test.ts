import { createServer } from 'node:net'
import { expect, it, vi } from 'vitest'
import { freePort } from './ports.ts'

it('nobody is given a port that another one was given, in this file or in one beside it', async () => {
  vi.resetModules()
  const beside = await import('./ports.ts')
  const given = await Promise.all(
    Array.from({ length: 600 }, (_, n) => (n % 2 === 0 ? freePort() : beside.freePort())),
  )
  expect(new Set(given).size).toBe(given.length)
})

it('a port on which another program listens is given to nobody', async () => {
  const next = (await freePort()) + 1
  const other = createServer()
  await new Promise<void>((listening) => other.listen(next, '127.0.0.1', listening))
  expect(await freePort()).toBeGreaterThan(next)
  await new Promise((closed) => other.close(closed))
})
