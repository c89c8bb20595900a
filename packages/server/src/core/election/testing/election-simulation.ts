import { makeZxid } from '@zabra/protocol'
import { invariant, ManualClock, SeededRandom } from '@zabra/runtime'
import {
  parseConfiguration,
  verifierOf,
  type EnsembleConfiguration,
  type QuorumVerifier,
  type ServerId,
} from '../../quorum/index.ts'
import { Partitions } from '../../testing/partitions.ts'
import {
  decodeNotification,
  Election,
  electionDefaults,
  encodeNotification,
  type ElectionInput,
  type ElectionTimer,
  type ElectionWork,
} from '../index.ts'

/** Fault rates of the network, in percent of the messages. */
export interface FaultRates {
  loss: number
  duplicates: number
  /** Longest delay in milliseconds. Messages overtake each other. */
  delayMs: number
}

/** A server: its election, the facts on its disk that matter, and a coarse model of its role. */
export class SimulatedServer {
  readonly id: ServerId
  election: Election
  isUp = false
  /** Counts starts: messages to or from an earlier incarnation are lost. */
  incarnation = 0
  zxid = 0
  epoch = 0
  acceptedEpoch = 0
  /** Epoch and zxid with which it entered its last election. */
  initialPosition = { epoch: 0, zxid: 0 }
  /** A logged configuration of which it does not know whether it is committed. */
  proposed: EnsembleConfiguration | undefined
  leader: ServerId | undefined
  /** Whether it elected its leader by votes, and did not join an established one. */
  hasElected = false
  /** As a leader: the synced learners. */
  followers = new Set<ServerId>()
  /** As an established leader: the last transaction that it has committed. */
  committedZxid = 0
  isEstablished = false
  /** When it leaves a role that is not established by then. */
  deadline = 0
  /** Running timers, each with a number that tells it from earlier ones of the same name. */
  timers = new Map<ElectionTimer, number>()

  constructor(id: ServerId, election: Election) {
    this.id = id
    this.election = election
  }

  get role(): string {
    return this.isUp ? this.election.state : 'down'
  }
}

const ROLE_TIMEOUT_MS = 1500
const HEARTBEAT_MS = 150

/** Servers on a network that loses, duplicates and reorders messages, all drawn from a seed, in simulated time. */
export class ElectionSimulation {
  readonly random: SeededRandom
  readonly nodes: readonly SimulatedServer[]
  readonly configuration: EnsembleConfiguration
  readonly verifier: QuorumVerifier
  readonly faultRates: FaultRates
  /** The highest transaction that a quorum has. */
  committed = { epoch: 0, zxid: 0 }
  elections = 0
  /** Established leaders by epoch. */
  readonly leadersByEpoch = new Map<number, ServerId>()
  readonly history: string[] = []
  readonly #clock = new ManualClock({ monotonic: 0 })
  readonly #partitions = new Partitions()
  #timersStarted = 0

