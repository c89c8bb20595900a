import { makeZxid } from '@zabra/protocol'
import { expect, it } from 'vitest'
import {
  Leader,
  CommittedWindow,
  encodeAckEpoch,
  encodeLearnerInfo,
  packetName,
  PacketType,
  PROTOCOL_VERSION,
  type ConnectionId,
} from '../core/zab/index.ts'
import { parseConfiguration } from '../core/quorum/index.ts'
import { sourcesOf } from '../core/zab/testing/sync-sources.ts'
import { broadcast } from './learners.ts'
import type { LearnerConnection } from './learner-connection.ts'

const EPOCH = makeZxid(1, 0)
const configuration = [1, 2, 3, 4, 5].map((id) => `server.${id}=h:${2 * id}:${2 * id + 1}`).join('\n')

/** Server 5 leads four followers, whose connections fail on a send when the test says so. */
function establishedLeader() {
  const sent: string[] = []
  const failing = new Set<ConnectionId>()
  const connections = new Map<ConnectionId, LearnerConnection>()
  const leader = new Leader({
    self: 5,
    active: parseConfiguration(configuration),
    acceptedEpoch: 0,
    currentEpoch: 0,
    lastZxid: 0,
    initLimit: 10,
    syncLimit: 5,
    reconfigEnabled: false,
    sources: sourcesOf(new CommittedWindow(0)),
  })
  const perform = (): void => {
    for (let work = leader.nextWork(); work !== undefined; work = leader.nextWork())
      if (work.do === 'propose' || work.do === 'commit') broadcast(connections, work)
  }
  const packet = (from: ConnectionId, type: number, zxid: number, data: Uint8Array | null = null): void =>
    leader.step({ type: 'packet', from, packet: { type, zxid, data, auth: null } })
  const send =
    (id: ConnectionId): LearnerConnection['send'] =>
    (type, zxid) => {
      if (!failing.has(id)) return void sent.push(`${packetName(type)} ${zxid - EPOCH} to ${id}`)
      connections.delete(id)
      leader.step({ type: 'closed', from: id })
    }
  const ids = [1, 2, 3, 4]
  leader.step({ type: 'start' })
  for (const id of ids) {
    connections.set(id, { send: send(id) } as LearnerConnection)
    leader.step({ type: 'accepted', from: id })
    const info = { serverId: id, protocolVersion: PROTOCOL_VERSION, configVersion: 0 }
    packet(id, PacketType.followerInfo, 0, encodeLearnerInfo(info))
  }
  leader.step({ type: 'stored', what: 'acceptedEpoch', epoch: 1 })
  for (const id of ids) packet(id, PacketType.ackEpoch, 0, encodeAckEpoch(0))
  leader.step({ type: 'stored', what: 'currentEpoch', epoch: 1 })
  for (const id of ids) packet(id, PacketType.ack, EPOCH)
  perform()
  return { leader, sent, failing, perform }
}

it('sends a proposal and a commit to all other followers when the connection of one fails on that send', () => {
  const { leader, sent, failing, perform } = establishedLeader()
  failing.add(1)
  leader.propose(EPOCH + 1, new Uint8Array(40))
  perform()
  expect(sent).toEqual(['proposal 1 to 2', 'proposal 1 to 3', 'proposal 1 to 4'])
  sent.length = 0
  failing.add(3)
  leader.markDurable(EPOCH + 1)
  for (const id of [2, 4]) leader.ack(id, EPOCH + 1)
  perform()
  expect(sent).toEqual(['commit 1 to 2', 'commit 1 to 4'])
})
