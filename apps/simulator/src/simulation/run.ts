import { checkers } from '../checkers/index.ts'
import type { Evidence } from '../checkers/index.ts'
import {
  committedHistoryOf,
  DistinctTransactions,
  readServerLog,
  type CommittedHistory,
  type ServerLog,
} from '../history/committed-history.ts'
import { QUOTA_NODES } from '../history/quota.ts'
import { History } from '../history/records.ts'
import {
  type Prng,
  type ServerEndpoint,
  SimulatedServer,
  SimulatedWorld,
  type TraceEvent,
  type LogLine,
  type ProcessState,
} from '@zabra/testing'
import { SessionClient, type SessionClientOptions } from '../workload/session-client.ts'
import { RetryingClient, createAll, createLargeTree, readTree } from '../workload/retrying-client.ts'
import { BASE_PATHS, Worker } from '../workload/worker.ts'
import { CallLog } from '../participants/calls.ts'
import { checkCalls } from '../participants/check-calls.ts'
import { Participant } from '../participants/participant.ts'
import { PARTICIPANT_PATHS } from '../participants/paths.ts'
import { Recorder } from '../strangers/recorder.ts'
import { committedTransactions } from './committed-transactions.ts'
import { MEMBERSHIP_CHANGES as CONFIGURATION_CHANGES } from './fault.ts'
import { AdminPorts } from './admin-ports.ts'
import { acceptCertificates } from './certificates.ts'
import { EpochMonitor } from './epoch-monitor.ts'
import { FaultInjector } from './fault-injector.ts'
import { required, visibleLevels } from './level-file.ts'
import { LevelMonitor } from './level-monitor.ts'
import { LevelOperator } from './level-operator.ts'
import { InStepMonitor } from './in-step-monitor.ts'
import { LogMonitor } from './log-monitor.ts'
import { initialRoles, votersWith } from './membership-text.ts'
import { Operator } from './operator.ts'
import { OracleFile } from './oracle-file.ts'
import type { LevelsPlan } from './levels-plan.ts'
import type { Plan } from './plan.ts'
import {
  HISTORY_FOLDERS,
  SECRET,
  SECRET_FILE,
  serverSettings,
  sharesSecret,
  SUPER_USER,
  usesHttp,
} from './settings.ts'
import { READY_PATH, ReadinessMonitor } from './readiness-monitor.ts'
import { MANY_SLOW_PACKETS, maxStalenessOf } from './staleness.ts'
import { Stats } from './stats.ts'
import { QuorumMonitor } from './quorum-monitor.ts'
import { withUnhandledRejections } from './unhandled-rejections.ts'

/** Liveness bounds after healing, in milliseconds of world time. */
const WRITE_WITHIN_MS = 15_000
/** Faults after which a configuration may lack a server. */
const MEMBERSHIP_CHANGES: ReadonlySet<string> = new Set(['leave', 'renew', 'wipe'])
/** What a leader logs when it proposes a feature level. */
const LEVEL_PROPOSED = 'The members are asked to store a feature level for good'
/** How long finalization may take after healing: the voters may have to join again with a vote. */
const FINAL_WITHIN_MS = 15_000
/** What strangers may add: a discovery that fails because of an epoch that they have claimed. */
const FALSE_EPOCH_MS = 10_000
const READ_WITHIN_MS = 60_000
/** How long a session may outlive its timeout: an election and some ticks. */
const GRACE_MS = 6_000
/** How long a call of a library client may take after healing: sessions that have ended must be detected first. */
const SETTLED_WITHIN_MS = 30_000
const QUIET_MS = 2_000
/** Ticks within which a new client of a ready server has a session and a write; where packets and disks are slow, more. */
const READY_TICKS = { usual: 1, slow: 4 }

const SHORT_SILENCE = / after [012] ticks of silence/

/** Whether a fact of a log line has the text, at any depth. Builds a text only of objects, which few lines have. */
function mentionsShortSilence(fact: unknown): boolean {
  if (typeof fact === 'string') return SHORT_SILENCE.test(fact)
  return typeof fact === 'object' && fact !== null && SHORT_SILENCE.test(JSON.stringify(fact))
}

