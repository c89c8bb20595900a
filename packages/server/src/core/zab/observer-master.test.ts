import { makeZxid } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { parseConfiguration } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import {
  CommittedWindow,
  encodeAckEpoch,
  encodeLearnerInfo,
  ObserverMaster,
  packetName,
  PacketType,
  PROTOCOL_VERSION,
  type ObserverMasterInput,
  type ObserverMasterWork,
} from './index.ts'
import { sourcesOf } from './testing/sync-sources.ts'

const EPOCH = 5
const at = (counter: number, epoch = EPOCH): Zxid => makeZxid(epoch, counter)

/** An observer master whose window contains the first `count` transactions of the epoch. */
function createMaster(count = 3, limits: { maxObservers?: number } = {}) {
  const window = new CommittedWindow(at(7, 4))
  const commit = (counter: number): void => window.add(at(counter), new Uint8Array([counter]))
  for (let counter = 1; counter <= count; counter++) commit(counter)
  const master = new ObserverMaster({
    self: 1,
    epoch: EPOCH,
    configuration: () =>
      parseConfiguration('server.1=a:1:2\nserver.2=b:1:2\nserver.9=c:1:2:observer\nversion=7'),
    initLimit: 4,
    syncLimit: 2,
    sources: sourcesOf(window),
    ...limits,
  })
  /** Steps the master and returns its work as text. */
  const step = (input: ObserverMasterInput): string[] => {
    const lines: string[] = []
    master.step(input)
    for (let work = master.nextWork(); work !== undefined; work = master.nextWork())
      lines.push(describeWork(work))
    return lines
  }
  const packet = (from: number, type: number, zxid: Zxid, data: Uint8Array | null = null): string[] =>
    step({ type: 'packet', from, packet: { type, zxid, data, auth: null } })
  const connect = (
    from: number,
    { server = 9, epoch = 4, type = PacketType.observerInfo as number, isAuthenticated = false } = {},
  ): string[] => {
    step({ type: 'accepted', from, isAuthenticated })
    const info = { serverId: server, protocolVersion: PROTOCOL_VERSION, configVersion: 0 }
    return packet(from, type, at(0, epoch), encodeLearnerInfo(info))
  }
  /** Connects an observer with this last zxid, up to its ACKEPOCH. */
  const ackEpoch = (from: number, zxid: Zxid, server = 9): string[] => {
    connect(from, { server })
    return packet(from, PacketType.ackEpoch, zxid, encodeAckEpoch(4))
  }
  const join = (from: number, zxid: Zxid, server = 9): string[] => {
    ackEpoch(from, zxid, server)
    return packet(from, PacketType.ack, at(0))
  }
  const halfTicks = (times: number): string[] => {
    const lines: string[] = []
    for (let i = 0; i < times; i++) lines.push(...step({ type: 'halfTick' }))
    return lines
  }
  return { master, step, packet, connect, ackEpoch, join, commit, halfTicks }
}

function describeWork(work: ObserverMasterWork): string {
  switch (work.do) {
    case 'send':
      return `${packetName(work.packet.type)} ${work.packet.zxid} to ${work.to}`
    case 'sync':
      return work.plan.kind === 'snap'
        ? `snap to ${work.to}`
        : `${work.plan.kind} ${work.plan.zxid} with ${work.plan.entries.length} to ${work.to}`
    case 'drop':
      return `drop ${work.connection}: ${work.reason}`
    case 'deliver':
      return `deliver ${packetName(work.packet.type)} of ${work.from}`
    case 'warn':
      return 'warn'
  }
}

it('sends an observer the epoch, missing history, the configuration and UPTODATE', () => {
  const { connect, packet, master } = createMaster()
  expect(connect(1)).toEqual([`leaderInfo ${at(0)} to 1`])
  expect(packet(1, PacketType.ackEpoch, at(1), encodeAckEpoch(4))).toEqual([
    `diff ${at(3)} with 2 to 1`,
    `newLeader ${at(0)} to 1`,
  ])
  // INFORM follows the sync data, also before UPTODATE.
  expect(master.observers).toEqual([1])
  expect(packet(1, PacketType.ack, at(0))).toEqual(['upToDate -1 to 1'])
  // The ACK of UPTODATE.
  expect(packet(1, PacketType.ack, at(0))).toEqual([])
})

