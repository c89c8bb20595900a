import { createServer } from 'node:net'
import { expect, it, vi } from 'vitest'
import { freePort } from './ports.ts'

it('freePort never returns a port twice, in one test file or in several at once', async () => {
  vi.resetModules()
  const otherFile = await import('./ports.ts')
  const given = await Promise.all(
    Array.from({ length: 600 }, (_, n) => (n % 2 === 0 ? freePort() : otherFile.freePort())),
  )
  expect(new Set(given).size).toBe(given.length)
})

it('freePort skips a port on which another program listens', async () => {
  const next = (await freePort()) + 1
  const other = createServer()
  await new Promise<void>((listening) => other.listen(next, '127.0.0.1', listening))
  expect(await freePort()).toBeGreaterThan(next)
  await new Promise((closed) => other.close(closed))
})
