import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'
import type { LearnerInput, LearnerOptions, LearnerPhase, LearnerWork } from './learner-types.ts'
import { MAX_LEADER_EPOCH } from './epoch-agreement.ts'
import { packetName, PacketType } from './packets.ts'
import {
  decodeConfiguration,
  decodeConfigurationText,
  decodeDesignatedLeader,
  decodeInformAndActivate,
  decodeLeaderInfo,
  encodeAckEpoch,
  encodeLearnerInfo,
  proposedConfiguration,
  PROTOCOL_VERSION,
} from './payloads.ts'
import { ProposalQueue } from './proposal-queue.ts'

/**
 * The state machine of a follower or observer with one leader, without clock, network or disk. Inputs are `step`, `receive` and
 * `markDurable`. After each of them the host performs all work that `nextWork` returns.
 *
 * A violation of the protocol by the leader ends the role; Apache ZooKeeper ends its process (quorum-protocol 7.4).
 */
export class Learner {
  readonly #options: LearnerOptions
  #phase: LearnerPhase = 'connecting'
  #epoch = -1
  /** How the leader synchronises this server; undefined before its first packet of history. */
  #syncMode: 'diff' | 'trunc' | 'snap' | undefined
  /** The zxid of the received snapshot, which contains all transactions up to it; -1 without one. */
  #snapshotZxid: Zxid = -1
  /** The zxid of the TRUNC received; -1 without one. */
  #truncatedTo: Zxid = -1
  readonly #queue: ProposalQueue
  /** The configuration of NEWLEADER, to be activated at UPTODATE. */
  #configuration: EnsembleConfiguration | undefined
  #hasAckedNewLeader = false
  /** The next proposal to be acknowledged, and the last one appended to the log. */
  #nextAck: Zxid = Infinity
  #lastLogged: Zxid = -1
  #halfTicks = 0
  /** The half tick in which the last packet of the leader arrived. */
  #lastHeartbeat = 0
  readonly #work = new RingBuffer<LearnerWork | undefined>(undefined)

  constructor(options: LearnerOptions) {
    this.#options = options
    this.#queue = new ProposalQueue(options.lastZxid)
  }

  get phase(): LearnerPhase {
    return this.#phase
  }

  /** The epoch of the leader; -1 before LEADERINFO. */
  get epoch(): number {
    return this.#epoch
  }

  // Inputs of every write

  /** Processes a packet of the leader. Its data must not change afterwards. */
  receive(type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.heartbeat()
    try {
      this.#dispatchPacket(type, zxid, data)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#leave(error.message)
    }
  }

