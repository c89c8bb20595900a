import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { Entries } from './entries.ts'
import type { LearnerInput, LearnerOptions, LearnerPhase, LearnerWork, Replica } from './learner-types.ts'
import { packetName, PacketType } from './packets.ts'
import {
  decodeConfigurationText,
  decodeDesignatedLeader,
  decodeInformAndActivate,
  decodeLeaderInfo,
  encodeAckEpoch,
  encodeLearnerInfo,
  PROTOCOL_VERSION,
} from './payloads.ts'
import { proposedConfiguration, decodeConfiguration } from './reconfig-txn.ts'
import { isNextZxid } from './committed-window.ts'

const NO_WORK: readonly LearnerWork[] = []

/**
 * One term of a learner – a follower, one that has no vote yet, or an observer – without clock, network or disk: inputs in,
 * work out. Whatever the leader does against the protocol ends the term and nothing worse; the reference ends its process.
 *
 * The hot path (`receive` in broadcast, `durable`) calls `Replica`; all else is work. Rules are numbered; in brackets stands
 * their section in the description of the server protocol.
 */
export class Learner {
  readonly #options: LearnerOptions
  readonly #replica: Replica
  #phase: LearnerPhase = 'connecting'
  #epoch = -1
  /** How the leader brings this server up to date, once it has said so. */
  #syncMode: 'diff' | 'trunc' | 'snap' | undefined
  /** Contained in the snapshot that came in: what is not after this needs no logging. */
  #snapshotZxid: Zxid = -1
  /** Where the leader had history cut. */
  #truncatedTo: Zxid = -1
  /** The last transaction that is here or on its way: the next one must come right after it. */
  #lastReceived: Zxid
  /** Proposed and not committed; while `waiting`, also what is committed, of which there are `#noted`. */
  readonly #pending = new Entries()
  #committedPending = 0
  /** Who leads under a change of the configuration among those noted. */
  readonly #designatedLeaders = new Map<Zxid, ServerId>()
  /** From NEWLEADER, to come into force with UPTODATE. */
  #configuration: EnsembleConfiguration | undefined
  #hasAckedNewLeader = false
  /** The next proposal to be acknowledged, and the last one logged. */
  #nextAck: Zxid = Infinity
  #lastLogged: Zxid = -1
  #halfTicks = 0
  #lastHeartbeat = 0
  #work: LearnerWork[] = []

  constructor(options: LearnerOptions, replica: Replica) {
    this.#options = options
    this.#replica = replica
    this.#lastReceived = options.lastZxid
  }

  get phase(): LearnerPhase {
    return this.#phase
  }

  /** -1 until the leader has said it. */
  get epoch(): number {
    return this.#epoch
  }