it('sends NEWLEADER after all of a snapshot', () => {
  const { ackEpoch, packet, step } = createMaster()
  expect(ackEpoch(1, at(3, 2))).toEqual(['snap to 1'])
  expect(packet(1, PacketType.ack, at(0)).join()).toContain('drop 1')
  expect(ackEpoch(2, at(3, 2))).toEqual(['snap to 2'])
  expect(step({ type: 'streamed', to: 2 })).toEqual([`newLeader ${at(0)} to 2`])
  expect(step({ type: 'streamed', to: 2 })).toEqual([])
})

it('lets an observer that is ahead within the epoch wait until its last transaction is committed here', () => {
  const { ackEpoch, commit, master, step } = createMaster(3)
  expect(ackEpoch(1, at(5))).toEqual([])
  expect(master.hasWaitingObservers).toBe(true)
  commit(4)
  expect(step({ type: 'committed' })).toEqual([])
  commit(5)
  expect(step({ type: 'committed' })).toEqual([`diff ${at(5)} with 0 to 1`, `newLeader ${at(0)} to 1`])
  expect(master.hasWaitingObservers).toBe(false)
})

it('drops an observer that stays ahead of it', () => {
  const { ackEpoch, halfTicks } = createMaster(3)
  ackEpoch(1, at(5))
  expect(halfTicks(8)).toEqual([])
  expect(halfTicks(2)).toEqual(['drop 1: it was silent for too long in state epochAccepted'])
})

it('truncates uncommitted transactions of an earlier epoch', () => {
  // Nothing of the epoch is committed yet, and all earlier history is known.
  const { ackEpoch } = createMaster(0)
  expect(ackEpoch(1, at(9, 4))).toEqual([`trunc ${at(7, 4)} with 0 to 1`, `newLeader ${at(0)} to 1`])
})

it('forwards the PINGs of the leader to active observers, and sends none of its own', () => {
  const { join, ackEpoch, halfTicks, step, packet } = createMaster()
  join(1, at(3))
  ackEpoch(2, at(3), 8)
  expect(halfTicks(4)).toEqual([])
  expect(step({ type: 'pinged', zxid: at(3) })).toEqual([`ping ${at(3)} to 1`])
  expect(packet(1, PacketType.ping, at(3), new Uint8Array(0))).toEqual(['deliver ping of 1'])
  expect(packet(1, PacketType.request, -1, new Uint8Array(0))).toEqual(['deliver request of 1'])
  expect(packet(1, PacketType.revalidate, -1, new Uint8Array(0))).toEqual(['deliver revalidate of 1'])
})

it('drops an active observer that is silent for longer than syncLimit', () => {
  const { join, halfTicks, master } = createMaster()
  join(1, at(3))
  halfTicks(4)
  master.heartbeat(1)
  expect(halfTicks(4)).toEqual([])
  expect(halfTicks(2)).toEqual(['drop 1: it was silent for too long in state active'])
  expect(master.observers).toEqual([])
})

it('sends its epoch to an observer that has accepted a later one, which leaves or follows without a vote', () => {
  const { connect } = createMaster()
  expect(connect(2, { epoch: EPOCH + 1 }).join()).toContain('leaderInfo')
})

it('drops followers, observers with data of a later epoch, its own id and unexpected packets', () => {
  const { connect, packet } = createMaster()
  expect(connect(1, { type: PacketType.followerInfo }).join()).toContain('drop 1: only observers')
  expect(connect(3, { server: 1 }).join()).toContain('drop 3: it has the id of this server')
  connect(4)
  expect(packet(4, PacketType.request, -1).join()).toContain('drop 4: unexpected request')
  expect(connect(5).join()).toContain('leaderInfo')
  expect(packet(5, PacketType.ackEpoch, at(1, EPOCH + 1), encodeAckEpoch(4)).join()).toContain('drop 5')
})

