import { epochOf, formatZxid, makeZxid } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import { RestoreRefusal, RestoreUndecided, type HealthCheck, type TransferResult } from '../admin/index.ts'
import { isOfTerm, UNTRUSTED_ZXID, type LeaderTerm, type PeerState } from '../core/election/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { copyConfigurationNode, type Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import { MAX_LEADER_EPOCH } from '../core/zab/index.ts'
import type { PreparedReplacement } from '../database/index.ts'
import type { Server } from '../server-types.ts'
import { usesQuorumTls } from '../settings/index.ts'
import { AwaitedReplacement } from './awaited-replacement.ts'
import { dialDefaults } from './connect-to-master.ts'
import type { ActiveRole, MemberContext, RoleEvents, RoleExit } from './context.ts'
import { isDiskFull } from './durability.ts'
import { LeaderRole } from './leader-role.ts'
import { LearnerRole } from './learner-role.ts'
import { LimitedLog } from './limited-log.ts'
import { MemberElection, type Configure, type Elected } from './member-election.ts'
import { ReadOnlyRole } from './read-only-role.ts'
import { catchUpWindow } from './sync-sources.ts'

type RoleState = Exclude<PeerState, 'looking'>

/** The shortest time without a leader after which a member becomes read-only, in milliseconds. */
const READ_ONLY_AFTER_MS = 2000
/** The pause between two attempts to connect to a leader that has just been elected, in milliseconds. */
const RECONNECT_DELAY_MS = 25
/** The time between two looks at what has become of a leadership transfer, in milliseconds. */
const TRANSFER_POLL_MS = 10
/** Why connections of clients close when the data are replaced. */
const REPLACING = 'Closed: all data are being replaced'
/** How often a member that is not synced joins the same leader again at once. */
const FREE_ATTEMPTS = 3
/** How long it then avoids the leader: at first, and at most, in milliseconds. */
const FIRST_AVOID_MS = 250
const MAX_AVOID_MS = 10_000

/**
 * Enters and leaves the roles of a member, one after the other, as elections decide (quorum-protocol 6). A standalone server holds
 * no elections: it is always the leader of a configuration with one voter.
 */
export class RoleManager {
  readonly #context: MemberContext
  readonly #log: LimitedLog
  /** Undefined on a standalone server. */
  readonly #election: MemberElection | undefined
  #state: PeerState = 'looking'
  #role: LeaderRole | LearnerRole | undefined
  #readOnly: ReadOnlyRole | undefined
  /** Timers that run between two roles. */
  #timers: Cancel[] = []
  /** The ends of roles run one after the other. */
  #transitions: Promise<void> = Promise.resolve()
  /** The role whose end has begun. */
  #endingRole: ActiveRole | undefined
  /** When the current search for a leader began, on the monotonic clock. */
  #lookingSince = 0
  /** When the last election was decided, on the monotonic clock. */
  #electedAt = -Infinity
  /** The round of the last election that was decided. */
  #electedIn = 0
  /** The term of a leader that this member can only follow without a vote, and the epoch of that leader. */
  #earlier: (LeaderTerm & { readonly epoch: number }) | undefined
  /** The learner roles in a row that ended before they were synced, and the leader of the last one. */
  #refusals: { readonly leader: ServerId; readonly count: number } | undefined
  /** The data with which this server has left a role, as a leader. */
  #replacement: AwaitedReplacement | undefined
  /** Called at the end of each role. */
  #onRoleEnded: () => void = () => {}
  /** Whether the member is closing: it enters no role any more. */
  #isClosing = false
  #isStopped = false

