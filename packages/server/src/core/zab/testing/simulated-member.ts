import { epochOf } from '@zabra/protocol'
import { invariant } from '@zabra/runtime'
import type { Election, ElectionInput, ElectionTimer, ElectionWork } from '../../election/index.ts'
import type { ServerId } from '../../quorum/index.ts'
import type { Zxid } from '../../types.ts'
import { Leader } from '../leader.ts'
import type { Broadcast, LeaderInput, LeaderWork } from '../leader-types.ts'
import { Learner } from '../learner.ts'
import type { LearnerInput, LearnerWork, Replica } from '../learner-types.ts'
import { NO_ZXID, PacketType, type QuorumPacket } from '../packets.ts'
import type { DiskRange, SyncPlan, SyncSources } from '../sync-plan.ts'
import { CommittedWindow } from '../committed-window.ts'
import { SimulatedDisk, type Txn } from './simulated-disk.ts'
import type { SimulatedLink, Delivery } from './simulated-link.ts'
import { makeTxn, readTxn } from './txn.ts'
import type { ZabSimulation } from './zab-simulation.ts'

const INIT_LIMIT = 10
const SYNC_LIMIT = 4
/** Reconnects while the leader does not listen yet. */
const ATTEMPTS = 5

const packet = (type: number, zxid: Zxid, data: Uint8Array | null = null): QuorumPacket => ({
  type,
  zxid,
  data,
  auth: null,
})

/** A member: its election, its role, its disk and its tree, which is a list of transactions. The host of both machines. */
export class SimulatedMember {
  readonly id: ServerId
  readonly disk: SimulatedDisk
  readonly observer: boolean
  readonly #world: ZabSimulation
  isUp = false
  /** Counts starts and roles: what was begun in an earlier one is void. */
  incarnation = 0
  election: Election
  leader: Leader | undefined
  learner: Learner | undefined
  isServing = false
  tree: Txn[] = []
  links = new Map<number, SimulatedLink>()
  #window = new CommittedWindow(0)
  #timers = new Map<ElectionTimer, number>()
  #incomingSnapshot: readonly Txn[] = []
  /** Work of the learner on its disk that is not done: commits come after it. */
  #pendingDiskWork = 0
  /** The zxid that others are told of. */
  #reportedZxid: Zxid = 0

  constructor(world: ZabSimulation, id: ServerId, observer: boolean) {
    this.#world = world
    this.id = id
    this.observer = observer
    this.disk = new SimulatedDisk((run) =>
      this.#afterInIncarnation(world.random.below(world.faultRates.diskMs) + 1, run),
    )
    this.election = world.election(id)
  }

  start(): void {
    this.isUp = true
    this.election = this.#world.election(this.id)
    this.look()
  }

  crash(): void {
    this.isUp = false
    this.incarnation++
    this.disk.crash()
    this.#endRole()
  }

  /** Runs later, unless the role or the process has ended by then. */
  #afterInIncarnation(ms: number, run: () => void): void {
    const { incarnation: life } = this
    this.#world.after(ms, () => {
      if (this.isUp && this.incarnation === life) run()
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

  /** A role is over: the log is settled, the tree gets all that is in it, and the election begins. */
  look(): void {
    this.incarnation++
    this.#endRole()
    this.disk.drain()
    const stale = this.tree.at(-1)?.zxid ?? 0
    this.tree = [...this.disk.history]
    this.#reportedZxid =
      this.#world.mutants.has('shows what was applied, not what is logged') && this.disk.isTrusted
        ? Math.min(stale, this.disk.lastZxid)
        : this.disk.lastZxid
    const zxid = this.#reportedZxid
    const { configuration } = this.#world
    this.stepElection({
      type: 'look',
      state: { zxid, epoch: this.disk.currentEpoch, active: configuration },
    })
  }

  // Election

  stepElection(input: ElectionInput): void {
    for (const work of this.election.step(input)) this.#performElection(work)
  }

  #performElection(work: ElectionWork): void {
    const world = this.#world
    switch (work.do) {
      case 'send':
        return world.sendNotification(this, work)
      case 'start': {
        const mark = world.nextOrder()
        this.#timers.set(work.timer, mark)
        world.after(work.afterMs, () => {
          if (this.isUp && this.#timers.get(work.timer) === mark)
            this.stepElection({ type: 'timeout', timer: work.timer })
        })
        return
      }
      case 'stop':
        this.#timers.delete(work.timer)
        return
      case 'decide':
        if (work.state === 'leading') this.#lead()
        else this.#connect(work.vote.leader, ATTEMPTS)
        return
      case 'connect':
      case 'configure':
      case 'warn':
    }
  }

