import { epochOf, formatZxid } from '@zabra/protocol'
import { DiskError, type Address, type Cancel, type Platform } from '@zabra/runtime'
import { FourLetterCommands } from '../admin/index.ts'
import { ClientPorts } from '../connections/client-ports.ts'
import type { ServedPort } from '../connections/listeners.ts'
import { ServerStats } from '../connections/stats.ts'
import { UNTRUSTED_ZXID, type PeerState } from '../core/election/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { SessionIdGenerator } from '../core/sessions/index.ts'
import { CommittedWindow } from '../core/zab/index.ts'
import { SnapshotScheduler, type Database } from '../database/index.ts'
import { LogFullError } from '../persistence/index.ts'
import type { Server, ServerMetrics } from '../server-types.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { ActiveRole, MemberContext, RoleEvents, RoleExit } from './context.ts'
import { dialDefaults } from './connect-to-master.ts'
import { LeaderRole } from './leader-role.ts'
import { LearnerRole } from './learner-role.ts'
import { MemberElection, type Configure, type Elected } from './member-election.ts'
import type { Membership } from './membership.ts'
import { ReadOnlyRole } from './read-only-role.ts'
import { catchUpWindow } from './sync-sources.ts'

type RoleState = Exclude<PeerState, 'looking'>

/** The shortest time without a leader after which a member becomes read-only, in milliseconds. */
const READ_ONLY_AFTER_MS = 2000
/** The pause between two attempts to connect to a leader that has just been elected, in milliseconds. */
const RECONNECT_DELAY_MS = 25

/**
 * A server through all its roles: recovers its data, opens its ports, and enters one role after the other as elections decide. A
 * standalone server holds no elections: it is the leader of a configuration with one voter as long as it runs.
 */
export class Member implements Server {
  readonly #context: MemberContext
  /** Undefined on a standalone server. */
  readonly #election: MemberElection | undefined
  readonly failed: Promise<unknown>
  #resolveFailed: (reason: unknown) => void = () => {}
  #state: PeerState = 'looking'
  #role: LeaderRole | LearnerRole | undefined
  #readOnly: ReadOnlyRole | undefined
  /** Timers that run between two roles. */
  #timers: Cancel[] = []
  /** The ends of roles run one after the other. */
  #transitions: Promise<void> = Promise.resolve()
  /** The role whose end has begun. */
  #endingRole: ActiveRole | undefined
  /** When the last election was decided, on the monotonic clock. */
  #electedAt = -Infinity
  /** Called at the end of each role. */
  #onRoleEnded: () => void = () => {}
  #closing: Promise<void> | undefined
  #isStopped = false

  constructor(settings: ServerSettings, platform: Platform, database: Database, membership: Membership) {
    const stats = new ServerStats()
    const startedAt = platform.clock.monotonic()
    this.failed = new Promise((resolve) => (this.#resolveFailed = resolve))
    this.#context = {
      settings,
      platform,
      database,
      membership,
      stats,
      sessionIds: new SessionIdGenerator(settings.serverId, platform.clock.wall()),
      window: new CommittedWindow(database.lastZxid, settings.commitLogCount),
      clientPorts: new ClientPorts(settings, platform, membership.clientAddresses, (service) => {
        service.commands = new FourLetterCommands(service, database.folders, startedAt)
      }),
      snapshots: new SnapshotScheduler({
        settings,
        clock: platform.clock,
        logger: platform.logger,
        database,
        stats,
      }),
      failed: (error) => this.#fail(error),
      configurationChanged: () => this.#onConfigurationChanged(),
    }
    if (!membership.isStandalone)
      this.#election = new MemberElection(this.#context, {
        elected: (work) => this.#onElected(work),
        configure: (work) => this.#configure(work),
        oracleChanged: (goOn) => {
          if (this.#role instanceof LeaderRole) this.#role.setOracle(goOn)
        },
      })
  }

  // Server

  get addresses(): { client: Address } {
    return { client: this.listeners[0]!.address }
  }

  get listeners(): readonly ServedPort[] {
    return this.#context.clientPorts.served
  }

