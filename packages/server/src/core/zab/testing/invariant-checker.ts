import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { QuorumVerifier, ServerId } from '../../quorum/index.ts'
import type { Zxid } from '../../types.ts'
import { PacketType, type QuorumPacket } from '../packets.ts'
import type { SimulatedDisk, Txn } from './simulated-disk.ts'

/** What a judge must see of a server. */
export interface CheckedServer {
  readonly id: ServerId
  readonly disk: SimulatedDisk
  readonly tree: readonly Txn[]
}

/** What was said on a connection so far. */
export interface LinkHistory {
  lastProposed: Zxid
  lastCommitted: Zxid
  readonly proposals: Set<Zxid>
  hasAckedNewLeader: boolean
}

export const emptyLinkHistory = (): LinkHistory => ({
  lastProposed: -1,
  lastCommitted: -1,
  proposals: new Set(),
  hasAckedNewLeader: false,
})

/** Sees everything and says which promise is broken. Numbers are those of the invariants that servers must keep (22). */
export class InvariantChecker {
  readonly #servers: readonly CheckedServer[]
  readonly #verifier: () => QuorumVerifier
  /** All that was ever committed, in order. */
  readonly committed: Txn[] = []
  /** Established leaders by epoch, and where their own transactions begin. */
  readonly leaderships = new Map<number, { leader: ServerId; initial: number }>()
  readonly #acceptedEpochs = new Set<string>()

  constructor(servers: readonly CheckedServer[], verifier: () => QuorumVerifier) {
    this.#servers = servers
    this.#verifier = verifier
  }

  /** 1, 4, 5, 11: a leader is established. */
  leaderEstablished(leader: CheckedServer, epoch: number): void {
    invariant(!this.leaderships.has(epoch), `1: two leaders in epoch ${epoch}`)
    invariant(leader.disk.currentEpoch === epoch, '4: a leader is not in its epoch on disk')
    const history = leader.disk.history
    this.committed.forEach((txn, i) => {
      invariant(history[i]?.id === txn.id, `5: the leader of ${epoch} lacks ${formatZxid(txn.zxid)}`)
    })
    for (const txn of history.slice(this.committed.length)) this.committed.push(txn)
    this.leaderships.set(epoch, { leader: leader.id, initial: this.committed.length })
    const holders = this.#servers.filter((server) => this.#hasCommitted(server, this.committed.length))
    this.#expectQuorum(holders, `11: the history of the leader of ${epoch} is not on a quorum of disks`)
    const entered = this.#servers.filter(({ disk }) => disk.currentEpoch >= epoch)
    this.#expectQuorum(entered, `16: the epoch ${epoch} is not on a quorum of disks`)
  }

  /** 6, 8, 9, 11, 17: a leader commits. */
  leaderCommits(leader: CheckedServer, epoch: number, txn: Txn): void {
    invariant(this.leaderships.get(epoch)?.leader === leader.id, '9: who commits was not established')
    invariant(epochOf(txn.zxid) === epoch, '9: a leader commits what is not of its epoch')
    const at = this.committed.findIndex(({ zxid }) => zxid === txn.zxid)
    if (at !== -1) return invariant(this.committed[at]!.id === txn.id, '6: two transactions with one zxid')
    const last = this.committed.at(-1)?.zxid ?? 0
    invariant(txn.zxid > last, `7: ${formatZxid(txn.zxid)} is committed behind ${formatZxid(last)}`)
    const next = epochOf(last) === epoch ? txn.zxid === last + 1 : counterOf(txn.zxid) === 1
    invariant(next, `8: a gap before ${formatZxid(txn.zxid)}`)
    this.committed.push(txn)
    const holders = this.#servers.filter((server) => this.#hasCommitted(server, this.committed.length))
    this.#expectQuorum(holders, `11: ${formatZxid(txn.zxid)} is committed and not on a quorum of disks`)
  }

  /** 7, 8: a server that serves applies. */
  serverApplies(server: CheckedServer): void {
    const at = server.tree.length - 1
    const txn = server.tree[at]!
    const due = this.committed[at]
    invariant(
      due?.id === txn.id,
      `7: server ${server.id} applies ${formatZxid(txn.zxid)} in place of ${due?.zxid}`,
    )
  }

  /** 7, 12, 13: a server begins to serve. */
  serverServes(server: CheckedServer, epoch: number): void {
    const reign = this.leaderships.get(epoch)
    invariant(reign !== undefined, `server ${server.id} serves in epoch ${epoch}, which has no leader yet`)
    invariant(server.tree.length >= reign.initial, `13: server ${server.id} serves without all of history`)
    server.tree.forEach((txn, i) => {
      invariant(this.committed[i]?.id === txn.id, `13: server ${server.id} serves what was not committed`)
    })
  }

  /** 3, 15, 16, 19: a learner speaks. */
  learnerSends(
    learner: CheckedServer,
    { type, zxid, data }: QuorumPacket,
    epoch: number,
    { hasAckedNewLeader: vouched }: LinkHistory,
    leads: CheckedServer,
  ): void {
    const { disk } = learner
    if (type === PacketType.ackEpoch && data![0] !== 0xff) {
      const promise = `${learner.id} ${epoch}`
      invariant(!this.#acceptedEpochs.has(promise), `3: server ${learner.id} promises epoch ${epoch} twice`)
      this.#acceptedEpochs.add(promise)
      invariant(disk.acceptedEpoch === epoch, '3: a promise is not on disk')
    }
    if (type !== PacketType.ack) return
    if (counterOf(zxid) === 0) {
      if (vouched) return
      invariant(disk.currentEpoch === epoch, '16: NEWLEADER is acknowledged before the epoch is on disk')
      const known = leads.disk.history.filter((txn) => epochOf(txn.zxid) < epoch)
      known.forEach((txn, i) => {
        invariant(disk.history[i]?.id === txn.id, '16: NEWLEADER is acknowledged before history is on disk')
      })
      return
    }
    invariant(vouched, '19: a proposal is acknowledged before NEWLEADER')
    invariant(
      disk.history.some((txn) => txn.zxid === zxid),
      `15: server ${learner.id} acknowledges ${formatZxid(zxid)}, which is not on its disk`,
    )
  }

  /** 4, 18: a leader speaks. */
  leaderSends(leader: CheckedServer, { type, zxid }: QuorumPacket, said: LinkHistory): void {
    if (type === PacketType.leaderInfo)
      invariant(leader.disk.acceptedEpoch === epochOf(zxid), '4: an epoch is told of before it is on disk')
    if (type === PacketType.proposal || type === PacketType.inform) {
      invariant(
        zxid > said.lastProposed,
        `18: ${formatZxid(zxid)} is proposed after ${formatZxid(said.lastProposed)}`,
      )
      said.lastProposed = zxid
      said.proposals.add(zxid)
    }
    if (type === PacketType.commit) {
      invariant(said.proposals.has(zxid), `18: ${formatZxid(zxid)} is committed and was not proposed`)
      invariant(
        zxid > said.lastCommitted,
        `18: ${formatZxid(zxid)} is committed behind ${formatZxid(said.lastCommitted)}`,
      )
      said.lastCommitted = zxid
    }
  }

  #hasCommitted({ disk }: CheckedServer, count: number): boolean {
    const last = this.committed[count - 1]
    return last === undefined || disk.history[count - 1]?.id === last.id
  }

  #expectQuorum(servers: readonly CheckedServer[], sentence: string): void {
    invariant(this.#verifier().isQuorum(new Set(servers.map(({ id }) => id))), sentence)
  }
}