  /**
   * Records that the log is durable up to and including this zxid. Proposals are acknowledged one by one, in order, when they
   * are durable, and never before UPTODATE (quorum-protocol 10.4, quorum-protocol invariant 15, quorum-protocol invariant 19).
   */
  markDurable(zxid: Zxid): void {
    if (this.#phase !== 'broadcast' || this.#options.observer) return
    const first = this.#nextAck
    const last = Math.min(zxid, this.#lastLogged)
    if (first > last) return
    this.#nextAck = last + 1
    this.#work.push({ do: 'ack', first, last })
  }

  /** Records that bytes were received from the leader, for example of a snapshot. */
  heartbeat(): void {
    this.#lastHeartbeat = this.#halfTicks
  }

  // All other inputs

  step(input: LearnerInput): void {
    if (this.#phase !== 'over') this.#dispatchInput(input)
  }

  /** Removes and returns the next work for the host, or returns undefined. */
  nextWork(): LearnerWork | undefined {
    return this.#work.shift()
  }

  /** Adds a transaction to the newest work if that is of this kind and ends before it, or else to new work. */
  #push(kind: 'append' | 'commit', zxid: Zxid, payload: Uint8Array): void {
    const newest = this.#work.last
    if (newest?.do === kind && newest.first + newest.payloads.length === zxid) newest.payloads.push(payload)
    else this.#work.push({ do: kind, first: zxid, payloads: [payload] })
  }

  #dispatchInput(input: LearnerInput): void {
    switch (input.type) {
      case 'connected':
        return this.#sendLearnerInfo()
      case 'closed':
        return this.#leave('the connection to the leader is closed')
      case 'stored':
        return input.what === 'acceptedEpoch'
          ? this.#acceptEpoch(input.epoch)
          : this.#ackNewLeader(input.epoch)
      case 'truncated':
        return this.#checkTruncation(input.lastZxid)
      case 'flushed':
        // First the history is durable, then the currentEpoch, then NEWLEADER is acknowledged (quorum-protocol 9.5,
        // ZOOKEEPER-3911, 4643, 4646, 4785).
        if (this.#phase === 'waiting') this.#store('currentEpoch')
        return
      case 'diverged':
        return this.#requestFullSync(`${input.reason}, at ${formatZxid(input.zxid)}`)
      case 'halfTick':
        return this.#halfTick()
    }
  }

  /** Dispatches a packet by phase (quorum-protocol 7.4). */
  #dispatchPacket(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (this.#phase) {
      case 'broadcast':
        return this.#options.observer
          ? this.#receiveAsObserver(type, zxid, data)
          : this.#receiveAsFollower(type, zxid, data)
      case 'discovery':
        if (type === PacketType.leaderInfo) return this.#receiveLeaderInfo(zxid, data)
        return this.#leave(`expected leaderInfo first, got ${packetName(type)}`)
      case 'synchronisation':
        return this.#syncMode === undefined
          ? this.#beginSync(type, zxid)
          : this.#receiveHistory(type, zxid, data)
      case 'waiting':
        return this.#receiveHistory(type, zxid, data)
      case 'connecting':
      case 'over':
    }
  }

  // Discovery

