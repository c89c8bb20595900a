import { counterOf, epochOf, ErrorCode, formatZxid, makeZxid, OpCode, Writer } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import { RestoreRefusal, type HealthCheck, type LeaderMetrics } from '../admin/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import type { EnsembleConfiguration, ServerId } from '../core/quorum/index.ts'
import { SessionTracker } from '../core/sessions/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  Leader,
  QuorumOfOne,
  type LeaderInput,
  type LeaderWork,
  type QuorumOfOneWork,
} from '../core/zab/index.ts'
import { encodeLoggedTxn } from '../persistence/index.ts'
import { LeaderPipeline, type QuorumProtocol } from '../pipeline/index.ts'

import type { ActiveRole, MemberContext, RoleEvents, RoleExit } from './context.ts'
import { Durability } from './durability.ts'

import { FeatureAuthority } from './feature-authority.ts'
import { ForwardedSessions } from './forwarded-sessions.ts'
import { Learners } from './learners.ts'
import { LimitedLog } from './limited-log.ts'
import { Mailbox } from './mailbox.ts'
import type { ReportChannel } from './member-reports.ts'
import { validateReconfiguration } from './reconfigure.ts'
import { RoleClients, type RoleStatus } from './role-clients.ts'
import type { StopPermitChannel } from './stop-permits.ts'
import { syncSources } from './sync-sources.ts'

/** The delay between the reply to `ydld` and the transfer of leadership, so that the client gets the reply, in milliseconds. */
const YIELD_DELAY_MS = 50

/**
 * Zxids between the last transaction and the data that replace everything. Transactions go on while these data are written to a file that
 * holds their zxid.
 */
const REPLACEMENT_GAP = 2 ** 24
/** The highest counter at which a replacement may begin: its own transactions follow. */
const MAX_REPLACEMENT_COUNTER = 0xffff_fffe - 2 ** 24
/** The time between two looks at whether everything is committed, in milliseconds. */
const SUSPEND_POLL_MS = 10

/** Ticks within which a leader that is ready has heard a quorum. */
const READY_TICKS = 2

/**
 * Runs the role of a leader: performs the work that the state machine of its quorum requests, one input after the other. In an ensemble
 * that is `Leader`; a standalone server is a quorum of one, without learners. The order of disk and network is that of `Durability`.
 */
export class LeaderRole implements ActiveRole {
  readonly #context: MemberContext
  readonly #events: RoleEvents
  readonly #mailbox: Mailbox<LeaderInput, LeaderWork | QuorumOfOneWork>
  readonly #quorum: Leader | QuorumOfOne
  /** Undefined on a standalone server. */
  readonly #learners: Learners | undefined
  readonly #levels: FeatureAuthority
  readonly #durability: Durability
  #clients: RoleClients<LeaderPipeline<ClientChannel>> | undefined
  readonly #log: LimitedLog
  readonly #forwardedSessions: ForwardedSessions
  #nextCheckId = 1
  readonly #confirmations = new Map<number, () => void>()
  #cancelTick: Cancel = () => {}
  #cancelYield: Cancel = () => {}
  #stopPermits: StopPermitChannel | undefined
  #reports: ReportChannel | undefined
  #storing: Promise<void> | undefined
  #hasExited = false
  #leadsSince = 0