export interface Violation {
  readonly checker: string
  readonly message: string
}

export interface RunReport {
  readonly plan: Plan
  readonly violations: readonly Violation[]
  readonly hash: number
  readonly eventCount: number
  readonly virtualMs: number
  readonly stats: Stats
}

export interface RunOptions {
  readonly onTrace?: (event: TraceEvent) => void
  readonly onLog?: (line: LogLine) => void
}

/** Runs a plan from its first event to its last and checks the result. */
export async function runPlan(plan: Plan, options: RunOptions = {}): Promise<RunReport> {
  const unhandled: Violation[] = []
  const report = (message: string): void => void unhandled.push({ checker: 'unhandled', message })
  const result = await withUnhandledRejections(report, () => new Run(plan, options).run())
  return unhandled.length === 0 ? result : { ...result, violations: [...result.violations, ...unhandled] }
}

class Run {
  readonly #plan: Plan
  readonly #world: SimulatedWorld
  readonly #history = new History()
  readonly #violations: Violation[] = []
  readonly #servers: SimulatedServer[]
  readonly #workers: Worker[]
  readonly #participants: Participant[]
  readonly #calls = new CallLog()
  readonly #readers = new Map<string, string>()
  readonly #faults: FaultInjector
  readonly #operator: Operator | undefined
  readonly #quorumMonitor: QuorumMonitor | undefined
  readonly #epochMonitor: EpochMonitor
  /** Present where servers run releases of different feature levels. */
  readonly #levels: { readonly monitor: LevelMonitor; readonly operator: LevelOperator } | undefined
  /** Called with the leader that proposes a feature level. */
  #onNextLevel: ((leader: string) => void) | undefined
  /** Undefined for a standalone server. */
  #steps: InStepMonitor | undefined
  readonly #stats = new Stats()
  #connections = 0
  #healedAt = 0

