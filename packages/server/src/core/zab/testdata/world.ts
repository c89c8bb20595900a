import { SeededRandom } from '@zabra/runtime'
import { Election, electionDefaults, encodeNotification, decodeNotification, type ElectionWork } from '../../election/index.ts'
import { parseConfiguration, verifierOf, type EnsembleConfiguration, type QuorumVerifier, type ServerId } from '../../quorum/index.ts'
import type { LeaderWork } from '../leader-types.ts'
import { Judge } from './judge.ts'
import { Link } from './link.ts'
import { Server } from './server.ts'

/** How bad things are; chances are one in so many events, 0 for never. */
export interface Weather {
  /** Percent of the notifications of elections. */
  loss: number
  delayMs: number
  diskMs: number
  crash: number
  cut: number
}

export const calm: Weather = { loss: 0, delayMs: 5, diskMs: 3, crash: 0, cut: 0 }

/** Mistakes that a host could make. The simulation must find each. */
export const faults = [
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
] as const
export type Fault = (typeof faults)[number]

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** Members with disks, on a network that breaks, all of it drawn from a seed. Time is simulated. */
export class World {
  readonly random: SeededRandom
  readonly tickMs = 100
  readonly configuration: EnsembleConfiguration
  readonly verifier: QuorumVerifier
  readonly servers: readonly Server[]
  readonly judge: Judge
  readonly faults: ReadonlySet<Fault>
  weather: Weather
  now = 0
  readonly counts = new Map<string, number>()
  readonly reasons = new Map<string, number>()
  #order = 0
  #links = 0
  #events: Event[] = []
  #island = new Map<ServerId, number>()
  #writes = 0
  #tickets = 0
  /** How much was committed when a confirmation was asked for. */
  readonly #asked = new Map<number, number>()

  constructor(seed: number, voters: number, observers: number, weather: Weather, faults: readonly Fault[] = []) {
    this.random = new SeededRandom(seed)
    this.weather = weather
    this.faults = new Set(faults)
    const lines = Array.from(
      { length: voters + observers },
      (_, i) => `server.${i + 1}=h:${2000 + i}:${3000 + i}${i < voters ? '' : ':observer'}`,
    )
    this.configuration = parseConfiguration(lines.join('\n'))
    this.verifier = verifierOf(this.configuration)
    this.servers = [...this.configuration.members].map(([id, { role }]) => new Server(this, id, role === 'observer'))
    this.judge = new Judge(this.servers, () => this.verifier)
  }

  server(id: ServerId): Server {
    return this.servers[id - 1]!
  }

  election(self: ServerId): Election {
    return new Election({ ...electionDefaults, self, minResendMs: 60, maxResendMs: 500, settleMs: 40 })
  }

  /** A number that was not given before. */
  tick(): number {
    return ++this.#order
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  reason(why: string): void {
    this.reasons.set(why, (this.reasons.get(why) ?? 0) + 1)
  }

  after(ms: number, run: () => void): void {
    const event = { at: this.now + ms, order: this.tick(), run }
    const heap = this.#events
    heap.push(event)
    for (let i = heap.length - 1; i > 0; ) {
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
      this.#disturb()
    }
    this.now = end
  }

  /** Anything can happen between any two events. */
  #disturb(): void {
    const { crash, cut } = this.weather
    if (crash > 0 && this.random.below(crash) === 0) {
      const server = this.servers[this.random.below(this.servers.length)]!
      if (server.up) this.crash(server)
    }
    if (cut > 0 && this.random.below(cut) === 0) {
      const links = this.servers.flatMap(({ links }) => [...links.values()])
      if (links.length > 0) links[this.random.below(links.length)]!.close()
    }
  }

  crash(server: Server): void {
    server.crash()
    this.count('crashes')
    this.after(this.random.below(1500), () => {
      if (!server.up) server.start()
    })
  }

  startAll(): void {
    for (const server of this.servers) if (!server.up) server.start()
  }

  // Network

  connected(a: ServerId, b: ServerId): boolean {
    return this.#island.get(a) === this.#island.get(b)
  }

  partition(...ids: ServerId[]): void {
    for (const { id } of this.servers) this.#island.set(id, ids.includes(id) ? 1 : 0)
  }

  heal(): void {
    this.#island.clear()
    this.weather = calm
  }

  link(leader: Server, learner: Server): Link {
    return new Link(this, ++this.#links, leader, learner)
  }

  notify(from: Server, { to, state, vote, configuration }: Extract<ElectionWork, { do: 'send' }>): void {
    const server = this.servers.find(({ id }) => id === to)
    if (server === undefined || this.random.below(100) < this.weather.loss) return
    const bytes = encodeNotification(state, vote, configuration)
    this.after(1 + this.random.below(this.weather.delayMs), () => {
      if (server.up && this.connected(from.id, to))
        server.vote({ type: 'heard', from: from.id, notification: decodeNotification(bytes) })
    })
  }

  /** With the fault, NEWLEADER goes out before what it stands for. */
  reordered(works: readonly LeaderWork[]): readonly LeaderWork[] {
    if (!this.faults.has('sends NEWLEADER before history')) return works
    return works.map((work) =>
      work.do === 'sync' && work.plan.how !== 'snap'
        ? { ...work, plan: { how: 'diff', zxid: work.plan.zxid, entries: [] } }
        : work,
    )
  }

  // Clients

  write(): void {
    const leaders = this.servers.filter(({ up, leader, serving }) => up && leader !== undefined && serving)
    for (const leader of leaders) for (let i = this.random.below(3); i >= 0; i--) leader.write(++this.#writes)
  }

  confirm(): void {
    for (const server of this.servers)
      if (server.leader?.phase === 'broadcast') {
        this.#asked.set(++this.#tickets, this.judge.committed.length)
        server.leads({ type: 'confirm', ticket: this.#tickets })
      }
  }

  /** 30: whoever is told that it still leads has all that was committed anywhere before it asked. */
  confirmed(server: Server, ticket: number): void {
    this.count('confirmed')
    const due = this.#asked.get(ticket)!
    if (server.tree.length < due) throw new Error(`30: confirmed with ${server.tree.length} of ${due} transactions`)
  }

  get settled(): boolean {
    const leaders = this.servers.filter(({ leader, serving }) => leader !== undefined && serving)
    if (leaders.length !== 1) return false
    const { committed } = this.judge
    return this.servers.every(
      ({ serving, tree, disk }) =>
        serving && tree.length === committed.length && disk.history.length === committed.length && disk.pending === 0,
    )
  }

  /** Runs until all are in step. Throws when they are not in time. */
  settle(ms: number): void {
    const end = this.now + ms
    while (this.now < end) {
      this.run(100)
      if (this.settled) return
    }
    const state = this.servers.map(
      ({ id, leader, learner, serving, tree, disk, election }) =>
        `${id} ${election.state} ${leader?.phase ?? learner?.phase ?? '-'} ${serving ? 'serves' : ''} tree ${tree.length} disk ${disk.history.length} accepted ${disk.acceptedEpoch} current ${disk.currentEpoch}`,
    )
    const why = [...this.reasons].slice(-12).map(([reason, count]) => `${count} × ${reason}`)
    throw new Error(`not in step: ${this.judge.committed.length} committed\n${[...state, ...why].join('\n')}`)
  }
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