  constructor(context: MemberContext, events: RoleEvents) {
    this.#context = context
    this.#events = events
    this.#log = new LimitedLog(context.platform.clock, context.platform.logger)
    this.#forwardedSessions = new ForwardedSessions(context)
    const leader = context.membership.isStandalone ? undefined : createLeader(context)
    this.#quorum = leader ?? new QuorumOfOne(context.database.lastZxid)
    this.#mailbox = new Mailbox<LeaderInput, LeaderWork | QuorumOfOneWork>({
      machine: this.#quorum,
      perform: (work) => this.#perform(work),
      failed: context.failed,
      runInBatch: (action) =>
        this.#clients === undefined ? action() : this.#clients.service.runTurn(action),
    })
    this.#levels = new FeatureAuthority(context, () => this.#learners?.all ?? [])
    if (leader !== undefined)
      this.#learners = new Learners(context, {
        leader,
        mailbox: this.#mailbox,
        pipeline: () => this.#clients?.pipeline,
        levels: this.#levels,
        forwardedSessions: this.#forwardedSessions,
      })
    this.#durability = new Durability(context, {
      durable: (zxid) => this.#mailbox.run(() => this.#onDurable(zxid)),
      diskFull: (durable, error) => this.#onDiskFull(durable, error),
      spaceAvailable: () => this.#mailbox.run(() => this.#clients?.service.expiry.run()),
    })
  }

  async begin(): Promise<void> {
    // Opens the log, which this role owns from now on.
    void this.#durability.log
    this.#mailbox.post({ type: 'start' })
    if (this.#learners === undefined) return
    this.#scheduleTick(this.#context.platform.clock.monotonic())
    try {
      await this.#learners.listen()
    } catch (error) {
      this.#leave({ reason: error instanceof Error ? error.message : String(error) })
    }
  }

  /** Whether a quorum of followers is synced with this leader. */
  get isEstablished(): boolean {
    return this.#clients !== undefined
  }

  /** Whether the leader accepts no writes, since another member is to take over. */
  get isHandingOver(): boolean {
    return this.#hasExited || !this.#quorum.canPropose
  }

  /**
   * Begins to transfer leadership to the member `to`, or else to the one that the others elect. Accepts no writes meanwhile; the role ends
   * once a member can take over. Returns undefined, or why there is no leadership to transfer or no such member.
   */
  transferLeadership(to?: ServerId): string | undefined {
    const quorum = this.#quorum
    if (!(quorum instanceof Leader) || this.#clients === undefined) return 'This server does not lead yet'
    const refusal = quorum.transferRefusal(to) ?? this.#refusalOfStopping(to)
    if (to !== undefined && (this.#hasExited || refusal !== undefined)) return refusal ?? 'The role ends'
    const input = to === undefined ? {} : { to: { server: to, payload: this.#payloadWithoutEffect() } }
    this.#mailbox.post({ type: 'transfer', ...input })
    return this.isHandingOver ? undefined : refusal
  }

  #refusalOfStopping(to: ServerId | undefined): string | undefined {
    if (to === undefined || !this.#learners!.isStopping(to)) return undefined
    return `Leadership is not transferred to server ${to}: it has a permit to stop`
  }

  /** Returns a transaction that changes nothing, with the next zxid: that of a request which has failed. */
  #payloadWithoutEffect(): Uint8Array {
    const zxid = (this.#quorum as Leader).lastProposed + 1
    const time = Math.floor(this.#context.platform.clock.wall())
    const writer = new Writer(64)
    encodeLoggedTxn(writer, {
      header: { sessionId: 0n, cxid: 0, zxid, time },
      txn: { type: OpCode.error, err: ErrorCode.SYSTEMERROR },
      digest: undefined,
    })
    return writer.take()
  }

  /**
   * Returns the zxid above which data that replace those of the ensemble begin: in this epoch, in which only this leader assigns zxids.
   * `lastZxid` is their last transaction. Throws a `RestoreRefusal` when this leader cannot replace data.
   */
  replacementStart(lastZxid: Zxid): Zxid {
    const quorum = this.#quorum
    if (!(quorum instanceof Leader) || !quorum.canPropose || this.#hasExited)
      throw new RestoreRefusal('This server does not lead yet, or not any more. Try again.', {
        isPassing: true,
      })
    this.#refuseForeign()
    if (epochOf(lastZxid) > quorum.epoch)
      throw new RestoreRefusal(
        `Expected a backup of at most epoch ${quorum.epoch}, which is that of the leader, got one that ends at 0x${formatZxid(lastZxid)}: its zxids would be later than those to come. Stop all members, and restore to each with zabra restore --to.`,
      )
    const start = Math.max(quorum.lastProposed, lastZxid) + REPLACEMENT_GAP
    if (epochOf(start) > quorum.epoch || counterOf(start) > MAX_REPLACEMENT_COUNTER)
      throw new RestoreRefusal(
        'This epoch has too few zxids left. Begin another one with zabra transfer, and try again at the next leader.',
      )
    return start
  }

  /**
   * Accepts no transaction from now on, and resolves to the last one once all are committed and applied. Rejects when the role ends
   * before, when no quorum commits them within `syncLimit` ticks, or with a `RestoreRefusal` when a server of Apache ZooKeeper has
   * joined. The role has to end afterwards.
   */
  async suspend(): Promise<Zxid> {
    const { settings, platform, database } = this.#context
    const { clock } = platform
    const quorum = this.#quorum as Leader
    const until = clock.monotonic() + settings.syncLimit * settings.tickTimeMs
    this.#mailbox.post({ type: 'suspend' })
    const isDone = (): boolean =>
      quorum.outstanding === 0 &&
      Math.max(database.tree.lastZxid, makeZxid(quorum.epoch, 0)) >= quorum.lastProposed
    while (!this.#hasExited && !isDone() && clock.monotonic() < until)
      await new Promise<void>((resolve) => {
        clock.after(SUSPEND_POLL_MS, 'last transactions before a replacement', resolve)
      })
    if (this.#hasExited || !isDone())
      throw new RestoreRefusal(
        'Expected a quorum to commit what was proposed, got none. The data are as before.',
        { isPassing: true },
      )
    // One may have joined while the data were written.
    this.#refuseForeign()
    return quorum.lastProposed
  }

  #refuseForeign(): void {
    const foreign = this.#learners!.foreign
    if (foreign.length === 0) return
    const names = foreign.map(({ serverId, address }) => `server ${serverId} at ${address}`)
    const { security } = this.#context
    const isProved = foreign.every(({ accepted }) => security.isAuthenticated(accepted))
    throw new RestoreRefusal(
      `Expected only servers of Zabra in the ensemble, got Apache ZooKeeper as ${names.join(', ')}: it may keep data that a leader takes back. Stop all members, and restore to each with zabra restore --to.${isProved ? '' : ' Where no such server runs there, another program says that it is one, and has not proved it: close the ports of members to other programs, and try again.'}`,
    )
  }

  /** Sets the last answer of the oracle. */
  setOracle(canLeadAlone: boolean): void {
    this.#mailbox.post({ type: 'oracle', canLeadAlone })
  }

  checks(): readonly HealthCheck[] {
    const quorum = this.#quorum
    if (quorum instanceof QuorumOfOne) return []
    if (quorum.phase !== 'broadcast')
      return [
        { name: 'role', isOk: false, detail: `leader in ${quorum.phase}, has no quorum of followers yet` },
      ]
    const isHeard = quorum.hasHeardQuorumWithin(READY_TICKS)
    const limit = `${READY_TICKS} ticks of ${this.#context.settings.tickTimeMs} ms`
    const checks = [
      { name: 'quorum', isOk: isHeard, detail: isHeard ? 'ok' : `no quorum was heard within ${limit}` },
    ]
    if (!this.#context.settings.leaderServes)
      checks.push({ name: 'serves', isOk: false, detail: 'a leader serves no clients (leaderServes=no)' })
    return checks
  }

  async finishRequests(): Promise<void> {
    await this.#clients?.finish()
  }

  /**
   * Ends this role but for the connections of synced learners, which wait for a silent leader for up to `syncLimit` ticks before they
   * look for another one. Resolves when its clients are disconnected and what was being applied is done.
   */
  async fallSilent(reason: string): Promise<void> {
    this.#hasExited = true
    this.#mailbox.stop()
    this.#cancelTick()
    this.#levels.end()
    this.#learners?.keepSynced()
    await this.#clients?.end(reason)
  }

  async end(reason = 'Closed: this server does not lead any more'): Promise<void> {
    this.#hasExited = true
    this.#mailbox.stop()
    this.#cancelTick()
    this.#cancelYield()
    this.#context.stopPermit.disconnect(this.#stopPermits)
    this.#context.reports.disconnect(this.#reports)
    this.#levels.end()
    const closed = this.#clients?.end(reason)
    this.#confirmations.clear()
    await this.#learners?.close()
    await closed
    // A write to disk that has begun ends before the next role reads the disk.
    await this.#storing
  }

  #leave(exit: RoleExit): void {
    if (this.#hasExited) return
    this.#hasExited = true
    // Nothing is appended or sent from now on.
    this.#mailbox.stop()
    this.#events.exited(exit)
  }

  /** Posts the half ticks of a leader at fixed times, however long a turn takes. */
  #scheduleTick(at: number): void {
    const { settings, platform } = this.#context
    const { clock } = platform
    const next = Math.max(at + settings.tickTimeMs / 2, clock.monotonic())
    this.#cancelTick = clock.after(next - clock.monotonic(), 'half a tick of a leader', () => {
      this.#learners?.keepPaused()
      this.#mailbox.post({ type: 'halfTick' })
      if (this.#quorum.canPropose && this.#clients?.pipeline.proposer.hasDropped === true)
        this.#leave({
          reason: 'no member has taken over leadership, and requests that arrived meanwhile have no reply',
        })
      if (!this.#hasExited) this.#scheduleTick(next)
    })
  }

  // Work

  #perform(work: LeaderWork | QuorumOfOneWork): void {
    const { membership, failed, configurationChanged } = this.#context
    switch (work.do) {
      case 'store':
        return this.#storeEpoch(work.what, work.epoch)
      case 'proposeConfiguration':
        membership.propose(work.configuration).catch(failed)
        return configurationChanged()
      case 'activate':
        return this.#activate(work.configuration)
      case 'lead':
        return this.#lead(work.epoch, work.zxid)
      case 'commit':
        this.#countCommits(work.first, work.payloads.length)
        this.#learners?.perform(work)
        return this.#clients!.pipeline.commit(work.first + work.payloads.length - 1)
      case 'commitReconfig':
        this.#countCommits(work.zxid, 1)
        this.#learners?.perform(work)
        this.#clients!.pipeline.commit(work.zxid)
        return this.#activate(work.configuration)
      case 'commitUpTo':
        return this.#clients!.pipeline.commit(work.zxid)
      case 'confirmLeadership':
        return this.#confirmed(work.id)
      case 'stepDown': {
        const { message, designated, successor } = work.reason
        return this.#leave({
          reason: message,
          ...(designated === undefined ? {} : { designated }),
          ...(successor === undefined ? {} : { hasHandedOver: true }),
        })
      }
      case 'warn':
        return this.#log.log('warn', work.message, work.context, work.message)
      case 'send':
      case 'sync':
      case 'drop':
      case 'deliver':
      case 'propose':
      case 'learnerJoined':
      case 'learnerLeft':
        return this.#learners?.perform(work)
    }
  }

  #countCommits(first: Zxid, count: number): void {
    const { ensemble, stages } = this.#context.stats
    ensemble.commitCount += count
    stages.addAges(first, count, this.#clients!.service.turnTime, ensemble.quorumAckLatency)
  }

  #storeEpoch(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    // The id of an ensemble that has none is stored before the epoch in which others get it.
    const identified =
      what !== 'acceptedEpoch' || this.#learners === undefined
        ? Promise.resolve()
        : this.#learners.proposeCluster()
    this.#storing = identified
      .then(() => this.#durability.storeEpoch(what, epoch))
      .then(() => this.#mailbox.post({ type: 'stored', what, epoch }), this.#context.failed)
  }

  #onDurable(zxid: Zxid): void {
    this.#quorum.markDurable(zxid)
    this.#mailbox.drain()
    this.#clients?.service.throttler.release()
  }

  /**
   * Ends the role of a leader whose disk is full. A quorum of one stays leader: it discards what is not durable, whose clients get
   * an error, and refuses writes until there is space.
   */
  #onDiskFull(durable: Zxid, { message: reason }: Error): void {
    const quorum = this.#quorum
    if (quorum instanceof Leader)
      return this.#leave({ reason, electionDelayMs: this.#context.settings.tickTimeMs })
    this.#mailbox.run(() => {
      this.#clients!.pipeline.discardAfter(durable)
      quorum.discardAfter(durable)
      this.#mailbox.drain()
      this.#clients!.service.throttler.release()
    })
  }

  #activate(configuration: EnsembleConfiguration): void {
    const { membership, failed, configurationChanged } = this.#context
    membership.activate(configuration).persisted.catch(failed)
    this.#learners?.configurationChanged()
    configurationChanged()
  }

  // Leading

  #lead(epoch: number, zxid: Zxid): void {
    const { settings, platform, database } = this.#context
    const quorum = this.#quorum
    const { log } = this.#durability
    const now = platform.clock.monotonic()
    this.#clients = new RoleClients(this.#context, {
      sessions: new SessionTracker(settings.tickTimeMs, now, { table: database.sessions }),
      managesContainers: true,
      role: this.#roleStatus(),
      ...(quorum instanceof Leader
        ? {
            reconfigure: (request, next) => validateReconfiguration(this.#context, quorum, request, next),
          }
        : {}),
      pipeline: (context) =>
        new LeaderPipeline({
          ...this.#forwardedSessions.contextOf(context),
          log,
          quorum: this.#quorumProtocol(),
          lastZxid: zxid,
          serverId: settings.serverId,
          canUpgradeSessions: settings.localSessionsUpgradingEnabled,
        }),
    })
    this.#leadsSince = now
    const { stopPermit } = this.#context
    this.#stopPermits = { send: ({ number }) => this.#answerOwn(number) }
    stopPermit.connect(this.#stopPermits)
    this.#events.established(epoch)
    this.#learners?.onEstablished()
    if (this.#learners !== undefined) this.#connectReports(this.#learners)
    this.#levels.begin()
    const { service, pipeline } = this.#clients
    service.runTurn(() => pipeline.closeOrphanedSessions())
    this.#clients.open({ isServing: settings.leaderServes || quorum instanceof QuorumOfOne })
  }

  #connectReports(learners: Learners): void {
    const { reports } = this.#context
    this.#reports = { ask: (number) => learners.collectReports(number, (answer) => reports.answered(answer)) }
    reports.connect(this.#reports)
  }

  /** Answers a request of this server itself to stop. */
  #answerOwn(number: number): void {
    if (number > 0 && this.#learners !== undefined)
      this.#context.stopPermit.answered(this.#learners.decideOwnStop(number))
  }

  #quorumProtocol(): QuorumProtocol {
    const quorum = this.#quorum
    const stats = this.#context.stats.ensemble
    const sendsPayloads = quorum instanceof Leader
    return {
      sendsPayloads,
      propose: (zxid, payload) => {
        stats.proposalCount++
        quorum.propose(zxid, payload)
        // A quorum of one has nothing to send.
        if (sendsPayloads) this.#mailbox.drain()
      },
      confirmLeadership: (done) => {
        const id = this.#nextCheckId++
        this.#confirmations.set(id, done)
        this.#mailbox.enqueue({ type: 'checkLeadership', id })
      },
      sendSync: (learner) => this.#learners?.sendSync(learner),
      get isAccepting() {
        return quorum.canPropose
      },
    }
  }

  #confirmed(id: number): void {
    const done = this.#confirmations.get(id)
    this.#confirmations.delete(id)
    done?.()
  }

  // Metrics

  #roleStatus(): RoleStatus {
    if (this.#learners === undefined) return { mode: 'standalone' }
    return {
      mode: 'leader',
      peerState: () => `leading - ${this.#quorum.phase}`,
      leader: () => this.#leaderStatus(),
      observers: () => this.#learners!.observers(),
      yieldLeadership: () => {
        // The reply is sent before leadership is handed over.
        const { clock } = this.#context.platform
        this.#cancelYield = clock.after(YIELD_DELAY_MS, 'leadership that was yielded', () =>
          this.transferLeadership(),
        )
        return 'Sent yield leadership request to leader.'
      },
    }
  }

  #leaderStatus(): LeaderMetrics {
    const { proposer, pendingSyncs } = this.#clients!.pipeline
    const { min, max } = proposer.sizes
    return {
      ...this.#learners!.counts(),
      pendingSyncs,
      uptimeMs: this.#context.platform.clock.monotonic() - this.#leadsSince,
      lastProposalSize: proposer.lastSize,
      minProposalSize: proposer.lastSize === -1 ? -1 : min,
      maxProposalSize: proposer.lastSize === -1 ? -1 : max,
    }
  }
}

function createLeader(context: MemberContext): Leader {
  const { settings, membership, database } = context
  return new Leader({
    self: membership.self,
    ...membership.configurations,
    acceptedEpoch: database.epochs.accepted,
    currentEpoch: database.epochs.current,
    lastZxid: database.lastZxid,
    initLimit: settings.initLimit,
    syncLimit: settings.syncLimit,
    reconfigEnabled: settings.reconfigEnabled,
    oracle: settings.oraclePath !== undefined,
    sources: syncSources(context),
  })
}
