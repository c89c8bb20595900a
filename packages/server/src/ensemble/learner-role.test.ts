import { makeZxid, OPEN_ACL_UNSAFE, OpCode, writeAuthPacket, Writer } from '@zabra/protocol'
import type { Connection, MemoryConnection } from '@zabra/runtime'
import { holdWrites } from '@zabra/testkit'
import { describe, expect, it, vi } from 'vitest'
import { operationOf } from '../core/operations/table.ts'
import { NOT_FINALIZED, printConfiguration, type FeatureState } from '../core/quorum/index.ts'
import { LearnerSessions } from '../core/sessions/index.ts'
import { createOf } from '../core/testing/create-of.ts'
import { CONFIGURATION_NODE } from '../core/tree/index.ts'
import type { Txn } from '../core/types.ts'
import {
  encodeFeatureState,
  encodeMemberExtension,
  packetName,
  PacketSplitter,
  PacketType,
  writePacket,
  type MemberExtension,
} from '../core/zab/index.ts'
import { readClusterId, readFeatureState, writeFeatureState } from '../persistence/index.ts'
import { serviceOf } from '../testing/many-connections.ts'
import { Ensemble } from './testing/ensemble.ts'
import { payloadOf, startPlayedLeader } from './testing/played-leader.ts'

const MIB = 1 << 20

/** Plays the leader that member 1 has elected, until member 1 serves. Collects what member 1 acknowledges from then on. */
async function playLeader(
  said?: MemberExtension,
  settings?: ConstructorParameters<typeof Ensemble>[1],
): Promise<{ ensemble: Ensemble; connection: Connection; acknowledged: number[]; forwarded: number[] }> {
  const ensemble = new Ensemble(3, settings)
  const { acknowledged, forwarded, connection } = await startPlayedLeader(ensemble, { said })
  await ensemble.until('the follower', () => ensemble.server(1).ready)
  acknowledged.length = forwarded.length = 0
  return { ensemble, connection: connection()!, acknowledged, forwarded }
}

it('a learner stops reading from its leader while its disk is behind, and resumes', async () => {
  const { ensemble, connection, acknowledged } = await playLeader()
  const { disk } = ensemble.member(1)
  const release = holdWrites(disk)
  const data = new Uint8Array(MIB)
  for (let counter = 1; counter <= 80; counter++) {
    const zxid = makeZxid(1, counter)
    const packet = new Writer(MIB + 256)
    const payload = payloadOf(zxid, { type: OpCode.setData, path: '/', data, version: counter })
    writePacket(packet, PacketType.proposal, zxid, payload)
    connection.write(packet.take())
    await ensemble.untilIdle()
  }
  expect(acknowledged).toEqual([])
  const unread = connection.bufferedBytes / MIB
  expect(unread).toBeGreaterThan(10)
  expect(unread).toBeLessThan(18)
  release()
  await ensemble.until('everything', () => acknowledged.at(-1) === makeZxid(1, 80), 2000)
})

/** Sends member 1 a proposal of its leader. */
function propose(connection: Connection, counter: number, txn: Txn): void {
  const zxid = makeZxid(1, counter)
  const payload = payloadOf(zxid, txn)
  const packet = new Writer(payload.length + 64)
  writePacket(packet, PacketType.proposal, zxid, payload)
  connection.write(packet.take())
}

describe('a follower whose disk hangs serves its clients no longer', () => {
  it('when its leader has closed the connection while a change of the members is written', async () => {
    const { ensemble, connection } = await playLeader(undefined, { localSessionsEnabled: true })
    const client = await ensemble.client(1)
    const { disk, settings } = ensemble.member(1)
    const text = printConfiguration({ ...settings.ensemble!, version: makeZxid(1, 1) })
    const data = new TextEncoder().encode(text)
    disk.replaceFile = () => new Promise(() => {})
    propose(connection, 1, { type: OpCode.reconfig, path: CONFIGURATION_NODE, data, version: -1 })
    await ensemble.untilIdle()
    connection.destroy()
    await ensemble.until('the client is disconnected', () => client.closed, 100)
    expect(ensemble.server(1).ready).toBe(false)
    const other = ensemble.client(1)
    await expect(other).rejects.toThrow()
  })

  it('when it has read nothing of its leader for syncLimit', async () => {
    const { ensemble, connection } = await playLeader(undefined, { localSessionsEnabled: true })
    const client = await ensemble.client(1)
    const release = holdWrites(ensemble.member(1).disk)
    const data = new Uint8Array(MIB)
    for (let counter = 1; counter <= 70; counter++) {
      propose(connection, counter, { type: OpCode.setData, path: '/', data, version: counter })
      await ensemble.untilIdle()
    }
    await ensemble.until('the client is disconnected', () => client.closed, 5600)
    expect(ensemble.lines.join('\n')).toContain('it has taken nothing of what its leader sent for 5000 ms')
    release()
  })
})