it('keeps an observer that answers when a second connection claims its id, unless that one has proved it', () => {
  const { join, connect, packet, master } = createMaster()
  join(1, at(3), 9)
  expect(connect(2, { server: 9 })).toEqual(['drop 2: server 9 is connected already'])
  expect(master.observers).toEqual([1])
  connect(3, { isAuthenticated: true })
  expect(packet(3, PacketType.ackEpoch, at(3), encodeAckEpoch(4))[0]).toBe(
    'drop 1: the same server has connected again',
  )
})

it('refuses an observer above the limit', () => {
  const { join, connect } = createMaster(3, { maxObservers: 2 })
  join(1, at(3), 9)
  connect(3, { server: 8 })
  expect(connect(4, { server: 7 }).join()).toContain('drop 4: there are already 2 observers')
})

it('ignores connections that are gone, and learns that one is closed', () => {
  const { join, master, packet, step } = createMaster()
  join(1, at(3))
  master.heartbeat(7)
  expect(packet(7, PacketType.ping, at(3))).toEqual([])
  expect(step({ type: 'closed', from: 7 })).toEqual([])
  expect(step({ type: 'closed', from: 1 })).toEqual([])
  expect(master.observers).toEqual([])
})

it('drops an observer that sends a malformed packet or one before its turn, and hides no defect of its own', () => {
  const { ackEpoch, connect, join, packet, step } = createMaster()
  step({ type: 'accepted', from: 1 })
  expect(packet(1, PacketType.observerInfo, 0, Uint8Array.of(1)).join()).toContain('drop 1: Expected')
  step({ type: 'accepted', from: 2 })
  const old = encodeLearnerInfo({ serverId: 9, protocolVersion: PROTOCOL_VERSION - 1, configVersion: 0 })
  expect(packet(2, PacketType.observerInfo, 0, old)).toEqual([
    `drop 2: its protocol version ${PROTOCOL_VERSION - 1} is not supported`,
  ])
  ackEpoch(3, at(3))
  expect(packet(3, PacketType.ackEpoch, at(3), encodeAckEpoch(4)).join()).toContain(
    'drop 3: unexpected ackEpoch',
  )
  ackEpoch(4, at(3))
  expect(packet(4, PacketType.ping, at(3)).join()).toContain('drop 4: unexpected ping in state syncing')
  connect(5)
  expect(packet(5, PacketType.ack, at(0)).join()).toContain('drop 5: unexpected ack in state epochSent')
  join(6, at(3))
  expect(packet(6, PacketType.ackEpoch, at(3), encodeAckEpoch(4))).toEqual(['warn'])
  step({ type: 'accepted', from: 8 })
  expect(() => packet(8, PacketType.observerInfo, 0, {} as Uint8Array)).toThrow(TypeError)
})

it('lets the first of two connections with one id in, and refuses the second one at its ACKEPOCH', () => {
  const { connect, packet } = createMaster()
  for (const from of [1, 2]) connect(from)
  packet(2, PacketType.ackEpoch, at(3), encodeAckEpoch(4))
  packet(2, PacketType.ack, at(0))
  expect(packet(1, PacketType.ackEpoch, at(3), encodeAckEpoch(4))).toEqual([])
  const [early, late] = [3, 4]
  connect(early, { server: 8 })
  connect(late, { server: 8, isAuthenticated: true })
  expect(packet(early, PacketType.ackEpoch, at(3), encodeAckEpoch(4)).join()).toContain('drop 3')
})

it('sends a snapshot to an observer that does not trust its data, and history once only', () => {
  const { ackEpoch, join, step } = createMaster()
  expect(ackEpoch(1, -1)).toEqual(['snap to 1'])
  join(2, at(3), 8)
  expect(step({ type: 'committed' })).toEqual([])
})

it('does not let an observer at the start of the epoch wait for its first transaction', () => {
  expect(createMaster(0).ackEpoch(1, at(0))).toEqual(['snap to 1'])
})

it('ignores ACKs of transactions', () => {
  const { join, packet } = createMaster()
  join(1, at(3))
  expect(packet(1, PacketType.ack, at(3))).toEqual(['warn'])
})