  /** With `groups`, voters are in so many groups, with weights from 0 to 2 that are drawn from the seed. */
  constructor(seed: number, voters: number, faultRates: FaultRates, observers = 0, groups = 0) {
    this.random = new SeededRandom(seed)
    this.faultRates = faultRates
    const lines = Array.from(
      { length: voters + observers },
      (_, i) => `server.${i + 1}=h:${2000 + i}:${3000 + i}${i < voters ? '' : ':observer'}`,
    )
    const hierarchy = groups === 0 ? [] : this.#hierarchy(voters, groups)
    this.configuration = parseConfiguration([...lines, ...hierarchy].join('\n'))
    this.verifier = verifierOf(this.configuration)
    this.nodes = [...this.configuration.members.keys()].map(
      (id) => new SimulatedServer(id, this.#election(id)),
    )
    for (const node of this.nodes) this.#scheduleHeartbeat(node)
  }

  node(id: ServerId): SimulatedServer {
    return this.nodes.find((node) => node.id === id)!
  }

  get voters(): SimulatedServer[] {
    return this.nodes.filter(({ id }) => !this.#isObserver(id))
  }

  /** Starts servers together, so that each is reachable when the first one sends its vote. */
  start(...ids: ServerId[]): void {
    const nodes = ids.map((id) => this.node(id))
    for (const node of nodes) {
      node.isUp = true
      node.incarnation++
      node.election = this.#election(node.id)
    }
    for (const node of nodes) this.#look(node)
  }

  startAll(): void {
    this.start(...this.nodes.filter(({ isUp }) => !isUp).map(({ id }) => id))
  }

  crash(id: ServerId): void {
    const node = this.node(id)
    this.#note(`${id} crashes`)
    node.isUp = false
    node.timers.clear()
    this.#leaveRole(node)
  }

  /** Splits the network into these groups; all other servers form a group together. */
  partition(...groups: ServerId[][]): void {
    this.#note(`partition ${groups.map((ids) => ids.join()).join(' | ')}`)
    this.#partitions.split(...groups)
  }

  heal(): void {
    this.#note('heals')
    this.#partitions.heal()
    Object.assign(this.faultRates, { loss: 0, duplicates: 0, delayMs: 20 })
  }

  /** Makes a server log, as its last transaction, a configuration in which only these servers are voters. */
  propose(id: ServerId, voters: readonly ServerId[]): void {
    const lines = this.nodes.map((node) => `server.${node.id}=h:${2000 + node.id}:${3000 + node.id}`)
    const members = lines.map((line, i) => (voters.includes(i + 1) ? line : `${line}:observer`))
    this.node(id).proposed = parseConfiguration([...members, 'version=9'].join('\n'))
  }

  /** Advances the time. */
  run(ms: number): void {
    this.#clock.advance(ms)
  }

  /** Runs until all servers that are up have one leader, or throws with the history. */
  settle(withinMs: number): SimulatedServer {
    const end = this.#clock.monotonic() + withinMs
    while (this.#clock.monotonic() < end && this.settledLeader === undefined) this.run(100)
    const leader = this.settledLeader
    if (leader === undefined) throw new Error(`No leader within ${withinMs} ms: ${this.describe()}`)
    return leader
  }

  get settledLeader(): SimulatedServer | undefined {
    const up = this.nodes.filter((node) => node.isUp)
    const leaders = up.filter((node) => node.isEstablished)
    const [leader] = leaders
    if (leader === undefined || leaders.length > 1) return undefined
    const isSynced = (node: SimulatedServer): boolean =>
      node === leader || (leader.followers.has(node.id) && node.election.vote.leader === leader.id)
    return up.every(isSynced) ? leader : undefined
  }

  describe(): string {
    const states = this.nodes.map((node) => {
      const { leader, round } = node.election.vote
      return `${node.id} ${node.role} for ${leader} round ${round}/${node.election.round} has ${node.epoch}:${node.zxid}`
    })
    return [...states, ...this.history.slice(-60)].join('\n')
  }

  /** Each established leader makes a write; slow followers miss it. */
  write(): void {
    for (const leader of this.nodes.filter((node) => node.isEstablished)) {
      const zxid = Math.max(leader.zxid + 1, makeZxid(leader.epoch, 1))
      const takers = [...leader.followers].filter(
        (id) => this.#isReachable(leader.id, id) && this.random.below(10) < 8,
      )
      const isCommitted = this.#isQuorum([leader.id, ...takers])
      leader.zxid = zxid
      // Observers receive committed transactions only.
      for (const id of takers) if (isCommitted || !this.#isObserver(id)) this.node(id).zxid = zxid
      if (!isCommitted) continue
      leader.committedZxid = zxid
      this.committed = { epoch: leader.epoch, zxid }
    }
  }

  #isObserver(id: ServerId): boolean {
    return this.configuration.members.get(id)!.role === 'observer'
  }

  #election(id: ServerId): Election {
    return new Election({ self: id, ...electionDefaults })
  }

  #hierarchy(voters: number, groups: number): string[] {
    const ids = Array.from({ length: voters }, (_, i) => i + 1)
    const sets = Array.from({ length: Math.min(groups, voters) }, (_, group) =>
      ids.filter((id) => id % Math.min(groups, voters) === group),
    )
    // The first voter has a weight above 0, else no server could be elected.
    const weights = ids.map((id) => `weight.${id}=${id === 1 ? 1 : this.random.below(3)}`)
    return [...sets.map((members, group) => `group.${group}=${members.join(':')}`), ...weights]
  }

  #isQuorum(ids: readonly ServerId[]): boolean {
    return this.verifier.isQuorum(new Set(ids))
  }

