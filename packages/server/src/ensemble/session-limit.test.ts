import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import type { SessionId } from '../core/types.ts'
import { encodeRevalidation, PacketType } from '../core/zab/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import { RawClient } from '../testing/test-server.ts'
import { MOST_FORWARDED_SESSIONS } from './forwarded-sessions.ts'
import type { Member } from './member.ts'
import { Ensemble } from './testing/ensemble.ts'
import { closeSession, createSession, observerInfo, playObserver, SAID } from './testing/played-learner.ts'

const PORTS = [
  ['the leader', 2003],
  ['a follower that keeps observers', 5001],
] as const

const memberLine = (id: number, role = 'participant'): string =>
  `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:${role};${4000 + id}`

/** Starts three voters that servers may join, of which 1 is an observer master if that is its port. */
async function startVoters(port: number, settings: Partial<ServerSettings> = {}): Promise<Ensemble> {
  const ensemble = new Ensemble(3, { reconfigEnabled: true, skipAcl: true, ...settings })
  const one = ensemble.member(1)
  if (port === 5001) one.settings = Object.freeze({ ...one.settings, observerMasterPort: port })
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  return ensemble
}

/** Starts server 9, which the others do not name: it follows the leader without a vote. */
async function startUnlisted(ensemble: Ensemble): Promise<void> {
  const lines = [1, 2, 3].map((id) => memberLine(id))
  await ensemble.join(9, parseConfiguration([...lines, memberLine(9, 'observer')].join('\n')))
  await ensemble.until('the server', () => ensemble.server(9).serving)
}

const idOf = (number: number): SessionId => 0xa00_0000_0000_0000n + BigInt(number)

/** Plays an observer that no configuration names, and creates sessions through it. */
async function playStranger(ensemble: Ensemble, port: number, count: number, first = observerInfo(10)) {
  const stranger = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid, first)
  let created = 0
  const create = async (more: number): Promise<void> => {
    for (let i = 0; i < more; i++) {
      stranger.send(PacketType.request, -1, createSession(idOf(++created), 40_000))
      if (i % 500 === 0) await ensemble.untilIdle()
    }
    await ensemble.advance(100)
  }
  await create(count)
  return { ...stranger, create }
}

const sessions = (ensemble: Ensemble): number => ensemble.server(3).stats().sessions
const statsOf = (ensemble: Ensemble, id: number) => (ensemble.server(id) as Member).service!.stats
const logged = (ensemble: Ensemble, text: string): string[] =>
  ensemble.lines.filter((line) => line.includes(text))

/** Sends the connect request of a client. Returns its connection once it is closed, or has the response. */
async function connect(ensemble: Ensemble, id: number, resume?: RawClient): Promise<RawClient> {
  const connection = await ensemble.network.connect({ host: 'x', port: 4000 + id })
  const client = new RawClient(ensemble, connection)
  client.handshake(resume === undefined ? {} : { resume: resume.session! })
  await ensemble.until('the answer', () => client.closed || client.frames.length > 0)
  return client
}

it.each(PORTS)(
  'a session too many of servers that no configuration names is refused at %s, and they and their other sessions stay',
  async (_, port) => {
    const ensemble = await startVoters(port)
    const one = await playStranger(ensemble, port, MOST_FORWARDED_SESSIONS - 10)
    const has = ensemble.server(1).stats().lastZxid
    const other = await playObserver(ensemble, port, has, observerInfo(11))
    const informed = (): number => other.seen.packets.filter((name) => name === 'inform').length
    await ensemble.until('all sessions', () => sessions(ensemble) === MOST_FORWARDED_SESSIONS - 10)
    const before = informed()
    for (let i = 0; i < 100; i++)
      other.send(PacketType.request, -1, createSession(0xb00_0000_0000_0000n + BigInt(i), 40_000))
    await ensemble.advance(1000)
    expect([one.seen.closed, other.seen.closed, sessions(ensemble)]).toEqual([
      false,
      false,
      MOST_FORWARDED_SESSIONS,
    ])
    // Each refusal is a transaction that changes nothing: the answer for a server of Apache ZooKeeper.
    expect(informed()).toBe(before + 100)
    expect(logged(ensemble, 'Refused a session')).toEqual([
      expect.stringMatching(/^\d+ [13] warn .*"peer":11/),
    ])
    await ensemble.client(2)
    await ensemble.client(3)
    one.send(PacketType.request, -1, closeSession(idOf(1)))
    await ensemble.advance(1000)
    other.send(PacketType.request, -1, createSession(0xb00_0000_0000_1000n, 40_000))
    await ensemble.advance(1000)
    const left = MOST_FORWARDED_SESSIONS + 2
    expect([one.seen.closed, other.seen.closed, sessions(ensemble)]).toEqual([false, false, left])
    // When the connections are lost, the sessions end, and leave room.
    for (const { connection } of [one, other]) connection.destroy()
    await ensemble.until('the end of all sessions', () => sessions(ensemble) === 0, 80_000)
    const again = await playStranger(ensemble, port, 10)
    await ensemble.advance(1000)
    expect([again.seen.closed, sessions(ensemble)]).toEqual([false, 10])
  },
)

