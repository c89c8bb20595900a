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
import { CommittedWindow } from '../window.ts'
import { Disk, type Txn } from './disk.ts'
import type { Link, Parcel } from './link.ts'
import { makeTxn, readTxn } from './payload.ts'
import type { World } from './world.ts'

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
export class Server {
  readonly id: ServerId
  readonly disk: Disk
  readonly observer: boolean
  readonly #world: World
  up = false
  /** Counts starts and roles: what was begun in an earlier one is void. */
  life = 0
  election: Election
  leader: Leader | undefined
  learner: Learner | undefined
  serving = false
  tree: Txn[] = []
  links = new Map<number, Link>()
  #window = new CommittedWindow(0)
  #timers = new Map<ElectionTimer, number>()
  #incoming: readonly Txn[] = []
  /** Work of the learner on its disk that is not done: commits come after it. */
  #waiting = 0
  /** The zxid that others are told of. */
  #shown: Zxid = 0

  constructor(world: World, id: ServerId, observer: boolean) {
    this.#world = world
    this.id = id
    this.observer = observer
    this.disk = new Disk((run) => this.#inLife(world.random.below(world.weather.diskMs) + 1, run))
    this.election = world.election(id)
  }

  start(): void {
    this.up = true
    this.election = this.#world.election(this.id)
    this.look()
  }

  crash(): void {
    this.up = false
    this.life++
    this.disk.crash()
    this.#endRole()
  }

  /** Runs later, unless the role or the process has ended by then. */
  #inLife(ms: number, run: () => void): void {
    const { life } = this
    this.#world.after(ms, () => {
      if (this.up && this.life === life) run()
    })
  }

  #endRole(): void {
    for (const link of this.links.values()) link.close()
    this.links.clear()
    this.leader = undefined
    this.learner = undefined
    this.serving = false
    this.#waiting = 0
  }

  /** A role is over: the log is settled, the tree gets all that is in it, and the election begins. */
  look(): void {
    this.life++
    this.#endRole()
    this.disk.drain()
    const stale = this.tree.at(-1)?.zxid ?? 0
    this.tree = [...this.disk.history]
    this.#shown =
      this.#world.faults.has('shows what was applied, not what is logged') && this.disk.trusted
        ? Math.min(stale, this.disk.lastZxid)
        : this.disk.lastZxid
    const zxid = this.#shown
    const { configuration } = this.#world
    this.vote({ type: 'look', footing: { zxid, epoch: this.disk.currentEpoch, active: configuration } })
  }

  // Election

  vote(input: ElectionInput): void {
    for (const work of this.election.step(input)) this.#elect(work)
  }

  #elect(work: ElectionWork): void {
    const world = this.#world
    switch (work.do) {
      case 'send':
        return world.notify(this, work)
      case 'start': {
        const mark = world.tick()
        this.#timers.set(work.timer, mark)
        world.after(work.afterMs, () => {
          if (this.up && this.#timers.get(work.timer) === mark) this.vote({ type: 'timeout', timer: work.timer })
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
    this.#inLife(this.#world.tickMs / 2, () => {
      this.#halfTicks()
      this.#leads({ type: 'halfTick' })
      this.#learns({ type: 'halfTick' })
    })
  }

  // Leading

  #lead(): void {
    const { disk } = this
    invariant(disk.trusted, 'a server without trust in its data is elected')
    this.life++
    this.#world.count('leaders')
    this.#window = this.#remembered()
    this.leader = new Leader(
      {
        self: this.id,
        active: this.#world.configuration,
        acceptedEpoch: disk.acceptedEpoch,
        currentEpoch: disk.currentEpoch,
        lastZxid: this.#shown,
        initLimit: INIT_LIMIT,
        syncLimit: SYNC_LIMIT,
        sources: this.#sources(),
        reconfigEnabled: false,
        lastCounter: 40,
      },
      this.#broadcast(),
    )
    this.#leads({ type: 'start' })
    this.#halfTicks()
  }

  /** A window that forgets, so that learners are served from the log too. */
  #remembered(): CommittedWindow {
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
      world.judge.commits(this, this.leader!.epoch, txn)
      world.count('commits')
      for (const id of followers) this.#tell(id, { packet: packet(PacketType.commit, zxid) })
      for (const id of observers) this.#tell(id, { packet: packet(PacketType.inform, zxid, payload) })
      this.#apply(txn)
    }
    return {
      proposal: (zxid, payload, followers) => {
        for (const id of followers) this.#tell(id, { packet: packet(PacketType.proposal, zxid, payload) })
        const { leader } = this
        if (world.faults.has('counts itself before its disk')) leader!.durable(zxid)
        this.disk.do(
          () => this.disk.append(readTxn(zxid, payload)),
          () => leader!.durable(zxid),
        )
      },
      commit,
      activate: () => invariant(false, 'there are no changes of the configuration here'),
      confirmed: (ticket) => world.confirmed(this, ticket),
    }
  }

  /** A client of this leader writes. */
  write(id: number): void {
    if (!this.leader!.accepting) return
    const zxid = this.leader!.lastProposed + 1
    this.leader!.propose(zxid, makeTxn(zxid, id).payload)
  }

  #leads(input: LeaderInput): void {
    const { leader } = this
    if (leader === undefined) return
    for (const work of this.#world.reordered(leader.step(input))) {
      if (this.leader === leader) this.#performLeader(work)
    }
  }

  leads(input: LeaderInput): void {
    this.#leads(input)
  }

  #performLeader(work: LeaderWork): void {
    switch (work.do) {
      case 'send':
        return this.#tell(work.to, { packet: work.packet })
      case 'sync':
        return this.#sync(work.to, work.plan)
      case 'drop':
        this.#world.reason(work.reason)
        return this.links.get(work.connection)?.close()
      case 'store':
        return this.#store(work.what, work.epoch, (stored) => this.#leads(stored))
      case 'lead':
        this.#world.judge.established(this, work.epoch)
        this.#world.count('reigns')
        this.serving = true
        return this.vote({ type: 'installed', epoch: work.epoch })
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

  #store(what: 'acceptedEpoch' | 'currentEpoch', epoch: number, tell: (stored: { type: 'stored'; what: 'acceptedEpoch' | 'currentEpoch'; epoch: number }) => void): void {
    const { faults } = this.#world
    const forgets = what === 'acceptedEpoch' && faults.has('forgets what it accepted')
    if (forgets) return tell({ type: 'stored', what, epoch })
    this.disk.do(
      () => this.disk.setEpoch(what, epoch),
      () => tell({ type: 'stored', what, epoch }),
    )
  }

  #tell(id: number, parcel: Parcel): void {
    const link = this.links.get(id)
    if (link === undefined || !link.open) return
    this.#world.judge.tells(this, parcel.packet, link.said)
    link.toLearner(parcel)
  }

  #sync(id: number, plan: SyncPlan): void {
    this.#world.count(plan.how === 'diff' && plan.disk !== undefined ? 'disk' : plan.how)
    if (plan.how === 'snap') {
      const zxid = this.tree.at(-1)?.zxid ?? 0
      this.#tell(id, { packet: packet(PacketType.snap, zxid), snapshot: [...this.tree] })
      // It takes a while, and others are served meanwhile.
      this.disk.do(
        () => {},
        () => this.#leads({ type: 'streamed', to: id }),
      )
    } else this.#tell(id, { packet: packet(plan.how === 'diff' ? PacketType.diff : PacketType.trunc, plan.zxid) })
    const { after, upTo } = (plan.how === 'snap' ? undefined : plan.disk) ?? { after: 0, upTo: 0 }
    const read = this.disk.history.filter(({ zxid }) => zxid > after && zxid <= upTo)
    for (const { zxid, payload } of [...read, ...plan.entries]) {
      this.#tell(id, { packet: packet(PacketType.proposal, zxid, payload) })
      this.#tell(id, { packet: packet(PacketType.commit, zxid) })
    }
  }

  fromLearner(link: Link, received: QuorumPacket): void {
    if (this.leader === undefined || !this.links.has(link.id)) return
    const { faults } = this.#world
    if (received.type === PacketType.ack && faults.has('counts acks of nothing'))
      this.leader.ack(link.id, this.leader.lastProposed)
    const taken = received.type === PacketType.ack && this.leader.ack(link.id, received.zxid)
    if (!taken) this.#leads({ type: 'packet', from: link.id, packet: received })
  }

  lost(link: Link): void {
    if (!this.links.delete(link.id)) return
    this.#leads({ type: 'closed', from: link.id })
    if (link.learner === this) this.#learns({ type: 'closed' })
  }

  // Learning

  #connect(to: ServerId, attempts: number): void {
    this.life++
    this.#halfTicks()
    this.#try(to, attempts)
  }

  #try(to: ServerId, attempts: number): void {
    const world = this.#world
    const leader = world.server(to)
    if (leader.up && leader.leader !== undefined && world.connected(this.id, to)) return this.#meet(leader)
    if (attempts === 0) return this.look()
    this.#inLife(100, () => this.#try(to, attempts - 1))
  }

  #meet(leader: Server): void {
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
        lastZxid: this.#shown,
        configVersion: 0,
        initLimit: INIT_LIMIT,
        syncLimit: SYNC_LIMIT,
      },
      this.#replica(link),
    )
    leader.leads({ type: 'accepted', from: link.id })
    this.#learns({ type: 'connected' })
  }

  #replica(link: Link): Replica {
    const { faults } = this.#world
    return {
      append: (zxid, payload) => {
        const { learner } = this
        if (faults.has('acknowledges before its disk')) learner!.durable(zxid)
        this.disk.do(
          () => this.disk.append(readTxn(zxid, payload)),
          () => learner!.durable(zxid),
        )
      },
      commit: (zxid, payload) => this.#inOrder(() => this.#apply(readTxn(zxid, payload))),
      ack: (zxid) => this.#say(link, packet(PacketType.ack, zxid)),
    }
  }

  /** At once, unless there is work on the disk that came before it. */
  #inOrder(run: () => void): void {
    if (this.#waiting === 0) run()
    else this.#onDisk(run)
  }

  #onDisk(effect: () => void, done: () => void = () => {}): void {
    this.#waiting++
    this.disk.do(effect, () => {
      this.#waiting--
      done()
    })
  }

  #apply(txn: Txn): void {
    const last = this.tree.at(-1)?.zxid ?? 0
    if (this.#world.faults.has('applies out of order') && this.serving && this.tree.length % 5 === 4) {
      const swapped = this.tree.pop()!
      this.tree.push(txn, swapped)
    } else {
      invariant(txn.zxid > last, `8: applies ${txn.zxid} after ${last}`)
      this.tree.push(txn)
    }
    if (this.serving) this.#world.judge.applies(this)
  }

  fromLeader(link: Link, { packet: received, snapshot }: Parcel): void {
    const { learner } = this
    if (learner === undefined || !this.links.has(link.id)) return
    if (snapshot !== undefined) this.#incoming = snapshot
    this.#perform(learner.receive(received.type, received.zxid, received.data), link)
  }

  #learns(input: LearnerInput): void {
    if (this.learner === undefined) return
    const link = [...this.links.values()].find(({ learner }) => learner === this)
    this.#perform(this.learner.step(input), link)
  }

  #perform(works: readonly LearnerWork[], link: Link | undefined): void {
    const { learner } = this
    for (const work of works) if (this.learner === learner) this.#performLearner(work, link)
  }

  #performLearner(work: LearnerWork, link: Link | undefined): void {
    const { disk } = this
    const { faults } = this.#world
    switch (work.do) {
      case 'send':
        return this.#say(link!, work.packet)
      case 'store': {
        if (work.what === 'currentEpoch' && faults.has('enters the epoch before history')) {
          disk.setEpoch(work.what, work.epoch)
          return this.#learns({ type: 'stored', what: work.what, epoch: work.epoch })
        }
        return this.#store(work.what, work.epoch, (stored) => this.#learns(stored))
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
          if (this.learner === learner) this.#learns({ type: 'truncated', lastZxid: lastZxid() })
        })
      }
      case 'install': {
        const content = [...this.#incoming]
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
        if (faults.has('enters the epoch before history')) return this.#learns({ type: 'hardened' })
        return this.#onDisk(
          () => {
            disk.trusted = true
          },
          () => this.#hardened(),
        )
      case 'serve':
        return this.#onDisk(
          () => {},
          () => this.#serve(work.epoch),
        )
      case 'pong':
        return this.#say(link!, packet(PacketType.ping, work.zxid, new Uint8Array(0)))
      case 'discard':
        disk.trusted = false
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
      () => learner!.durable(zxid),
    )
  }

  #hardened(): void {
    const { epoch } = this.learner!
    this.#learns({ type: 'hardened' })
    if (this.#world.faults.has('serves before the leader is established')) this.#serve(epoch)
  }

  #serve(epoch: number): void {
    this.#world.judge.serves(this, epoch)
    this.serving = true
    this.vote({ type: 'installed', epoch })
  }

  #say(link: Link, said: QuorumPacket): void {
    this.#world.judge.hears(this, said, this.learner?.epoch ?? NO_ZXID, link.said, link.leader)
    if (said.type === PacketType.ack) link.said.vouched = true
    link.toLeader(said)
  }
}