  get role(): Server['role'] {
    if (this.#election === undefined) return 'standalone'
    return this.#readOnly === undefined ? this.#state : 'read-only'
  }

  get epoch(): number {
    const { database } = this.#context
    return this.#election === undefined ? epochOf(database.tree.lastZxid) : database.epochs.current
  }

  get leader(): ServerId | undefined {
    if (this.#election === undefined || this.#role === undefined) return undefined
    return this.#role instanceof LearnerRole ? this.#role.leader : this.#context.membership.self
  }

  get serving(): boolean {
    return this.#context.clientPorts.service !== undefined
  }

  stats(): ServerMetrics {
    const { database, clientPorts } = this.#context
    const { tree, lastZxid } = database
    const { service } = clientPorts
    return {
      lastZxid: Math.max(lastZxid, tree.lastZxid),
      nodes: tree.nodeCount,
      sessions: database.sessions.size,
      connections: service?.connections.size ?? 0,
      watches: service?.watches.size ?? 0,
      outstanding: service?.pipeline.outstanding ?? 0,
    }
  }

  snapshot(): Promise<void> {
    return this.#context.snapshots.take()
  }

  reload(): Promise<void> {
    return this.#context.clientPorts.reload()
  }

  yieldLeadership(): boolean {
    return this.#role instanceof LeaderRole && this.#role.transferLeadership()
  }

  /** Opens the ports and takes part in elections. Rejects as `createServer` does; the owner closes the database then. */
  async start(): Promise<void> {
    const { settings, platform, database, membership, clientPorts, snapshots } = this.#context
    if (!settings.forceSync) {
      const sentence =
        'forceSync=no: acknowledged writes are lost when the machine loses power. Use it for tests only'
      platform.logger.warn({}, sentence)
    }
    // The first snapshot makes the directory complete, also for Apache ZooKeeper, which refuses logs without any snapshot.
    if (database.wasEmpty && database.isEligibleToVote) await snapshots.take()
    // A standalone server has its role before a client can connect.
    if (this.#election === undefined) this.#enterRole('leading', membership.self)
    try {
      await clientPorts.listen()
      await this.#election?.listen()
    } catch (error) {
      this.#isStopped = true
      await this.#role?.end()
      await clientPorts.close()
      await this.#election?.close()
      throw error
    }
    snapshots.start()
    if (this.#election === undefined) return this.#logServing()
    this.#recallLogged()
    await this.#election.startOracle()
    const facts = {
      ...this.addresses.client,
      self: membership.self,
      lastZxid: formatZxid(database.lastZxid),
    }
    platform.logger.info(facts, 'Joining the ensemble')
    this.#startElection()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  // Elections

  /** Reads the configuration at the end of the log: a logged change binds this server, in whatever role it was logged. */
  #recallLogged(): void {
    const { settings, membership, database } = this.#context
    if (settings.reconfigEnabled && !membership.isStandalone) membership.recallLogged(database.tree)
  }

  #startElection(): void {
    if (this.#isStopped) return
    const { database, membership, platform } = this.#context
    this.#state = 'looking'
    const facts = {
      self: membership.self,
      lastZxid: formatZxid(database.lastZxid),
      votes: database.isEligibleToVote,
    }
    platform.logger.info(facts, 'Looking for a leader')
    this.#election?.step({
      type: 'look',
      state: {
        zxid: database.isEligibleToVote ? database.lastZxid : UNTRUSTED_ZXID,
        epoch: database.epochs.current,
        ...membership.configurations,
      },
    })
    this.#scheduleReadOnly()
  }

  /** Lets the others elect a leader first, after leadership was handed over: votes without a history until `syncLimit` ticks are over. */
  #deferElection(): void {
    const { database, membership, settings } = this.#context
    this.#state = 'looking'
    this.#election?.step({
      type: 'look',
      state: { zxid: UNTRUSTED_ZXID, epoch: database.epochs.current, ...membership.configurations },
    })
    this.#schedule(settings.syncLimit * settings.tickTimeMs, 'end of a deferred election', () =>
      this.#startElection(),
    )
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
    this.#enterRole(state, vote.leader)
  }

  // Roles

  /** Enters a role. The role before it has ended, so nothing else writes to the log. */
  #enterRole(state: RoleState, leader: ServerId): void {
    if (this.#isStopped) return
    for (const cancel of this.#timers.splice(0)) cancel()
    this.#readOnly?.end()
    this.#readOnly = undefined
    this.#state = state
    const { platform, membership, failed } = this.#context
    const events: RoleEvents = {
      established: (epoch) => this.#onEstablished(epoch),
      exited: (exit) => this.#leaveRole(role, exit),
    }
    const role: LeaderRole | LearnerRole =
      state === 'leading'
        ? new LeaderRole(this.#context, events)
        : new LearnerRole(this.#context, leader, state === 'observing', events)
    this.#role = role
    if (this.#election !== undefined)
      platform.logger.info({ self: membership.self, leader }, electedSentence(state, leader))
    if (role instanceof LeaderRole && this.#election?.mayContinueAlone === true) role.setOracle(true)
    role.begin().catch(failed)
  }

  #onEstablished(epoch: number): void {
    if (this.#election === undefined) return
    this.#election.step({ type: 'established', epoch })
    const { membership, settings, platform } = this.#context
    const { leader } = this
    const serves = this.#state !== 'leading' || settings.leaderServes
    const sentence =
      this.#state === 'leading'
        ? `This server leads${serves ? ' and serves clients' : '; clients are served by the others (leaderServes=no)'}`
        : `This server ${this.#state === 'following' ? 'follows' : 'observes'} server ${leader} and serves clients`
    platform.logger.info({ self: membership.self, leader, epoch }, sentence)
  }

  /** Ends a role, once: a second exit of the same role must not end the next role. */
  #leaveRole(role: ActiveRole, exit: RoleExit): void {
    if (this.#role !== role || this.#isStopped) return
    const { logger } = this.#context.platform
    const { reason } = exit
    if (this.#endingRole === role) return logger.warn({ reason }, 'More went wrong while a role was ending')
    this.#endingRole = role
    logger.info(
      { reason },
      `This server is not ${this.#state} any more, and serves no clients until there is a leader`,
    )
    this.#transitions = this.#transitions
      .then(() => this.#endRole(role, exit))
      .catch((error: unknown) => {
        // The role has not ended; another attempt may succeed.
        if (this.#endingRole === role) this.#endingRole = undefined
        this.#fail(error)
      })
  }

  /**
   * Closes the clients and connections of a role, makes all that it logged durable, and brings the tree to the end of the log
   * (quorum-protocol 16). Only then does this server vote again.
   */
  async #endRole(role: ActiveRole, exit: RoleExit): Promise<void> {
    const { database, window, settings, platform } = this.#context
    await role.end()
    await database.endRole()
    await catchUpWindow(window, database)
    this.#recallLogged()
    if (this.#role === role) this.#role = undefined
    const state = this.#state
    this.#state = 'looking'
    this.#onRoleEnded()
    if (this.#isStopped || this.#closing !== undefined) return
    if (exit.designated !== undefined) return this.#assign(exit.designated)
    if (exit.handedOver === true) return this.#deferElection()
    // A leader that was elected a moment ago may not accept connections yet.
    const isFresh = platform.clock.monotonic() - this.#electedAt < dialDefaults.retryForMs
    const retries = exit.reconnect === true || (exit.leaderSilent === true && isFresh)
    if (retries && role instanceof LearnerRole && state !== 'looking')
      return this.#schedule(RECONNECT_DELAY_MS, 'next attempt at the leader', () =>
        this.#enterRole(state, role.leader),
      )
    // The observers of a lost leader must not all reconnect at once.
    const spread =
      state === 'observing' ? settings.observerElectionDelayMs + settings.observerReconnectDelayMs : 0
    const delay = (exit.electionDelayMs ?? 0) + (spread === 0 ? 0 : platform.random.below(spread + 1))
    if (delay === 0) return this.#startElection()
    this.#schedule(delay, 'next election', () => this.#startElection())
  }

  /** Enters the role under the leader that a committed change of the configuration designates. */
  #assign(leader: ServerId): void {
    const state = this.#stateUnder(leader)
    this.#election?.step({ type: 'assigned', state, leader })
    this.#enterRole(state, leader)
  }

  #stateUnder(leader: ServerId): RoleState {
    const { membership } = this.#context
    if (leader === membership.self) return 'leading'
    return membership.role === 'observer' ? 'observing' : 'following'
  }

  #schedule(ms: number, name: string, action: () => void): void {
    if (this.#isStopped) return
    this.#timers.push(this.#context.platform.clock.after(ms, name, action))
  }

  // Configurations

  #configure({ configuration, restart }: Pick<Configure, 'configuration' | 'restart'>): void {
    const { membership, settings, platform } = this.#context
    membership.activate(configuration).persisted.then(
      () => {
        this.#onConfigurationChanged()
        if (restart && this.#state === 'looking') this.#startElection()
      },
      (error: unknown) => {
        if (!isDiskFull(error)) return this.#fail(error)
        // There is no role to end; the election goes on when there is space.
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

  #onConfigurationChanged(): void {
    const { clientPorts, membership } = this.#context
    this.#election?.membersChanged()
    clientPorts.moveTo(membership.clientAddresses.active)
    this.#election?.step({ type: 'configured', configurations: membership.configurations })
  }

  // Failure and close

  /** Stops at once: closes everything and writes nothing more, since the state of this server can no longer be trusted. */
  #fail(error: unknown): void {
    if (this.#isStopped) return
    if (this.#election !== undefined && isDiskFull(error)) return this.#onDiskFull(error)
    this.#isStopped = true
    const reason = error instanceof Error ? error.message : String(error)
    this.#context.platform.logger.error({ reason }, 'The server stops: it can no longer vouch for its state')
    this.#stopBetweenRoles()
    this.#resolveFailed(error)
    void this.#role?.end('Closed: the server has failed').catch(() => {})
    void this.#election?.close()
    void this.#context.clientPorts.close()
  }

  /** Ends the role. A full disk holds nothing wrong, so the member goes on when there is space. Between roles there is nothing to end. */
  #onDiskFull({ message: reason }: Error): void {
    const { settings, platform } = this.#context
    if (this.#role !== undefined)
      return this.#leaveRole(this.#role, { reason, electionDelayMs: settings.tickTimeMs })
    platform.logger.warn(
      { reason },
      'The disk has refused what the last role had written; it is written again later',
    )
  }

  async #close(): Promise<void> {
    const { database, snapshots, clientPorts, platform } = this.#context
    if (this.#role instanceof LeaderRole) await this.#prepareClose(this.#role)
    if (this.#isStopped) return this.#closeFailed()
    this.#isStopped = true
    this.#stopBetweenRoles()
    const portsClosed = clientPorts.close()
    await snapshots.stop()
    await this.#transitions
    await this.#role?.end()
    this.#role = undefined
    await portsClosed
    await this.#election?.close()
    await database.close()
    this.#resolveFailed(undefined)
    platform.logger.info({ lastZxid: formatZxid(database.lastZxid) }, 'Stopped')
  }

  /** Gives the data directory back after a failure, which `failed` has reported. */
  async #closeFailed(): Promise<void> {
    const { database, snapshots } = this.#context
    await snapshots.stop()
    await database.close().catch(() => {})
  }

  /** Hands leadership over if another member can take it at once. A standalone server answers what it has accepted instead. */
  async #prepareClose(role: LeaderRole): Promise<void> {
    const { clientPorts, snapshots, settings } = this.#context
    if (this.#election === undefined) {
      role.stopAccepting()
      void clientPorts.close()
      await snapshots.stop()
      return role.drain()
    }
    const ended = new Promise<void>((resolve) => {
      this.#onRoleEnded = resolve
      this.#schedule(settings.syncLimit * settings.tickTimeMs, 'handing leadership over', resolve)
    })
    if (role.transferLeadership()) await ended
  }

  #stopBetweenRoles(): void {
    for (const cancel of this.#timers.splice(0)) cancel()
    this.#election?.stop()
    this.#readOnly?.end()
    this.#readOnly = undefined
  }

  #logServing(): void {
    const { database, platform } = this.#context
    const { tree, sessions } = database
    const ports = this.listeners.map(({ key, address }) => `${key} ${address.port}`)
    platform.logger.debug(
      {
        ...this.addresses.client,
        ports,
        lastZxid: formatZxid(tree.lastZxid),
        nodes: tree.nodeCount,
        sessions: sessions.size,
      },
      'Serving clients',
    )
  }
}

/** Returns the log line for the end of an election; the role is established later, if at all. */
const electedSentence = (state: RoleState, leader: ServerId): string =>
  state === 'leading'
    ? 'This server is elected and gathers its followers'
    : `Server ${leader} is elected; this server joins it`

const isDiskFull = (error: unknown): error is Error =>
  error instanceof LogFullError || (error instanceof DiskError && FULL.has(error.code))

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])
