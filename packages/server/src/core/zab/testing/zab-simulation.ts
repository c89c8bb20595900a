import { SeededRandom } from '@zabra/runtime'
import {
  Election,
  electionDefaults,
  encodeNotification,
  decodeNotification,
  type ElectionWork,
} from '../../election/index.ts'
import {
  parseConfiguration,
  verifierOf,
  type EnsembleConfiguration,
  type QuorumVerifier,
  type ServerId,
} from '../../quorum/index.ts'
import type { LeaderWork } from '../leader-types.ts'
import { InvariantChecker } from './invariant-checker.ts'
import { SimulatedLink } from './simulated-link.ts'
import { SimulatedMember } from './simulated-member.ts'

/** How bad things are; chances are one in so many events, 0 for never. */
export interface FaultRates {
  /** Percent of the notifications of elections. */
  loss: number
  delayMs: number
  diskMs: number
  crash: number
  cut: number
}

export const NO_FAULTS: FaultRates = { loss: 0, delayMs: 5, diskMs: 3, crash: 0, cut: 0 }

/** Mistakes that a host could make. The simulation must find each. */
export const mutants = [
  'acknowledges before its disk',
  'counts itself before its disk',
  'enters the epoch before history',
  'does not cut',
  'counts acks of nothing',
  'applies out of order',
  'serves before the leader is established',
  'forgets what it accepted',
  'sends NEWLEADER before history',
  'shows what was applied, not what is logged',
  'keeps what was acknowledged and cut again',
] as const
export type Mutant = (typeof mutants)[number]

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** Members with disks, on a network that breaks, all of it drawn from a seed. Time is simulated. */
export class ZabSimulation {
  readonly random: SeededRandom
  readonly tickMs = 100
  readonly configuration: EnsembleConfiguration
  readonly verifier: QuorumVerifier
  readonly servers: readonly SimulatedMember[]
  readonly checker: InvariantChecker
  readonly mutants: ReadonlySet<Mutant>
  faultRates: FaultRates
  now = 0
  readonly counts = new Map<string, number>()
  readonly reasons = new Map<string, number>()
  #order = 0
  #linkCount = 0
  #events: Event[] = []
  #partitions = new Map<ServerId, number>()
  #writes = 0
  #checkCount = 0
  /** How much was committed when a confirmation was asked for. */
  readonly #requestedChecks = new Map<number, number>()

  constructor(
    seed: number,
    voters: number,
    observers: number,
    weather: FaultRates,
    faults: readonly Mutant[] = [],
  ) {
    this.random = new SeededRandom(seed)
    this.faultRates = weather
    this.mutants = new Set(faults)
    const lines = Array.from(
      { length: voters + observers },
      (_, i) => `server.${i + 1}=h:${2000 + i}:${3000 + i}${i < voters ? '' : ':observer'}`,
    )
    this.configuration = parseConfiguration(lines.join('\n'))
    this.verifier = verifierOf(this.configuration)
    this.servers = [...this.configuration.members].map(
      ([id, { role }]) => new SimulatedMember(this, id, role === 'observer'),
    )
    this.checker = new InvariantChecker(this.servers, () => this.verifier)
  }

  server(id: ServerId): SimulatedMember {
    return this.servers[id - 1]!
  }

  election(self: ServerId): Election {
    return new Election({
      ...electionDefaults,
      self,
      minNotificationIntervalMs: 60,
      maxNotificationIntervalMs: 500,
      finalizeWaitMs: 40,
    })
  }

  /** A number that was not given before. */
  nextOrder(): number {
    return ++this.#order
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  reason(why: string): void {
    this.reasons.set(why, (this.reasons.get(why) ?? 0) + 1)
  }

  after(ms: number, run: () => void): void {
    const event = { at: this.now + ms, order: this.nextOrder(), run }
    const heap = this.#events
    heap.push(event)
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1
      if (isBefore(heap[parent]!, event)) break
      heap[i] = heap[parent]!
      heap[parent] = event
      i = parent
    }
  }