  constructor(plan: Plan, options: RunOptions) {
    this.#plan = plan
    const world = new SimulatedWorld(plan.seed)
    this.#world = world
    world.onTrace = options.onTrace
    const logMonitor = new LogMonitor((what) => this.#violate('logs', what))
    world.onLog = (line) => {
      this.#stats.recordLogLine(line)
      logMonitor.record(line)
      // The first two ticks of silence of a follower are no reason to let another connection act as it.
      if (Object.values(line.facts).some(mentionsShortSilence))
        this.#violate('strangers', `${line.host}: ${line.sentence} ${JSON.stringify(line.facts)}`)
      if (line.sentence === LEVEL_PROPOSED) this.#levelProposed(line.host)
      options.onLog?.(line)
    }
    world.onError = (error, owner) => this.#handleError(error, owner)
    Object.assign(world.network.conditions, plan.network)
    this.#servers = Array.from({ length: plan.servers }, (_, index) => {
      const host = world.addHost(`s${index + 1}`)
      Object.assign(host.disk.conditions, plan.disk)
      const server = new SimulatedServer(world, host, index + 1, serverSettings(plan, index + 1))
      if (sharesSecret(plan)) server.keepFile(SECRET_FILE, SECRET)
      return server
    })
    const oracle =
      plan.oracle === undefined ? undefined : new OracleFile(world, this.#servers[plan.oracle - 1]!)
    this.#quorumMonitor =
      plan.servers > 1
        ? new QuorumMonitor(world, votersWith(initialRoles(plan), plan.groups), oracle)
        : undefined
    this.#watchSteps()
    for (const { host, onReplaceDisk } of this.#servers)
      onReplaceDisk.push(() => this.#quorumMonitor?.diskReplaced(host))
    this.#epochMonitor = new EpochMonitor(world, this.#servers)
    const ports = usesHttp(plan) ? new AdminPorts(world, this.#servers) : undefined
    if (plan.certificates === true) acceptCertificates(this.#servers)
    this.#levels = plan.levels === undefined ? undefined : this.#watchLevels(plan.levels, ports!)
    this.#workers = plan.clients.map((client, index) => {
      const host = world.addHost(`c${index}`)
      return new Worker({
        ...this.#common,
        host,
        plan: client,
        prng: world.prng.fork(`worker ${index}`),
      })
    })
    this.#operator =
      plan.servers > 1
        ? new Operator(
            world,
            this.#servers,
            () => this.#client('operator', { credentials: SUPER_USER.credentials }),
            plan.groups,
            new Set(
              plan.faults.flatMap((fault) =>
                fault.kind === 'stranger' && fault.from === 'server' ? [fault.server] : [],
              ),
            ),
          )
        : undefined
    this.#participants = plan.participants.map((participant, index) => {
      const host = world.addHost(`p${index}`)
      const prng = world.prng.fork(`participant ${index}`)
      return new Participant({ ...this.#common, host, plan: participant, prng, log: this.#calls })
    })
    this.#faults = new FaultInjector({
      world,
      operator: this.#operator,
      servers: this.#servers,
      workers: [...this.#workers, ...this.#participants],
      leader: () => this.#quorumMonitor?.leader,
      refused: this.#quorumMonitor?.refused,
      oracle,
      onStolen: (what) => this.#violate('sessions', what),
      recorder: plan.faults.some(({ kind }) => kind === 'stranger') ? new Recorder(world) : undefined,
      acceptsJoiners: this.#servers.some(({ settings }) => settings.reconfigEnabled),
      onNextReconfig: (proposed) => this.#quorumMonitor?.onNextReconfig(proposed),
      onNextTransfer: (sent) => this.#quorumMonitor?.onNextTransfer(sent),
      levels: this.#levels?.operator,
      ports,
      onNextLevel: (proposed) => (this.#onNextLevel = proposed),
    })
  }

  #watchLevels(levels: LevelsPlan, ports: AdminPorts): { monitor: LevelMonitor; operator: LevelOperator } {
    const world = this.#world
    const servers = this.#servers
    for (const [index, server] of servers.entries()) server.featureLevel = levels.first[index]!
    const changes = this.#plan.faults.some(({ kind }) => CONFIGURATION_CHANGES.has(kind))
    const members = changes ? undefined : new Set(initialRoles(this.#plan).keys())
    const violate = (what: string): void => this.#violate('levels', what)
    const monitor = new LevelMonitor({ world, servers, members, violate })
    return { monitor, operator: new LevelOperator(world, servers, monitor, levels, ports) }
  }

  /** Checks while the plan runs that members which say that they are ready are. */
  #watchSteps(): void {
    const quorum = this.#quorumMonitor
    if (quorum === undefined) return
    this.#steps = new InStepMonitor({
      world: this.#world,
      plan: this.#plan,
      servers: this.#servers,
      report: (what) => this.#violate('readiness', what),
    })
    quorum.onCommit = (zxid) => this.#steps!.committed(zxid)
  }

