import { epochOf } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { Election, ElectionInput, ElectionTimer, ElectionWork, Vote } from '../../election/index.ts'
import type { ServerId } from '../../quorum/index.ts'
import type { Zxid } from '../../types.ts'
import { CommittedWindow } from '../committed-window.ts'
import { Leader } from '../leader.ts'
import type { LeaderInput, LeaderWork } from '../leader-types.ts'
import { Learner } from '../learner.ts'
import type { LearnerInput, LearnerWork } from '../learner-types.ts'
import { NO_ZXID, PacketType, type QuorumPacket } from '../packets.ts'
import type { DiskRange, SyncPlan, SyncSources } from '../sync-plan.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import type { Delivery, SimulatedLink } from './simulated-link.ts'
import type { Peer, SimulationContext } from './simulation-context.ts'
import { makeTxn, readTxn, type Txn } from './txn.ts'

const INIT_LIMIT = 10
const SYNC_LIMIT = 4
/** Reconnects while the leader does not listen yet. */
const CONNECT_ATTEMPTS = 5

const packet = (type: number, zxid: Zxid, data: Uint8Array | null = null): QuorumPacket => ({
  type,
  zxid,
  data,
  auth: null,
})

/** A member: the host of an election, a leader and a learner, with a disk and a tree, which is a list of transactions. */
export class SimulatedMember implements Peer {
  readonly id: ServerId
  readonly disk: SimulatedDisk
  readonly observer: boolean
  readonly #context: SimulationContext
  isUp = false
  /** Counts starts and roles: callbacks of an earlier one are void. */
  #incarnation = 0
  election: Election
  leader: Leader | undefined
  learner: Learner | undefined
  isServing = false
  tree: Txn[] = []
  links = new Map<number, SimulatedLink>()
  #window = new CommittedWindow(0)
  #timers = new Map<ElectionTimer, object>()
  #incomingSnapshot: readonly Txn[] = []
  #leaderId: ServerId = -1
  /** The leader that this member can only follow without a vote, in this epoch. */
  #behind: { readonly leader: ServerId; readonly epoch: number } | undefined
  /** Number of unfinished disk writes of the learner, before which no commit is applied. */
  #pendingDiskWork = 0
  /** The zxid with which it votes and leads. */
  #reportedZxid: Zxid = 0

  constructor(context: SimulationContext, id: ServerId, observer: boolean) {
    this.#context = context
    this.id = id
    this.observer = observer
    this.disk = new SimulatedDisk((run) =>
      this.#afterInIncarnation(context.random.below(context.faultRates.diskMs) + 1, run),
    )
    this.election = context.createElection(id)
  }

  get isListening(): boolean {
    return this.leader !== undefined
  }

  start(): void {
    this.isUp = true
    this.election = this.#context.createElection(this.id)
    this.look()
  }

  crash(): void {
    this.isUp = false
    this.#incarnation++
    this.disk.crash()
    this.#endRole()
  }