it('a follower is not ready before it has applied what the leader had committed when it began to serve', async () => {
  const ensemble = new Ensemble(3)
  const { connection } = await startPlayedLeader(ensemble, { answersSyncs: () => false })
  await ensemble.until('the follower', () => ensemble.server(1).serving)
  const readiness = () => ensemble.member(1).http.request('/readyz?verbose')
  expect(ensemble.server(1).ready).toBe(false)
  expect((await readiness()).text).toContain('[-]in-step applied 0; ')
  const packets = new Writer(256)
  const zxid = makeZxid(1, 1)
  const txn = { type: OpCode.setData, path: '/', data: new Uint8Array(1), version: 1 } as const
  writePacket(packets, PacketType.proposal, zxid, payloadOf(zxid, txn))
  writePacket(packets, PacketType.commit, zxid)
  connection()!.write(packets.take())
  await ensemble.untilIdle()
  expect(ensemble.server(1).ready).toBe(false)
  writePacket(packets, PacketType.sync, -1)
  connection()!.write(packets.take())
  await ensemble.untilIdle()
  expect((await readiness()).text).toContain('[+]in-step ok')
})

it('a follower decodes a small transaction once, and applies small, large and many transactions as they were sent', async () => {
  const { ensemble, connection } = await playLeader()
  const decode = vi.spyOn(operationOf(OpCode.create), 'decodeTxn')
  const packets = new Writer(1 << 18)
  const sizes = Array.from({ length: 60 }, (_, index) => (index % 7 === 0 ? 9000 : index))
  const zxidOf = (index: number): number => makeZxid(1, index + 1)
  const propose = (first: number, last: number): void =>
    sizes.slice(first, last).forEach((size, at) => {
      const data = new Uint8Array(size).fill(first + at)
      const payload = payloadOf(zxidOf(first + at), createOf(`/n${first + at}`, { data }))
      writePacket(packets, PacketType.proposal, zxidOf(first + at), payload)
    })
  const commit = (first: number, last: number): void => {
    for (let index = first; index < last; index++) writePacket(packets, PacketType.commit, zxidOf(index))
  }
  // More at once than are decoded in one step, then a few, while earlier ones are not committed.
  let [lastProposed, lastCommitted] = [0, 0]
  for (const [proposed, committed] of [
    [40, 0],
    [43, 39],
    [44, 44],
    [60, 50],
    [60, 60],
  ] as const) {
    propose(lastProposed, proposed)
    commit(lastCommitted, committed)
    ;[lastProposed, lastCommitted] = [proposed, committed]
    connection.write(packets.take())
    await ensemble.untilIdle()
  }
  const { tree } = serviceOf(ensemble.server(1))
  const applied = sizes.map((_, index) => tree.dataOf(tree.find(`/n${index}`)))
  const isWhole = applied.map(
    (data, index) => data !== null && data.length === sizes[index] && data.every((byte) => byte === index),
  )
  expect(isWhole).toEqual(sizes.map(() => true))
  const large = sizes.filter((size) => size === 9000).length
  expect(decode).toHaveBeenCalledTimes(sizes.length + large)
  decode.mockRestore()
})

it('a follower forwards a request without identities with an empty list of them: at null Apache ZooKeeper rejects a write', async () => {
  const ensemble = new Ensemble(3)
  const { identities } = await startPlayedLeader(ensemble)
  await ensemble.until('the follower', () => ensemble.server(1).ready)
  expect(identities).toEqual([[]])
})

it('a follower acknowledges proposals while it takes very many sessions for the answers to PINGs', async () => {
  const { ensemble, connection } = await playLeader()
  const unreported = vi.spyOn(LearnerSessions.prototype, 'unreported', 'get').mockReturnValue(500_000)
  const received: string[] = []
  const splitter = new PacketSplitter({
    maxData: MIB,
    packet: (type, zxid) => void received.push(`${packetName(type)} ${zxid % 2 ** 32}`),
  })
  connection.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
  const packets = new Writer(1024)
  const zxid = makeZxid(1, 1)
  writePacket(packets, PacketType.ping, makeZxid(1, 7))
  writePacket(packets, PacketType.ping, makeZxid(1, 8))
  const txn = { type: OpCode.setData, path: '/', data: new Uint8Array(1), version: 1 } as const
  writePacket(packets, PacketType.proposal, zxid, payloadOf(zxid, txn))
  connection.write(packets.take())
  await ensemble.untilIdle()
  unreported.mockRestore()
  expect(received).toEqual(['ack 1', 'ping 7', 'ping 8'])
})

