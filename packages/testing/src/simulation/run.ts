import type { Logger } from '@zabra/runtime'
import { checkers } from '../checkers/index.ts'
import type { Evidence } from '../checkers/index.ts'
import { chronicleOf, readServerLog, type Chronicle, type ServerLog } from '../history/chronicle.ts'
import { QUOTA_NODES } from '../history/quota.ts'
import { History } from '../history/records.ts'
import { SessionClient, type ServerPlace, type SessionClientOptions } from '../workload/session-client.ts'
import { Asking, makeAll, walk } from '../workload/tasks.ts'
import { BASE, Worker } from '../workload/worker.ts'
import { CallLog } from '../participants/calls.ts'
import { judgeCalls } from '../participants/judge.ts'
import { Participant } from '../participants/participant.ts'
import { PARTICIPANT_BASE } from '../participants/places.ts'
import type { Chance } from '../world/chance.ts'
import type { Incarnation } from '../world/process.ts'
import { World, type Note } from '../world/world.ts'
import { committedLogs } from './committed.ts'
import { EpochWatch } from './epoch-watch.ts'
import { Faults } from './faults.ts'
import { readMembers } from './membership.ts'
import { Operator } from './operator.ts'
import type { Plan } from './plan.ts'
import { SimulatedServer } from './server.ts'
import { DATA_DIR, firstRoles, membershipText, settingsFor, SUPER } from './settings.ts'
import { stalenessOf } from './staleness.ts'
import { Tally } from './tally.ts'
import { ZabWire } from './zab-wire.ts'

/** Bounds of the liveness that is demanded once all is healed, in milliseconds of the world. */
const WRITE_WITHIN_MS = 15_000
const READ_WITHIN_MS = 60_000
/** What a session may outlive its timeout by: an election and some ticks. */
const GRACE_MS = 6_000
/** What a call of a real client may take once all is healed: sessions that ended must be noticed first. */
const SETTLED_WITHIN_MS = 30_000
const QUIET_MS = 2_000

export interface Violation {
  readonly checker: string
  readonly what: string
}

export interface Report {
  readonly plan: Plan
  readonly violations: readonly Violation[]
  readonly hash: number
  readonly steps: number
  readonly virtualMs: number
  readonly tally: Tally
}

export interface RunOptions {
  readonly onNote?: (note: Note) => void
  readonly onLog?: (who: Incarnation, level: keyof Logger, facts: object, sentence: string) => void
}

/** Plays a plan from its first event to its last and judges what happened. */
export function runPlan(plan: Plan, options: RunOptions = {}): Promise<Report> {
  return new Run(plan, options).play()
}

class Run {
  readonly #plan: Plan
  readonly #world: World
  readonly #history = new History()
  readonly #violations: Violation[] = []
  readonly #servers: SimulatedServer[]
  readonly #workers: Worker[]
  readonly #participants: Participant[]
  readonly #calls = new CallLog()
  readonly #readers = new Map<string, string>()
  readonly #faults: Faults
  readonly #operator: Operator | undefined
  readonly #wire: ZabWire | undefined
  readonly #epochs: EpochWatch
  readonly #tally = new Tally()
  #connections = 0
  #healedAt = 0

