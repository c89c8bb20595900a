// oxlint-disable-next-line no-restricted-imports -- the tokens file holds hashes
import { createHash } from 'node:crypto'
import { ManualClock, MemoryDisk, type HttpRequest } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { defaults } from '../../settings/index.ts'
import { TestServer } from '../../testing/test-server.ts'
import { AdminAccess } from './access.ts'
import { apiRoutes } from './api/api.ts'
import { adminCommands } from './commands.ts'
import type { AdminRole } from './roles.ts'

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

const requestOf = (authorization: string | undefined, peer?: HttpRequest['peer']): HttpRequest => ({
  method: 'GET',
  path: '/commands/monitor',
  query: new URLSearchParams(),
  headers: { host: 'localhost', ...(authorization === undefined ? {} : { authorization }) },
  remote: { host: '10.0.0.1', port: 1 },
  isSecure: true,
  peer,
  body: emptyBody(),
})

it('counts guesses at a digest also where the certificate of the caller has a role', () => {
  const settings = defaults({ dataDir: '/d', clientPort: 0, adminRoleView: ['x509:CN=scraper'] })
  const access = new AdminAccess(settings, new ManualClock(), () => {})
  const refusalOf = (authorization: string | undefined): number | undefined => {
    const request = requestOf(authorization, { subject: 'CN=scraper', alternativeNames: [] })
    return access.refusalOf(request, authorization === undefined ? 'view' : 'admin', [])?.status
  }
  const guesses = Array.from({ length: 4 }, (_, i) => refusalOf(`digest super:${i}`))
  expect(guesses).toEqual([403, 403, 403, 429])
  expect(refusalOf(undefined)).toBeUndefined()
})

it('has no caller wait for another one of its address that repeats wrong credentials, but for guesses', () => {
  const settings = defaults({
    dataDir: '/d',
    clientPort: 0,
    adminRoleView: ['sasl:ada'],
    saslUsers: { ada: 'pass' },
  })
  const clock = new ManualClock()
  let failed = 0
  const access = new AdminAccess(settings, clock, () => failed++)
  const as = (authorization: string): number | undefined =>
    access.refusalOf(requestOf(authorization), 'view', [])?.status
  const login = (password: string): string => `Basic ${btoa(`ada:${password}`)}`
  const [ada, stale, other] = [login('pass'), 'Bearer stale', login('old')]
  for (let i = 0; i < 100; i++) {
    expect([as(stale), as(other), as(ada)]).toEqual([401, 401, undefined])
    clock.advance(15_000)
  }
  expect(failed).toBe(200)
  // The third wrong password has the address wait, as without them.
  expect([as(login('guess')), as(ada), as(stale)]).toEqual([401, 429, 429])
  clock.advance(1000)
  expect([as(stale), as(ada)]).toEqual([401, undefined])
  // What is remembered of an address is bounded: what is repeated late counts again.
  for (let i = 0; i < 8; i++) {
    expect(as(login(`${i}`))).toBe(401)
    clock.advance(30_000)
  }
  expect([as(stale), as(ada)]).toEqual([401, 429])
})

it('counts long credentials each time, without remembering them', () => {
  const access = new AdminAccess(defaults({ dataDir: '/d', clientPort: 0 }), new ManualClock(), () => {})
  const request = requestOf(`Bearer ${'x'.repeat(3000)}`)
  const statuses = Array.from({ length: 4 }, () => access.refusalOf(request, 'view', [])?.status)
  expect(statuses).toEqual([401, 401, 401, 429])
})

/** What each role includes, itself among it. */
const included: Readonly<Record<Exclude<AdminRole, 'health'>, readonly AdminRole[]>> = {
  metrics: ['metrics'],
  view: ['view', 'metrics'],
  operate: ['operate', 'view', 'metrics'],
  backup: ['backup', 'view', 'metrics'],
  admin: ['admin', 'backup', 'operate', 'view', 'metrics'],
}

it('lets each role do what it includes, and nothing else, at every route and command', async () => {
  const routes = [
    ...apiRoutes.map(({ path, method, role }) => ({
      path: path.replace('{session}', '0x1').replace('{member}', '1'),
      method,
      role,
    })),
    ...adminCommands.map(({ names: [name], method, role }) => ({ path: `/commands/${name!}`, method, role })),
    { path: '/commands', method: 'GET', role: 'view' },
    { path: '/metrics', method: 'GET', role: 'metrics' },
  ]
  const disk = new MemoryDisk()
  const lines = Object.keys(included).map(
    (role) => `${role}:${role}:${createHash('sha256').update(role).digest('hex')}\n`,
  )
  disk.putFile('/data/tokens', new TextEncoder().encode(lines.join('')))
  const server = await TestServer.start({ adminTokensFile: '/data/tokens', adminAnonymous: ['health'] }, disk)
  const wrong: string[] = []
  for (const { path, method, role } of routes)
    for (const caller of ['anonymous', ...Object.keys(included)]) {
      const headers: Record<string, string> =
        caller === 'anonymous' ? {} : { authorization: `Bearer ${caller}` }
      const status = await statusOf(server, server.http.open(path, { method, headers, from: '10.0.0.1' }))
      const may =
        role === 'health' ||
        (included as Readonly<Record<string, readonly string[]>>)[caller]?.includes(role) === true
      const isRefused = status === (caller === 'anonymous' ? 401 : 403)
      if (may === isRefused) wrong.push(`${caller}: ${method} ${path} ${status}`)
    }
  expect(wrong).toEqual([])
  await server.stop()
})

/** Advances the clock until the answer has come: some take several turns. */
async function statusOf(server: TestServer, answer: Promise<{ readonly status: number }>): Promise<number> {
  let status: number | undefined
  void answer.then((come) => (status = come.status))
  while (status === undefined) await server.advance(10)
  return status
}
