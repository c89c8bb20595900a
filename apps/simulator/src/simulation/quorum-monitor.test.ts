import { OpCode, Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { type Host, type SimulatedConnection, SimulatedWorld } from '@zabra/testing'
import { majorityOf } from './membership.ts'
import { OBSERVER_PORT } from './observer-monitor.ts'
import { PacketType } from './quorum-packet-parser.ts'
import { DATA_DIR } from './settings.ts'
import { QUORUM_PORT, QuorumMonitor } from './quorum-monitor.ts'

const FOLDER = `${DATA_DIR}/version-2`
const EPOCH = 2 ** 32

function put(host: Host, name: string, bytes: Uint8Array): void {
  host.disk.makeFolder(FOLDER)
  const file = host.disk.create(`${FOLDER}/${name}`)
  file.write(0, bytes)
  file.sync(1)
  host.disk.syncFolder(FOLDER)
}

/** Returns a log as the monitor parses it: only lengths, zxids and end bytes of entries matter. */
function log(...zxids: number[]): Uint8Array {
  const bytes = new Uint8Array(16 + 45 * zxids.length + 45)
  const view = new DataView(bytes.buffer)
  zxids.forEach((zxid, index) => {
    const at = 16 + 45 * index
    view.setInt32(at + 8, 32)
    view.setInt32(at + 24, Math.floor(zxid / EPOCH))
    view.setUint32(at + 28, zxid)
    bytes[at + 44] = 0x42
  })
  return bytes
}

function packet(type: number, zxid: number, data: Uint8Array | undefined): Uint8Array {
  const bytes = new Uint8Array(20 + (data?.length ?? 0))
  const view = new DataView(bytes.buffer)
  view.setInt32(0, type)
  view.setInt32(4, Math.floor(zxid / EPOCH))
  view.setUint32(8, zxid)
  view.setInt32(12, data?.length ?? -1)
  if (data !== undefined) bytes.set(data, 16)
  return bytes
}

/** Returns the transaction that makes these servers the members. */
function reconfiguration(voters: readonly number[], version: number): Uint8Array {
  const lines = voters.map((id) => `server.${id}=s${id}:2888:3888:participant;2181`)
  const w = new Writer()
  const data = new TextEncoder().encode([...lines, `version=${version.toString(16)}`].join('\n'))
  for (const word of [0, 0, 0, 0, 0, 0, 0, OpCode.reconfig]) w.int(word)
  w.string('/zookeeper/config')
  w.buffer(data)
  w.int(-1)
  return w.take()
}

/** Opens a connection from `leader` to `learner` and returns a function that sends packets on it. */
function channel(
  world: SimulatedWorld,
  leader: Host,
  learner: Host,
  port = QUORUM_PORT,
): (type: number, zxid: number, data?: Uint8Array) => void {
  const connection = {
    isInitiator: false,
    local: { port },
    owner: { host: leader },
    remoteEnd: { owner: { host: learner } },
  } as unknown as SimulatedConnection
  return (type, zxid, data) => world.network.tap?.(connection, packet(type, zxid, data))
}

/** Monitors three servers, of which some vote. */
function monitor(...voters: number[]) {
  const world = new SimulatedWorld(1)
  const [s1, s2, s3] = ['s1', 's2', 's3'].map((name) => world.addHost(name)) as [Host, Host, Host]
  for (const host of [s1, s2, s3]) host.start()
  return { world, wire: new QuorumMonitor(world, majorityOf(new Set(voters))), s1, s2, s3 }
}

function putEpoch(epoch: number, ...hosts: Host[]): void {
  for (const host of hosts)
    for (const name of ['acceptedEpoch', 'currentEpoch'])
      put(host, name, new TextEncoder().encode(`${epoch}`))
}

describe('QuorumMonitor', () => {
  it('an established leader commits its log after the snapshot of a leader that was never established', () => {
    const { world, wire, s1, s2, s3 } = monitor(1, 2, 3)
    const [known, tail] = [2 * EPOCH + 1, 2 * EPOCH + 2]
    put(s1, `log.200000001`, log(known, tail))
    put(s1, 'acceptedEpoch', new TextEncoder().encode('3'))

    const toS2 = channel(world, s1, s2)
    toS2(PacketType.SNAP, tail)
    expect([...wire.committed]).toEqual([])

    // The first leader fails before any learner is up to date; the second has only its snapshot.
    put(s2, 'snapshot.200000002', Uint8Array.of(1))
    putEpoch(4, s2, s3)
    const toS3 = channel(world, s2, s3)
    toS3(PacketType.DIFF, tail)
    toS3(PacketType.NEWLEADER, 4 * EPOCH)
    toS3(PacketType.UPTODATE, 4 * EPOCH)
    expect([...wire.committed].sort((a, b) => a - b)).toEqual([known, tail])
    expect(wire.violations).toEqual([])
  })

  it('a transaction that an established leader lacks is not committed', () => {
    const { world, wire, s1, s2, s3 } = monitor(1, 2, 3)
    const [known, tail] = [2 * EPOCH + 1, 2 * EPOCH + 2]
    put(s1, `log.200000001`, log(known, tail))
    channel(world, s1, s2)(PacketType.SNAP, tail)

    put(s2, `log.200000001`, log(known))
    put(s2, 'acceptedEpoch', new TextEncoder().encode('4'))
    const toS3 = channel(world, s2, s3)
    toS3(PacketType.DIFF, known)
    toS3(PacketType.NEWLEADER, 4 * EPOCH)
    toS3(PacketType.UPTODATE, 4 * EPOCH)
    expect([...wire.committed]).toEqual([known])
  })

  it('a leader without a quorum commits nothing when it syncs an observer', () => {
    const { world, wire, s1, s2, s3 } = monitor(1, 2)
    putEpoch(2, s1, s2)
    const [old, tail] = [EPOCH + 1, 2 * EPOCH + 1]
    put(s1, 'log.100000001', log(old))
    const [toS2, toS3] = [channel(world, s1, s2), channel(world, s1, s3)]
    toS2(PacketType.NEWLEADER, 2 * EPOCH)
    toS2(PacketType.UPTODATE, 2 * EPOCH)
    put(s1, 'log.200000001', log(tail))
    channel(world, s2, s3)(PacketType.NEWLEADER, 3 * EPOCH)
    toS3(PacketType.NEWLEADER, 2 * EPOCH)
    toS3(PacketType.UPTODATE, 2 * EPOCH)
    expect([...wire.committed]).toEqual([old])
  })

  it('a reconfiguration needs quorums of the old and the new voters', () => {
    const world = new SimulatedWorld(1)
    const hosts = [1, 2, 3, 4].map((id) => world.addHost(`s${id}`)) as [Host, Host, Host, Host]
    const [s1, s2, , s4] = hosts
    const wire = new QuorumMonitor(world, majorityOf(new Set([1, 2, 3])))
    putEpoch(1, s1, s2)
    const [one, change, three, four] = [EPOCH + 1, EPOCH + 2, EPOCH + 3, EPOCH + 4]
    const toS2 = channel(world, s1, s2)
    toS2(PacketType.NEWLEADER, EPOCH)
    toS2(PacketType.UPTODATE, EPOCH)
    const decide = (zxid: number, type: number, data?: Uint8Array): void => {
      toS2(PacketType.PROPOSAL, zxid, data)
      toS2(type, zxid)
    }
    for (const host of [s1, s2]) put(host, 'log.100000001', log(one, change))
    decide(one, PacketType.COMMIT)
    expect(wire.violations).toEqual([])
    // Two of three, and two of four.
    decide(change, PacketType.COMMITANDACTIVATE, reconfiguration([1, 2, 3, 4], change))
    expect(wire.violations.join()).toMatch(
      /0x100000002, which is not on the disks of a quorum of 1, 2, 3, 4 /,
    )
    for (const host of [s1, s2, s4]) put(host, 'log.100000003', log(three))
    decide(three, PacketType.COMMIT)
    expect(wire.violations.length).toBe(1)
    for (const host of [s1, s2]) put(host, 'log.100000004', log(four))
    decide(four, PacketType.COMMIT)
    expect(wire.violations.length).toBe(2)
  })

  it('a follower that informs its observer before the commit is reported', () => {
    const { world, wire, s1, s2, s3 } = monitor(1, 2)
    putEpoch(1, s1, s2)
    const [toS2, toS3] = [channel(world, s1, s2), channel(world, s2, s3, OBSERVER_PORT)]
    toS2(PacketType.NEWLEADER, EPOCH)
    toS2(PacketType.UPTODATE, EPOCH)
    for (const host of [s1, s2]) put(host, 'log.100000001', log(EPOCH + 1, EPOCH + 2))
    toS2(PacketType.PROPOSAL, EPOCH + 1)
    toS2(PacketType.COMMIT, EPOCH + 1)
    toS3(PacketType.INFORM, EPOCH + 1)
    expect(wire.violations).toEqual([])
    toS2(PacketType.PROPOSAL, EPOCH + 2)
    toS3(PacketType.INFORM, EPOCH + 2)
    expect(wire.violations.join()).toContain('s2 to its observer s3: committed 0x100000002, which no leader')
  })

  it('an uncommitted configuration sent to a learner is reported', () => {
    const { world, wire, s1, s2, s3 } = monitor(1, 2, 3)
    putEpoch(1, s1, s2)
    const [toS2, toS3] = [channel(world, s1, s2), channel(world, s1, s3)]
    toS2(PacketType.NEWLEADER, EPOCH)
    toS2(PacketType.UPTODATE, EPOCH)
    const change = EPOCH + 1
    toS2(PacketType.PROPOSAL, change, reconfiguration([1, 2], change))
    const text = new TextEncoder().encode(
      `server.1=s1:2888:3888:participant;2181\nversion=${change.toString(16)}`,
    )
    toS3(PacketType.NEWLEADER, EPOCH, text)
    expect(wire.violations.join()).toContain(
      's1 gave s3 the configuration 0x100000001, which is not committed',
    )
    // Once a quorum has logged it, its leader may have committed it.
    for (const host of [s1, s2]) put(host, 'log.100000001', log(change))
    toS3(PacketType.NEWLEADER, EPOCH, text)
    expect(wire.violations.length).toBe(1)
  })

  it.each([
    [[1, 2], []],
    [[1, 2, 3, 4], [/s1 leads epoch 2, which is not on the disks of a quorum of 1, 2, 3, 4 /]],
  ])(
    'the initial configuration %j of a leader is committed, although its log has lost the reconfiguration',
    (members, wrong) => {
      const world = new SimulatedWorld(1)
      const [s1, s2, s3] = ['s1', 's2', 's3'].map((name) => world.addHost(name)) as [Host, Host, Host]
      const wire = new QuorumMonitor(world, majorityOf(new Set([1, 2, 3])))
      putEpoch(2, s1, s2)
      const change = EPOCH + 1
      channel(world, s3, s1)(PacketType.PROPOSAL, change, reconfiguration(members, change))
      const text = new TextEncoder().encode(
        `server.1=s1:2888:3888:participant;2181\nversion=${change.toString(16)}`,
      )
      const [toS2, toS3] = [channel(world, s1, s2), channel(world, s1, s3)]
      toS2(PacketType.NEWLEADER, EPOCH * 2, text)
      toS2(PacketType.UPTODATE, EPOCH * 2)
      toS3(PacketType.NEWLEADER, EPOCH * 2, text)
      expect(wire.violations).toEqual(wrong.map((sentence) => expect.stringMatching(sentence)))
    },
  )
})