  #pop(): Event {
    const heap = this.#events
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[i] = heap[child]!
      i = child
    }
    heap[i] = last
    return first
  }

  run(ms: number): void {
    const end = this.now + ms
    while (this.#events.length > 0 && this.#events[0]!.at <= end) {
      const { at, run } = this.#pop()
      this.now = at
      run()
      this.#injectFaults()
    }
    this.now = end
  }

  /** Anything can happen between any two events. */
  #injectFaults(): void {
    const { crash, cut } = this.faultRates
    if (crash > 0 && this.random.below(crash) === 0) {
      const server = this.servers[this.random.below(this.servers.length)]!
      if (server.isUp) this.crash(server)
    }
    if (cut > 0 && this.random.below(cut) === 0) {
      const links = this.servers.flatMap(({ links }) => [...links.values()])
      if (links.length > 0) links[this.random.below(links.length)]!.close()
    }
  }

  crash(server: SimulatedMember): void {
    server.crash()
    this.count('crashes')
    this.after(this.random.below(1500), () => {
      if (!server.isUp) server.start()
    })
  }

  startAll(): void {
    for (const server of this.servers) if (!server.isUp) server.start()
  }

  // Network

  connected(a: ServerId, b: ServerId): boolean {
    return this.#partitions.get(a) === this.#partitions.get(b)
  }

  partition(...ids: ServerId[]): void {
    for (const { id } of this.servers) this.#partitions.set(id, ids.includes(id) ? 1 : 0)
  }

  heal(): void {
    this.#partitions.clear()
    this.faultRates = NO_FAULTS
  }

  link(leader: SimulatedMember, learner: SimulatedMember): SimulatedLink {
    return new SimulatedLink(this, ++this.#linkCount, leader, learner)
  }

  sendNotification(
    from: SimulatedMember,
    { to, state, vote, configuration }: Extract<ElectionWork, { do: 'send' }>,
  ): void {
    const server = this.servers.find(({ id }) => id === to)
    if (server === undefined || this.random.below(100) < this.faultRates.loss) return
    const bytes = encodeNotification(state, vote, configuration)
    this.after(1 + this.random.below(this.faultRates.delayMs), () => {
      if (server.isUp && this.connected(from.id, to))
        server.stepElection({ type: 'notification', from: from.id, notification: decodeNotification(bytes) })
    })
  }

  /** With the fault, NEWLEADER goes out before what it stands for. */
  mutateWork(works: readonly LeaderWork[]): readonly LeaderWork[] {
    if (!this.mutants.has('sends NEWLEADER before history')) return works
    return works.map((work) =>
      work.do === 'sync' && work.plan.how !== 'snap'
        ? { ...work, plan: { how: 'diff', zxid: work.plan.zxid, entries: [] } }
        : work,
    )
  }

  // Clients

  write(): void {
    const leaders = this.servers.filter(
      ({ isUp: up, leader, isServing: serving }) => up && leader !== undefined && serving,
    )
    for (const leader of leaders) for (let i = this.random.below(3); i >= 0; i--) leader.write(++this.#writes)
  }

  confirm(): void {
    for (const server of this.servers)
      if (server.leader?.phase === 'broadcast') {
        this.#requestedChecks.set(++this.#checkCount, this.checker.committed.length)
        server.stepLeader({ type: 'confirm', ticket: this.#checkCount })
      }
  }

  /** 30: whoever is told that it still leads has all that was committed anywhere before it asked. */
  confirmed(server: SimulatedMember, ticket: number): void {
    this.count('confirmed')
    const due = this.#requestedChecks.get(ticket)!
    if (server.tree.length < due)
      throw new Error(`30: confirmed with ${server.tree.length} of ${due} transactions`)
  }

  get isSettled(): boolean {
    const leaders = this.servers.filter(({ leader, isServing: serving }) => leader !== undefined && serving)
    if (leaders.length !== 1) return false
    const { committed } = this.checker
    return this.servers.every(
      ({ isServing: serving, tree, disk }) =>
        serving &&
        tree.length === committed.length &&
        disk.history.length === committed.length &&
        disk.pending === 0,
    )
  }

  /** Runs until all are in step. Throws when they are not in time. */
  settle(ms: number): void {
    const end = this.now + ms
    while (this.now < end) {
      this.run(100)
      if (this.isSettled) return
    }
    const state = this.servers.map(
      ({ id, leader, learner, isServing: serving, tree, disk, election }) =>
        `${id} ${election.state} ${leader?.phase ?? learner?.phase ?? '-'} ${serving ? 'serves' : ''} tree ${tree.length} disk ${disk.history.length} accepted ${disk.acceptedEpoch} current ${disk.currentEpoch}`,
    )
    const why = [...this.reasons].slice(-12).map(([reason, count]) => `${count} × ${reason}`)
    throw new Error(
      `not in step: ${this.checker.committed.length} committed\n${[...state, ...why].join('\n')}`,
    )
  }
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)
