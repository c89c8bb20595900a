import { ManualClock, SeededRandom } from '@zabra/runtime'
import {
  decodeNotification,
  Election,
  electionDefaults,
  encodeNotification,
  type ElectionWork,
} from '../../election/index.ts'
import {
  parseConfiguration,
  verifierOf,
  type EnsembleConfiguration,
  type ServerId,
} from '../../quorum/index.ts'
import { Partitions } from '../../testing/partitions.ts'
import type { LeaderWork } from '../leader-types.ts'
import { InvariantChecker } from './invariant-checker.ts'
import { SimulatedLink, type LinkEndpoint } from './simulated-link.ts'
import { SimulatedMember } from './simulated-member.ts'
import { NO_FAULTS, type FaultRates, type Mutant, type SimulationContext } from './simulation-context.ts'
import { makeTxn } from './txn.ts'

/** Members with disks, on a network that breaks, all drawn from a seed, in simulated time. */
export class ZabSimulation implements SimulationContext {
  readonly random: SeededRandom
  readonly clock = new ManualClock({ monotonic: 0 })
  readonly tickMs = 100
  readonly configuration: EnsembleConfiguration
  readonly members: readonly SimulatedMember[]
  readonly checker: InvariantChecker
  readonly mutants: ReadonlySet<Mutant>
  faultRates: FaultRates
  readonly counts = new Map<string, number>()
  readonly #reasons = new Map<string, number>()
  readonly #partitions = new Partitions()
  #linkCount = 0
  #writes = 0
  #checkCount = 0
  /** Number of committed transactions at the time of each leadership check, by id. */
  readonly #requestedChecks = new Map<number, number>()

  constructor(
    seed: number,
    voters: number,
    observers: number,
    faultRates: FaultRates,
    mutants: readonly Mutant[] = [],
  ) {
    this.random = new SeededRandom(seed)
    this.faultRates = faultRates
    const after = this.clock.after.bind(this.clock)
    this.clock.after = (ms, name, action) =>
      after(ms, name, () => {
        action()
        this.#injectFaults()
      })
    this.mutants = new Set(mutants)
    const lines = Array.from(
      { length: voters + observers },
      (_, i) => `server.${i + 1}=h:${2000 + i}:${3000 + i}${i < voters ? '' : ':observer'}`,
    )
    this.configuration = parseConfiguration(lines.join('\n'))
    this.members = [...this.configuration.members].map(
      ([id, { role }]) => new SimulatedMember(this, id, role === 'observer'),
    )
    this.checker = new InvariantChecker(this.members, verifierOf(this.configuration))
  }

  peer(id: ServerId): SimulatedMember {
    return this.members[id - 1]!
  }

  createElection(self: ServerId): Election {
    return new Election({
      ...electionDefaults,
      self,
      minNotificationIntervalMs: 60,
      maxNotificationIntervalMs: 500,
      finalizeWaitMs: 40,
    })
  }

  count(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  countReason(reason: string): void {
    this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1)
  }

  /** Advances the time. Faults can happen after any event. */
  run(ms: number): void {
    this.clock.advance(ms)
  }

