import {
  ANYONE,
  makeZxid,
  OpCode,
  writeCreateRequest,
  writeReconfigRequest,
  Writer,
  writeSetDataRequest,
} from '@zabra/protocol'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import {
  encodeAckEpoch,
  encodeLearnerInfo,
  encodeRevalidation,
  encodeTouches,
  PacketType,
  PROTOCOL_VERSION,
  withExtension,
} from '../core/zab/index.ts'
import type { Member } from './member.ts'
import { RawConnection } from './testing/election-fixture.ts'
import { Ensemble } from './testing/ensemble.ts'
import { createSession, observerInfo, packetOf, playObserver, SAID } from './testing/played-learner.ts'

function firstPacketOf(serverId: number): Uint8Array {
  const data = encodeLearnerInfo({ serverId, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  return packetOf(PacketType.followerInfo, makeZxid(1, 0), data)
}

/** Connects to a port, sends bytes, and waits a while. */
async function dial(ensemble: Ensemble, port: number, bytes: Uint8Array): Promise<RawConnection> {
  const raw = new RawConnection(await ensemble.network.connect({ host: 'x', port }))
  raw.connection.write(bytes)
  await ensemble.advance(100)
  return raw
}

it('the leader refuses a server that no configuration names, unless reconfiguration is enabled', async () => {
  const ensemble = await Ensemble.start(3)
  expect(await dial(ensemble, 2003, firstPacketOf(9))).toMatchObject({ closed: true, received: '' })
  expect(ensemble.lines.join('\n')).toContain('server 9 is not in the configuration')
  const open = await Ensemble.start(3, { reconfigEnabled: true })
  expect((await dial(open, 2003, firstPacketOf(9))).received).not.toBe('')
})

it('a connection that claims the id of a synced member does not disturb that member', async () => {
  const ensemble = await Ensemble.start(3)
  await ensemble.member(2).crash()
  const before = ensemble.lines.length
  for (let i = 0; i < 20; i++) await dial(ensemble, 2003, firstPacketOf(1))
  const client = await ensemble.client(1)
  client.create(1, '/a')
  client.read(2, OpCode.exists, '/a')
  expect(await ensemble.receive(client, 2)).toEqual(['1:0', '2:0'])
  expect(
    ensemble.lines.slice(before).filter((line) => /Looking for a leader|does not lead/.test(line)),
  ).toEqual([])
})

it('a connection that accepts the epoch with the id of a synced member does not displace that member', async () => {
  const ensemble = await Ensemble.start(3)
  await ensemble.member(2).crash()
  const before = ensemble.lines.length
  const raws = []
  for (let i = 0; i < 10; i++) {
    const raw = await dial(ensemble, 2003, firstPacketOf(1))
    raw.connection.write(packetOf(PacketType.ackEpoch, 0, encodeAckEpoch(1)))
    raw.connection.write(packetOf(PacketType.ack, makeZxid(1, 0), null))
    await ensemble.advance(100)
    raws.push(raw)
  }
  expect(raws.map(({ closed, received }) => [closed, received])).toEqual(raws.map(() => [true, '']))
  const client = await ensemble.client(1)
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  const lines = ensemble.lines.slice(before)
  expect(lines.filter((line) => /Looking for a leader|does not lead/.test(line))).toEqual([])
  expect(lines.some((line) => line.includes('server 1 is connected already'))).toBe(true)
})

it.each([
  ['the leader', 2003, {}],
  ['the leader, where servers may join', 2003, { reconfigEnabled: true }],
  ['a follower that keeps observers', 5001, { reconfigEnabled: true }],
])('%s continues when a connection sends a malformed first packet', async (_, port, settings) => {
  const ensemble = new Ensemble(3, settings)
  const one = ensemble.member(1)
  one.settings = Object.freeze({ ...one.settings, observerMasterPort: 5001 })
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  for (const data of [null, new Uint8Array(7), new Uint8Array(12).fill(0x7f)]) {
    const raw = await dial(ensemble, port, packetOf(PacketType.observerInfo, 0, data))
    expect(raw.closed).toBe(true)
  }
  expect([ensemble.leader, [...ensemble.members.values()].map(({ failure }) => failure)]).toEqual([
    3,
    [undefined, undefined, undefined],
  ])
})

/** Starts three voters, of which 1 is an observer master, of a configuration with an observer 4. */
async function startVoters(): Promise<Ensemble> {
  const ensemble = new Ensemble(4, { observers: [4] })
  const one = ensemble.member(1)
  one.settings = Object.freeze({ ...one.settings, observerMasterPort: 5001 })
  for (const id of [1, 2, 3]) await ensemble.member(id).start()
  await ensemble.allServe()
  return ensemble
}

it('an observer master refuses a server that no configuration names', async () => {
  const ensemble = await startVoters()
  expect((await dial(ensemble, 5001, firstPacketOf(9))).closed).toBe(true)
  expect(ensemble.lines.join('\n')).toContain('server 9 is not in the configuration')
})

it('an observer that is ahead of its follower is synced after the next commit', async () => {
  const ensemble = await startVoters()
  const client = await ensemble.client(2)
  const { lastZxid } = ensemble.server(1).stats()
  const { seen } = await playObserver(ensemble, 5001, lastZxid + 1)
  expect([seen.closed, seen.packets]).toEqual([false, ['leaderInfo']])
  client.create(1, '/a')
  await ensemble.until('the reply', () => client.frames.length > 0)
  await ensemble.advance(100)
  expect([seen.closed, seen.packets]).toEqual([false, ['leaderInfo', 'diff', 'newLeader', 'upToDate']])
})

it.each([
  ['the leader', 2003],
  ['a follower', 5001],
])('%s closes the connection of an observer whose packet is malformed, and continues', async (_, port) => {
  for (const type of [PacketType.revalidate, PacketType.request, PacketType.ping]) {
    const ensemble = await startVoters()
    const client = await ensemble.client(1)
    const { seen, send } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    expect([seen.closed, seen.packets.includes('upToDate')]).toEqual([false, true])
    send(type, -1, new Uint8Array(3))
    await ensemble.advance(100)
    expect(seen.closed).toBe(true)
    expect(await ensemble.create(client, '/a')).toBe('1:0')
  }
})

it('connections of an unknown server stay while the host that a configuration names for it is looked up', async () => {
  const ensemble = await Ensemble.start(3, { reconfigEnabled: true, skipAcl: true })
  const { connections, add } = await startUnknownServer(ensemble)
  const lookups: ((addresses: string[]) => void)[] = []
  ensemble.resolve = () => new Promise((resolve) => lookups.push(resolve))
  await add('nine.example')
  await ensemble.advance(1000)
  expect([lookups.length > 0, connections.map(({ closed }) => closed)]).toEqual([true, [false, false]])
  for (const resolve of lookups) resolve(['127.0.0.1'])
  await ensemble.advance(1000)
  expect(connections.map(({ closed }) => closed)).toEqual([false, false])
})

/** Opens connections of server 9, which no configuration names, to the quorum and election ports of the leader. */
async function startUnknownServer(ensemble: Ensemble) {
  const hello = new Writer(64)
  hello.long(-65_536n)
  hello.longNumber(9)
  hello.buffer(new TextEncoder().encode('127.0.0.1:3009'))
  const connections = [await dial(ensemble, 2003, firstPacketOf(9)), await dial(ensemble, 3003, hello.take())]
  expect(connections.map(({ closed }) => closed)).toEqual([false, false])
  /** Adds the server to the ensemble, at a host. */
  const add = async (host: string): Promise<void> => {
    const client = await ensemble.client(1)
    client.ask(7, OpCode.reconfig, (w) =>
      writeReconfigRequest(w, {
        joiningServers: `server.9=${host}:2009:3009;4009`,
        leavingServers: null,
        newMembers: null,
        curConfigId: -1n,
      }),
    )
    expect(await ensemble.receive(client, 1)).toEqual(['7:0'])
  }
  return { connections, add }
}

it('connections of an unknown server are closed when a configuration names it at another address', async () => {
  const ensemble = await Ensemble.start(3, { reconfigEnabled: true, skipAcl: true })
  const { connections, add } = await startUnknownServer(ensemble)
  await add('10.9.9.9')
  await ensemble.until('the end of both connections', () => connections.every(({ closed }) => closed))
  expect(ensemble.leader).toBe(3)
})

/** Starts three voters of an ensemble that servers may join, of which 1 is an observer master. */
async function startOpenVoters(): Promise<Ensemble> {
  const ensemble = new Ensemble(3, { reconfigEnabled: true })
  const one = ensemble.member(1)
  one.settings = Object.freeze({ ...one.settings, observerMasterPort: 5001 })
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  return ensemble
}

const PORTS = [
  ['the leader', 2003],
  ['a follower that keeps observers', 5001],
] as const

it.each(PORTS)(
  'an unknown server that forwards requests of a super user to %s changes no membership and no protected node',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { seen, send } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    expect([seen.closed, seen.packets.includes('upToDate')]).toEqual([false, true])
    const forward = (type: number, write: (writer: Writer) => void): void => {
      const writer = new Writer(64)
      writer.long(0x400_0000_0000_0001n)
      writer.int(1)
      writer.int(type)
      write(writer)
      send(PacketType.request, -1, writer.take(), [{ scheme: 'super', id: '' }])
    }
    forward(OpCode.createSession, (w) => w.int(30_000))
    forward(OpCode.create, (w) =>
      writeCreateRequest(w, { path: '/mine', data: null, acl: [{ perms: 31, id: ANYONE }], flags: 0 }),
    )
    forward(OpCode.setData, (w) =>
      writeSetDataRequest(w, { path: '/zookeeper/config', data: null, version: -1 }),
    )
    forward(OpCode.reconfig, (w) =>
      writeReconfigRequest(w, {
        joiningServers: null,
        leavingServers: '1',
        newMembers: null,
        curConfigId: -1n,
      }),
    )
    const client = await ensemble.client(2)
    client.sync(1)
    client.read(2, OpCode.exists, '/mine')
    expect(await ensemble.receive(client, 2)).toEqual(['1:0', '2:0'])
    client.read(3, OpCode.getData, '/zookeeper/config')
    await ensemble.until('the reply', () => client.frames.length > 0)
    const [reply] = client.replies()
    expect(new TextDecoder().decode(reply!.body.buffer() ?? undefined)).toContain('server.1=')
    expect(ensemble.lines.join('\n')).toContain('The identities of its clients are not believed')
  },
)

it.each(PORTS)(
  'packets that %s does not expect of a learner take one line of the log in 10 s',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { seen, send } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    for (let i = 0; i < 100; i++) send(99, i, null)
    await ensemble.advance(100)
    expect(seen.closed).toBe(false)
    expect(ensemble.lines.filter((line) => line.includes('unexpected packet'))).toHaveLength(1)
  },
)