  #levelProposed(leader: string): void {
    const callback = this.#onNextLevel
    this.#onNextLevel = undefined
    callback?.(leader)
  }

  async run(): Promise<RunReport> {
    try {
      await this.#prepare()
      await this.#load()
      await this.#heal()
      await this.#finish()
      await this.#check()
    } catch (error) {
      this.#violate('run', error instanceof Error ? (error.stack ?? error.message) : String(error))
    }
    const { hash, eventCount, now } = this.#world
    this.#stats.recordCalls(this.#calls.calls)
    if (this.#plan.largeTree === true) this.#stats.add('large trees', 1)
    if (this.#steps !== undefined) this.#stats.add('comparisons of ready members', this.#steps.samples)
    if (this.#plan.groups !== undefined) this.#stats.add('ensembles with groups', 1)
    this.#stats.recordRun(
      this.#history,
      this.#servers,
      { ...this.#faults.counts, ...this.#operator?.counts, ...this.#levels?.operator.counts },
      this.#quorumMonitor,
    )
    return {
      plan: this.#plan,
      violations: this.#violations,
      hash,
      eventCount,
      virtualMs: now,
      stats: this.#stats,
    }
  }

  get #common(): {
    history: History
    servers: () => readonly ServerEndpoint[]
    nextConnection: () => number
  } {
    return {
      history: this.#history,
      servers: () => this.#servers.map(({ address }) => address),
      nextConnection: () => ++this.#connections,
    }
  }

  async #prepare(): Promise<void> {
    for (const server of this.#servers) server.start()
    const retrying = new RetryingClient(this.#client('setup'))
    const base = this.#participants.length > 0 ? [...BASE_PATHS, ...PARTICIPANT_PATHS] : BASE_PATHS
    await this.#world.runUntilSettled(
      createAll(retrying, [...base, READY_PATH, ...QUOTA_NODES]),
      WRITE_WITHIN_MS,
    )
    if (this.#plan.largeTree === true)
      await this.#world.runUntilSettled(createLargeTree(retrying), READ_WITHIN_MS)
  }

  async #load(): Promise<void> {
    for (const worker of [...this.#workers, ...this.#participants]) worker.start()
    this.#faults.schedule(this.#plan.faults)
    await this.#world.run(this.#world.now + this.#plan.loadMs)
  }

  get #writeWithinMs(): number {
    const hasStrangers = this.#plan.faults.some(({ kind }) => kind === 'stranger')
    return WRITE_WITHIN_MS + (hasStrangers ? FALSE_EPOCH_MS : 0)
  }

  /** Ends all faults and checks that the servers recover in time. */
  async #heal(): Promise<void> {
    this.#faults.heal()
    this.#healedAt = this.#world.now
    this.#world.trace(undefined, 'healed', '')
    const retrying = new RetryingClient(this.#client('probe'))
    const written = retrying.request({ op: 'set', path: '/w/probe', data: 'healed', version: -1 })
    let isWritten = false
    void written.then(() => (isWritten = true))
    if (!(await this.#world.run(this.#world.now + this.#writeWithinMs, () => isWritten)))
      this.#violate('liveness', `No write was acknowledged within ${this.#writeWithinMs} ms after healing`)
    else this.#stats.recoveryMs = this.#world.now - this.#healedAt
    const lookers = this.#workers.filter(
      ({ acceptsReadOnlyServers, host }) => acceptsReadOnlyServers && host.current !== undefined,
    )
    const areBack = (): boolean => lookers.every(({ client }) => client.isAttachedToQuorum)
    if (!(await this.#world.run(this.#healedAt + this.#writeWithinMs, areBack)))
      this.#violate(
        'liveness',
        `A read-only client had no server with a quorum ${this.#writeWithinMs} ms after healing`,
      )
  }

  async #finish(): Promise<void> {
    const prng = this.#world.prng.fork('end')
    for (const worker of this.#workers) {
      worker.stop()
      const end = prng.pickWeighted({ close: 2, vanish: 2 })
      if (worker.host.current === undefined) continue
      if (end === 'close') worker.client.send({ op: 'close' })
      else worker.host.crash('power')
    }
    await this.#world.run(this.#world.now + 500)
    for (const worker of this.#workers) worker.client.abandon()
    await this.#finishParticipants(prng)
    const { clients, participants } = this.#plan
    const longest = Math.max(...[...clients, ...participants].map(({ timeoutMs }) => timeoutMs))
    await this.#world.run(this.#world.now + longest + GRACE_MS)
    await this.#readAll('healed')
    if ((await this.#levels?.operator.conclude(FINAL_WITHIN_MS)) === false)
      this.#violate(
        'levels',
        `The newest level was not final within ${FINAL_WITHIN_MS} ms: ${this.#levels!.monitor.describe()}; the last answer was ${this.#levels!.operator.lastAnswer}`,
      )
    for (const server of this.#servers) {
      server.crash('power')
      // A ready server may still wait for a stalled disk, longer than the bound for its first write.
      server.host.disk.conditions.stallRate = 0
    }
    for (const server of this.#servers) server.start()
    const readiness = this.#watchReadiness()
    await this.#readAll('restarted')
    if (!(await this.#world.run(this.#world.now + READ_WITHIN_MS, () => readiness.isDone)))
      this.#violate('liveness', `Not every server was ready and took a write within ${READ_WITHIN_MS} ms`)
    await this.#settleLevels()
  }

  /** Checks that all servers end at the same feature level, which is 0 without a finalize request. */
  async #settleLevels(): Promise<void> {
    if (this.#levels === undefined) {
      for (const { host } of this.#servers)
        if (required(visibleLevels(host)) > 0)
          this.#violate('levels', `${host.name} has a feature level, and no operator has asked for one`)
      return
    }
    const { monitor, operator } = this.#levels
    if (!(await operator.settle(FINAL_WITHIN_MS)))
      this.#violate(
        'levels',
        `The levels of all servers were not the same within ${FINAL_WITHIN_MS} ms: ${monitor.describe()}; the last answer was ${operator.lastAnswer}`,
      )
    this.#stats.add('runs that end with a feature level', monitor.finalized > 0 ? 1 : 0)
  }

  #watchReadiness(): ReadinessMonitor {
    const { network, settings } = this.#plan
    const ticks = network.tailRate > MANY_SLOW_PACKETS ? READY_TICKS.slow : READY_TICKS.usual
    return new ReadinessMonitor({
      world: this.#world,
      servers: this.#servers,
      clientOf: (server) => this.#client(`ready-${server.host.name}`, { servers: () => [server.address] }),
      withinMs: ticks * settings.tickTimeMs,
      report: (what) => this.#violate('readiness', what),
    })
  }

  /** Checks that pending calls of library clients settle; then each client reads all its paths once more and ends. */
  async #finishParticipants(prng: Prng): Promise<void> {
    const all = this.#participants
    for (const one of all) one.stop()
    const isQuiet = (): boolean => all.every((one) => one.isIdle)
    if (!(await this.#world.run(this.#world.now + SETTLED_WITHIN_MS, isQuiet)))
      this.#violate(
        'calls',
        `A call of a library client had not settled ${SETTLED_WITHIN_MS} ms after healing`,
      )
    let concluded = 0
    for (const one of all) void one.readAll().then(() => concluded++)
    // The end of a client settles a call that hangs, so that the calls alone would not show it.
    if (!(await this.#world.run(this.#world.now + SETTLED_WITHIN_MS, () => concluded === all.length)))
      this.#violate(
        'calls',
        `A library client had not read all its paths ${SETTLED_WITHIN_MS} ms after its calls had settled`,
      )
    await this.#world.run(this.#world.now + QUIET_MS)
    for (const one of all) one.end(prng.chance(0.5))
    await this.#world.run(this.#world.now + QUIET_MS)
  }

  /** Reads the whole tree of each server with a client of its own. */
  async #readAll(when: string): Promise<void> {
    const reading = this.#servers.map(async (server) => {
      const name = `reader-${when}-${server.host.name}`
      const client = this.#client(name, {
        servers: () => [server.address],
        credentials: SUPER_USER.credentials,
      })
      this.#readers.set(`${name}.0`, server.host.name)
      const retrying = new RetryingClient(client)
      await retrying.request({ op: 'sync', path: '/w' })
      await readTree(retrying, '/w')
    })
    let isRead = false
    void Promise.all(reading).then(() => (isRead = true))
    if (!(await this.#world.run(this.#world.now + READ_WITHIN_MS, () => isRead)))
      this.#violate('liveness', `Not every server could be read within ${READ_WITHIN_MS} ms (${when})`)
  }

  #client(
    name: string,
    options: Partial<Pick<SessionClientOptions, 'servers' | 'credentials'>> = {},
  ): SessionClient {
    const host = this.#world.addHost(name)
    const client = new SessionClient({
      ...this.#common,
      name: `${name}.0`,
      incarnation: host.start(),
      prng: this.#world.prng.fork(`connections ${name}`),
      ...options,
      timeoutMs: 6000,
    })
    client.start()
    return client
  }

  async #check(): Promise<void> {
    const logs: ServerLog[] = []
    const distinct = new DistinctTransactions()
    for (const { host, removedLogs } of this.#servers)
      logs.push(await readServerLog(host.name, host.disk, HISTORY_FOLDERS, removedLogs, distinct))
    const { localSessions } = this.#plan.settings
    const committed = committedHistoryOf(committedTransactions(logs, this.#quorumMonitor), localSessions)
    if (localSessions) this.#markLocalSessions(committed)
    this.#markReadOnlySessions()
    const workers = new Set([...this.#workers, ...this.#participants].map(({ host }) => host.name))
    const isSilent = (client: string): boolean => workers.has(client.split('.')[0]!)
    const silentSessions = new Set(
      this.#history.events
        .filter(({ kind, client }) => kind === 'attached' && isSilent(client))
        .map(({ session }) => session),
    )
    const clocksAreTrue = !this.#plan.faults.some(({ kind }) =>
      ['wallJump', 'drift', 'staleLeader'].includes(kind),
    )
    // A follower that is cut off serves reads until it notices.
    const maxClockErrorMs = this.#plan.servers > 1 ? 6 * this.#plan.settings.tickTimeMs : 0
    const evidence: Evidence = {
      history: this.#history,
      committed,
      logs,
      quorum: this.#quorumMonitor?.record,
      readers: this.#readers,
      healedAt: this.#healedAt,
      silentSessions,
      maxClockErrorMs: clocksAreTrue ? maxClockErrorMs : undefined,
      // A server knows no local session of another one, and such a session may become global after its client has been refused.
      maxEarlyEndMs:
        localSessions || this.#plan.faults.some(({ kind }) => kind === 'drift' || kind === 'staleLeader')
          ? undefined
          : maxClockErrorMs,
      maxStalenessMs: maxStalenessOf(this.#plan),
      unnamedServers: this.#unnamedServers(),
      diskWasFull: this.#plan.faults.some(({ kind }) => kind === 'fullDisk'),
      epochs: this.#epochMonitor.samples,
    }
    for (const checker of checkers)
      for (const what of checker.check(evidence)) this.#violate(checker.name, what)
    for (const what of checkCalls(this.#calls, committed)) this.#violate('calls', what)
    this.#checkStops()
  }

  /** Names the servers that may have been outside the configuration at some time: all of them where it changes. */
  #unnamedServers(): ReadonlySet<string> {
    const { nonMembers, faults } = this.#plan
    const changes = nonMembers.length > 0 || faults.some(({ kind }) => MEMBERSHIP_CHANGES.has(kind))
    return new Set(changes ? this.#servers.map(({ host }) => host.name) : [])
  }

  /** Marks closes of read-only sessions, which no transaction records. */
  #markReadOnlySessions(): void {
    for (const operation of this.#history.operations)
      if (operation.isReadOnly === true && operation.request.op === 'close') operation.isLocal = true
  }

  /** Marks closes of local sessions, which no transaction records. */
  #markLocalSessions({ model }: CommittedHistory): void {
    for (const operation of this.#history.operations)
      if (operation.request.op === 'close' && !model.sessions.has(operation.session)) operation.isLocal = true
    const attached = new Set<string>()
    for (const { kind, session } of this.#history.events) if (kind === 'attached') attached.add(session)
    const upgraded = [...attached].filter((session) => model.sessions.has(session)).length
    this.#stats.add('local sessions', attached.size - upgraded)
    this.#stats.add('local sessions upgraded', upgraded)
  }

  /** A server may stop only because its disk failed, or was full at its start: a running server refuses writes then. */
  #checkStops(): void {
    const expected = this.#levels?.operator.expectedStops
    for (const { stops } of this.#servers)
      for (const stop of stops) {
        const { server, at, during, reason, code } = stop
        const isOfDisk = code === 'EIO' || (code === 'ENOSPC' && during === 'start')
        if (!isOfDisk && expected?.has(stop) !== true)
          this.#violate('stops', `${server} stopped in ${during} at ${at.toFixed(1)} ms: ${reason}`)
      }
  }

  #handleError(error: unknown, owner: ProcessState | undefined): void {
    const server = this.#servers.find(({ host }) => host === owner?.host)
    if (server === undefined) throw error
    server.handleError(error)
  }

  #violate(checker: string, what: string): void {
    this.#violations.push({ checker, message: what })
  }
}
