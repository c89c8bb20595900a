import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import {
  encodeAckEpoch,
  encodeLearnerInfo,
  encodePacket,
  packetName,
  PacketSplitter,
  PacketType,
  PROTOCOL_VERSION,
} from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'

function introduction(serverId: number): Uint8Array {
  const writer = new Writer(64)
  const data = encodeLearnerInfo({ serverId, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  encodePacket(writer, { type: PacketType.followerInfo, zxid: makeZxid(1, 0), data, auth: null })
  return writer.take()
}

async function claim(ensemble: Ensemble, serverId: number): Promise<{ closed: boolean; bytes: number }> {
  const wire = await ensemble.network.connect({ host: 'x', port: 2003 })
  const seen = { closed: false, bytes: 0 }
  wire.setHandler({
    data: (chunk) => void (seen.bytes += chunk.length),
    drain() {},
    closed: () => (seen.closed = true),
  })
  wire.write(introduction(serverId))
  await ensemble.advance(100)
  return seen
}

it('tells nobody anything whom no configuration names, unless servers may join', async () => {
  const ensemble = await Ensemble.start(3)
  expect(await claim(ensemble, 9)).toEqual({ closed: true, bytes: 0 })
  expect(ensemble.lines.join('\n')).toContain('server 9 is not in the configuration')
  const open = await Ensemble.start(3, { reconfigEnabled: true })
  expect((await claim(open, 9)).bytes).toBeGreaterThan(0)
})

it('takes no member out of step for somebody who claims to be that member', async () => {
  const ensemble = await Ensemble.start(3)
  await ensemble.member(2).crash()
  const before = ensemble.lines.length
  for (let i = 0; i < 20; i++) await claim(ensemble, 1)
  const client = await ensemble.client(1)
  client.create(1, '/a')
  client.read(2, OpCode.exists, '/a')
  await ensemble.until('the answers', () => client.frames.length > 1)
  expect(client.takeReceived()).toEqual(['1:0', '2:0'])
  expect(
    ensemble.lines.slice(before).filter((line) => /Looking for a leader|does not lead/.test(line)),
  ).toEqual([])
})

it.each([
  ['the leader', 2003, {}],
  ['the leader, where servers may join', 2003, { reconfigEnabled: true }],
  ['a follower that keeps observers', 5001, { reconfigEnabled: true }],
])(
  'goes on when somebody introduces itself to %s in a way that cannot be read',
  async (_, port, settings) => {
    const ensemble = new Ensemble(3, settings)
    const one = ensemble.member(1)
    one.settings = Object.freeze({ ...one.settings, observerMasterPort: 5001 })
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
    for (const data of [null, new Uint8Array(7), new Uint8Array(12).fill(0x7f)]) {
      const wire = await ensemble.network.connect({ host: 'x', port })
      let closed = false
      wire.setHandler({ data() {}, drain() {}, closed: () => (closed = true) })
      const writer = new Writer(64)
      encodePacket(writer, { type: PacketType.observerInfo, zxid: 0, data, auth: null })
      wire.write(writer.take())
      await ensemble.advance(100)
      expect(closed).toBe(true)
    }
    expect([ensemble.leader, [...ensemble.members.values()].map(({ failure }) => failure)]).toEqual([
      3,
      [undefined, undefined, undefined],
    ])
  },
)

/** Takes the part of observer 4, which has everything up to a zxid, at a port. */
async function pretend(ensemble: Ensemble, port: number, has: number) {
  const wire = await ensemble.network.connect({ host: 'x', port })
  const seen = { closed: false, packets: [] as string[] }
  const say = (type: number, zxid: number, data: Uint8Array | null): void => {
    const writer = new Writer(64)
    encodePacket(writer, { type, zxid, data, auth: null })
    wire.write(writer.take())
  }
  const splitter = new PacketSplitter({
    maxData: 1 << 20,
    packet: (type, zxid) => {
      seen.packets.push(packetName(type))
      if (type === PacketType.leaderInfo) say(PacketType.ackEpoch, has, encodeAckEpoch(1))
      if (type === PacketType.newLeader) say(PacketType.ack, zxid, null)
    },
  })
  wire.setHandler({
    data: (chunk) => splitter.push(chunk),
    drain() {},
    closed: () => (seen.closed = true),
  })
  const data = encodeLearnerInfo({ serverId: 4, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  say(PacketType.observerInfo, makeZxid(1, 0), data)
  await ensemble.advance(100)
  return { seen, say }
}

/** Three voters, of which 1 keeps observers, and an observer 4 that is not there. */
async function withoutObserver(): Promise<Ensemble> {
  const ensemble = new Ensemble(4, { observers: [4] })
  const one = ensemble.member(1)
  one.settings = Object.freeze({ ...one.settings, observerMasterPort: 5001 })
  for (const id of [1, 2, 3]) await ensemble.member(id).start()
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
  return ensemble
}

it('keeps nobody up to date behind a follower whom no configuration names', async () => {
  const ensemble = await withoutObserver()
  const wire = await ensemble.network.connect({ host: 'x', port: 5001 })
  let closed = false
  wire.setHandler({ data() {}, drain() {}, closed: () => (closed = true) })
  wire.write(introduction(9))
  await ensemble.advance(100)
  expect(closed).toBe(true)
  expect(ensemble.lines.join('\n')).toContain('server 9 is not in the configuration')
})

it('lets an observer that is ahead of its follower wait for what is committed next, and no longer', async () => {
  const ensemble = await withoutObserver()
  const client = await ensemble.client(2)
  const { lastZxid } = ensemble.server(1).stats()
  const { seen } = await pretend(ensemble, 5001, lastZxid + 1)
  expect([seen.closed, seen.packets]).toEqual([false, ['leaderInfo']])
  client.create(1, '/a')
  await ensemble.until('the answer', () => client.frames.length > 0)
  await ensemble.advance(100)
  expect([seen.closed, seen.packets]).toEqual([false, ['leaderInfo', 'diff', 'newLeader', 'upToDate']])
})

it.each([
  ['the leader', 2003],
  ['a follower', 5001],
])('lets an observer go of which %s cannot read what it asks, and goes on', async (_, port) => {
  for (const type of [PacketType.revalidate, PacketType.request, PacketType.ping]) {
    const ensemble = await withoutObserver()
    const client = await ensemble.client(1)
    const { seen, say } = await pretend(ensemble, port, ensemble.server(1).stats().lastZxid)
    expect([seen.closed, seen.packets.includes('upToDate')]).toEqual([false, true])
    say(type, -1, new Uint8Array(3))
    await ensemble.advance(100)
    expect(seen.closed).toBe(true)
    client.create(1, '/a')
    await ensemble.until('the answer', () => client.frames.length > 0 || client.closed)
    expect(client.takeReceived()).toEqual(['1:0'])
  }
})