it('a server of Zabra that no configuration names closes the connection of a client whose session is refused, and no other', async () => {
  const ensemble = await startVoters(2003)
  const stranger = await playStranger(ensemble, 2003, MOST_FORWARDED_SESSIONS - 2)
  await startUnlisted(ensemble)
  const clients = [await ensemble.client(9), await ensemble.client(9)]
  for (let i = 0; i < 5; i++) {
    const refused = await connect(ensemble, 9)
    expect([refused.closed, refused.frames.length]).toEqual([true, 0])
  }
  const { refusals, closed } = statsOf(ensemble, 9)
  expect([refusals.sessions, closed.refused]).toEqual([5, 5])
  expect(logged(ensemble, 'Closed: its session is refused')).toEqual([
    expect.stringMatching(/^\d+ 9 info .*add this server to the configuration/),
  ])
  expect(await ensemble.create(clients[0]!, '/a')).toBe('1:0')
  expect([clients.map((one) => one.closed), stranger.seen.closed]).toEqual([[false, false], false])
  expect(logged(ensemble, 'is lost')).toEqual([])
  clients[1]!.ask(2, OpCode.closeSession)
  expect(await ensemble.receive(clients[1]!, 1)).toEqual(['2:0'])
  await ensemble.client(9)
  expect((await connect(ensemble, 9)).closed).toBe(true)
  // Once a configuration names it, its clients have as many sessions as they want.
  const member = await ensemble.client(2)
  expect(await ensemble.reconfigure(member, { joining: memberLine(9, 'observer') })).toBe('77:0')
  await ensemble.advance(1000)
  await ensemble.allServe()
  for (let i = 0; i < 5; i++) await ensemble.client(9)
  expect(await ensemble.create(await ensemble.client(9), '/b')).toBe('1:0')
  // The digests of transactions are compared: all trees are the same.
  await ensemble.advance(1000)
  const zxids = [1, 2, 3, 9].map((id) => ensemble.server(id).stats().lastZxid)
  expect(new Set(zxids).size).toBe(1)
})

it('a client that comes to a server which no configuration names with a session too many is disconnected, and goes on elsewhere', async () => {
  const ensemble = await startVoters(2003)
  const stranger = await playStranger(ensemble, 2003, MOST_FORWARDED_SESSIONS - 1)
  await startUnlisted(ensemble)
  const stays = await ensemble.client(9)
  const [moves, over] = [await ensemble.client(2), await ensemble.client(2)]
  over.ask(1, OpCode.closeSession)
  await ensemble.receive(over, 1)
  const refused = await connect(ensemble, 9, moves)
  expect([refused.closed, refused.frames.length]).toEqual([true, 0])
  expect(logged(ensemble, 'Closed: its session is refused')).toHaveLength(1)
  // It has not left the server where it was.
  expect(await ensemble.create(moves, '/a')).toBe('1:0')
  expect((await connect(ensemble, 3, moves)).takeConnectResponse()).toMatchObject({ timeOut: 10_000 })
  // A session that is over takes no room, so that its client gets to know it.
  expect((await connect(ensemble, 9, over)).takeConnectResponse()).toMatchObject({ timeOut: 0 })
  expect(await ensemble.create(stays, '/b')).toBe('1:0')
  expect([stranger.seen.closed, logged(ensemble, 'is lost')]).toEqual([false, []])
  stranger.send(PacketType.request, -1, closeSession(idOf(1)))
  await ensemble.advance(1000)
  expect((await connect(ensemble, 9, moves)).takeConnectResponse()).toMatchObject({ timeOut: 10_000 })
})

it.each(PORTS)(
  'an observer at %s that revalidates a session too many gets no answer if it runs Apache ZooKeeper, and one of Zabra a refusal',
  async (_, port) => {
    const ensemble = await startVoters(port)
    const { seen, send } = await playStranger(ensemble, port, MOST_FORWARDED_SESSIONS)
    const has = ensemble.server(1).stats().lastZxid
    const zabra = await playObserver(ensemble, port, has, observerInfo(11, SAID))
    const client = await ensemble.client(2)
    const session = client.session!.sessionId
    for (const one of [send, zabra.send]) {
      one(PacketType.revalidate, -1, encodeRevalidation({ session, timeout: 10_000 }))
      one(PacketType.revalidate, -1, encodeRevalidation({ session: 99n, timeout: 10_000 }))
    }
    await ensemble.advance(1000)
    expect(seen.revalidated.map((data) => [...data])).toEqual([[0, 0, 0, 0, 0, 0, 0, 99, 0]])
    expect(zabra.seen.revalidated.map((data) => data.slice(8))).toEqual([
      Uint8Array.of(0, 1),
      Uint8Array.of(0),
    ])
    expect([seen.closed, zabra.seen.closed]).toEqual([false, false])
    expect(await ensemble.create(client, '/a')).toBe('1:0')
  },
)

it('a local session that may not become global ends, with its connection', async () => {
  const ensemble = await startVoters(2003, {
    localSessionsEnabled: true,
    localSessionsUpgradingEnabled: true,
  })
  await playStranger(ensemble, 2003, MOST_FORWARDED_SESSIONS)
  await startUnlisted(ensemble)
  const [client, other] = [await ensemble.client(9), await ensemble.client(9)]
  client.create(1, '/a', 1)
  await ensemble.until('the end of the connection', () => client.closed)
  expect(client.frames.map((frame) => frame.remaining)).toEqual([])
  expect((await connect(ensemble, 9, client)).takeConnectResponse()).toMatchObject({ timeOut: 0 })
  expect(await ensemble.create(other, '/b')).toBe('1:0')
  expect(await ensemble.create(await ensemble.client(9), '/c')).toBe('1:0')
})