  /** Takes one input and returns what is to be done. The result holds until the next call. */
  step(input: LearnerInput): readonly LearnerWork[] {
    this.#resetWork()
    if (this.#phase !== 'over') this.#dispatchInput(input)
    return this.#work
  }

  /**
   * HOT. Takes one packet of the leader, whose data must not change afterwards. The result is empty for PROPOSAL, COMMIT and
   * INFORM in broadcast, which go to the replica, unless they break a rule.
   */
  receive(type: number, zxid: Zxid, data: Uint8Array | null): readonly LearnerWork[] {
    this.#lastHeartbeat = this.#halfTicks
    if (
      type === PacketType.commit &&
      this.#phase === 'broadcast' &&
      this.#pending.length > 0 &&
      this.#pending.zxidAt(0) === zxid
    ) {
      this.#commitHead()
      return NO_WORK
    }
    this.#resetWork()
    if (this.#phase === 'over') return NO_WORK
    try {
      this.#dispatchPacket(type, zxid, data)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#leave(error.message)
    }
    return this.#work
  }

  /**
   * HOT. The log is durable up to and with this zxid. F1 (10.4, invariants 15, 19) Proposals are acknowledged one by one, in
   * their order, when they are durable, and never before NEWLEADER and UPTODATE.
   */
  markDurable(zxid: Zxid): void {
    if (this.#phase !== 'broadcast' || this.#options.observer) return
    const upTo = Math.min(zxid, this.#lastLogged)
    while (this.#nextAck <= upTo) this.#replica.ack(this.#nextAck++)
  }

  /** HOT. Bytes came from the leader, of a snapshot for example: it is alive. */
  heartbeat(): void {
    this.#lastHeartbeat = this.#halfTicks
  }

  /** An empty list that was handed out is used again: most packets lead to no work. */
  #resetWork(): void {
    if (this.#work.length > 0) this.#work = []
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
      case 'hardened':
        // F2 (9.5, ZOOKEEPER-3911, 4643, 4646, 4785) First history is durable, then the epoch that vouches for it, then the ACK.
        if (this.#phase === 'waiting') this.#store('currentEpoch')
        return
      case 'diverged':
        return this.#discard(`${input.reason}, at ${formatZxid(input.zxid)}`)
      case 'halfTick':
        return this.#halfTick()
    }
  }

  // Discovery

  /** F3 (8.1) The epoch that was accepted goes out, not the last transaction. */
  #sendLearnerInfo(): void {
    const { self, observer, acceptedEpoch, configVersion } = this.#options
    this.#phase = 'discovery'
    this.#lastHeartbeat = this.#halfTicks
    const data = encodeLearnerInfo({ serverId: self, protocolVersion: PROTOCOL_VERSION, configVersion })
    this.#send(observer ? PacketType.observerInfo : PacketType.followerInfo, makeZxid(acceptedEpoch, 0), data)
  }

  /**
   * F4 (8.1, invariant 3) A later epoch is durable before it is promised. The same one again is no second promise: it may
   * have been given to this leader before a restart. An earlier one is refused.
   */
  #receiveLeaderInfo(zxid: Zxid, data: Uint8Array | null): void {
    if (this.#epoch !== -1) return this.#leave('LEADERINFO came twice')
    const version = decodeLeaderInfo(data)
    if (version < PROTOCOL_VERSION || zxid < 0 || counterOf(zxid) !== 0)
      return this.#leave(
        `the leader's protocol ${version} or its epoch ${formatZxid(zxid)} is not known here`,
      )
    const { acceptedEpoch } = this.#options
    const epoch = epochOf(zxid)
    if (epoch < acceptedEpoch)
      return this.#leave(`the leader's epoch ${epoch} is before ${acceptedEpoch}, which was accepted already`)
    this.#epoch = epoch
    if (epoch > acceptedEpoch) this.#store('acceptedEpoch')
    else this.#ackEpoch(-1)
  }

  #acceptEpoch(epoch: number): void {
    if (this.#phase === 'discovery' && epoch === this.#epoch) this.#ackEpoch(this.#options.currentEpoch)
  }

  /** F17 (8.2) Who promises says what is on disk, or a leader may lack it. Only who promises nothing may ask for everything. */
  #ackEpoch(currentEpoch: number): void {
    this.#phase = 'synchronisation'
    this.#lastHeartbeat = this.#halfTicks
    if (this.#options.needsFullSync === true && currentEpoch === -1)
      this.#lastReceived = Math.min(this.#lastReceived, 0)
    this.#send(PacketType.ackEpoch, this.#lastReceived, encodeAckEpoch(currentEpoch))
  }

  #dispatchPacket(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (this.#phase) {
      case 'discovery':
        if (type === PacketType.leaderInfo) return this.#receiveLeaderInfo(zxid, data)
        return this.#leave(`the leader did not say its epoch first but sent ${packetName(type)}`)
      case 'synchronisation':
        return this.#syncMode === undefined
          ? this.#beginSync(type, zxid)
          : this.#receiveHistory(type, zxid, data)
      case 'waiting':
        return this.#receiveBeforeUpToDate(type, zxid, data)
      case 'broadcast':
        return this.#options.observer
          ? this.#receiveAsObserver(type, zxid, data)
          : this.#receiveAsFollower(type, zxid, data)
      case 'connecting':
      case 'over':
    }
  }

  /** F5 (9.5) How history comes. A server that does not trust its own takes nothing but all of it. */
  #beginSync(type: number, zxid: Zxid): void {
    if (type === PacketType.snap && zxid >= 0) {
      this.#syncMode = 'snap'
      this.#lastReceived = this.#snapshotZxid = zxid
      this.#work.push({ do: 'install', zxid })
      return
    }
    const { lastZxid, needsFullSync: asksForAll = false } = this.#options
    const trusts = lastZxid !== -1
    if ((type === PacketType.diff || type === PacketType.trunc) && asksForAll && this.#lastReceived > 0)
      this.#leave('it has promised the epoch, and comes again to ask for everything', true)
    else if (type === PacketType.diff && trusts) this.#syncMode = 'diff'
    else if (type === PacketType.trunc && trusts && zxid >= 0 && zxid <= this.#lastReceived)
      this.#truncate(zxid)
    else if (type !== PacketType.ping)
      this.#leave(
        `${packetName(type)} of ${formatZxid(zxid)} does not bring ${formatZxid(this.#lastReceived)} up to date`,
      )
  }

  #truncate(zxid: Zxid): void {
    this.#syncMode = 'trunc'
    this.#lastReceived = this.#truncatedTo = zxid
    this.#work.push({ do: 'truncate', to: zxid })
  }