  /** Whether a server can lead with these: a proposed configuration in its log needs a quorum too. */
  #canLead({ proposed }: SimulatedServer, ids: readonly ServerId[]): boolean {
    return this.#isQuorum(ids) && (proposed === undefined || verifierOf(proposed).isQuorum(new Set(ids)))
  }

  #isReachable(a: ServerId, b: ServerId): boolean {
    return this.node(a).isUp && this.node(b).isUp && this.#partitions.areConnected(a, b)
  }

  #note(text: string): void {
    this.history.push(`${this.#clock.monotonic()} ${text}`)
  }

  #startTimer(node: SimulatedServer, timer: ElectionTimer, afterMs: number): void {
    const started = ++this.#timersStarted
    node.timers.set(timer, started)
    this.#clock.after(afterMs, timer, () => {
      if (node.timers.get(timer) !== started) return
      node.timers.delete(timer)
      this.#step(node, { type: 'timeout', timer })
    })
  }

  #step(node: SimulatedServer, input: ElectionInput): void {
    const { election } = node
    election.step(input)
    for (let work = election.nextWork(); work !== undefined; work = election.nextWork())
      this.#perform(node, work, input)
  }

  #perform(node: SimulatedServer, work: ElectionWork, input: ElectionInput): void {
    switch (work.do) {
      case 'send':
        return this.#send(node, work.to, encodeNotification(work.state, work.vote, work.configuration))
      case 'start':
        return this.#startTimer(node, work.timer, work.afterMs)
      case 'stop':
        node.timers.delete(work.timer)
        return
      case 'decide':
        return this.#takeRole(node, work.vote.leader, input.type === 'timeout')
      case 'connect':
        return
      case 'warn':
        // A server warns that its logged configuration keeps it from leading.
        if (node.proposed !== undefined) return this.#note(`${node.id} warns: ${work.message}`)
        throw unexpected(node, work)
      case 'configure':
        throw unexpected(node, work)
    }
  }

  #send(from: SimulatedServer, to: ServerId, payload: Uint8Array): void {
    const target = this.node(to)
    const incarnations = [from.incarnation, target.incarnation]
    const deliver = (): void => {
      if (!this.#isReachable(from.id, to)) return
      if (from.incarnation !== incarnations[0] || target.incarnation !== incarnations[1]) return
      const notification = decodeNotification(payload)
      this.#step(target, { type: 'notification', from: from.id, notification })
    }
    const { loss, duplicates, delayMs } = this.faultRates
    if (this.random.below(100) < loss) return
    this.#clock.after(this.random.below(delayMs + 1), 'message', deliver)
    if (this.random.below(100) >= duplicates) return
    this.#clock.after(this.random.below(3 * delayMs + 1), 'duplicate', deliver)
  }

  // Roles

  #look(node: SimulatedServer): void {
    this.#leaveRole(node)
    this.elections++
    node.initialPosition = { epoch: node.epoch, zxid: node.zxid }
    const { zxid, epoch, proposed } = node
    const state = { zxid, epoch, active: this.configuration, ...(proposed === undefined ? {} : { proposed }) }
    this.#step(node, { type: 'look', state })
  }

  #leaveRole(node: SimulatedServer): void {
    for (const other of this.nodes) other.followers.delete(node.id)
    node.followers.clear()
    node.leader = undefined
    node.isEstablished = false
  }

  #takeRole(node: SimulatedServer, leader: ServerId, hasElected: boolean): void {
    const { state, vote } = node.election
    this.#note(`${node.id} ${state} ${leader} in round ${vote.round}${hasElected ? '' : ' (joins)'}`)
    node.leader = leader
    node.hasElected = hasElected
    node.deadline = this.#clock.monotonic() + ROLE_TIMEOUT_MS
    if (node.election.state === 'leading') invariant(leader === node.id, 'A leader leads by its own vote')
  }

  #scheduleHeartbeat(node: SimulatedServer): void {
    this.#clock.after(HEARTBEAT_MS + this.random.below(20), 'heartbeat', () => {
      if (node.isUp && node.leader !== undefined) {
        if (node.leader === node.id) this.#lead(node)
        else this.#follow(node, this.node(node.leader))
      }
      this.#scheduleHeartbeat(node)
    })
  }

  #follow(node: SimulatedServer, leader: SimulatedServer): void {
    const leads = this.#isReachable(node.id, leader.id) && leader.leader === leader.id
    const isFollower = leader.followers.has(node.id)
    if (leads && isFollower) return
    if (leads && this.#accept(node, leader)) return
    if (isFollower || this.#clock.monotonic() >= node.deadline) this.#look(node)
  }

  /** Models discovery and synchronisation in one step. */
  #accept(node: SimulatedServer, leader: SimulatedServer): boolean {
    const isAhead =
      node.epoch !== leader.epoch
        ? node.epoch > leader.epoch
        : node.zxid > leader.zxid && !leader.isEstablished
    if (node.hasElected && leader.hasElected && node.election.vote.round === leader.election.vote.round)
      invariant(!isAhead, 'An elected leader lacks nothing that its electors have', {
        node: node.initialPosition,
        leader: leader.initialPosition,
        history: this.describe(),
      })
    if (isAhead) return false
    leader.followers.add(node.id)
    if (leader.isEstablished) this.#install(node, leader)
    else this.#establish(leader)
    return true
  }

  #establish(leader: SimulatedServer): void {
    const all = [leader.id, ...leader.followers]
    if (!this.#canLead(leader, all)) return
    const epoch = Math.max(...all.map((id) => this.node(id).acceptedEpoch)) + 1
    invariant(!this.leadersByEpoch.has(epoch), 'An epoch has one leader', { epoch })
    const { committed } = this
    const isComplete =
      leader.epoch > committed.epoch || (leader.epoch === committed.epoch && leader.zxid >= committed.zxid)
    invariant(isComplete, 'A leader has every committed transaction', { leader: leader.id, committed })
    this.leadersByEpoch.set(epoch, leader.id)
    this.#note(`${leader.id} established in epoch ${epoch} with ${all.join()}`)
    leader.isEstablished = true
    leader.epoch = epoch
    leader.acceptedEpoch = epoch
    // The history with which it was established is that of a quorum now.
    leader.committedZxid = leader.zxid
    this.#step(leader, { type: 'established', epoch })
    for (const id of leader.followers) this.#install(this.node(id), leader)
  }

  #install(node: SimulatedServer, leader: SimulatedServer): void {
    const { epoch, proposed } = leader
    const zxid = this.#isObserver(node.id) ? leader.committedZxid : leader.zxid
    Object.assign(node, { epoch, acceptedEpoch: epoch, zxid, proposed })
    this.#step(node, { type: 'established', epoch: leader.epoch })
  }

  #lead(node: SimulatedServer): void {
    const present = [...node.followers].filter((id) => this.#isReachable(node.id, id))
    if (node.isEstablished && !this.#canLead(node, [node.id, ...present])) return this.#look(node)
    if (!node.isEstablished && this.#canLead(node, [node.id])) return this.#establish(node)
    if (!node.isEstablished && this.#clock.monotonic() >= node.deadline) this.#look(node)
  }
}

const unexpected = ({ id }: SimulatedServer, work: ElectionWork): Error =>
  new Error(`Unexpected work of ${id}: ${JSON.stringify(work)}`)
