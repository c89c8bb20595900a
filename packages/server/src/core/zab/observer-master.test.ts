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
  type ObserverMasterWork,
} from './index.ts'
import { sourcesOf } from './testing/sync-sources.ts'

const EPOCH = 5
const at = (counter: number, epoch = EPOCH): Zxid => makeZxid(epoch, counter)

/** A master whose window holds the first `count` transactions of the epoch. */
function rig(count = 3, limits: { maxObservers?: number } = {}) {
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
  const told: string[] = []
  const note = (works: readonly ObserverMasterWork[]): string[] => {
    const lines = works.map(tell)
    told.push(...lines)
    return lines
  }
  const packet = (from: number, type: number, zxid: Zxid, data: Uint8Array | null = null): string[] =>
    note(master.step({ type: 'packet', from, packet: { type, zxid, data, auth: null } }))
  const arrive = (
    from: number,
    { server = 9, epoch = 4, type = PacketType.observerInfo as number } = {},
  ): string[] => {
    master.step({ type: 'accepted', from })
    const info = { serverId: server, protocolVersion: PROTOCOL_VERSION, configVersion: 0 }
    return packet(from, type, at(0, epoch), encodeLearnerInfo(info))
  }
  /** An observer that has everything up to a zxid, as far as the plan for it. */
  const place = (from: number, zxid: Zxid, server = 9): string[] => {
    arrive(from, { server })
    return packet(from, PacketType.ackEpoch, zxid, encodeAckEpoch(4))
  }
  const join = (from: number, zxid: Zxid, server = 9): string[] => {
    place(from, zxid, server)
    return packet(from, PacketType.ack, at(0))
  }
  const halfTicks = (times: number): string[] => {
    const lines: string[] = []
    for (let i = 0; i < times; i++) lines.push(...note(master.step({ type: 'halfTick' })))
    return lines
  }
  return { master, note, packet, arrive, place, join, commit, halfTicks }
}

function tell(work: ObserverMasterWork): string {
  switch (work.do) {
    case 'send':
      return `${packetName(work.packet.type)} ${work.packet.zxid} to ${work.to}`
    case 'sync':
      return work.plan.how === 'snap'
        ? `snap to ${work.to}`
        : `${work.plan.how} ${work.plan.zxid} with ${work.plan.entries.length} to ${work.to}`
    case 'drop':
      return `drop ${work.connection}: ${work.reason}`
    case 'deliver':
      return `deliver ${packetName(work.packet.type)} of ${work.from}`
    case 'warn':
      return 'warn'
  }
}

it('tells an observer the epoch, what it lacks, the configuration and that it is in step', () => {
  const { arrive, packet, master } = rig()
  expect(arrive(1)).toEqual([`leaderInfo ${at(0)} to 1`])
  expect(packet(1, PacketType.ackEpoch, at(1), encodeAckEpoch(4))).toEqual([
    `diff ${at(3)} with 2 to 1`,
    `newLeader ${at(0)} to 1`,
  ])
  // INFORM goes behind what it was synced with, before it is in step.
  expect(master.observers).toEqual([1])
  expect(packet(1, PacketType.ack, at(0))).toEqual(['upToDate -1 to 1'])
  // Its ACK of UPTODATE.
  expect(packet(1, PacketType.ack, at(0))).toEqual([])
})

it('sends NEWLEADER behind all of a snapshot', () => {
  const { place, packet, note, master } = rig()
  expect(place(1, at(3, 2))).toEqual(['snap to 1'])
  expect(packet(1, PacketType.ack, at(0)).join()).toContain('drop 1')
  expect(place(2, at(3, 2))).toEqual(['snap to 2'])
  expect(note(master.step({ type: 'streamed', to: 2 }))).toEqual([`newLeader ${at(0)} to 2`])
  expect(note(master.step({ type: 'streamed', to: 2 }))).toEqual([])
})

it('lets an observer that is ahead within the epoch wait until the same is committed here', () => {
  const { place, commit, master, note } = rig(3)
  expect(place(1, at(5))).toEqual([])
  expect(master.hasWaitingObservers).toBe(true)
  commit(4)
  expect(note(master.step({ type: 'committed' }))).toEqual([])
  commit(5)
  expect(note(master.step({ type: 'committed' }))).toEqual([
    `diff ${at(5)} with 0 to 1`,
    `newLeader ${at(0)} to 1`,
  ])
  expect(master.hasWaitingObservers).toBe(false)
})

it('gives up an observer that stays ahead of it', () => {
  const { place, halfTicks } = rig(3)
  place(1, at(5))
  expect(halfTicks(8)).toEqual([])
  expect(halfTicks(2)).toEqual(['drop 1: it was silent for too long while it was promised'])
})

it('has history cut that an earlier epoch has left uncommitted', () => {
  // Nothing of the epoch is committed yet, and all that was before it is known.
  const { place } = rig(0)
  expect(place(1, at(9, 4))).toEqual([`trunc ${at(7, 4)} with 0 to 1`, `newLeader ${at(0)} to 1`])
})

it('hands the pings of the leader on to those in step, and sends none of its own', () => {
  const { join, place, halfTicks, master, note, packet } = rig()
  join(1, at(3))
  place(2, at(3), 8)
  expect(halfTicks(4)).toEqual([])
  expect(note(master.step({ type: 'pinged', zxid: at(3) }))).toEqual([`ping ${at(3)} to 1`])
  expect(packet(1, PacketType.ping, at(3), new Uint8Array(0))).toEqual(['deliver ping of 1'])
  expect(packet(1, PacketType.request, -1, new Uint8Array(0))).toEqual(['deliver request of 1'])
  expect(packet(1, PacketType.revalidate, -1, new Uint8Array(0))).toEqual(['deliver revalidate of 1'])
})

it('drops an observer in step that is silent for longer than syncLimit', () => {
  const { join, halfTicks, master } = rig()
  join(1, at(3))
  halfTicks(4)
  master.heartbeat(1)
  expect(halfTicks(4)).toEqual([])
  expect(halfTicks(2)).toEqual(['drop 1: it was silent for too long while it was active'])
  expect(master.observers).toEqual([])
})

it('takes neither followers nor those of a later epoch, nor itself, nor what comes out of turn', () => {
  const { arrive, packet } = rig()
  expect(arrive(1, { type: PacketType.followerInfo }).join()).toContain('drop 1: only observers')
  expect(arrive(2, { epoch: EPOCH + 1 }).join()).toContain('drop 2: it has accepted epoch 6')
  expect(arrive(3, { server: 1 }).join()).toContain('drop 3: it has the id of this server')
  arrive(4)
  expect(packet(4, PacketType.request, -1).join()).toContain('drop 4: request is not due')
  expect(arrive(5).join()).toContain('leaderInfo')
  expect(packet(5, PacketType.ackEpoch, at(1, EPOCH + 1), encodeAckEpoch(4)).join()).toContain('drop 5')
})

it('takes the later of two connections of one server, and no more observers than it may', () => {
  const { join, arrive, master } = rig(3, { maxObservers: 2 })
  join(1, at(3), 9)
  expect(arrive(2, { server: 9 })[0]).toBe('drop 1: the same server has come again')
  expect(master.observers).toEqual([])
  arrive(3, { server: 8 })
  expect(arrive(4, { server: 7 }).join()).toContain('drop 4: there are 2 observers already')
})

it('ignores acknowledgements of transactions, which no observer gives', () => {
  const { join, packet } = rig()
  join(1, at(3))
  expect(packet(1, PacketType.ack, at(3))).toEqual(['warn'])
})