it.each(PORTS)('connections to %s that claim many ids take few lines of the log', async (_, port) => {
  const ensemble = await startOpenVoters()
  const before = ensemble.lines.length
  for (let id = 100; id < 120; id++) {
    const first = packetOf(
      PacketType.observerInfo,
      makeZxid(1, 0),
      encodeLearnerInfo({ serverId: id, protocolVersion: PROTOCOL_VERSION, configVersion: 0 }),
    )
    const raw = await dial(ensemble, port, first)
    raw.connection.write(packetOf(PacketType.ackEpoch, 0, encodeAckEpoch(1)))
    await ensemble.advance(100)
    raw.connection.destroy()
    await ensemble.advance(100)
  }
  expect(ensemble.lines.slice(before).filter((line) => / (info|warn) /.test(line)).length).toBeLessThan(10)
})

it.each(PORTS)('%s accepts sixteen servers at a time that no configuration names', async (_, port) => {
  const ensemble = await startOpenVoters()
  const join = (serverId: number): Promise<RawConnection> =>
    dial(
      ensemble,
      port,
      packetOf(
        PacketType.observerInfo,
        makeZxid(1, 0),
        encodeLearnerInfo({ serverId, protocolVersion: PROTOCOL_VERSION, configVersion: 0 }),
      ),
    )
  const joined: RawConnection[] = []
  for (let id = 100; id < 116; id++) joined.push(await join(id))
  expect(joined.filter(({ closed }) => closed)).toEqual([])
  expect(await join(116)).toMatchObject({ closed: true, received: '' })
  expect(ensemble.lines.join('\n')).toContain('16 servers outside of the configuration are connected already')
  joined[0]!.connection.destroy()
  await ensemble.advance(100)
  expect(await join(116)).toMatchObject({ closed: false })
})