it('a follower forwards no more syncs of a client with many identities than take half a MiB, until they are answered', async () => {
  const { ensemble, connection, forwarded } = await playLeader(undefined, { localSessionsEnabled: true })
  const client = await ensemble.client(1)
  for (let login = 0; login < 4; login++)
    client.ask(-4, OpCode.auth, (writer) =>
      writeAuthPacket(writer, {
        type: 0,
        scheme: 'digest',
        auth: new TextEncoder().encode(`${login}`.padEnd(3900, 'u')),
      }),
    )
  await ensemble.receive(client, 4)
  connection.pause()
  for (let xid = 1; xid <= 2000; xid++) client.ask(xid, OpCode.sync, (writer) => writer.string('/'))
  const other = await ensemble.client(1)
  other.ask(3000, OpCode.sync, (writer) => writer.string('/'))
  await ensemble.untilIdle()
  const unread = (connection as MemoryConnection).pendingBytes
  expect(unread).toBeGreaterThan(MIB / 2 - 20_000)
  expect(unread).toBeLessThan(MIB)
  connection.resume()
  await ensemble.until('all requests', () => forwarded.length === 2001, 2000)
  expect(forwarded.filter((xid) => xid < 3000)).toEqual(Array.from({ length: 2000 }, (_, at) => at + 1))
  // The flood of one client does not delay another.
  expect(forwarded.indexOf(3000)).toBeLessThan(60)
})

it('a follower of three has a third of 64 MiB of writes in flight', async () => {
  const { ensemble, connection, forwarded } = await playLeader(undefined, { localSessionsEnabled: true })
  connection.pause()
  const data = 'x'.repeat(1_000_000)
  for (let each = 0; each < 25; each++) (await ensemble.client(1)).set(each, '/', data)
  await ensemble.untilIdle()
  const unread = (connection as MemoryConnection).pendingBytes
  expect(unread).toBeGreaterThan((64 / 3) * MIB)
  expect(unread).toBeLessThan((64 / 3 + 1) * MIB)
  expect(forwarded).toEqual([])
})

const cluster = (byte: number, isProposed: boolean) => ({
  generation: 0,
  bytes: new Uint8Array(16).fill(byte),
  isProposed,
})
const saidWith = (byte: number, isProposed: boolean): MemberExtension => ({
  level: 1,
  sharesSecret: false,
  hasData: true,
  cluster: cluster(byte, isProposed),
})

it.each([
  ['takes the final id of its ensemble', saidWith(1, true), saidWith(1, false), cluster(1, false)],
  [
    'keeps the id that its leader has introduced itself with',
    saidWith(1, true),
    saidWith(2, false),
    cluster(1, true),
  ],
  [
    'takes no id from a leader that has not introduced itself',
    undefined,
    saidWith(2, false),
    cluster(0, false),
  ],
])('a learner %s', async (_, introduced, confirmed, expected) => {
  const { ensemble, connection } = await playLeader(introduced)
  const writer = new Writer(64)
  writePacket(writer, PacketType.clusterId, -1, encodeMemberExtension(confirmed))
  connection.write(writer.take())
  await ensemble.untilIdle()
  expect(await readClusterId(ensemble.member(1).disk, '/data/version-2')).toEqual(expected)
})

const withLevels = (features: FeatureState | undefined): MemberExtension => ({
  ...saidWith(1, true),
  features,
})

it.each([
  [
    'takes the level of its leader',
    NOT_FINALIZED,
    { finalized: 1, proposed: 0 },
    { finalized: 1, proposed: 0 },
  ],
  [
    'takes a level that is proposed',
    NOT_FINALIZED,
    { finalized: 0, proposed: 1 },
    { finalized: 0, proposed: 1 },
  ],
  [
    'takes no level from a leader that exchanges none',
    undefined,
    { finalized: 1, proposed: 0 },
    NOT_FINALIZED,
  ],
  ['takes no level above that of its release', NOT_FINALIZED, { finalized: 2, proposed: 0 }, NOT_FINALIZED],
])('a learner %s', async (_, introduced, sent, expected) => {
  const { ensemble, connection } = await playLeader(withLevels(introduced))
  const writer = new Writer(64)
  writePacket(writer, PacketType.featureLevel, -1, encodeFeatureState(sent))
  connection.write(writer.take())
  await ensemble.untilIdle()
  expect(await readFeatureState(ensemble.member(1).disk, '/data/version-2')).toEqual(expected)
  const hasLeft = ensemble.lines.some((line) => line.includes('Install a later release on this server'))
  expect(hasLeft).toBe(sent.finalized > 1)
})

