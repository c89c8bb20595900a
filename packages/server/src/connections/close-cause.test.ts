import { OpCode, type Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { Member } from '../ensemble/member.ts'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import type { ServerSettings } from '../settings/index.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import { CLOSE_CAUSES, type CloseCause } from './close-cause.ts'

const SAMPLE = /^zabra_connections_closed_total\{reason="(\w+)"\} (\d+)$/gm

/** Returns the causes that are counted, each as often as it occurred. */
async function closedBy({ http }: Pick<TestServer, 'http'>): Promise<string[]> {
  const counts = [...(await http.request('/metrics')).text.matchAll(SAMPLE)]
  expect(counts.map(([, cause]) => cause)).toEqual([...CLOSE_CAUSES])
  return counts.flatMap(([, cause, count]) => Array.from({ length: Number(count) }, () => cause!))
}

const operate = (server: TestServer, method: string, path: string, body = ''): Promise<unknown> =>
  server.http.request(`/api/v1${path}`, { method, body })
const idOf = (client: RawClient): string => `0x${client.session!.sessionId.toString(16)}`
const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const LONG = '/watched'.repeat(2000)

/** Ends one connection. `client` has a session. */
type End = (server: TestServer, client: RawClient) => unknown
type Row = [cause: CloseCause, when: string, end: End, settings?: Partial<ServerSettings>]

const rows: Row[] = [
  ['client', 'its client closes it', (_, client) => client.connection.end()],
  ['network', 'the network fails', (_, client) => client.connection.cut()],
  ['command', 'a four-letter command is answered', (server) => server.command('ruok')],
  [
    'refused',
    'its session is unknown',
    (server, { session }) =>
      server.client({ resume: { ...session!, sessionId: 5n }, password: new Uint8Array(16) }),
  ],
  ['refused', 'its client has seen a later transaction', (server) => server.client({ seen: 999n })],
  ['session_closed', 'its client ends the session', (_, client) => client.ask(1, OpCode.closeSession)],
  ['session_expired', 'its session expires', (server) => server.advance(30_000)],
  [
    'reconnected',
    'its client connects again',
    (server, client) => server.client({ resume: client.session! }),
  ],
  [
    'idle',
    'it sends no request in time',
    async (server, client) => {
      await server.open()
      for (let ping = 1; ping < 10; ping++) {
        client.ask(-2, OpCode.ping)
        await server.advance(2000)
      }
    },
  ],
  ['protocol', 'it sends an op code of servers', (_, client) => client.ask(1, OpCode.createSession)],
  [
    'protocol',
    'a request is shorter than its header',
    (_, client) => client.connection.write(Uint8Array.of(0, 0, 0, 1, 0)),
  ],
  [
    'protocol',
    'its first bytes are HTTP',
    async (server) => (await server.open()).connection.write(text('GET / HTTP/1.1\r\n\r\n')),
  ],
  [
    'too_large',
    'a request is longer than jute.maxbuffer',
    (_, client) => client.connection.write(Uint8Array.of(0, 255, 0, 0)),
  ],
  [
    'memory',
    'it holds most of the memory for clients',
    (_, client) => {
      for (let i = 1; i < 20; i++) client.read(i, OpCode.exists, `${LONG}/${i}`, true)
    },
    { clientMemoryBytes: 200_000 },
  ],
  [
    'slow_reader',
    'it does not read the answer to its command',
    async (server, client) => {
      for (let i = 1; i <= 500; i++) client.read(i, OpCode.exists, `${LONG}/${i}`, true)
      await server.untilIdle()
      const reader = await server.open()
      reader.send(text('wchp'))
      reader.connection.pause()
      for (let ping = 0; ping < 6; ping++) {
        client.ask(-2, OpCode.ping)
        await server.advance(2000)
      }
    },
  ],
  [
    'login',
    'its credentials are of an unknown scheme',
    (_, client) =>
      client.ask(-4, OpCode.auth, (w: Writer) => {
        w.int(0)
        w.string('none')
        w.buffer(null)
      }),
  ],
  [
    'killed',
    'an operator closes it',
    (server, client) => operate(server, 'DELETE', `/connections/${idOf(client)}`),
  ],
  [
    'killed',
    'an operator ends its session',
    (server, client) => operate(server, 'DELETE', `/sessions/${idOf(client)}`),
  ],
  [
    'drained',
    'the server drains',
    async (server) => {
      await operate(server, 'POST', '/drain', '{"seconds":1}')
      await server.advance(2000)
    },
  ],
  [
    'disk_full',
    'its session cannot be stored',
    async (server) => {
      server.disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
      await server.client()
    },
  ],
]

describe('a connection that ends is counted once', () => {
  it.each(rows)('as %s when %s', async (cause, _, end, settings) => {
    const server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'], ...settings })
    const client = await server.connect()
    expect(await closedBy(server)).toEqual([])
    await end(server, client)
    await server.untilIdle()
    expect(await closedBy(server)).toEqual([cause])
    await server.stop()
  })

  it('as stopping when the server stops, and srst does not reset the counts', async () => {
    const server = await TestServer.start()
    await server.connect()
    await server.connect()
    await server.command('srst')
    const { stats } = (server.server as Member).service!
    await server.stop()
    expect(stats.closed).toMatchObject({ stopping: 2, command: 1, client: 0, role_ended: 0 })
  })

  it('as moved when its session is resumed on another member, as role_ended when its member has no leader', async () => {
    const ensemble = await Ensemble.start(3)
    const [leader, follower] = [ensemble.leader!, ensemble.leader === 1 ? 2 : 1]
    const client = await ensemble.client(follower)
    await ensemble.client(leader, { resume: client.session! })
    client.create(1, '/a')
    await ensemble.advance(1000)
    expect(await closedBy(ensemble.member(follower))).toEqual(['moved'])
    const { text: metrics } = await ensemble.member(follower).http.request('/metrics')
    expect(metrics).toContain('\nzabra_sessions_ended_total{reason="moved"} 1\n')
    await ensemble.client(follower)
    await ensemble.member(leader).crash()
    await ensemble.until('a new leader', () => ensemble.leader !== leader && ensemble.leader !== undefined)
    await ensemble.advance(1000)
    expect(await closedBy(ensemble.member(follower))).toEqual(['moved', 'role_ended'])
  })

  it('in each way that there is', () => {
    const tested = [...rows.map(([cause]) => cause), 'stopping', 'moved', 'role_ended']
    expect(CLOSE_CAUSES.filter((cause) => !tested.includes(cause))).toEqual([])
  })
})

it('as many connections are counted as have ended', async () => {
  const server = await TestServer.start()
  const connect = server.network.connect.bind(server.network)
  let opened = 0
  server.network.connect = (...to) => {
    opened++
    return connect(...to)
  }
  for (const [, , end] of rows.slice(0, 8)) await end(server, await server.connect())
  await server.untilIdle()
  const { size } = (server.server as Member).service!.connections
  expect(await closedBy(server)).toHaveLength(opened - size)
  expect(size).toBeGreaterThan(0)
  await server.stop()
})

it.each<[string, End]>([
  ['its client ends the session', (_, client) => client.ask(1, OpCode.closeSession)],
  ['a four-letter command is answered', (server) => server.command('ruok')],
])('a connection is not held by a timer once it has ended, where %s', async (_, end) => {
  const server = await TestServer.start()
  await end(server, await server.connect())
  await server.untilIdle()
  expect(await closedBy(server)).toHaveLength(1)
  const timers = server.clock.pendingTimers().map(({ name }) => name)
  expect(timers).not.toContain('client that does not read its last bytes')
})