/** Returns the request of an unknown session with a million bytes. */
function largeRequest(): Uint8Array {
  const writer = new Writer(1_000_100)
  writer.long(0x900_0000_0000_0001n)
  writer.int(1)
  writer.int(OpCode.setData)
  writeSetDataRequest(writer, { path: '/', data: new Uint8Array(1_000_000), version: -1 })
  return writer.take()
}

/** Holds the writes of members 2 and 3, so that nothing is committed, until the returned function is called. */
function holdQuorum(ensemble: Ensemble): () => void {
  const release = [2, 3].map((id) => holdWrites(ensemble.member(id).disk))
  return () => release.forEach((one) => one())
}

it.each(PORTS)(
  'an observer that forwards requests to %s faster than they are committed is not read for a while, and is not silent then',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { seen, send, connection } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    const release = holdQuorum(ensemble)
    for (let sent = 0; sent < 60; sent++) {
      send(PacketType.request, -1, largeRequest())
      await ensemble.untilIdle()
    }
    await ensemble.advance(8000)
    expect(seen.closed).toBe(false)
    expect(connection.bufferedBytes).toBeGreaterThan(20e6)
    expect(connection.bufferedBytes).toBeLessThan(45e6)
    release()
    await ensemble.until('all requests', () => connection.bufferedBytes === 0)
    expect([seen.closed, ensemble.leader]).toEqual([false, 3])
  },
)