  constructor(context: MemberContext) {
    this.#context = context
    this.#log = new LimitedLog(context.platform.clock, context.platform.logger)
    if (!context.membership.isStandalone)
      this.#election = new MemberElection(context, {
        elected: (work) => this.#onElected(work),
        configure: (work) => this.#configure(work),
        oracleChanged: (canLeadAlone) => {
          if (this.#role instanceof LeaderRole) this.#role.setOracle(canLeadAlone)
        },
      })
  }

  get state(): Server['role'] {
    if (this.#election === undefined) return 'standalone'
    return this.#readOnly === undefined ? this.#state : 'read-only'
  }

  /** The id of the leader; undefined while there is none, and on a standalone server. */
  get leader(): ServerId | undefined {
    if (this.#election === undefined || this.#role === undefined) return undefined
    return this.#role instanceof LearnerRole ? this.#role.leader : this.#context.membership.self
  }

  /** Whether the leader runs Apache ZooKeeper; undefined where that is not known. */
  get isLeaderForeign(): boolean | undefined {
    return this.#role instanceof LearnerRole ? this.#role.isLeaderForeign : undefined
  }

  /** Committed transactions that this member knows of and has not applied. */
  get zxidLag(): number {
    return this.#role instanceof LearnerRole ? this.#role.zxidLag : 0
  }

  /** Returns the checks of the current role; those of a member without one fail. */
  checks(): readonly HealthCheck[] {
    if (this.#role !== undefined && this.#role !== this.#endingRole) return this.#role.checks()
    const ms = this.#context.platform.clock.monotonic() - this.#lookingSince
    const detail =
      this.#state === 'looking' ? `looks for a leader since ${(ms / 1000).toFixed(1)} s` : 'the role ends'
    return [{ name: 'no-leader', isOk: false, detail }]
  }

  /** Begins to transfer leadership. Returns false on a server that does not lead, or if no member could take over. */
  yieldLeadership(): boolean {
    return this.#role instanceof LeaderRole && this.#role.transferLeadership() === undefined
  }

  /** Implements `AdminTarget.transferLeadership`. */
  async transferLeadership(to?: ServerId): Promise<TransferResult> {
    const role = this.#role
    if (!(role instanceof LeaderRole) || role === this.#endingRole)
      return { refusal: 'This server does not lead' }
    const refusal = role.transferLeadership(to)
    if (refusal !== undefined) return { refusal }
    const { settings, platform } = this.#context
    const { clock } = platform
    const { syncLimit, initLimit, tickTimeMs } = settings
    // For a successor to have everything, and to take over; and for this server to follow it.
    const withinMs = (2 * syncLimit + initLimit) * tickTimeMs
    const until = clock.monotonic() + withinMs
    let result = this.#resultOfTransfer(role)
    for (; result === undefined && clock.monotonic() < until; result = this.#resultOfTransfer(role))
      await new Promise<void>((resolve) => {
        clock.after(TRANSFER_POLL_MS, 'outcome of a leadership transfer', resolve)
      })
    return result ?? { unknown: `there is no leader after ${withinMs} ms` }
  }

  /** Returns what has become of the transfer of a role; undefined while it is under way. */
  #resultOfTransfer(role: LeaderRole): TransferResult | undefined {
    if (this.#isStopped || this.#isClosing) return { unknown: 'the server stops' }
    const current = this.#role
    if (current === role)
      return role.isHandingOver
        ? undefined
        : { refusal: 'Leadership is not transferred: no follower had all transactions in time' }
    if (current instanceof LearnerRole && current.isSynced) return { leader: current.leader }
    if (current instanceof LeaderRole && current.isEstablished)
      return { refusal: 'This server was elected again' }
    return undefined
  }

  /** Enters the only role of a standalone server, so that it serves before its ports are open. */
  startStandalone(): void {
    if (this.#election === undefined) this.#enterRole('leading', this.#context.membership.self)
  }

  /** Opens the election port. Rejects with a `NetworkError` when it cannot be bound. */
  async listen(): Promise<void> {
    await this.#election?.listen()
  }

  /** Starts the first election. */
  async start(): Promise<void> {
    this.#lookingSince = this.#context.platform.clock.monotonic()
    await this.#recallLogged()
    await this.#election?.startOracle()
    const { membership, database, clientPorts, platform } = this.#context
    const facts = {
      ...clientPorts.served[0]!.address,
      self: membership.self,
      lastZxid: formatZxid(database.lastZxid),
    }
    platform.logger.info(facts, 'Joining the ensemble')
    this.#logOpenPorts()
    this.#startElection()
  }

  /** Names the ports on which other servers are believed without a proof of who they are, and says which servers may join. */
  #logOpenPorts(): void {
    const { settings, membership, platform } = this.#context
    const provesId = usesQuorumTls(settings) && !settings.quorumPortUnification
    const logsIn = settings.quorumSecret !== undefined || settings.quorumServerRequiresSasl
    const joins = settings.reconfigEnabled
    if (logsIn || (provesId && settings.quorumClientAuth === 'need')) {
      const proof = logsIn ? 'logs in' : 'shows a certificate of a member'
      const message = `reconfigEnabled=true: a server that no configuration names may join and read all data once it ${proof}`
      return joins ? platform.logger.info({ id: 'server.joins-by-proof' }, message) : undefined
    }
    const portsOf = (port: 'quorumPort' | 'electionPort'): number[] =>
      membership.listenAddresses(port, settings.quorumListenOnAllIPs).map((at) => at.port)
    const facts = {
      id: 'server.open-ports',
      electionPorts: portsOf('electionPort'),
      quorumPorts: portsOf('quorumPort'),
      ...(settings.observerMasterPort > 0 ? { observerMasterPort: settings.observerMasterPort } : {}),
    }
    const from = settings.quorumAddressCheck ? 'any program at an address of a member' : 'anyone'
    const message = `The ports for other members are open without authentication: ${from} who reaches them can act as a member${joins ? ', or join as a new one' : ''}. Close them to other networks`
    platform.logger.warn(facts, message)
  }

  /** Passes a changed configuration to the election. */
  configurationChanged(): void {
    this.#election?.membersChanged()
    const { configurations } = this.#context.membership
    this.#election?.step({ type: 'configured', configurations })
  }

  /** Ends the role of a member whose disk is full. The data on a full disk are valid, so the member continues when there is space. */
  onDiskFull({ message: reason }: Error): void {
    const { settings, platform } = this.#context
    if (this.#role !== undefined)
      return this.#leaveRole(this.#role, { reason, electionDelayMs: settings.tickTimeMs })
    platform.logger.warn(
      { reason },
      'The disk has refused what the last role had written; it is written again later',
    )
  }

  /** Replies to the requests of clients before a close. No role is entered from now on. */
  async finishRequests(): Promise<void> {
    this.#isClosing = true
    // Clients that connect from now on try another server at once.
    void this.#context.clientPorts.close()
    await this.#role?.finishRequests()
  }

  /** Transfers leadership before a close, if another member can take over at once. */
  async handOver(): Promise<void> {
    const { settings } = this.#context
    const role = this.#role
    // The role of a server that has failed is over.
    if (this.#isStopped || !(role instanceof LeaderRole) || this.#election === undefined) return
    const { syncLimit, tickTimeMs } = settings
    const ended = new Promise<void>((resolve) => {
      this.#onRoleEnded = resolve
      this.#schedule(syncLimit * tickTimeMs, 'handing leadership over', resolve)
    })
    if (role.transferLeadership() === undefined) await ended
  }

  /** Stops elections and timers. No role is entered or left any more. `reason` says why. */
  stop(reason = 'The server has stopped'): void {
    this.#isStopped = true
    for (const cancel of this.#timers.splice(0)) cancel()
    // A close may wait for the end of a role, for which there is no timer any more.
    this.#onRoleEnded()
    this.#election?.stop()
    this.#endReadOnly()
    this.#replacement?.undecided(reason)
  }

  /** Implements `AdminTarget.replacementStart`. */
  replacementStart(lastZxid: Zxid): Zxid {
    if (this.#election !== undefined) return this.#establishedLeader().replacementStart(lastZxid)
    return makeZxid(epochOf(Math.max(this.#context.database.tree.lastZxid, lastZxid)) + 1, 0)
  }

  /** Implements `AdminTarget.replaceTree`. */
  replaceTree(tree: Tree, start: Zxid): Promise<void> {
    return this.#election === undefined ? this.#replaceAlone(tree) : this.#replaceInEnsemble(tree, start)
  }

  #establishedLeader(): LeaderRole {
    const role = this.#role
    if (role instanceof LeaderRole && role !== this.#endingRole && !this.#isClosing) return role
    const { leader } = this
    throw new RestoreRefusal(
      leader === undefined || this.#state === 'leading'
        ? 'The ensemble has no leader now. Try again.'
        : `Only the leader replaces data. Ask server ${leader}, which leads.`,
      { isPassing: true },
    )
  }

  /**
   * Replaces the data of the ensemble (quorum-protocol 18.8): writes them to a file, lets everything proposed before be committed, and
   * takes part in the next election with them as its last transaction. Everyone else receives them by SNAP.
   */
  async #replaceInEnsemble(tree: Tree, start: Zxid): Promise<void> {
    const { database } = this.#context
    const role = this.#establishedLeader()
    // `start` may be of an earlier term of this server.
    if (epochOf(start) !== database.epochs.current) throw otherLeader()
    copyConfigurationNode(database.tree, tree, tree.lastZxid)
    const prepared = await database.prepareReplacement(tree)
    try {
      const last = await role.suspend()
      if (last >= start)
        throw new RestoreRefusal(
          'Too many transactions came while the data were written. Try again with less load.',
        )
      if (role !== this.#establishedLeader()) throw otherLeader()
    } catch (error) {
      this.#leaveRole(role, { reason: 'the data are not replaced, and requests arrived meanwhile' })
      await database.discardReplacement(prepared)
      throw error
    }
    this.#replacement = new AwaitedReplacement(tree.lastZxid)
    this.#leaveRole(role, { reason: 'the data of the ensemble are being replaced', replacement: prepared })
    await this.#replacement.outcome
  }

  /** Installs a replacement while the others still wait for this leader, so that they elect no other leader before it is on disk. */
  async #installWhileSilent(role: LeaderRole, replacement: PreparedReplacement): Promise<void> {
    try {
      await role.fallSilent(REPLACING)
      await this.#context.database.endRole()
      await this.#installReplacement(replacement)
    } finally {
      await role.end()
    }
  }

  /**
   * Makes the data of a replacement those of this server. Where that fails, it goes on with the old ones. Rejects where the files cannot
   * be read: they may hold both.
   */
  async #installReplacement(replacement: PreparedReplacement): Promise<void> {
    const { database, platform } = this.#context
    // The end of the role may be tried again, once the outcome is known.
    if (this.#replacement?.isOpen !== true) return
    if (this.#isStopped || this.#isClosing) {
      await database.discardReplacement(replacement)
      return this.#replacement.refused(new RestoreRefusal('The server stops, so the data are not replaced.'))
    }
    const problem = await this.#install(replacement)
    if (problem === undefined) {
      const { tree } = database
      const facts = { lastZxid: formatZxid(tree.lastZxid), nodes: tree.nodeCount }
      return platform.logger.info(facts, 'The data are replaced; this server asks the others to take them')
    }
    this.#replacement.refused(problem)
    platform.logger.error({ reason: reasonOf(problem) }, 'The data could not be replaced')
  }

  /**
   * Installs a replacement. Resolves to undefined, or to the reason why the files still hold the old data, which are loaded again.
   * Rejects where the files cannot be read, so that what they hold is not known.
   */
  async #install(replacement: PreparedReplacement): Promise<unknown> {
    const { database, platform } = this.#context
    try {
      await database.installReplacement(replacement)
    } catch (error) {
      await database.endRole()
      // Once the files are decided, reading them finishes the replacement. No other history has its last zxid.
      if (database.tree.lastZxid !== replacement.tree.lastZxid) return error
      platform.logger.warn({ reason: reasonOf(error) }, 'The files were replaced at the second attempt')
    }
    return undefined
  }

  /**
   * Replaces the tree of a standalone server: ends its role, and with it all connections, and enters it again with the new tree.
   * Rejects where the files cannot be replaced; the old tree is then served again. Rejects with a `RestoreUndecided`, and stops the
   * server, where they may hold both.
   */
  async #replaceAlone(tree: Tree): Promise<void> {
    const { database, membership, window, failed } = this.#context
    const prepared = await database.prepareReplacement(tree)
    const replaced = this.#transitions.then(async () => {
      if (this.#isStopped || this.#isClosing)
        throw new RestoreRefusal('The server stops, so the data are not replaced.')
      let isBegun = false
      try {
        await this.#role?.end(REPLACING)
        await database.endRole()
        isBegun = true
        const problem = await this.#install(prepared)
        await catchUpWindow(window, database)
        if (!this.#isStopped) this.#enterRole('leading', membership.self)
        return problem
      } catch (error) {
        failed(error)
        if (!isBegun) return error
        const message = `${reasonOf(error)}: the server stops, and its files may hold the old or the new data. Start it again, and look at them.`
        throw new RestoreUndecided(message)
      }
    })
    this.#transitions = replaced.then(
      () => {},
      () => {},
    )
    const problem = await replaced
    if (problem === undefined) return
    await database.discardReplacement(prepared)
    throw problem
  }

  /** Ends the role, after the end of the role before it, and closes the election port. `reason` closes client connections. */
  async close(reason?: string): Promise<void> {
    await this.#transitions
    await this.#role?.end(reason)
    this.#role = undefined
    await this.#election?.close()
  }

  /** Ends the role and closes the election port at once, after a failure. */
  abort(reason: string): void {
    void this.#role?.end(reason).catch(() => {})
    void this.#election?.close()
  }

  // Elections

  /**
   * Reads the configuration at the end of the log: a logged change is binding for this server, whatever role has logged it. Forgets one that
   * is only proposed, unless data were lost or set aside: the log may have had it then.
   */
  async #recallLogged(): Promise<void> {
    const { settings, membership, database, platform, configurationChanged } = this.#context
    if (membership.isStandalone) return
    if (settings.reconfigEnabled) membership.recallLogged(database.tree)
    if (!database.isEligibleToVote) return
    const version = membership.proposed?.version
    const forgotten = membership.forgetUnlogged(database.lastZxid, database.epochs.current)
    if (forgotten === undefined) return
    await forgotten
    configurationChanged()
    const sentence = 'Forgot a change of the members that was proposed and is not in the log of this server'
    platform.logger.info({ version: formatZxid(version!) }, sentence)
  }

  #startElection(): void {
    if (this.#isStopped) return
    const { database, membership, stats } = this.#context
    stats.ensemble.lookingCount++
    const isAtLastEpoch = database.epochs.accepted >= MAX_LEADER_EPOCH
    if (isAtLastEpoch) this.#reportLastEpoch()
    const votes = database.isEligibleToVote && !isAtLastEpoch
    const facts = { self: membership.self, lastZxid: formatZxid(database.lastZxid), votes }
    this.#logStep(facts, 'Looking for a leader')
    this.#look(votes ? database.lastZxid : UNTRUSTED_ZXID)
    this.#scheduleReadOnly()
  }

  /** Reports that this member cannot take part in elections any more, since no epoch is left for the next leader. */
  #reportLastEpoch(): void {
    const { epochs } = this.#context.database
    const message =
      'This member has accepted the last epoch and can elect no leader. Stop all members, run `zabra recover --renumber` on the data folder of the one with the last transaction, and copy its version-2 over those of the others'
    this.#context.platform.logger.error({ acceptedEpoch: epochs.accepted }, message)
  }

  /** Lets the others elect a leader first, after leadership was handed over: votes without a history until `syncLimit` ticks are over. */
  #deferElection(): void {
    const { syncLimit, tickTimeMs } = this.#context.settings
    this.#look(UNTRUSTED_ZXID)
    this.#schedule(syncLimit * tickTimeMs, 'end of a deferred election', () => this.#startElection())
  }

  #look(zxid: number): void {
    const { database, membership } = this.#context
    this.#state = 'looking'
    const avoid = this.#avoidedLeader()
    const withoutVote = this.#earlier
    this.#election?.step({
      type: 'look',
      state: { zxid, epoch: database.epochs.current, ...membership.configurations },
      ...(avoid === undefined ? {} : { avoid }),
      ...(withoutVote === undefined ? {} : { withoutVote }),
    })
  }

  /** Returns the leader that was the last to refuse this member repeatedly, and for how long not to join it: longer after each refusal. */
  #avoidedLeader(): { readonly leader: ServerId; readonly forMs: number } | undefined {
    if (this.#refusals === undefined || this.#refusals.count <= FREE_ATTEMPTS) return undefined
    const { leader, count } = this.#refusals
    return { leader, forMs: Math.min(FIRST_AVOID_MS * 2 ** (count - FREE_ATTEMPTS - 1), MAX_AVOID_MS) }
  }

  #scheduleReadOnly(): void {
    const { settings } = this.#context
    if (!settings.readOnlyModeEnabled || this.#readOnly !== undefined) return
    this.#schedule(Math.max(READ_ONLY_AFTER_MS, settings.tickTimeMs), 'read-only mode', () => {
      if (this.#state !== 'looking' || this.#readOnly !== undefined) return
      this.#readOnly = new ReadOnlyRole(this.#context)
    })
  }

  #onElected({ state, vote }: Elected): void {
    this.#electedAt = this.#context.platform.clock.monotonic()
    this.#context.stats.ensemble.electionTime.add(this.#electedAt - this.#lookingSince)
    const { leader, epoch, round } = vote
    this.#electedIn = round
    const earlier = this.#earlier
    // In its next term the leader needs the vote of this member, to agree on a later epoch.
    const isTerm = isOfTerm(vote, earlier)
    if (!isTerm) this.#earlier = undefined
    if (state === 'leading' || !isTerm || earlier?.epoch !== epoch) return this.#enterRole(state, leader)
    const { accepted } = this.#context.database.epochs
    const message =
      'This server has accepted a later epoch than that of the leader. It follows without a vote until it takes part in an election'
    this.#context.platform.logger.warn({ leader, epoch, accepted }, message)
    this.#election!.step({ type: 'assigned', state: 'observing', leader })
    this.#enterRole('observing', leader, epoch)
  }

  #configure({ configuration, restart }: Pick<Configure, 'configuration' | 'restart'>): void {
    const { membership, settings, platform, configurationChanged, failed } = this.#context
    membership.activate(configuration).persisted.then(
      () => {
        configurationChanged()
        if (restart && this.#state === 'looking') this.#startElection()
      },
      (error: unknown) => {
        if (!isDiskFull(error)) return failed(error)
        // There is no role to end; the election continues when there is space.
        platform.logger.warn(
          { reason: error.message },
          'A newer configuration cannot be written yet; trying again',
        )
        this.#schedule(settings.tickTimeMs, 'configuration', () =>
          this.#configure({ configuration, restart }),
        )
      },
    )
  }

  // Roles

  /** Enters a role. The role before it has ended, so nothing else writes to the log. */
  #enterRole(state: RoleState, leader: ServerId, nonVotingEpoch?: number): void {
    if (this.#isStopped) return
    for (const cancel of this.#timers.splice(0)) cancel()
    this.#endReadOnly()
    this.#state = state
    const { membership, failed } = this.#context
    const events: RoleEvents = {
      established: (epoch) => this.#onEstablished(epoch),
      exited: (exit) => this.#leaveRole(role, exit),
    }
    const role: LeaderRole | LearnerRole =
      state === 'leading'
        ? new LeaderRole(this.#context, events)
        : new LearnerRole(
            this.#context,
            { leader, isObserver: state === 'observing', nonVotingEpoch },
            events,
          )
    this.#role = role
    if (this.#election !== undefined) {
      const ms = Math.round(this.#context.platform.clock.monotonic() - this.#lookingSince)
      this.#logStep(
        { id: 'election.decided', self: membership.self, leader, ms },
        electedSentence(state, leader),
      )
    }
    if (role instanceof LeaderRole && this.#election?.canLeadAlone === true) role.setOracle(true)
    role.begin().catch(failed)
  }

  /** Ends the role without a leader. Its connections are closed over turns of the event loop, for which a close waits. */
  #endReadOnly(): void {
    const closed = this.#readOnly?.end()
    this.#readOnly = undefined
    if (closed !== undefined) this.#transitions = this.#transitions.then(() => closed)
  }

  #onEstablished(epoch: number): void {
    if (this.#election === undefined) return
    this.#refusals = undefined
    if (this.#replacement?.isOpen === true)
      this.#replacement.established(this.#context.database.tree, this.leader)
    this.#election.step({ type: 'established', epoch })
    this.#context.cluster.established()
    const { membership, settings, platform, stats } = this.#context
    const unavailableMs = platform.clock.monotonic() - this.#lookingSince
    stats.ensemble.unavailableTime.add(unavailableMs)
    if (this.#state === 'leading') stats.ensemble.leaderUnavailableTime.add(unavailableMs)
    const { leader } = this
    const serves = this.#state !== 'leading' || settings.leaderServes
    const sentence =
      this.#state === 'leading'
        ? `This server leads${serves ? ' and serves clients' : '; clients are served by the others (leaderServes=no)'}`
        : `This server ${this.#state === 'following' ? 'follows' : 'observes'} server ${leader} and serves clients`
    platform.logger.info({ id: 'server.role', self: membership.self, leader, epoch }, sentence)
  }

  /** Ends a role, once: a second exit of the same role must not end the next role. */
  #leaveRole(role: ActiveRole, exit: RoleExit): void {
    if (this.#role !== role || this.#isStopped) return
    const { failed, platform, settings } = this.#context
    const { reason } = exit
    if (this.#endingRole === role)
      return platform.logger.warn({ reason }, 'Another error occurred while a role was ending')
    this.#endingRole = role
    this.#logStep(
      { id: 'server.role-ended', reason },
      `This server is not ${this.#state} any more, and serves no clients until there is a leader`,
    )
    this.#transitions = this.#transitions
      .then(() => this.#endRole(role, exit))
      .catch((error: unknown) => {
        if (!isDiskFull(error)) return failed(error)
        // Another attempt may succeed. Not at once: the disk may stay full for long, and each may read all files again.
        this.#schedule(settings.tickTimeMs, 'next attempt to end a role', () => {
          if (this.#endingRole === role) this.#endingRole = undefined
          this.#leaveRole(role, exit)
        })
      })
  }

  /**
   * Closes the clients and connections of a role, makes all that it logged durable, and brings the tree to the end of the log
   * (quorum-protocol 16). Only then does this server vote again.
   */
  async #endRole(role: ActiveRole, exit: RoleExit): Promise<void> {
    const { database, window, settings, platform, membership } = this.#context
    if (exit.replacement !== undefined && role instanceof LeaderRole)
      await this.#installWhileSilent(role, exit.replacement)
    await role.end()
    await database.endRole()
    await catchUpWindow(window, database)
    await this.#recallLogged()
    if (this.#role === role) this.#role = undefined
    const state = this.#state
    this.#state = 'looking'
    this.#lookingSince = platform.clock.monotonic()
    this.#onRoleEnded()
    if (this.#isStopped || this.#isClosing) return
    if (exit.designated !== undefined) return this.#assign(exit.designated)
    if (exit.hasHandedOver === true) return this.#deferElection()
    // A leader that was just elected may not accept connections yet.
    const isFresh = platform.clock.monotonic() - this.#electedAt < dialDefaults.retryForMs
    const retries = exit.canReconnect === true || (exit.isLeaderSilent === true && isFresh)
    if (retries && role instanceof LearnerRole && state !== 'looking')
      return this.#schedule(RECONNECT_DELAY_MS, 'next attempt at the leader', () =>
        this.#enterRole(state, role.leader, role.nonVotingEpoch),
      )
    if (role instanceof LearnerRole && !role.isSynced) this.#noteRefusal(role.leader, exit)
    // The observers of a lost leader must not all reconnect at once.
    const spread =
      membership.role === 'observer'
        ? settings.observerElectionDelayMs + settings.observerReconnectDelayMs
        : 0
    const delay = (exit.electionDelayMs ?? 0) + (spread === 0 ? 0 : platform.random.below(spread + 1))
    if (delay === 0) return this.#startElection()
    this.#schedule(delay, 'next election', () => this.#startElection())
  }

  /** Logs a step between two roles; seldom, while a leader refuses this member again and again. */
  #logStep(facts: object, message: string): void {
    if (this.#avoidedLeader() === undefined) this.#context.platform.logger.info(facts, message)
    else this.#log.log('info', message, facts, message)
  }

  /** Records that a leader was left before this member was synced with it. */
  #noteRefusal(leader: ServerId, { earlierEpoch }: RoleExit): void {
    if (earlierEpoch !== undefined) this.#earlier = { leader, round: this.#electedIn, epoch: earlierEpoch }
    // Those of all leaders: two of them may refuse this member in turns.
    this.#refusals = { leader, count: (this.#refusals?.count ?? 0) + 1 }
  }

  /** Enters the role under the leader that a committed change of the configuration designates. */
  #assign(leader: ServerId): void {
    const { membership, database } = this.#context
    const isLeader = leader === membership.self
    const learnerState = membership.role === 'observer' ? 'observing' : 'following'
    const state = isLeader ? 'leading' : learnerState
    this.#election?.step({
      type: 'assigned',
      state,
      leader,
      ...(isLeader ? { zxid: database.lastZxid } : {}),
    })
    this.#enterRole(state, leader)
  }

  #schedule(ms: number, name: string, action: () => void): void {
    if (this.#isStopped) return
    this.#timers.push(this.#context.platform.clock.after(ms, name, action))
  }
}

/** Returns the log line for the end of an election; the role is established later, if at all. */
const electedSentence = (state: RoleState, leader: ServerId): string =>
  state === 'leading'
    ? 'This server is elected and gathers its followers'
    : `Server ${leader} is elected; this server joins it`

const otherLeader = (): RestoreRefusal =>
  new RestoreRefusal('Another leader was elected. Try again.', { isPassing: true })

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
