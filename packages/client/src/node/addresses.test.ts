// oxlint-disable no-restricted-imports -- a server on a real port, and a stand-in for the resolver of the system
import dns from 'node:dns'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createSocketServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type Server } from '@zabra/server'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { connect } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-addresses-'))
let server: Server
beforeAll(async () => {
  const settings = { clientPort: 0, clientPortAddress: '127.0.0.1', dataDir: folder }
  server = await createServer(settings)
})
afterEach(() => vi.restoreAllMocks())
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

type Found = { address: string; family: number }[] | undefined
/** Stubs name resolution with what `found` returns at each lookup; undefined is an unknown name. */
function resolving(found: (lookup: number) => Found): () => number {
  let lookups = 0
  const lookup = (
    name: string,
    _options: unknown,
    done: (error: Error | null, found?: Found) => void,
  ): void => {
    const answer = found(++lookups)
    if (answer === undefined)
      done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }))
    else done(null, answer)
  }
  vi.spyOn(dns, 'lookup').mockImplementation(lookup as never)
  return () => lookups
}

it('an attempt tries all addresses of a name, one after the other', async () => {
  // No server listens at the first address.
  const lookups = resolving(() => [
    { address: '127.0.0.77', family: 4 },
    { address: '127.0.0.1', family: 4 },
  ])
  let failed = 0
  const client = await connect({
    servers: `zk.test:${server.addresses.client.port}`,
    signal: AbortSignal.timeout(10_000),
    instrumentation: { attempt: () => void failed++ },
  })
  expect([client.state, lookups(), failed]).toEqual(['connected', 1, 0])
  await client.close()
})

// Only Linux has all addresses from 127.0.0.1 on without a setting.
it.runIf(process.platform === 'linux')(
  'an address whose server accepts connections and serves none does not hide the others of its name',
  async () => {
    const { port } = server.addresses.client
    const refusing = createSocketServer((socket) => socket.destroy()).listen(port, '127.0.0.77')
    await once(refusing, 'listening')
    resolving(() => [
      { address: '127.0.0.77', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ])
    let seed = 1
    vi.spyOn(Math, 'random').mockImplementation(
      () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647,
    )
    const client = await connect({ servers: `zk.test:${port}`, signal: AbortSignal.timeout(10_000) })
    expect(client.state).toBe('connected')
    await client.close()
    refusing.close()
  },
)

it('each attempt resolves the name again, and an unknown name only fails that attempt', async () => {
  const reasons: string[] = []
  const lookups = resolving((lookup) => (lookup < 3 ? undefined : [{ address: '127.0.0.1', family: 4 }]))
  const client = await connect({
    servers: `zk.test:${server.addresses.client.port}`,
    signal: AbortSignal.timeout(10_000),
    instrumentation: { attempt: ({ error }) => void reasons.push(error.message) },
  })
  expect(lookups()).toBe(3)
  expect(reasons).toEqual([expect.stringContaining('ENOTFOUND'), expect.stringContaining('ENOTFOUND')])
  await client.close()
})
