import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { QuorumVerifier, ServerId } from '../../quorum/index.ts'
import type { Zxid } from '../../types.ts'
import { PacketType, type QuorumPacket } from '../packets.ts'
import type { SimulatedDisk } from './simulated-disk.ts'
import type { Txn } from './txn.ts'

/** The state of a server that is checked. */
export interface CheckedServer {
  readonly id: ServerId
  readonly disk: SimulatedDisk
  readonly tree: readonly Txn[]
}

/** What was sent on a link so far. */
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

/** Checks the safety invariants of all servers. The numbers in messages are those of quorum-protocol 22. */
export class InvariantChecker {
  readonly #servers: readonly CheckedServer[]
  readonly #verifier: QuorumVerifier
  /** All transactions ever committed, in order. */
  readonly committed: Txn[] = []
  /** Established leaders by epoch, with the number of transactions committed before their first proposal. */
  readonly leaderships = new Map<number, { leader: ServerId; initial: number }>()
  readonly #acceptedEpochs = new Set<string>()

  constructor(servers: readonly CheckedServer[], verifier: QuorumVerifier) {
    this.#servers = servers
    this.#verifier = verifier
  }

  /** Checks an established leader: quorum-protocol invariants 1, 4, 5, 11, 16. */
  leaderEstablished(leader: CheckedServer, epoch: number): void {
    invariant(!this.leaderships.has(epoch), `1: two leaders in epoch ${epoch}`)
    invariant(leader.disk.currentEpoch === epoch, '4: the currentEpoch of a leader is not stored')
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

  /** Checks a commit of a leader: quorum-protocol invariants 6, 7, 8, 9, 11. */
  leaderCommits(leader: CheckedServer, epoch: number, txn: Txn): void {
    invariant(
      this.leaderships.get(epoch)?.leader === leader.id,
      '9: a server commits that is not established',
    )
    invariant(epochOf(txn.zxid) === epoch, '9: a leader commits a transaction of another epoch')
    const at = this.committed.findIndex(({ zxid }) => zxid === txn.zxid)
    if (at !== -1) return invariant(this.committed[at]!.id === txn.id, '6: two transactions with one zxid')
    const last = this.committed.at(-1)?.zxid ?? 0
    invariant(txn.zxid > last, `7: ${formatZxid(txn.zxid)} is committed after ${formatZxid(last)}`)
    const isNext = epochOf(last) === epoch ? txn.zxid === last + 1 : counterOf(txn.zxid) === 1
    invariant(isNext, `8: a gap before ${formatZxid(txn.zxid)}`)
    this.committed.push(txn)
    const holders = this.#servers.filter((server) => this.#hasCommitted(server, this.committed.length))
    this.#expectQuorum(holders, `11: ${formatZxid(txn.zxid)} is committed and not on a quorum of disks`)
  }

  /** Checks the last transaction applied by a serving server: quorum-protocol invariant 7. */
  serverApplies(server: CheckedServer): void {
    const at = server.tree.length - 1
    const txn = server.tree[at]!
    const expected = this.committed[at]
    const found = formatZxid(txn.zxid)
    invariant(expected?.id === txn.id, `7: server ${server.id} applies ${found} instead of ${expected?.zxid}`)
  }

  /** Checks a server that begins to serve: quorum-protocol invariants 12, 13. */
  serverServes(server: CheckedServer, epoch: number): void {
    const leadership = this.leaderships.get(epoch)
    invariant(
      leadership !== undefined,
      `server ${server.id} serves in epoch ${epoch} without an established leader`,
    )
    invariant(
      server.tree.length >= leadership.initial,
      `12: server ${server.id} serves without all of the history`,
    )
    server.tree.forEach((txn, i) => {
      invariant(this.committed[i]?.id === txn.id, `13: server ${server.id} serves an uncommitted transaction`)
    })
  }

  /** Checks a packet sent by a learner: quorum-protocol invariants 3, 15, 16, 19. */
  learnerSends(
    learner: CheckedServer,
    { type, zxid, data }: QuorumPacket,
    epoch: number,
    { hasAckedNewLeader }: LinkHistory,
    leader: CheckedServer,
  ): void {
    const { disk } = learner
    if (type === PacketType.ackEpoch && data![0] !== 0xff) {
      const acceptance = `${learner.id} ${epoch}`
      invariant(!this.#acceptedEpochs.has(acceptance), `3: server ${learner.id} accepts epoch ${epoch} twice`)
      this.#acceptedEpochs.add(acceptance)
      invariant(disk.acceptedEpoch === epoch, '3: an accepted epoch is not on disk')
    }
    if (type !== PacketType.ack) return
    if (counterOf(zxid) !== 0) {
      invariant(hasAckedNewLeader, '19: a proposal is acknowledged before NEWLEADER')
      const isLogged = disk.history.some((txn) => txn.zxid === zxid)
      invariant(
        isLogged,
        `15: server ${learner.id} acknowledges ${formatZxid(zxid)}, which is not on its disk`,
      )
      return
    }
    if (hasAckedNewLeader) return
    invariant(disk.currentEpoch === epoch, '16: NEWLEADER is acknowledged before the epoch is on disk')
    const initial = leader.disk.history.filter((txn) => epochOf(txn.zxid) < epoch)
    initial.forEach((txn, i) => {
      invariant(disk.history[i]?.id === txn.id, '16: NEWLEADER is acknowledged before the history is on disk')
    })
  }

  /** Checks a packet sent by a leader: quorum-protocol invariants 4, 18. */
  leaderSends(leader: CheckedServer, { type, zxid }: QuorumPacket, sent: LinkHistory): void {
    const text = formatZxid(zxid)
    if (type === PacketType.leaderInfo)
      invariant(leader.disk.acceptedEpoch === epochOf(zxid), '4: an epoch is sent before it is on disk')
    if (type === PacketType.proposal || type === PacketType.inform) {
      invariant(zxid > sent.lastProposed, `18: ${text} is proposed after ${formatZxid(sent.lastProposed)}`)
      sent.lastProposed = zxid
      sent.proposals.add(zxid)
    }
    if (type === PacketType.commit) {
      invariant(sent.proposals.has(zxid), `18: ${text} is committed and was not proposed`)
      invariant(zxid > sent.lastCommitted, `18: ${text} is committed after ${formatZxid(sent.lastCommitted)}`)
      sent.lastCommitted = zxid
    }
  }

  #hasCommitted({ disk }: CheckedServer, count: number): boolean {
    const last = this.committed[count - 1]
    return last === undefined || disk.history[count - 1]?.id === last.id
  }

  #expectQuorum(servers: readonly CheckedServer[], message: string): void {
    invariant(this.#verifier.isQuorum(new Set(servers.map(({ id }) => id))), message)
  }
}
