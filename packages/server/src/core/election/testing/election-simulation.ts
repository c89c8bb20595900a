import { makeZxid } from '@zabra/protocol'
import { invariant, SeededRandom } from '@zabra/runtime'
import {
  parseConfiguration,
  verifierOf,
  type EnsembleConfiguration,
  type QuorumVerifier,
  type ServerId,
} from '../../quorum/index.ts'
import {
  decodeNotification,
  Election,
  electionDefaults,
  encodeNotification,
  type ElectionInput,
  type ElectionTimer,
  type ElectionWork,
} from '../index.ts'

/** How bad the network is; chances in percent. */
export interface FaultRates {
  loss: number
  duplicates: number
  /** Longest delay in milliseconds; with several messages on their way, their order is lost. */
  delayMs: number
}

/** A server: its election, the few facts on its disk, and a coarse model of what it does once it has a role. */
export class SimulatedServer {
  readonly id: ServerId
  election: Election
  isUp = false
  /** Counts starts: what was sent to or by an earlier one is lost. */
  incarnation = 0
  zxid = 0
  epoch = 0
  acceptedEpoch = 0
  /** What it brought to the election that runs or ran last. */
  initialPosition = { epoch: 0, zxid: 0 }
  /** A change of the ensemble in its log that it does not know to be committed. */
  proposed: EnsembleConfiguration | undefined
  leader: ServerId | undefined
  /** Whether it chose its leader by votes, and did not just join one that others follow. */
  hasElected = false
  /** As a leader: those that are in step with it. */
  followers = new Set<ServerId>()
  isEstablished = false
  /** When it gives its role up if nothing came of it. */
  deadline = 0
  timers = new Map<ElectionTimer, number>()

  constructor(id: ServerId, election: Election) {
    this.id = id
    this.election = election
  }

  get role(): string {
    return this.isUp ? this.election.state : 'down'
  }
}

interface Event {
  readonly at: number
  readonly run: () => void
}

const ROLE_TIMEOUT_MS = 1500
const HEARTBEAT_MS = 150

/** Servers on a network that loses, doubles and reorders messages, all of it drawn from a seed. Time is simulated. */
export class ElectionSimulation {
  readonly random: SeededRandom
  readonly nodes: readonly SimulatedServer[]
  readonly configuration: EnsembleConfiguration
  readonly verifier: QuorumVerifier
  readonly faultRates: FaultRates
  /** The highest transaction that a quorum has. */
  committed = { epoch: 0, zxid: 0 }
  now = 0
  elections = 0
  /** Leaders that a quorum followed, by epoch. */
  readonly leadersByEpoch = new Map<number, ServerId>()
  readonly history: string[] = []
  /** Which part of the network each server is in. */
  #partitions = new Map<ServerId, number>()
  #events: Event[] = []

  /** With `groups`, voters stand in so many groups, with weights from 0 to 2 that are drawn too. */
  constructor(seed: number, voters: number, weather: FaultRates, observers = 0, groups = 0) {
    this.random = new SeededRandom(seed)
    this.faultRates = weather
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

  /** Starts servers together, so that each can be reached when the first one speaks. */
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
    this.start(...this.nodes.filter(({ isUp: up }) => !up).map(({ id }) => id))
  }

  crash(id: ServerId): void {
    const node = this.node(id)
    this.#note(`${id} crashes`)
    node.isUp = false
    node.timers.clear()
    this.#leaveRole(node)
  }