  constructor(plan: Plan, options: RunOptions) {
    this.#plan = plan
    const world = new World(plan.seed)
    this.#world = world
    world.onNote = options.onNote
    world.onLog = (who, level, facts, sentence) => {
      this.#tally.logged(sentence, facts)
      options.onLog?.(who, level, facts, sentence)
    }
    world.onError = (error, who) => this.#threw(error, who)
    Object.assign(world.network.weather, plan.weather)
    this.#servers = Array.from({ length: plan.servers }, (_, index) => {
      const host = world.addHost(`s${index + 1}`)
      Object.assign(host.platter.temper, plan.disk)
      return new SimulatedServer(world, host, index + 1, settingsFor(plan, index + 1))
    })
    this.#wire =
      plan.servers > 1
        ? new ZabWire(world, readMembers(membershipText(firstRoles(plan), plan.groups)))
        : undefined
    for (const { host, beforeNewDisk } of this.#servers) beforeNewDisk.push(() => this.#wire?.losesDisk(host))
    this.#epochs = new EpochWatch(world, this.#servers)
    this.#workers = plan.clients.map((client, index) => {
      const host = world.addHost(`c${index}`)
      return new Worker({
        ...this.#common,
        host,
        plan: client,
        chance: world.chance.branch(`worker ${index}`),
      })
    })
    this.#operator =
      plan.servers > 1
        ? new Operator(
            world,
            this.#servers,
            () => this.#client('operator', { secret: SUPER.secret }),
            plan.groups,
          )
        : undefined
    this.#participants = plan.participants.map((participant, index) => {
      const host = world.addHost(`p${index}`)
      const chance = world.chance.branch(`participant ${index}`)
      return new Participant({ ...this.#common, host, plan: participant, chance, log: this.#calls })
    })
    this.#faults = new Faults({
      world,
      operator: this.#operator,
      servers: this.#servers,
      workers: [...this.#workers, ...this.#participants],
      leader: () => this.#wire?.leader,
      nextChange: (proposed) => this.#wire?.nextChange(proposed),
    })
  }

  async play(): Promise<Report> {
    try {
      await this.#prepare()
      await this.#load()
      await this.#heal()
      await this.#finish()
      await this.#judge()
    } catch (error) {
      this.#violate('run', error instanceof Error ? (error.stack ?? error.message) : String(error))
    }
    const { hash, steps, now } = this.#world
    this.#tally.called(this.#calls.calls)
    if (this.#plan.groups !== undefined) this.#tally.add('ensembles with groups', 1)
    this.#tally.finish(
      this.#history,
      this.#servers,
      { ...this.#faults.counts, ...this.#operator?.counts },
      this.#wire,
    )
    return { plan: this.#plan, violations: this.#violations, hash, steps, virtualMs: now, tally: this.#tally }
  }

  get #common(): { history: History; servers: () => readonly ServerPlace[]; nextConnection: () => number } {
    return {
      history: this.#history,
      servers: () => this.#servers.map(({ place }) => place),
      nextConnection: () => ++this.#connections,
    }
  }

  async #prepare(): Promise<void> {
    for (const server of this.#servers) server.start()
    const asking = new Asking(this.#client('setup'))
    const base = this.#participants.length > 0 ? [...BASE, ...PARTICIPANT_BASE] : BASE
    await this.#world.settled(makeAll(asking, [...base, ...QUOTA_NODES]), WRITE_WITHIN_MS)
  }

  async #load(): Promise<void> {
    for (const worker of [...this.#workers, ...this.#participants]) worker.start()
    this.#faults.schedule(this.#plan.faults)
    await this.#world.play(this.#world.now + this.#plan.loadMs)
  }

  /** Everything works again: so must the servers, soon. */
  async #heal(): Promise<void> {
    this.#faults.heal()
    this.#healedAt = this.#world.now
    this.#world.note(undefined, 'healed', '')
    const asking = new Asking(this.#client('probe'))
    const written = asking.ask({ op: 'set', path: '/w/probe', data: 'healed', version: -1 })
    let isWritten = false
    void written.then(() => (isWritten = true))
    if (!(await this.#world.play(this.#world.now + WRITE_WITHIN_MS, () => isWritten)))
      this.#violate('liveness', `No write was answered within ${WRITE_WITHIN_MS} ms once all was healed`)
    else this.#tally.healedMs = this.#world.now - this.#healedAt
    const lookers = this.#workers.filter(({ isLooker, host }) => isLooker && host.current !== undefined)
    const areBack = (): boolean => lookers.every(({ client }) => client.isAttachedToQuorum)
    if (!(await this.#world.play(this.#healedAt + WRITE_WITHIN_MS, areBack)))
      this.#violate('liveness', `Not everybody who may look is back at a quorum after ${WRITE_WITHIN_MS} ms`)
  }

  async #finish(): Promise<void> {
    const chance = this.#world.chance.branch('end')
    for (const worker of this.#workers) {
      worker.stop()
      const end = chance.weighted({ close: 2, vanish: 2 })
      if (worker.host.current === undefined) continue
      if (end === 'close') worker.client.send({ op: 'close' })
      else worker.host.crash('power')
    }
    await this.#world.play(this.#world.now + 500)
    for (const worker of this.#workers) worker.client.abandon()
    await this.#finishParticipants(chance)
    const { clients, participants } = this.#plan
    const longest = Math.max(...[...clients, ...participants].map(({ timeoutMs }) => timeoutMs))
    await this.#world.play(this.#world.now + longest + GRACE_MS)
    await this.#readAll('healed')
    for (const server of this.#servers) server.crash('power')
    for (const server of this.#servers) server.start()
    await this.#readAll('restarted')
  }

  /** What real clients still wait for must be answered now; then they look at everything once more, and go. */
  async #finishParticipants(chance: Chance): Promise<void> {
    const all = this.#participants
    for (const one of all) one.stop()
    const isQuiet = (): boolean => all.every((one) => one.isQuiet)
    if (!(await this.#world.play(this.#world.now + SETTLED_WITHIN_MS, isQuiet)))
      this.#violate('calls', `Not every call was settled within ${SETTLED_WITHIN_MS} ms once all was healed`)
    let concluded = 0
    for (const one of all) void one.conclude().then(() => concluded++)
    await this.#world.play(this.#world.now + SETTLED_WITHIN_MS, () => concluded === all.length)
    await this.#world.play(this.#world.now + QUIET_MS)
    for (const one of all) one.end(chance.happens(0.5))
    await this.#world.play(this.#world.now + QUIET_MS)
  }

  /** Reads the whole tree of each server with a client of its own. */
  async #readAll(when: string): Promise<void> {
    const reading = this.#servers.map(async (server) => {
      const name = `reader-${when}-${server.host.name}`
      const client = this.#client(name, { servers: () => [server.place], secret: SUPER.secret })
      this.#readers.set(`${name}.0`, server.host.name)
      const asking = new Asking(client)
      await asking.ask({ op: 'sync', path: '/w' })
      await walk(asking, '/w')
    })
    let isRead = false
    void Promise.all(reading).then(() => (isRead = true))
    if (!(await this.#world.play(this.#world.now + READ_WITHIN_MS, () => isRead)))
      this.#violate('liveness', `Not every server could be read within ${READ_WITHIN_MS} ms (${when})`)
  }

  #client(
    name: string,
    options: Partial<Pick<SessionClientOptions, 'servers' | 'secret'>> = {},
  ): SessionClient {
    const host = this.#world.addHost(name)
    const client = new SessionClient({
      ...this.#common,
      name: `${name}.0`,
      life: host.start(),
      chance: this.#world.chance.branch(`connections ${name}`),
      ...options,
      timeoutMs: 6000,
    })
    client.start()
    return client
  }

  async #judge(): Promise<void> {
    const logs: ServerLog[] = []
    for (const { host, gone } of this.#servers)
      logs.push(await readServerLog(host.name, host.platter, DATA_DIR, gone))
    const { localSessions } = this.#plan.knobs
    const chronicle = chronicleOf(committedLogs(logs, this.#wire), localSessions)
    if (localSessions) this.#markLocals(chronicle)
    this.#markLookers()
    const workers = new Set([...this.#workers, ...this.#participants].map(({ host }) => host.name))
    const isSilent = (client: string): boolean => workers.has(client.split('.')[0]!)
    const silent = new Set(
      this.#history.arrivals
        .filter(({ kind, client }) => kind === 'attached' && isSilent(client))
        .map(({ session }) => session),
    )
    const clocksAreTrue = !this.#plan.faults.some(({ kind }) =>
      ['wallJump', 'drift', 'deposed'].includes(kind),
    )
    const { tickTimeMs } = this.#plan.knobs
    const evidence: Evidence = {
      history: this.#history,
      chronicle,
      logs,
      wire: this.#wire?.record,
      readers: this.#readers,
      healedAt: this.#healedAt,
      silent,
      // A follower that is cut off answers for a while before it notices.
      wallErrorMs: clocksAreTrue ? (this.#plan.servers > 1 ? 6 * tickTimeMs : 0) : undefined,
      staleMs: stalenessOf(this.#plan),
      diskWasFull: this.#plan.faults.some(({ kind }) => kind === 'fullDisk'),
      epochs: this.#epochs.seen,
    }
    for (const checker of checkers)
      for (const what of checker.check(evidence)) this.#violate(checker.name, what)
    for (const what of judgeCalls(this.#calls, chronicle)) this.#violate('calls', what)
    this.#judgeStops()
  }

  /** Sessions of read-only servers end without a transaction too. */
  #markLookers(): void {
    for (const operation of this.#history.operations)
      if (operation.isReadOnly === true && operation.request.op === 'close') operation.isLocal = true
  }

  /** Sessions of which no transaction tells end without one. */
  #markLocals({ model }: Chronicle): void {
    for (const operation of this.#history.operations)
      if (operation.request.op === 'close' && !model.sessions.has(operation.session)) operation.isLocal = true
    const attached = new Set<string>()
    for (const { kind, session } of this.#history.arrivals) if (kind === 'attached') attached.add(session)
    const upgraded = [...attached].filter((session) => model.sessions.has(session)).length
    this.#tally.add('local sessions', attached.size - upgraded)
    this.#tally.add('local sessions that became global', upgraded)
  }

  /** A server may stop when its disk failed; for nothing else. */
  #judgeStops(): void {
    for (const { stops } of this.#servers)
      for (const { server, at, during, reason, code } of stops)
        if (code !== 'EIO' && code !== 'ENOSPC')
          this.#violate('stops', `${server} stopped in ${during} at ${at.toFixed(1)} ms: ${reason}`)
  }

  #threw(error: unknown, who: Incarnation | undefined): void {
    const server = this.#servers.find(({ host }) => host === who?.host)
    if (server === undefined) throw error
    server.threw(error)
  }

  #violate(checker: string, what: string): void {
    this.#violations.push({ checker, what })
  }
}