it.each(PORTS)(
  'an observer that asks %s for more sessions than are answered is not read for a while',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { seen, send, connection } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    const release = holdQuorum(ensemble)
    send(PacketType.request, -1, largeRequest())
    const data = encodeRevalidation({ session: 0x900_0000_0000_0001n, timeout: 30_000 })
    const identities = [{ scheme: 'digest', id: 'x'.repeat(500_000) }]
    for (let sent = 0; sent < 120; sent++) {
      send(PacketType.revalidate, -1, data, identities)
      await ensemble.untilIdle()
    }
    expect(seen.closed).toBe(false)
    expect(connection.bufferedBytes).toBeGreaterThan(10e6)
    release()
    await ensemble.until(
      'all answers',
      () => seen.packets.filter((name) => name === 'revalidate').length === 120,
    )
    expect(connection.bufferedBytes).toBe(0)
  },
)

it('observers that together forward more requests than are committed do not cost their follower its leader', async () => {
  const ensemble = await startOpenVoters()
  const has = ensemble.server(1).stats().lastZxid
  const observers: Awaited<ReturnType<typeof playObserver>>[] = []
  for (let id = 10; id < 15; id++) observers.push(await playObserver(ensemble, 5001, has, observerInfo(id)))
  const before = ensemble.lines.length
  const release = holdQuorum(ensemble)
  const request = largeRequest()
  for (let sent = 0; sent < 30; sent++) {
    for (const { send } of observers) send(PacketType.request, -1, request)
    await ensemble.untilIdle()
  }
  expect(ensemble.lines.slice(before).filter((line) => line.includes('is lost'))).toEqual([])
  const unread = observers.reduce((sum, { connection }) => sum + connection.bufferedBytes, 0)
  expect(unread).toBeGreaterThan(100e6)
  release()
  await ensemble.until('all requests', () =>
    observers.every(({ connection }) => connection.bufferedBytes === 0),
  )
  expect([observers.some(({ seen }) => seen.closed), ensemble.leader]).toEqual([false, 3])
})

it.each(PORTS)(
  'sessions that an unknown server creates, reports and revalidates at %s have at most the timeout of a client',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { maxSessionTimeoutMs } = ensemble.member(3).settings
    const { send, connection } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    const session = 0x900_0000_0000_0001n
    const timeout = 2 ** 31 - 1
    send(PacketType.request, -1, createSession(session, timeout))
    await ensemble.until('the session', () => ensemble.server(3).stats().sessions === 1)
    send(PacketType.ping, -1, encodeTouches([{ id: session, timeout }]))
    send(PacketType.revalidate, -1, encodeRevalidation({ session, timeout }))
    await ensemble.advance(1000)
    connection.destroy()
    await ensemble.advance(maxSessionTimeoutMs + 10_000)
    expect(ensemble.server(3).stats().sessions).toBe(0)
  },
)