  /** F6 (9.5, H2, H3) History that cannot be cut exactly where the leader says is worth nothing. */
  #checkTruncation(lastZxid: Zxid): void {
    const to = this.#truncatedTo
    if (lastZxid !== to)
      this.#discard(`history was to be cut at ${formatZxid(to)} and ended at ${formatZxid(lastZxid)}`)
  }

  #receiveHistory(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (type) {
      case PacketType.proposal:
        // F7 (9.4) The snapshot was begun after these were applied.
        if (zxid > this.#snapshotZxid) this.#addPending(zxid, data)
        return
      case PacketType.commit:
      case PacketType.commitAndActivate:
        if (zxid > this.#snapshotZxid) this.#applyHistory(zxid, type === PacketType.commit ? undefined : data)
        return
      case PacketType.inform:
      case PacketType.informAndActivate:
        return this.#receiveInformHistory(type, zxid, data)
      case PacketType.newLeader:
        return this.#receiveNewLeader(zxid, data)
      case PacketType.upToDate:
        return this.#leave('UPTODATE came before NEWLEADER')
      default:
        // F8 (7.4) PING and the rest mean nothing yet.
        return
    }
  }

  /** F9 (9.5, 10.4) Each transaction comes right after the one before it; anything else is a hole in history. */
  #addPending(zxid: Zxid, data: Uint8Array | null): boolean {
    const changes = this.#checkNext(zxid, data)
    this.#pending.push(zxid, data!)
    return changes
  }

  /** Whether it changes the configuration, which then is kept as the one seen last before it is logged (14.3). */
  #checkNext(zxid: Zxid, data: Uint8Array | null): boolean {
    if (data === null) throw new ProtocolError('Expected a transaction, got null', 0, formatZxid(zxid))
    if (!isNextZxid(this.#lastReceived, zxid) || epochOf(zxid) > this.#epoch)
      throw new ProtocolError(
        `Expected the transaction after ${formatZxid(this.#lastReceived)}, got ${formatZxid(zxid)}`,
        0,
        'the history of the leader',
      )
    const configuration = proposedConfiguration(data)
    if (configuration !== undefined) this.#work.push({ do: 'proposeConfiguration', configuration })
    this.#lastReceived = zxid
    return configuration !== undefined
  }

  /** F10 (9.5, ZOOKEEPER-4394) What is committed before NEWLEADER is history; what is not stays a proposal. */
  #applyHistory(zxid: Zxid, activation?: Uint8Array | null): void {
    const payload = this.#expectPending(zxid)
    this.#pending.shift()
    this.#work.push({ do: 'append', zxid, payload }, { do: 'commit', zxid, payload })
    if (activation !== undefined) this.#activate(zxid, payload, decodeDesignatedLeader(activation))
  }

  /** F11 (9.5, 10.4) Commits come in the order of the proposals. */
  #expectPending(zxid: Zxid, index = 0): Uint8Array {
    if (index < this.#pending.length && this.#pending.zxidAt(index) === zxid)
      return this.#pending.payloadAt(index)
    const due = index < this.#pending.length ? formatZxid(this.#pending.zxidAt(index)) : 'none'
    throw new ProtocolError(
      `Expected a commit of ${due}, got ${formatZxid(zxid)}`,
      0,
      'the commits of the leader',
    )
  }

  #receiveInformHistory(type: number, zxid: Zxid, data: Uint8Array | null): void {
    if (!this.#options.observer || zxid <= this.#snapshotZxid) return
    if (type === PacketType.inform) {
      this.#addPending(zxid, data)
      return this.#applyHistory(zxid)
    }
    const { leader, payload } = decodeInformAndActivate(data)
    this.#addPending(zxid, payload)
    this.#applyHistory(zxid)
    this.#activate(zxid, payload, leader)
  }

  #activate(zxid: Zxid, payload: Uint8Array, designated: ServerId): void {
    const configuration = proposedConfiguration(payload)
    if (configuration === undefined)
      throw new ProtocolError('Expected a change of the configuration', 0, formatZxid(zxid))
    this.#work.push({ do: 'activate', configuration, designated, zxid })
  }

  /** F12 (9.5) All history has come. Observers make it durable before they vouch for it too. */
  #receiveNewLeader(zxid: Zxid, data: Uint8Array | null): void {
    if (zxid !== makeZxid(this.#epoch, 0))
      return this.#leave(`NEWLEADER is of ${formatZxid(zxid)}, the leader's epoch is ${this.#epoch}`)
    const text = decodeConfigurationText(data)
    if (text !== '') {
      this.#configuration = decodeConfiguration(text)
      this.#work.push({ do: 'proposeConfiguration', configuration: this.#configuration })
    }
    this.#phase = 'waiting'
    this.#work.push({ do: 'harden' })
  }

  #ackNewLeader(epoch: number): void {
    if (this.#phase !== 'waiting' || epoch !== this.#epoch) return
    this.#hasAckedNewLeader = true
    this.#lastHeartbeat = this.#halfTicks
    this.#send(PacketType.ack, makeZxid(this.#epoch, 0), null)
  }

  // Between NEWLEADER and UPTODATE

  /** F13 (9.4, ZOOKEEPER-4394, 4685) What comes now is kept: nothing of it is logged or acknowledged before UPTODATE. */
  #receiveBeforeUpToDate(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (type) {
      case PacketType.proposal:
        if (zxid > this.#snapshotZxid) this.#addPending(zxid, data)
        return
      case PacketType.commit:
      case PacketType.commitAndActivate:
        if (zxid > this.#snapshotZxid)
          this.#noteCommit(zxid, type === PacketType.commit ? undefined : decodeDesignatedLeader(data))
        return
      case PacketType.inform:
        if (!this.#options.observer || zxid <= this.#snapshotZxid) return
        this.#addPending(zxid, data)
        return this.#noteCommit(zxid)
      case PacketType.informAndActivate: {
        if (!this.#options.observer) return
        const { leader, payload } = decodeInformAndActivate(data)
        this.#addPending(zxid, payload)
        return this.#noteCommit(zxid, leader)
      }
      case PacketType.newLeader:
        return this.#leave('NEWLEADER came twice')
      case PacketType.upToDate:
        return this.#hasAckedNewLeader
          ? this.#receiveUpToDate()
          : this.#leave('UPTODATE came before NEWLEADER was acknowledged')
      default:
        return
    }
  }

  #noteCommit(zxid: Zxid, designated?: ServerId): void {
    this.#expectPending(zxid, this.#committedPending)
    this.#committedPending++
    if (designated !== undefined) this.#designatedLeaders.set(zxid, designated)
  }

  /** F14 (9.5, 10.1) The leader is established. What was kept is logged and applied, and clients may come. */
  #receiveUpToDate(): void {
    this.#phase = 'broadcast'
    if (this.#configuration !== undefined)
      this.#work.push({ do: 'activate', configuration: this.#configuration })
    this.#send(PacketType.ack, makeZxid(this.#epoch, 0), null)
    const pending = this.#pending
    this.#nextAck = pending.length > 0 ? pending.zxidAt(0) : makeZxid(this.#epoch, 1)
    for (let i = 0; i < pending.length; i++)
      this.#work.push({ do: 'append', zxid: pending.zxidAt(i), payload: pending.payloadAt(i) })
    this.#lastLogged = this.#lastReceived
    for (; this.#committedPending > 0; this.#committedPending--) this.#commitNoted()
    this.#work.push({ do: 'serve', epoch: this.#epoch })
  }

  #commitNoted(): void {
    const [zxid, payload] = [this.#pending.zxidAt(0), this.#pending.payloadAt(0)]
    this.#pending.shift()
    this.#work.push({ do: 'commit', zxid, payload })
    const designated = this.#designatedLeaders.get(zxid)
    if (designated !== undefined) this.#activate(zxid, payload, designated)
  }

  // Broadcast

  #receiveAsFollower(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (type) {
      case PacketType.proposal:
        this.#lastLogged = zxid
        if (this.#addPending(zxid, data)) this.#work.push({ do: 'append', zxid, payload: data! })
        else this.#replica.append(zxid, data!)
        return
      case PacketType.commit:
        // F11 The head of the queue is dealt with before this; anything else breaks the order.
        this.#expectPending(zxid)
        return
      case PacketType.commitAndActivate: {
        const payload = this.#expectPending(zxid)
        const designated = decodeDesignatedLeader(data)
        this.#commitHead()
        return this.#activate(zxid, payload, designated)
      }
      default:
        return this.#receiveOther(type, zxid, data)
    }
  }

  #commitHead(): void {
    const [zxid, payload] = [this.#pending.zxidAt(0), this.#pending.payloadAt(0)]
    this.#pending.shift()
    this.#replica.commit(zxid, payload)
  }

  /** F15 (13) An observer hears of what is committed, and logs it without a word. */
  #receiveAsObserver(type: number, zxid: Zxid, data: Uint8Array | null): void {
    if (type === PacketType.inform) return this.#appendAndCommit(zxid, data)
    if (type !== PacketType.informAndActivate) return this.#receiveOther(type, zxid, data)
    const { leader, payload } = decodeInformAndActivate(data)
    this.#appendAndCommit(zxid, payload)
    this.#activate(zxid, payload, leader)
  }

  #appendAndCommit(zxid: Zxid, data: Uint8Array | null): void {
    if (this.#checkNext(zxid, data))
      this.#work.push({ do: 'append', zxid, payload: data! }, { do: 'commit', zxid, payload: data! })
    else {
      this.#replica.append(zxid, data!)
      this.#replica.commit(zxid, data!)
    }
  }

  #receiveOther(type: number, zxid: Zxid, data: Uint8Array | null): void {
    switch (type) {
      case PacketType.ping:
        this.#work.push({ do: 'pong', zxid })
        return
      case PacketType.sync:
      case PacketType.revalidate:
        this.#work.push({ do: 'deliver', packet: { type, zxid, data, auth: null } })
        return
      default: {
        const facts = { packet: packetName(type), zxid: formatZxid(zxid) }
        this.#work.push({
          do: 'warn',
          facts,
          sentence: 'The leader sent what means nothing now; it is ignored',
        })
      }
    }
  }

  // Ends

  /** F16 (11) A leader that is established is heard of twice a tick; before that it may wait for others. */
  #halfTick(): void {
    this.#halfTicks++
    const { initLimit, syncLimit } = this.#options
    const limit = this.#phase === 'broadcast' ? syncLimit : initLimit
    if (this.#halfTicks - this.#lastHeartbeat > limit * 2)
      this.#leave(`nothing was heard of the leader for ${limit} ticks`)
  }

  #store(what: 'acceptedEpoch' | 'currentEpoch'): void {
    this.#work.push({ do: 'store', what, epoch: this.#epoch })
  }

  #send(type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#work.push({ do: 'send', packet: { type, zxid, data, auth: null } })
  }

  #discard(reason: string): void {
    this.#work.push({ do: 'discard', reason })
    this.#leave(reason)
  }

  #leave(reason: string, again?: true): void {
    this.#phase = 'over'
    this.#work.push({ do: 'leave', reason, ...(again && { again }) })
  }
}