  /** Sends FOLLOWERINFO or OBSERVERINFO with the acceptedEpoch, not the last zxid (quorum-protocol 8.1). */
  #sendLearnerInfo(): void {
    const { self, observer, acceptedEpoch, configVersion } = this.#options
    this.#phase = 'discovery'
    this.heartbeat()
    const data = encodeLearnerInfo({ serverId: self, protocolVersion: PROTOCOL_VERSION, configVersion })
    this.#send(observer ? PacketType.observerInfo : PacketType.followerInfo, makeZxid(acceptedEpoch, 0), data)
  }

  /**
   * Processes LEADERINFO (quorum-protocol 8.1). A later epoch is durable before it is acknowledged. The same epoch again is
   * acknowledged with -1: it may have been accepted from this leader before a restart, and must not count twice
   * (quorum-protocol invariant 3). An earlier one is refused, unless this voter follows without a vote.
   */
  #receiveLeaderInfo(zxid: Zxid, data: Uint8Array | null): void {
    if (this.#epoch !== -1) return this.#leave('got a second leaderInfo')
    const version = decodeLeaderInfo(data)
    if (version < PROTOCOL_VERSION || zxid < 0 || counterOf(zxid) !== 0)
      return this.#leave(`the leader's protocol version ${version} or epoch ${formatZxid(zxid)} is invalid`)
    const { acceptedEpoch } = this.#options
    const epoch = epochOf(zxid)
    if (epoch > MAX_LEADER_EPOCH) return this.#leave(`the leader's epoch ${epoch} is after the last one`)
    if (epoch < acceptedEpoch && !this.#canFollowWithoutVote(epoch)) return this.#leaveEarlierEpoch(epoch)
    this.#epoch = epoch
    this.#queue.setEpoch(epoch)
    if (epoch > acceptedEpoch) this.#store('acceptedEpoch')
    else this.#ackEpoch(-1)
  }

  /**
   * Returns whether this voter can follow a leader of an earlier epoch than it has accepted, as an observer: the leader was
   * established in that epoch when it was elected, and this server has no history of a later one (quorum-protocol 8.3).
   */
  #canFollowWithoutVote(epoch: number): boolean {
    const { nonVotingEpoch, currentEpoch } = this.#options
    return epoch === nonVotingEpoch && epoch >= currentEpoch
  }

  #leaveEarlierEpoch(epoch: number): void {
    const { acceptedEpoch, currentEpoch } = this.#options
    if (epoch < currentEpoch)
      return this.#leave(
        `the leader's epoch ${epoch} is before epoch ${currentEpoch} of the history of this server, which has data of another ` +
          'ensemble, or the others have lost theirs; to join without its data, stop this server and run zabra recover adopt on its data folder',
      )
    const reason = `the leader's epoch ${epoch} is before the accepted epoch ${acceptedEpoch}`
    this.#leave(reason, { earlierEpoch: epoch })
  }

  #acceptEpoch(epoch: number): void {
    if (this.#phase === 'discovery' && epoch === this.#epoch) this.#ackEpoch(this.#options.currentEpoch)
  }

  /**
   * Sends ACKEPOCH. A learner that accepts the epoch sends its true last zxid, or the leader may lack a transaction of it
   * (quorum-protocol 8.2). Only one that had accepted the epoch before can request a full sync, with the zxid 0.
   */
  #ackEpoch(currentEpoch: number): void {
    this.#phase = 'synchronisation'
    this.heartbeat()
    if (this.#options.needsFullSync === true && currentEpoch === -1)
      this.#queue.continueAfter(Math.min(this.#queue.last, 0))
    this.#send(PacketType.ackEpoch, this.#queue.last, encodeAckEpoch(currentEpoch))
  }

  // Synchronisation

  /**
   * Processes DIFF, TRUNC or SNAP (quorum-protocol 9.5). A server that does not trust its data accepts only SNAP. No snapshot of a leader is
   * of a later epoch than its own.
   */
  #beginSync(type: number, zxid: Zxid): void {
    if ((type === PacketType.snap || type === PacketType.trunc) && this.#isBeforeAcknowledged(zxid))
      return this.#leave(
        `${packetName(type)} of ${formatZxid(zxid)} would remove what this server has acknowledged`,
      )
    if (type === PacketType.snap && zxid >= 0 && epochOf(zxid) <= this.#epoch)
      return this.#installSnapshot(zxid)
    const { lastZxid, needsFullSync = false } = this.#options
    const { last } = this.#queue
    const isTrusted = lastZxid !== -1
    if ((type === PacketType.diff || type === PacketType.trunc) && needsFullSync && last > 0)
      this.#leave('it has accepted the epoch, and reconnects to request a full sync', { reconnect: true })
    else if (type === PacketType.diff && isTrusted) this.#syncMode = 'diff'
    else if (type === PacketType.trunc && isTrusted && zxid >= 0 && zxid <= last) this.#truncate(zxid)
    else if (type !== PacketType.ping)
      this.#leave(`${packetName(type)} of ${formatZxid(zxid)} cannot continue after ${formatZxid(last)}`)
  }

  /**
   * Returns whether a voter that follows without a vote may have acknowledged transactions after this zxid to its leader, as a
   * follower before: the leader may count these ACKs.
   */
  #isBeforeAcknowledged(zxid: Zxid): boolean {
    const { last } = this.#queue
    const { nonVotingEpoch } = this.#options
    return nonVotingEpoch !== undefined && epochOf(Math.max(last, 0)) === nonVotingEpoch && zxid < last
  }

  #installSnapshot(zxid: Zxid): void {
    this.#syncMode = 'snap'
    this.#snapshotZxid = zxid
    this.#queue.continueAfter(zxid)
    this.#work.push({ do: 'installSnapshot', zxid })
  }

  #truncate(zxid: Zxid): void {
    this.#syncMode = 'trunc'
    this.#truncatedTo = zxid
    this.#queue.continueAfter(zxid)
    this.#work.push({ do: 'truncate', to: zxid })
  }

  /**
   * Distrusts the data if the history did not end exactly at the zxid of TRUNC (quorum-protocol 9.5, quorum-protocol H2,
   * quorum-protocol H3).
   */
  #checkTruncation(lastZxid: Zxid): void {
    const to = this.#truncatedTo
    if (lastZxid !== to)
      this.#requestFullSync(
        `history was to be truncated to ${formatZxid(to)}, but ends at ${formatZxid(lastZxid)}`,
      )
  }

  /**
   * Processes packets between DIFF, TRUNC or SNAP and UPTODATE (quorum-protocol 9.5). PING and unknown packets are ignored
   * until UPTODATE.
   */
  #receiveHistory(type: number, zxid: Zxid, data: Uint8Array | null): void {
    if (type === PacketType.newLeader) return this.#receiveNewLeader(zxid, data)
    if (type === PacketType.upToDate) return this.#receiveUpToDate()
    // A snapshot contains the transactions up to its zxid, which may be sent again after it (quorum-protocol 9.4).
    if (zxid <= this.#snapshotZxid) return
    const { observer } = this.#options
    if (type === PacketType.proposal) this.#addPending(zxid, data)
    else if (type === PacketType.commit) this.#commitHistory(zxid)
    else if (type === PacketType.commitAndActivate) this.#commitHistory(zxid, decodeDesignatedLeader(data))
    else if (type === PacketType.inform && observer) this.#informHistory(zxid, data)
    else if (type === PacketType.informAndActivate && observer) {
      const { leader, payload } = decodeInformAndActivate(data)
      this.#informHistory(zxid, payload, leader)
    }
  }

  #informHistory(zxid: Zxid, data: Uint8Array | null, designated?: ServerId): void {
    this.#addPending(zxid, data)
    this.#commitHistory(zxid, designated)
  }

  /**
   * Processes the commit of a transaction. Before NEWLEADER it is history, to be logged and applied. Between NEWLEADER and
   * UPTODATE it is only noted: nothing of the new epoch is logged or acknowledged before UPTODATE (quorum-protocol 9.4, 9.5,
   * ZOOKEEPER-4394, 4685).
   */
  #commitHistory(zxid: Zxid, designated?: ServerId): void {
    if (this.#phase === 'waiting') return this.#queue.noteCommit(zxid, designated)
    const payload = this.#queue.take(zxid)
    this.#push('append', zxid, payload)
    this.#push('commit', zxid, payload)
    if (designated !== undefined) this.#activate(zxid, payload, designated)
  }

  /** Keeps a transaction until it is committed. */
  #addPending(zxid: Zxid, data: Uint8Array | null): void {
    this.#proposeConfiguration(this.#queue.add(zxid, data))
  }

  /**
   * Keeps the configuration of a reconfig as the one seen last, before its transaction is logged (quorum-protocol 14.3).
   */
  #proposeConfiguration(configuration: EnsembleConfiguration | undefined): void {
    if (configuration !== undefined) this.#work.push({ do: 'proposeConfiguration', configuration })
  }

  #activate(zxid: Zxid, payload: Uint8Array, designated: ServerId): void {
    const configuration = proposedConfiguration(payload)
    if (configuration === undefined) throw new ProtocolError('Expected a reconfig', 0, formatZxid(zxid))
    this.#work.push({ do: 'activate', configuration, designated, zxid })
  }

  /** Makes all history durable, on observers too (quorum-protocol 9.5). */
  #receiveNewLeader(zxid: Zxid, data: Uint8Array | null): void {
    if (this.#phase === 'waiting') return this.#leave('got a second newLeader')
    if (zxid !== makeZxid(this.#epoch, 0))
      return this.#leave(`got newLeader ${formatZxid(zxid)}, but the leader's epoch is ${this.#epoch}`)
    const text = decodeConfigurationText(data)
    if (text !== '') {
      this.#configuration = decodeConfiguration(text)
      this.#proposeConfiguration(this.#configuration)
    }
    this.#phase = 'waiting'
    this.#work.push({ do: 'flush' })
  }

  #ackNewLeader(epoch: number): void {
    if (this.#phase !== 'waiting' || epoch !== this.#epoch) return
    this.#hasAckedNewLeader = true
    this.heartbeat()
    this.#send(PacketType.ack, makeZxid(this.#epoch, 0), null)
  }

  /**
   * The leader is established: logs and applies the transactions received since NEWLEADER, and serves clients
   * (quorum-protocol 9.5, 10.1).
   */
  #receiveUpToDate(): void {
    if (!this.#hasAckedNewLeader) return this.#leave('got upToDate before newLeader was acknowledged')
    this.#phase = 'broadcast'
    if (this.#configuration !== undefined)
      this.#work.push({ do: 'activate', configuration: this.#configuration })
    this.#send(PacketType.ack, makeZxid(this.#epoch, 0), null)
    const queue = this.#queue
    const { pending } = queue
    // What was committed before NEWLEADER is acknowledged with it, and an epoch may have millions of transactions.
    this.#nextAck = pending[0]?.zxid ?? Math.max(queue.last + 1, makeZxid(this.#epoch, 1))
    for (const { zxid, payload } of pending) this.#push('append', zxid, payload)
    this.#lastLogged = queue.last
    queue.takeNoted((zxid, payload, designated) => {
      this.#push('commit', zxid, payload)
      if (designated !== undefined) this.#activate(zxid, payload, designated)
    })
    this.#work.push({ do: 'serve', epoch: this.#epoch })
  }

  // Broadcast

  #receiveAsFollower(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (type) {
      case PacketType.proposal:
        this.#addPending(zxid, data)
        this.#lastLogged = zxid
        return this.#push('append', zxid, data!)
      case PacketType.commit:
        return this.#push('commit', zxid, this.#queue.take(zxid))
      case PacketType.commitAndActivate: {
        const designated = decodeDesignatedLeader(data)
        const payload = this.#queue.take(zxid)
        this.#push('commit', zxid, payload)
        return this.#activate(zxid, payload, designated)
      }
      default:
        return this.#receiveOther(type, zxid, data)
    }
  }

  /** An observer logs and applies committed transactions, without an ACK (quorum-protocol 13). */
  #receiveAsObserver(type: number, zxid: Zxid, data: Uint8Array | null): void {
    if (type === PacketType.inform) return this.#appendAndCommit(zxid, data)
    if (type !== PacketType.informAndActivate) return this.#receiveOther(type, zxid, data)
    const { leader, payload } = decodeInformAndActivate(data)
    this.#appendAndCommit(zxid, payload)
    this.#activate(zxid, payload, leader)
  }

  #appendAndCommit(zxid: Zxid, data: Uint8Array | null): void {
    this.#proposeConfiguration(this.#queue.accept(zxid, data))
    this.#push('append', zxid, data!)
    this.#push('commit', zxid, data!)
  }

  #receiveOther(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (type) {
      case PacketType.ping:
        this.#work.push({ do: 'answerPing', zxid })
        return
      case PacketType.sync:
      case PacketType.revalidate:
        this.#work.push({ do: 'deliver', packet: { type, zxid, data, auth: null } })
        return
      default: {
        const context = { packet: packetName(type), zxid: formatZxid(zxid) }
        this.#work.push({ do: 'warn', context, message: 'Ignored an unexpected packet of the leader' })
      }
    }
  }

  // End of the role

  /**
   * Leaves a silent leader. An established leader sends PINGs twice a tick; before, it may wait for others
   * (quorum-protocol 11).
   */
  #halfTick(): void {
    this.#halfTicks++
    const { initLimit, syncLimit } = this.#options
    const limit = this.#phase === 'broadcast' ? syncLimit : initLimit
    if (this.#halfTicks - this.#lastHeartbeat > limit * 2)
      this.#leave(`the leader was silent for ${limit} ticks`)
  }

  #store(what: 'acceptedEpoch' | 'currentEpoch'): void {
    this.#work.push({ do: 'store', what, epoch: this.#epoch })
  }

  #send(type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#work.push({ do: 'send', packet: { type, zxid, data, auth: null } })
  }

  #requestFullSync(reason: string): void {
    this.#work.push({ do: 'requestFullSync', reason })
    this.#leave(reason)
  }

  #leave(reason: string, how: { reconnect?: true; earlierEpoch?: number } = {}): void {
    this.#phase = 'over'
    this.#work.push({ do: 'leave', reason, ...how })
  }
}