  /** Runs a function after a delay unless the role or the process has ended by then. */
  #afterInIncarnation(ms: number, run: () => void): void {
    const incarnation = this.#incarnation
    this.#context.clock.after(ms, 'member', () => {
      if (this.isUp && this.#incarnation === incarnation) run()
    })
  }

  #endRole(): void {
    for (const link of this.links.values()) link.close()
    this.links.clear()
    this.leader = undefined
    this.learner = undefined
    this.isServing = false
    this.#pendingDiskWork = 0
  }

  /** Ends the role: drains the disk, applies all that is in the log, and starts an election. */
  look(): void {
    this.#incarnation++
    this.#endRole()
    this.disk.drain()
    const applied = this.tree.at(-1)?.zxid ?? 0
    this.tree = [...this.disk.history]
    const isMutant = this.#context.mutants.has('a server votes with what is applied, not what is logged')
    this.#reportedZxid =
      isMutant && this.disk.isTrusted ? Math.min(applied, this.disk.lastZxid) : this.disk.lastZxid
    const { configuration: active } = this.#context
    const state = { zxid: this.#reportedZxid, epoch: this.disk.currentEpoch, active }
    this.stepElection({ type: 'look', state })
  }

  // Election

  stepElection(input: ElectionInput): void {
    const { election } = this
    election.step(input)
    for (let work = election.nextWork(); work !== undefined; work = election.nextWork())
      this.#performElection(work)
  }

  #performElection(work: ElectionWork): void {
    switch (work.do) {
      case 'send':
        return this.#context.sendNotification(this.id, work)
      case 'start':
        return this.#startTimer(work.timer, work.afterMs)
      case 'stop':
        this.#timers.delete(work.timer)
        return
      case 'decide':
        if (work.state === 'leading') this.#lead()
        else this.#follow(work.vote)
        return
      case 'connect':
      case 'configure':
      case 'warn':
    }
  }

  #startTimer(timer: ElectionTimer, afterMs: number): void {
    const started = {}
    this.#timers.set(timer, started)
    this.#context.clock.after(afterMs, timer, () => {
      if (this.isUp && this.#timers.get(timer) === started) this.stepElection({ type: 'timeout', timer })
    })
  }

  #scheduleHalfTick(): void {
    this.#afterInIncarnation(this.#context.tickMs / 2, () => {
      this.#scheduleHalfTick()
      this.stepLeader({ type: 'halfTick' })
      this.#stepLearner({ type: 'halfTick' })
    })
  }

  // Leader

  #lead(): void {
    const { disk } = this
    invariant(disk.isTrusted, 'a server is elected that does not trust its data')
    this.#incarnation++
    this.#context.count('leaders')
    this.#window = this.#recentWindow()
    this.leader = new Leader({
      self: this.id,
      active: this.#context.configuration,
      acceptedEpoch: disk.acceptedEpoch,
      currentEpoch: disk.currentEpoch,
      lastZxid: this.#reportedZxid,
      initLimit: INIT_LIMIT,
      syncLimit: SYNC_LIMIT,
      sources: this.#sources(),
      reconfigEnabled: false,
      maxCounter: 40,
    })
    this.stepLeader({ type: 'start' })
    this.#scheduleHalfTick()
  }

  /** Returns a window with a part of the history, so that learners are synchronised from the log too. */
  #recentWindow(): CommittedWindow {
    const { history, base } = this.disk
    const kept = Math.min(this.#context.random.below(8), history.filter(({ zxid }) => zxid > base).length)
    const window = new CommittedWindow(history.at(-1 - kept)?.zxid ?? 0)
    for (const { zxid, payload } of history.slice(history.length - kept)) window.add(zxid, payload)
    return window
  }

  #sources(): SyncSources {
    const { random } = this.#context
    const disk = (): DiskRange | undefined => {
      const { base, history } = this.disk
      const ends = history.filter(({ zxid }, i) => {
        const next = history[i + 1]
        return zxid > base && (next === undefined || epochOf(next.zxid) !== epochOf(zxid))
      })
      const upTo = history.at(-1)?.zxid
      return upTo === undefined ? undefined : { after: base, upTo, epochEnds: ends.map(({ zxid }) => zxid) }
    }
    return {
      window: this.#window,
      applied: () => this.tree.at(-1)?.zxid ?? 0,
      disk,
      diskBytesAfter: () => random.below(100),
      snapshotBytes: () => random.below(100),
      snapshotSizeFactor: 0.5,
      forceSnapshot: false,
      truncateFromBytes: 30,
    }
  }

  /** Makes a write of a client of this leader. */
  write(id: number): void {
    const leader = this.leader!
    if (!leader.canPropose) return
    const txn = makeTxn(leader.lastProposed + 1, id)
    leader.propose(txn.zxid, txn.payload)
    this.#performLeader()
    const markDurable = (): void => {
      leader.markDurable(txn.zxid)
      this.#performLeader()
    }
    if (this.#context.mutants.has('a leader counts a proposal before it is durable')) markDurable()
    this.disk.enqueue(() => this.disk.append(txn), markDurable)
  }

  stepLeader(input: LeaderInput): void {
    this.leader?.step(input)
    this.#performLeader()
  }

  /** Performs all work of the leader, until it ends the role. */
  #performLeader(): void {
    for (let work = this.leader?.nextWork(); work !== undefined; work = this.leader?.nextWork())
      this.#performLeaderWork(this.#context.mutateWork(work))
  }

  #performLeaderWork(work: LeaderWork): void {
    switch (work.do) {
      case 'send':
        if (work.packet.type === PacketType.proposal && work.packet.zxid > this.leader!.lastProposed)
          this.#context.count('ahead')
        return this.#sendToLearner(work.to, { packet: work.packet })
      case 'propose':
        for (const id of work.followers)
          this.#sendToLearner(id, { packet: packet(PacketType.proposal, work.zxid, work.payload) })
        return
      case 'commit':
        return this.#commit(work)
      case 'confirmLeadership':
        return this.#context.leadershipConfirmed(this.tree, work.id)
      case 'sync':
        return this.#sync(work.to, work.plan)
      case 'drop':
        this.#context.countReason(work.reason)
        return this.links.get(work.connection)?.close()
      case 'store':
        return this.#store(work.what, work.epoch, (stored) => this.stepLeader(stored))
      case 'lead':
        this.#context.checker.leaderEstablished(this, work.epoch)
        this.#context.count('leaderships')
        this.isServing = true
        return this.stepElection({ type: 'established', epoch: work.epoch })
      case 'stepDown':
        this.#context.countReason(work.reason.message)
        return this.look()
      case 'learnerJoined':
      case 'learnerLeft':
      case 'deliver':
      case 'activate':
      case 'commitReconfig':
      case 'proposeConfiguration':
      case 'warn':
    }
  }

  #commit({ first, payloads, followers, observers }: Extract<LeaderWork, { do: 'commit' }>): void {
    for (const [i, payload] of payloads.entries()) {
      const zxid = first + i
      const txn = readTxn(zxid, payload)
      this.#context.checker.leaderCommits(this, this.leader!.epoch, txn)
      this.#context.count('commits')
      for (const id of followers) this.#sendToLearner(id, { packet: packet(PacketType.commit, zxid) })
      for (const id of observers)
        this.#sendToLearner(id, { packet: packet(PacketType.inform, zxid, payload) })
      this.#apply(txn)
    }
  }

  #store(
    what: 'acceptedEpoch' | 'currentEpoch',
    epoch: number,
    done: (stored: Extract<LeaderInput, { type: 'stored' }>) => void,
  ): void {
    const isMutant = this.#context.mutants.has('a server does not store its acceptedEpoch')
    if (what === 'acceptedEpoch' && isMutant) return done({ type: 'stored', what, epoch })
    this.disk.enqueue(
      () => this.disk.setEpoch(what, epoch),
      () => done({ type: 'stored', what, epoch }),
    )
  }

  #sendToLearner(id: number, delivery: Delivery): void {
    const link = this.links.get(id)
    if (link === undefined || !link.isOpen) return
    this.#context.checker.leaderSends(this, delivery.packet, link.history)
    link.toLearner(delivery)
  }

  #sync(id: number, plan: SyncPlan): void {
    this.#context.count(plan.kind === 'diff' && plan.disk !== undefined ? 'disk' : plan.kind)
    if (plan.kind === 'snap') {
      const zxid = this.tree.at(-1)?.zxid ?? 0
      this.#sendToLearner(id, { packet: packet(PacketType.snap, zxid), snapshot: [...this.tree] })
      // Other learners are served while the snapshot is sent.
      this.disk.enqueue(
        () => {},
        () => this.stepLeader({ type: 'streamed', to: id }),
      )
    } else {
      const type = plan.kind === 'diff' ? PacketType.diff : PacketType.trunc
      this.#sendToLearner(id, { packet: packet(type, plan.zxid) })
    }
    const { after, upTo } = (plan.kind === 'snap' ? undefined : plan.disk) ?? { after: 0, upTo: 0 }
    const logged = this.disk.history.filter(({ zxid }) => zxid > after && zxid <= upTo)
    for (const { zxid, payload } of [...logged, ...plan.entries]) {
      this.#sendToLearner(id, { packet: packet(PacketType.proposal, zxid, payload) })
      this.#sendToLearner(id, { packet: packet(PacketType.commit, zxid) })
    }
  }

  accept(link: SimulatedLink): void {
    this.links.set(link.id, link)
    this.stepLeader({ type: 'accepted', from: link.id })
  }

  receiveFromLearner(link: SimulatedLink, received: QuorumPacket): void {
    const { leader } = this
    if (leader === undefined || !this.links.has(link.id)) return
    if (received.type !== PacketType.ack)
      return this.stepLeader({ type: 'packet', from: link.id, packet: received })
    if (this.#context.mutants.has('a leader counts every ACK for its last proposal')) {
      leader.ack(link.id, leader.lastProposed)
      this.#performLeader()
    }
    leader.ack(link.id, received.zxid)
    this.#performLeader()
  }

  linkClosed(link: SimulatedLink): void {
    if (!this.links.delete(link.id)) return
    this.stepLeader({ type: 'closed', from: link.id })
    if (link.learner === this) this.#stepLearner({ type: 'closed' })
  }

  // Learner

  #follow(vote: Vote): void {
    this.#incarnation++
    this.#scheduleHalfTick()
    const { leader, epoch } = vote
    const isBehind = this.#behind?.leader === leader && this.#behind.epoch === epoch
    this.#behind = undefined
    if (isBehind) this.stepElection({ type: 'assigned', state: 'observing', leader })
    this.#connect(leader, CONNECT_ATTEMPTS, isBehind ? epoch : undefined)
  }

  #connect(to: ServerId, attempts: number, nonVotingEpoch: number | undefined): void {
    const leader = this.#context.peer(to)
    if (leader.isUp && leader.isListening && this.#context.areConnected(this.id, to))
      return this.#openLink(leader, nonVotingEpoch)
    if (attempts === 0) return this.look()
    this.#afterInIncarnation(100, () => this.#connect(to, attempts - 1, nonVotingEpoch))
  }

  #openLink(leader: Peer, nonVotingEpoch: number | undefined): void {
    const { disk } = this
    if (nonVotingEpoch !== undefined) this.#context.count('without a vote')
    this.#leaderId = leader.id
    const link = this.#context.createLink(leader, this)
    this.links.set(link.id, link)
    this.learner = new Learner({
      self: this.id,
      observer: this.observer || nonVotingEpoch !== undefined,
      ...(nonVotingEpoch === undefined ? {} : { nonVotingEpoch }),
      acceptedEpoch: disk.acceptedEpoch,
      currentEpoch: disk.currentEpoch,
      lastZxid: this.#reportedZxid,
      configVersion: 0,
      initLimit: INIT_LIMIT,
      syncLimit: SYNC_LIMIT,
    })
    leader.accept(link)
    this.#stepLearner({ type: 'connected' })
  }

  receiveFromLeader(link: SimulatedLink, { packet: received, snapshot }: Delivery): void {
    const { learner } = this
    if (learner === undefined || !this.links.has(link.id)) return
    if (snapshot !== undefined) this.#incomingSnapshot = snapshot
    learner.receive(received.type, received.zxid, received.data)
    this.#performLearner()
  }

  #stepLearner(input: LearnerInput): void {
    this.learner?.step(input)
    this.#performLearner()
  }

  /** Performs all work of the learner, until it ends the role. */
  #performLearner(): void {
    for (let work = this.learner?.nextWork(); work !== undefined; work = this.learner?.nextWork())
      this.#performLearnerWork(work)
  }

  #performLearnerWork(work: LearnerWork): void {
    const { disk } = this
    const { mutants } = this.#context
    switch (work.do) {
      case 'send':
        return this.#sendToLeader(work.packet)
      case 'store': {
        const isMutant = mutants.has('a learner enters the epoch before its history is durable')
        if (work.what === 'acceptedEpoch' || !isMutant)
          return this.#store(work.what, work.epoch, (stored) => this.#stepLearner(stored))
        disk.setEpoch(work.what, work.epoch)
        return this.#stepLearner({ type: 'stored', what: work.what, epoch: work.epoch })
      }
      case 'truncate':
        return this.#truncate(work.to)
      case 'installSnapshot': {
        const content = [...this.#incomingSnapshot]
        return this.#onDisk(() => {
          disk.history = content
          disk.base = work.zxid
          this.tree = [...content]
        })
      }
      case 'append':
        for (const [i, payload] of work.payloads.entries()) this.#append(readTxn(work.first + i, payload))
        return
      case 'commit':
        for (const [i, payload] of work.payloads.entries()) {
          const apply = (): void => this.#apply(readTxn(work.first + i, payload))
          if (this.#pendingDiskWork === 0) apply()
          else this.#onDisk(apply)
        }
        return
      case 'ack':
        for (let zxid = work.first; zxid <= work.last; zxid++)
          this.#sendToLeader(packet(PacketType.ack, zxid))
        return
      case 'flush':
        return this.#flush()
      case 'serve':
        return this.#onDisk(
          () => {},
          () => this.#serve(work.epoch),
        )
      case 'answerPing':
        return this.#sendToLeader(packet(PacketType.ping, work.zxid, new Uint8Array(0)))
      case 'requestFullSync':
        disk.isTrusted = false
        this.#context.count('full syncs')
        return
      case 'leave':
        this.#context.countReason(work.reason)
        if (work.earlierEpoch !== undefined)
          this.#behind = { leader: this.#leaderId, epoch: work.earlierEpoch }
        return this.look()
      case 'proposeConfiguration':
      case 'activate':
      case 'deliver':
      case 'warn':
    }
  }

  /** Queues a write of the learner, before which no later commit is applied. */
  #onDisk(effect: () => void, done: () => void = () => {}): void {
    this.#pendingDiskWork++
    this.disk.enqueue(effect, () => {
      this.#pendingDiskWork--
      done()
    })
  }

  #truncate(to: Zxid): void {
    const { learner, disk } = this
    const isMutant = this.#context.mutants.has('a learner does not truncate')
    this.#onDisk(
      () => {
        if (isMutant) return
        disk.truncate(to)
        this.tree = [...disk.history]
      },
      () => {
        const lastZxid = isMutant ? to : disk.lastZxid
        if (this.learner === learner) this.#stepLearner({ type: 'truncated', lastZxid })
      },
    )
  }

  /** Appends to the log: as part of the synchronisation in order with other work, afterwards in parallel with commits. */
  #append(txn: Txn): void {
    const learner = this.learner!
    const append = (): void => this.disk.append(txn)
    const markDurable = (): void => {
      learner.markDurable(txn.zxid)
      this.#performLearner()
    }
    if (this.#context.mutants.has('a follower acknowledges a proposal before it is durable')) markDurable()
    if (this.isServing) this.disk.enqueue(append, markDurable)
    else this.#onDisk(append, markDurable)
  }

  #flush(): void {
    if (this.#context.mutants.has('a learner enters the epoch before its history is durable'))
      return this.#stepLearner({ type: 'flushed' })
    this.#onDisk(
      () => {
        this.disk.isTrusted = true
      },
      () => this.#flushed(),
    )
  }

  #flushed(): void {
    const { epoch } = this.learner!
    this.#stepLearner({ type: 'flushed' })
    if (this.#context.mutants.has('a learner serves before the leader is established')) this.#serve(epoch)
  }

  #apply(txn: Txn): void {
    const last = this.tree.at(-1)?.zxid ?? 0
    const isMutant = this.#context.mutants.has('a server applies out of order')
    if (isMutant && this.isServing && this.tree.length % 5 === 4) {
      const previous = this.tree.pop()!
      this.tree.push(txn, previous)
    } else {
      invariant(txn.zxid > last, `8: applies ${txn.zxid} after ${last}`)
      this.tree.push(txn)
    }
    if (this.isServing) this.#context.checker.serverApplies(this)
  }

  #serve(epoch: number): void {
    this.#context.checker.serverServes(this, epoch)
    this.isServing = true
    this.stepElection({ type: 'established', epoch })
  }

  #sendToLeader(sent: QuorumPacket): void {
    const link = [...this.links.values()].find(({ learner }) => learner === this)
    if (link === undefined) return
    const { history, leader } = link
    this.#context.checker.learnerSends(this, sent, this.learner?.epoch ?? NO_ZXID, history, leader)
    if (sent.type === PacketType.ack) history.hasAckedNewLeader = true
    link.toLeader(sent)
  }
}