  /** Cuts the network; servers that are not named are on an island together. */
  partition(...islands: ServerId[][]): void {
    this.#note(`partition ${islands.map((ids) => ids.join()).join(' | ')}`)
    this.#partitions = new Map(
      islands.flatMap((ids, index) => ids.map((id): [ServerId, number] => [id, index + 1])),
    )
  }

  heal(): void {
    this.#note('heals')
    this.#partitions.clear()
    Object.assign(this.faultRates, { loss: 0, duplicates: 0, delayMs: 20 })
  }

  /** Makes a server log a change that leaves only these a voice, as its last transaction. */
  propose(id: ServerId, voters: readonly ServerId[]): void {
    const lines = this.nodes.map((node) => `server.${node.id}=h:${2000 + node.id}:${3000 + node.id}`)
    const members = lines.map((line, i) => (voters.includes(i + 1) ? line : `${line}:observer`))
    this.node(id).proposed = parseConfiguration([...members, 'version=9'].join('\n'))
  }

  /** Lets time pass. */
  run(ms: number): void {
    const end = this.now + ms
    for (;;) {
      const [timed, node] = this.#nextTimer()
      const event = this.#events[0]
      const at = Math.min(timed, event?.at ?? Infinity)
      if (at > end) break
      this.now = Math.max(this.now, at)
      if (timed < (event?.at ?? Infinity)) this.#fireTimer(node!)
      else this.#events.shift()!.run()
    }
    this.now = end
  }

  /** Runs until everybody that is up serves under one leader, or fails with what happened. */
  settle(withinMs: number): SimulatedServer {
    const end = this.now + withinMs
    while (this.now < end && this.settledLeader === undefined) this.run(100)
    const leader = this.settledLeader
    if (leader === undefined) throw new Error(`Nobody settled within ${withinMs} ms: ${this.describe()}`)
    return leader
  }

  get settledLeader(): SimulatedServer | undefined {
    const up = this.nodes.filter((node) => node.isUp)
    const leaders = up.filter((node) => node.isEstablished)
    const [leader] = leaders
    if (leader === undefined || leaders.length > 1) return undefined
    const serves = (node: SimulatedServer): boolean =>
      node === leader || (leader.followers.has(node.id) && node.election.vote.leader === leader.id)
    return up.every(serves) ? leader : undefined
  }

  describe(): string {
    const states = this.nodes.map((node) => {
      const { leader, round } = node.election.vote
      return `${node.id} ${node.role} for ${leader} round ${round}/${node.election.round} has ${node.epoch}:${node.zxid}`
    })
    return [...states, ...this.history.slice(-60)].join('\n')
  }

  /** The leader takes a write; some followers are slow and miss it. */
  write(): void {
    for (const leader of this.nodes.filter((node) => node.isEstablished)) {
      const zxid = Math.max(leader.zxid + 1, makeZxid(leader.epoch, 1))
      const takers = [...leader.followers].filter(
        (id) => this.#isReachable(leader.id, id) && this.random.below(10) < 8,
      )
      const isCommitted = this.#isQuorum([leader.id, ...takers])
      leader.zxid = zxid
      // Observers are told of what is committed, and of nothing else.
      for (const id of takers) if (isCommitted || !this.#isObserver(id)) this.node(id).zxid = zxid
      if (isCommitted) this.committed = { epoch: leader.epoch, zxid }
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
    // The first one weighs something, else nobody could lead.
    const weights = ids.map((id) => `weight.${id}=${id === 1 ? 1 : this.random.below(3)}`)
    return [...sets.map((members, group) => `group.${group}=${members.join(':')}`), ...weights]
  }

  #isQuorum(ids: readonly ServerId[]): boolean {
    return this.verifier.isQuorum(new Set(ids))
  }

  /** Whether a leader can go on with these: a change that it has logged needs most voters of both ensembles. */
  #canLead({ proposed }: SimulatedServer, ids: readonly ServerId[]): boolean {
    return this.#isQuorum(ids) && (proposed === undefined || verifierOf(proposed).isQuorum(new Set(ids)))
  }

  #isReachable(a: ServerId, b: ServerId): boolean {
    return this.node(a).isUp && this.node(b).isUp && this.#partitions.get(a) === this.#partitions.get(b)
  }

  #note(text: string): void {
    this.history.push(`${this.now} ${text}`)
  }

  #at(delayMs: number, run: () => void): void {
    const at = this.now + delayMs
    const later = this.#events.findIndex((event) => event.at > at)
    this.#events.splice(later < 0 ? this.#events.length : later, 0, { at, run })
  }

  #nextTimer(): [number, SimulatedServer | undefined] {
    let [first, whose]: [number, SimulatedServer | undefined] = [Infinity, undefined]
    for (const node of this.nodes)
      for (const at of node.timers.values()) if (at < first) [first, whose] = [at, node]
    return [first, whose]
  }

  #fireTimer(node: SimulatedServer): void {
    const [timer] = [...node.timers].sort(([, a], [, b]) => a - b)[0]!
    node.timers.delete(timer)
    this.#step(node, { type: 'timeout', timer })
  }

  #step(node: SimulatedServer, input: ElectionInput): void {
    for (const work of node.election.step(input)) this.#do(node, work, input)
  }

  #do(node: SimulatedServer, work: ElectionWork, input: ElectionInput): void {
    switch (work.do) {
      case 'send':
        this.#send(node, work.to, encodeNotification(work.state, work.vote, work.configuration))
        return
      case 'start':
        node.timers.set(work.timer, this.now + work.afterMs)
        return
      case 'stop':
        node.timers.delete(work.timer)
        return
      case 'decide':
        return this.#takeRole(node, work.vote.leader, input.type === 'timeout')
      case 'connect':
        return
      case 'configure':
      case 'warn':
        throw new Error(`Unexpected of ${node.id}: ${JSON.stringify(work)}`)
    }
  }

  #send(from: SimulatedServer, to: ServerId, payload: Uint8Array): void {
    const target = this.node(to)
    const lives = [from.incarnation, target.incarnation]
    const arrive = (): void => {
      if (!this.#isReachable(from.id, to) || from.incarnation !== lives[0] || target.incarnation !== lives[1])
        return
      this.#step(target, { type: 'heard', from: from.id, notification: decodeNotification(payload) })
    }
    const { loss, duplicates, delayMs } = this.faultRates
    if (this.random.below(100) < loss) return
    this.#at(this.random.below(delayMs + 1), arrive)
    if (this.random.below(100) < duplicates) this.#at(this.random.below(3 * delayMs + 1), arrive)
  }

  // What servers do with a role

  #look(node: SimulatedServer): void {
    this.#leaveRole(node)
    this.elections++
    node.initialPosition = { epoch: node.epoch, zxid: node.zxid }
    const { zxid, epoch, proposed } = node
    const footing = {
      zxid,
      epoch,
      active: this.configuration,
      ...(proposed === undefined ? {} : { proposed }),
    }
    this.#step(node, { type: 'look', footing })
  }

  #leaveRole(node: SimulatedServer): void {
    for (const other of this.nodes) other.followers.delete(node.id)
    node.followers.clear()
    node.leader = undefined
    node.isEstablished = false
  }

  #takeRole(node: SimulatedServer, leader: ServerId, chose: boolean): void {
    const { state, vote } = node.election
    this.#note(`${node.id} ${state} ${leader} in round ${vote.round}${chose ? '' : ' (joins)'}`)
    node.leader = leader
    node.hasElected = chose
    node.deadline = this.now + ROLE_TIMEOUT_MS
    if (node.election.state === 'leading') invariant(leader === node.id, 'A leader leads by its own vote')
  }

  #scheduleHeartbeat(node: SimulatedServer): void {
    this.#at(HEARTBEAT_MS + this.random.below(20), () => {
      if (node.isUp && node.leader !== undefined) {
        if (node.leader === node.id) this.#lead(node)
        else this.#follow(node, this.node(node.leader))
      }
      this.#scheduleHeartbeat(node)
    })
  }

  #follow(node: SimulatedServer, leader: SimulatedServer): void {
    const leads = this.#isReachable(node.id, leader.id) && leader.leader === leader.id
    const member = leader.followers.has(node.id)
    if (leads && member) return
    if (leads && this.#admit(node, leader)) return
    if (member || this.now >= node.deadline) this.#look(node)
  }

  /** Agreement on an epoch and synchronization in one step. */
  #admit(node: SimulatedServer, leader: SimulatedServer): boolean {
    const ahead =
      node.epoch !== leader.epoch
        ? node.epoch > leader.epoch
        : node.zxid > leader.zxid && !leader.isEstablished
    if (node.hasElected && leader.hasElected && node.election.vote.round === leader.election.vote.round)
      invariant(!ahead, 'A chosen leader lacks nothing that those who chose it have', {
        node: node.initialPosition,
        leader: leader.initialPosition,
        what: this.describe(),
      })
    if (ahead) return false
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
    const complete =
      leader.epoch > committed.epoch || (leader.epoch === committed.epoch && leader.zxid >= committed.zxid)
    invariant(complete, 'A leader has everything that was committed', { leader: leader.id, committed })
    this.leadersByEpoch.set(epoch, leader.id)
    this.#note(`${leader.id} established in epoch ${epoch} with ${all.join()}`)
    leader.isEstablished = true
    leader.epoch = epoch
    leader.acceptedEpoch = epoch
    this.#step(leader, { type: 'installed', epoch })
    for (const id of leader.followers) this.#install(this.node(id), leader)
  }

  #install(node: SimulatedServer, leader: SimulatedServer): void {
    const { epoch, zxid, proposed } = leader
    Object.assign(node, { epoch, acceptedEpoch: epoch, zxid, proposed })
    this.#step(node, { type: 'installed', epoch: leader.epoch })
  }

  #lead(node: SimulatedServer): void {
    const present = [...node.followers].filter((id) => this.#isReachable(node.id, id))
    if (node.isEstablished && !this.#canLead(node, [node.id, ...present])) return this.#look(node)
    if (!node.isEstablished && this.#canLead(node, [node.id])) return this.#establish(node)
    if (!node.isEstablished && this.now >= node.deadline) this.#look(node)
  }
}