  #halfTicks(): void {
    this.#afterInIncarnation(this.#world.tickMs / 2, () => {
      this.#halfTicks()
      this.#leads({ type: 'halfTick' })
      this.#stepLearner({ type: 'halfTick' })
    })
  }

  // Leading

  #lead(): void {
    const { disk } = this
    invariant(disk.isTrusted, 'a server without trust in its data is elected')
    this.incarnation++
    this.#world.count('leaders')
    this.#window = this.#recentWindow()
    this.leader = new Leader(
      {
        self: this.id,
        active: this.#world.configuration,
        acceptedEpoch: disk.acceptedEpoch,
        currentEpoch: disk.currentEpoch,
        lastZxid: this.#reportedZxid,
        initLimit: INIT_LIMIT,
        syncLimit: SYNC_LIMIT,
        sources: this.#sources(),
        reconfigEnabled: false,
        maxCounter: 40,
      },
      this.#broadcast(),
    )
    this.#leads({ type: 'start' })
    this.#halfTicks()
  }

  /** A window that forgets, so that learners are served from the log too. */
  #recentWindow(): CommittedWindow {
    const { history, base } = this.disk
    const kept = Math.min(this.#world.random.below(8), history.filter(({ zxid }) => zxid > base).length)
    const window = new CommittedWindow(history.at(-1 - kept)?.zxid ?? 0)
    for (const { zxid, payload } of history.slice(history.length - kept)) window.add(zxid, payload)
    return window
  }

  #sources(): SyncSources {
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
      diskBytesAfter: () => this.#world.random.below(100),
      snapshotBytes: () => this.#world.random.below(100),
      snapshotSizeFactor: 0.5,
      forceSnapshot: false,
      truncateFromBytes: 30,
    }
  }

  #broadcast(): Broadcast {
    const world = this.#world
    const commit: Broadcast['commit'] = (zxid, payload, followers, observers) => {
      const txn = readTxn(zxid, payload)
      world.checker.leaderCommits(this, this.leader!.epoch, txn)
      world.count('commits')
      for (const id of followers) this.#sendToLearner(id, { packet: packet(PacketType.commit, zxid) })
      for (const id of observers)
        this.#sendToLearner(id, { packet: packet(PacketType.inform, zxid, payload) })
      this.#apply(txn)
    }
    return {
      proposal: (zxid, payload, followers) => {
        for (const id of followers)
          this.#sendToLearner(id, { packet: packet(PacketType.proposal, zxid, payload) })
        const { leader } = this
        if (world.mutants.has('counts itself before its disk')) leader!.markDurable(zxid)
        this.disk.enqueue(
          () => this.disk.append(readTxn(zxid, payload)),
          () => leader!.markDurable(zxid),
        )
      },
      commit,
      activate: () => invariant(false, 'there are no changes of the configuration here'),
      confirmed: (ticket) => world.confirmed(this, ticket),
    }
  }

  /** A client of this leader writes. */
  write(id: number): void {
    if (!this.leader!.canPropose) return
    const zxid = this.leader!.lastProposed + 1
    this.leader!.propose(zxid, makeTxn(zxid, id).payload)
  }

  #leads(input: LeaderInput): void {
    const { leader } = this
    if (leader === undefined) return
    for (const work of this.#world.mutateWork(leader.step(input))) {
      if (this.leader === leader) this.#performLeader(work)
    }
  }

  stepLeader(input: LeaderInput): void {
    this.#leads(input)
  }

  #performLeader(work: LeaderWork): void {
    switch (work.do) {
      case 'send':
        return this.#sendToLearner(work.to, { packet: work.packet })
      case 'sync':
        return this.#sync(work.to, work.plan)
      case 'drop':
        this.#world.reason(work.reason)
        return this.links.get(work.connection)?.close()
      case 'store':
        return this.#store(work.what, work.epoch, (stored) => this.#leads(stored))
      case 'lead':
        this.#world.checker.leaderEstablished(this, work.epoch)
        this.#world.count('reigns')
        this.isServing = true
        return this.stepElection({ type: 'established', epoch: work.epoch })
      case 'stop':
        this.#world.reason(work.because.reason)
        return this.look()
      case 'joined':
      case 'left':
      case 'deliver':
      case 'activate':
      case 'proposeConfiguration':
      case 'warn':
    }
  }

  #store(
    what: 'acceptedEpoch' | 'currentEpoch',
    epoch: number,
    tell: (stored: { type: 'stored'; what: 'acceptedEpoch' | 'currentEpoch'; epoch: number }) => void,
  ): void {
    const { mutants: faults } = this.#world
    const forgets = what === 'acceptedEpoch' && faults.has('forgets what it accepted')
    if (forgets) return tell({ type: 'stored', what, epoch })
    this.disk.enqueue(
      () => this.disk.setEpoch(what, epoch),
      () => tell({ type: 'stored', what, epoch }),
    )
  }

  #sendToLearner(id: number, parcel: Delivery): void {
    const link = this.links.get(id)
    if (link === undefined || !link.isOpen) return
    this.#world.checker.leaderSends(this, parcel.packet, link.history)
    link.toLearner(parcel)
  }

  #sync(id: number, plan: SyncPlan): void {
    this.#world.count(plan.how === 'diff' && plan.disk !== undefined ? 'disk' : plan.how)
    if (plan.how === 'snap') {
      const zxid = this.tree.at(-1)?.zxid ?? 0
      this.#sendToLearner(id, { packet: packet(PacketType.snap, zxid), snapshot: [...this.tree] })
      // It takes a while, and others are served meanwhile.
      this.disk.enqueue(
        () => {},
        () => this.#leads({ type: 'streamed', to: id }),
      )
    } else
      this.#sendToLearner(id, {
        packet: packet(plan.how === 'diff' ? PacketType.diff : PacketType.trunc, plan.zxid),
      })
    const { after, upTo } = (plan.how === 'snap' ? undefined : plan.disk) ?? { after: 0, upTo: 0 }
    const read = this.disk.history.filter(({ zxid }) => zxid > after && zxid <= upTo)
    for (const { zxid, payload } of [...read, ...plan.entries]) {
      this.#sendToLearner(id, { packet: packet(PacketType.proposal, zxid, payload) })
      this.#sendToLearner(id, { packet: packet(PacketType.commit, zxid) })
    }
  }

  receiveFromLearner(link: SimulatedLink, received: QuorumPacket): void {
    if (this.leader === undefined || !this.links.has(link.id)) return
    const { mutants: faults } = this.#world
    if (received.type === PacketType.ack && faults.has('counts acks of nothing'))
      this.leader.ack(link.id, this.leader.lastProposed)
    const taken = received.type === PacketType.ack && this.leader.ack(link.id, received.zxid)
    if (!taken) this.#leads({ type: 'packet', from: link.id, packet: received })
  }

  linkClosed(link: SimulatedLink): void {
    if (!this.links.delete(link.id)) return
    this.#leads({ type: 'closed', from: link.id })
    if (link.learner === this) this.#stepLearner({ type: 'closed' })
  }

  // Learning

  #connect(to: ServerId, attempts: number): void {
    this.incarnation++
    this.#halfTicks()
    this.#try(to, attempts)
  }

  #try(to: ServerId, attempts: number): void {
    const world = this.#world
    const leader = world.server(to)
    if (leader.isUp && leader.leader !== undefined && world.connected(this.id, to))
      return this.#openLink(leader)
    if (attempts === 0) return this.look()
    this.#afterInIncarnation(100, () => this.#try(to, attempts - 1))
  }

  #openLink(leader: SimulatedMember): void {
    const { disk } = this
    const link = this.#world.link(leader, this)
    this.links.set(link.id, link)
    leader.links.set(link.id, link)
    this.learner = new Learner(
      {
        self: this.id,
        observer: this.observer,
        acceptedEpoch: disk.acceptedEpoch,
        currentEpoch: disk.currentEpoch,
        lastZxid: this.#reportedZxid,
        configVersion: 0,
        initLimit: INIT_LIMIT,
        syncLimit: SYNC_LIMIT,
      },
      this.#replica(link),
    )
    leader.stepLeader({ type: 'accepted', from: link.id })
    this.#stepLearner({ type: 'connected' })
  }

  #replica(link: SimulatedLink): Replica {
    const { mutants: faults } = this.#world
    return {
      append: (zxid, payload) => {
        const { learner } = this
        if (faults.has('acknowledges before its disk')) learner!.markDurable(zxid)
        this.disk.enqueue(
          () => this.disk.append(readTxn(zxid, payload)),
          () => learner!.markDurable(zxid),
        )
      },
      commit: (zxid, payload) => this.#inOrder(() => this.#apply(readTxn(zxid, payload))),
      ack: (zxid) => this.#sendToLeader(link, packet(PacketType.ack, zxid)),
    }
  }

  /** At once, unless there is work on the disk that came before it. */
  #inOrder(run: () => void): void {
    if (this.#pendingDiskWork === 0) run()
    else this.#onDisk(run)
  }

  #onDisk(effect: () => void, done: () => void = () => {}): void {
    this.#pendingDiskWork++
    this.disk.enqueue(effect, () => {
      this.#pendingDiskWork--
      done()
    })
  }

  #apply(txn: Txn): void {
    const last = this.tree.at(-1)?.zxid ?? 0
    if (this.#world.mutants.has('applies out of order') && this.isServing && this.tree.length % 5 === 4) {
      const swapped = this.tree.pop()!
      this.tree.push(txn, swapped)
    } else {
      invariant(txn.zxid > last, `8: applies ${txn.zxid} after ${last}`)
      this.tree.push(txn)
    }
    if (this.isServing) this.#world.checker.serverApplies(this)
  }

  receiveFromLeader(link: SimulatedLink, { packet: received, snapshot }: Delivery): void {
    const { learner } = this
    if (learner === undefined || !this.links.has(link.id)) return
    if (snapshot !== undefined) this.#incomingSnapshot = snapshot
    this.#perform(learner.receive(received.type, received.zxid, received.data), link)
  }

  #stepLearner(input: LearnerInput): void {
    if (this.learner === undefined) return
    const link = [...this.links.values()].find(({ learner }) => learner === this)
    this.#perform(this.learner.step(input), link)
  }

  #perform(works: readonly LearnerWork[], link: SimulatedLink | undefined): void {
    const { learner } = this
    for (const work of works) if (this.learner === learner) this.#performLearner(work, link)
  }

  #performLearner(work: LearnerWork, link: SimulatedLink | undefined): void {
    const { disk } = this
    const { mutants: faults } = this.#world
    switch (work.do) {
      case 'send':
        return this.#sendToLeader(link!, work.packet)
      case 'store': {
        if (work.what === 'currentEpoch' && faults.has('enters the epoch before history')) {
          disk.setEpoch(work.what, work.epoch)
          return this.#stepLearner({ type: 'stored', what: work.what, epoch: work.epoch })
        }
        return this.#store(work.what, work.epoch, (stored) => this.#stepLearner(stored))
      }
      case 'truncate': {
        const { learner } = this
        const cut = (): void => {
          if (faults.has('does not cut')) return
          disk.truncate(work.to)
          this.tree = [...disk.history]
        }
        const lastZxid = (): Zxid => (faults.has('does not cut') ? work.to : disk.lastZxid)
        return this.#onDisk(cut, () => {
          if (this.learner === learner) this.#stepLearner({ type: 'truncated', lastZxid: lastZxid() })
        })
      }
      case 'install': {
        const content = [...this.#incomingSnapshot]
        return this.#onDisk(() => {
          disk.history = content
          disk.base = work.zxid
          this.tree = [...content]
        })
      }
      case 'append':
        return this.#append(work.zxid, work.payload)
      case 'commit':
        return this.#onDisk(() => this.#apply(readTxn(work.zxid, work.payload)))
      case 'harden':
        if (faults.has('enters the epoch before history')) return this.#stepLearner({ type: 'hardened' })
        return this.#onDisk(
          () => {
            disk.isTrusted = true
          },
          () => this.#hardened(),
        )
      case 'serve':
        return this.#onDisk(
          () => {},
          () => this.#serve(work.epoch),
        )
      case 'pong':
        return this.#sendToLeader(link!, packet(PacketType.ping, work.zxid, new Uint8Array(0)))
      case 'discard':
        disk.isTrusted = false
        this.#world.count('discarded')
        return
      case 'leave':
        this.#world.reason(work.reason)
        return this.look()
      case 'proposeConfiguration':
      case 'activate':
      case 'deliver':
      case 'warn':
    }
  }

  #append(zxid: Zxid, payload: Uint8Array): void {
    const { learner } = this
    this.#onDisk(
      () => this.disk.append(readTxn(zxid, payload)),
      () => learner!.markDurable(zxid),
    )
  }

  #hardened(): void {
    const { epoch } = this.learner!
    this.#stepLearner({ type: 'hardened' })
    if (this.#world.mutants.has('serves before the leader is established')) this.#serve(epoch)
  }

  #serve(epoch: number): void {
    this.#world.checker.serverServes(this, epoch)
    this.isServing = true
    this.stepElection({ type: 'established', epoch })
  }

  #sendToLeader(link: SimulatedLink, said: QuorumPacket): void {
    this.#world.checker.learnerSends(this, said, this.learner?.epoch ?? NO_ZXID, link.history, link.leader)
    if (said.type === PacketType.ack) link.history.hasAckedNewLeader = true
    link.toLeader(said)
  }
}