it.each(PORTS)(
  'a server that no configuration names is disconnected where it creates a session at %s twice, or without a timeout',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const has = ensemble.server(1).stats().lastZxid
    const twice = await playObserver(ensemble, port, has, observerInfo(9))
    for (let i = 0; i < 2; i++)
      twice.send(PacketType.request, -1, createSession(0x900_0000_0000_0001n, 30_000))
    const short = await playObserver(ensemble, port, has, observerInfo(10))
    short.send(PacketType.request, -1, createSession(0x900_0000_0000_0002n, 30_000).subarray(0, -1))
    await ensemble.advance(100)
    expect([twice.seen.closed, short.seen.closed, ensemble.server(3).stats().sessions]).toEqual([
      true,
      true,
      1,
    ])
  },
)

it.each(PORTS)(
  'a server that no configuration names keeps at %s the sessions alive that it has created or revalidated, and no others',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { maxSessionTimeoutMs } = ensemble.member(3).settings
    const { send, seen } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    const created = 0x900_0000_0000_0001n
    const timeout = 30_000
    send(PacketType.request, -1, createSession(created, timeout))
    const [moved, left] = [await ensemble.client(2), await ensemble.client(3)]
    for (const client of [moved, left]) client.connection.destroy()
    const revalidated = moved.session!.sessionId
    for (const session of [revalidated, 0x900_0000_0000_0002n])
      send(PacketType.revalidate, -1, encodeRevalidation({ session, timeout }))
    const ids = [created, revalidated, left.session!.sessionId, 0x900_0000_0000_0002n]
    for (let ms = 0; ms < 2 * maxSessionTimeoutMs + 10_000; ms += 1000) {
      send(PacketType.ping, -1, encodeTouches(ids.map((id) => ({ id, timeout }))))
      await ensemble.advance(1000)
    }
    expect(seen.closed).toBe(false)
    const { sessions } = (ensemble.server(3) as Member).service!
    expect(ids.map((id) => sessions.get(id) !== undefined)).toEqual([true, true, false, false])
  },
)

it.each(PORTS)(
  'sessions of an observer that is not read by %s for a while do not expire',
  async (_, port) => {
    const ensemble = await startOpenVoters()
    const { send, connection } = await playObserver(ensemble, port, ensemble.server(1).stats().lastZxid)
    const session = 0x900_0000_0000_0001n
    const timeout = 4000
    send(PacketType.request, -1, createSession(session, timeout))
    await ensemble.until('the session', () => ensemble.server(3).stats().sessions === 1)
    const release = holdQuorum(ensemble)
    for (let sent = 0; sent < 60; sent++) {
      send(PacketType.request, -1, largeRequest())
      await ensemble.untilIdle()
    }
    for (let ms = 0; ms < 10_000; ms += 1000) {
      send(PacketType.ping, -1, encodeTouches([{ id: session, timeout }]))
      await ensemble.advance(1000)
    }
    release()
    await ensemble.until('all requests', () => connection.bufferedBytes === 0)
    await ensemble.advance(2000)
    expect(ensemble.server(3).stats().sessions).toBe(1)
  },
)