it.each([
  [
    'runs Apache ZooKeeper',
    undefined,
    'server 3 runs Apache ZooKeeper, and this ensemble was finalized at level 1',
  ],
  ['has a lower level', { ...saidWith(1, true), level: 0 }, 'server 3 runs a release of feature level 0'],
])('a learner that has finalized a level does not follow a leader that %s', async (_, said, reason) => {
  const ensemble = new Ensemble(3)
  const { disk } = ensemble.member(1)
  await disk.makeFolder('/data/version-2')
  await writeFeatureState(disk, '/data/version-2', { finalized: 1, proposed: 0 })
  await startPlayedLeader(ensemble, { said })
  await ensemble.until('the refusal', () => ensemble.lines.some((line) => line.includes(reason)))
  expect(ensemble.server(1).serving).toBe(false)
})

const NO_STAT = new Uint8Array(60)

/** Returns the bytes of a snapshot without access lists, with a node that has the list of a number. */
function snapshotWith(acl: bigint): Uint8Array {
  const writer = new Writer()
  writer.int(0)
  writer.int(0)
  for (const [path, list] of [
    ['', -1n],
    ['/a', acl],
  ] as const) {
    writer.string(path)
    writer.buffer(new Uint8Array(0))
    writer.long(list)
    writer.raw(NO_STAT)
  }
  writer.string('/')
  writer.string('BenWasHere')
  return writer.take()
}

it.each([
  ['a node whose access list is nowhere', makeZxid(1, 1), 7n],
  ['a zxid of a later epoch than its own', makeZxid(9, 1), -1n],
])('a follower leaves a leader that sends a snapshot with %s, and goes on', async (_what, zxid, acl) => {
  const ensemble = new Ensemble(3)
  let attempts = 0
  await startPlayedLeader(ensemble, {
    sync: (send, connection) => {
      attempts++
      if (attempts > 1) return send(PacketType.diff, 0)
      send(PacketType.snap, zxid)
      connection.write(snapshotWith(acl))
    },
  })
  await ensemble.until('the follower', () => ensemble.server(1).serving)
  expect([attempts, ensemble.member(1).failure]).toEqual([2, undefined])
})

const deletions = (zxid: number, count: number): Uint8Array =>
  payloadOf(zxid, {
    type: OpCode.multi,
    txns: Array.from({ length: count }, (_, at) => ({ type: OpCode.delete, path: `/node-${at}` })),
  })

/** The time to live ends the record. */
const withoutTtl = (zxid: number): Uint8Array =>
  payloadOf(zxid, {
    type: OpCode.createTTL,
    path: '/a',
    data: null,
    acl: OPEN_ACL_UNSAFE,
    parentCVersion: 1,
    ttl: 1,
  }).with(-1, 0)

const changed = (zxid: number): Uint8Array =>
  payloadOf(zxid, { type: OpCode.setData, path: '/', data: null, version: 1 })

it.each([
  ['with another zxid', changed(makeZxid(1, 5))],
  ['cut short', changed(makeZxid(1, 1)).subarray(0, 20)],
  ['of a type of a later release', changed(makeZxid(1, 1)).with(31, 120)],
  ['whose record is cut short', changed(makeZxid(1, 1)).subarray(0, 36)],
  ['whose parts, many of them, are cut short', deletions(makeZxid(1, 1), 5000).subarray(0, -40)],
  ['with a time to live of no time', withoutTtl(makeZxid(1, 1))],
])(
  'a follower leaves a leader that proposes a transaction %s, without logging it',
  async (_what, payload) => {
    const ensemble = new Ensemble(3)
    const attempts: number[] = []
    const transaction = new Writer()
    writePacket(transaction, PacketType.proposal, makeZxid(1, 1), payload)
    writePacket(transaction, PacketType.commit, makeZxid(1, 1))
    const bytes = transaction.take()
    const leader = await startPlayedLeader(ensemble, {
      sync: (send, connection) => {
        send(PacketType.diff, 0)
        // First as history.
        if (attempts.push(attempts.length) === 1) connection.write(bytes)
      },
    })
    await ensemble.until('the follower', () => ensemble.server(1).serving)
    leader.connection()!.write(bytes)
    await ensemble.until('the next attempt', () => attempts.length > 2)
    await ensemble.until('the follower again', () => ensemble.server(1).serving)
    expect([ensemble.member(1).failure, ensemble.server(1).stats().lastZxid]).toEqual([undefined, 0])
  },
)