  #injectFaults(): void {
    const { crash, cut } = this.faultRates
    if (crash > 0 && this.random.below(crash) === 0) {
      const member = this.members[this.random.below(this.members.length)]!
      if (member.isUp) this.crash(member)
    }
    if (cut > 0 && this.random.below(cut) === 0) {
      const links = this.members.flatMap(({ links }) => [...links.values()])
      if (links.length > 0) links[this.random.below(links.length)]!.close()
    }
  }

  crash(member: SimulatedMember): void {
    member.crash()
    this.count('crashes')
    this.clock.after(this.random.below(1500), 'restart', () => {
      if (!member.isUp) member.start()
    })
  }

  startAll(): void {
    for (const member of this.members) if (!member.isUp) member.start()
  }

  // Network

  areConnected(a: ServerId, b: ServerId): boolean {
    return this.#partitions.areConnected(a, b)
  }

  /** Splits the network into these servers and all others. */
  partition(...ids: ServerId[]): void {
    this.#partitions.split(ids)
  }

  heal(): void {
    this.#partitions.heal()
    this.faultRates = NO_FAULTS
  }

  createLink(leader: LinkEndpoint, learner: LinkEndpoint): SimulatedLink {
    return new SimulatedLink(this, ++this.#linkCount, leader, learner)
  }

  sendNotification(from: ServerId, work: Extract<ElectionWork, { do: 'send' }>): void {
    const member = this.members.find(({ id }) => id === work.to)
    if (member === undefined || this.random.below(100) < this.faultRates.loss) return
    const bytes = encodeNotification(work.state, work.vote, work.configuration)
    this.clock.after(1 + this.random.below(this.faultRates.delayMs), 'notification', () => {
      if (member.isUp && this.areConnected(from, work.to))
        member.stepElection({ type: 'notification', from, notification: decodeNotification(bytes) })
    })
  }

  mutateWork(work: LeaderWork): LeaderWork {
    if (!this.mutants.has('a leader sends NEWLEADER before the history')) return work
    if (work.do !== 'sync' || work.plan.kind === 'snap') return work
    return { ...work, plan: { kind: 'diff', zxid: work.plan.zxid, entries: [] } }
  }

  // Clients

  /** Each leader gets one to three writes. */
  write(): void {
    const leaders = this.members.filter(
      ({ isUp, leader, isServing }) => isUp && leader !== undefined && isServing,
    )
    for (const leader of leaders) for (let i = this.random.below(3); i >= 0; i--) leader.write(++this.#writes)
  }

  /** Each leader transfers its leadership to a member, or to the one that the others choose. */
  transfer(server?: ServerId): void {
    for (const member of this.members) {
      const { leader } = member
      if (leader === undefined) continue
      const { payload } = makeTxn(leader.lastProposed + 1, ++this.#writes)
      member.stepLeader({ type: 'transfer', ...(server === undefined ? {} : { to: { server, payload } }) })
    }
  }

  /** Each leader gets a leadership check. */
  checkLeadership(): void {
    for (const member of this.members)
      if (member.leader?.phase === 'broadcast') {
        this.#requestedChecks.set(++this.#checkCount, this.checker.committed.length)
        member.stepLeader({ type: 'checkLeadership', id: this.#checkCount })
      }
  }

  /** Checks quorum-protocol invariant 30: a confirmed leader has all that was committed anywhere before the request. */
  leadershipConfirmed(tree: readonly object[], id: number): void {
    this.count('confirmed')
    const expected = this.#requestedChecks.get(id)!
    if (tree.length < expected)
      throw new Error(`30: confirmed with ${tree.length} of ${expected} transactions`)
  }

  get isSettled(): boolean {
    const leaders = this.members.filter(({ leader, isServing }) => leader !== undefined && isServing)
    if (leaders.length !== 1) return false
    const { length } = this.checker.committed
    return this.members.every(
      ({ isServing, tree, disk }) =>
        isServing && tree.length === length && disk.history.length === length && disk.pending === 0,
    )
  }

  /** Runs until all members serve with all transactions, or throws with their states. */
  settle(ms: number): void {
    const end = this.clock.monotonic() + ms
    while (this.clock.monotonic() < end) {
      this.run(100)
      if (this.isSettled) return
    }
    const states = this.members.map(
      ({ id, leader, learner, isServing, tree, disk, election }) =>
        `${id} ${election.state} ${leader?.phase ?? learner?.phase ?? '-'} ${isServing ? 'serves' : ''} tree ${tree.length} disk ${disk.history.length} accepted ${disk.acceptedEpoch} current ${disk.currentEpoch}`,
    )
    const reasons = [...this.#reasons].slice(-12).map(([reason, count]) => `${count} × ${reason}`)
    throw new Error(
      `not settled: ${this.checker.committed.length} committed\n${[...states, ...reasons].join('\n')}`,
    )
  }
}