it('a server is added with its own acknowledgement, whatever servers that no configuration names forward', async () => {
  const ensemble = await Ensemble.start(3, { reconfigEnabled: true, skipAcl: true })
  const has = ensemble.server(1).stats().lastZxid
  const info = encodeLearnerInfo({ serverId: 9, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  const first = packetOf(PacketType.followerInfo, makeZxid(1, 0), withExtension(info, SAID))
  const joiner = await playObserver(ensemble, 2003, has, first)
  const stranger = await playObserver(ensemble, 2003, has, observerInfo(10))
  const client = await ensemble.client(3)
  await ensemble.member(1).crash()
  const release = holdQuorum(ensemble)
  const forward = async (count: number): Promise<void> => {
    for (let sent = 0; sent < count; sent++) {
      stranger.send(PacketType.request, -1, largeRequest())
      await ensemble.untilIdle()
    }
  }
  await forward(10)
  client.reconfigure(77, { joining: 'server.9=127.0.0.1:2009:3009;4009' })
  await ensemble.untilIdle()
  const reconfig = joiner.seen.proposed
  await forward(40)
  expect(stranger.connection.bufferedBytes).toBeGreaterThan(10e6)
  joiner.send(PacketType.request, -1, largeRequest())
  joiner.send(PacketType.ack, reconfig, null)
  await ensemble.untilIdle()
  release()
  await ensemble.until('the reply', () => client.frames.length > 0, 2000)
  expect(client.takeReceived()).toEqual(['77:0'])
  expect(joiner.seen.closed).toBe(false)
})

it('the requests of a learner that wait behind its sync are dropped when its connection is lost', async () => {
  const ensemble = await startOpenVoters()
  const { send, connection } = await playObserver(ensemble, 2003, ensemble.server(1).stats().lastZxid)
  const release = holdQuorum(ensemble)
  const sync = new Writer(64)
  sync.long(0x900_0000_0000_0001n)
  sync.int(1)
  sync.int(OpCode.sync)
  send(PacketType.request, -1, largeRequest())
  send(PacketType.request, -1, sync.take())
  send(PacketType.request, -1, createSession(0x900_0000_0000_0001n, 30_000))
  await ensemble.untilIdle()
  connection.destroy()
  await ensemble.untilIdle()
  release()
  await ensemble.advance(1000)
  expect(ensemble.server(3).stats().sessions).toBe(0)
  // The session is not counted: it may be created.
  const again = await playObserver(ensemble, 2003, ensemble.server(1).stats().lastZxid)
  again.send(PacketType.request, -1, createSession(0x900_0000_0000_0001n, 30_000))
  await ensemble.advance(1000)
  expect([again.seen.closed, ensemble.server(3).stats().sessions]).toEqual([false, 1])
})

it.each([
  ['followers', PacketType.followerInfo, undefined],
  ['followers of Zabra', PacketType.followerInfo, SAID],
  ['observers', PacketType.observerInfo, undefined],
])(
  'servers that no configuration names, and say that they are %s, have as much in flight at the leader as one observer, and are not disconnected',
  async (_, type, said) => {
    const ensemble = await startOpenVoters()
    const has = ensemble.server(1).stats().lastZxid
    const strangers: Awaited<ReturnType<typeof playObserver>>[] = []
    for (let id = 10; id < 15; id++) {
      const info = encodeLearnerInfo({ serverId: id, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
      const data = said === undefined ? info : withExtension(info, said)
      strangers.push(await playObserver(ensemble, 2003, has, packetOf(type, makeZxid(1, 0), data)))
    }
    const before = ensemble.lines.length
    const release = holdQuorum(ensemble)
    const request = largeRequest()
    for (let sent = 0; sent < 30; sent++) {
      for (const { send } of strangers) send(PacketType.request, -1, request)
      await ensemble.untilIdle()
    }
    const unread = strangers.reduce((sum, { connection }) => sum + connection.bufferedBytes, 0)
    expect(unread).toBeGreaterThan(100e6)
    // One that leaves in the meantime holds up no other.
    strangers.shift()!.connection.destroy()
    await ensemble.untilIdle()
    release()
    await ensemble.until('all requests', () =>
      strangers.every(({ connection }) => connection.bufferedBytes === 0),
    )
    const lost = ensemble.lines.slice(before).filter((line) => line.includes('is lost'))
    expect([lost.length, ensemble.leader]).toEqual([1, 3])
    expect(await ensemble.create(await ensemble.client(1), '/a')).toBe('1:0')
  },
)

it('a follower that forwards more requests than members have in flight, while none is committed, is disconnected, and no other is', async () => {
  const ensemble = new Ensemble(4)
  for (const id of [1, 2, 3]) await ensemble.member(id).start()
  await ensemble.until('members that serve', () => ensemble.running.every(({ serving }) => serving))
  const data = encodeLearnerInfo({ serverId: 4, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  const { seen, send } = await playObserver(
    ensemble,
    2003,
    ensemble.server(1).stats().lastZxid,
    packetOf(PacketType.followerInfo, makeZxid(1, 0), withExtension(data, SAID)),
  )
  expect(seen.packets).toContain('upToDate')
  const before = ensemble.lines.length
  const release = holdQuorum(ensemble)
  const request = largeRequest()
  let sent = 0
  for (; sent < 200 && !seen.closed; sent++) {
    send(PacketType.request, -1, request)
    await ensemble.untilIdle()
  }
  expect(sent).toBeGreaterThan((2 * 64 * 2 ** 20) / request.length - 2)
  expect(sent).toBeLessThan(140)
  const lost = ensemble.lines.slice(before).filter((line) => line.includes('is lost'))
  expect(lost).toEqual([expect.stringContaining('it forwards requests faster than they are committed')])
  expect(lost[0]).toContain('"peer":4')
  release()
  const client = await ensemble.client(1)
  expect(await ensemble.create(client, '/a')).toBe('1:0')
  expect(ensemble.leader).toBe(3)
})
