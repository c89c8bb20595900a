import { formatZxid } from '@zabra/protocol'
import { DiskError, type Address, type Cancel, type Platform } from '@zabra/runtime'
import { FourLetterCommands } from '../admin/index.ts'
import {
  Election,
  electionDefaults,
  UNTRUSTED_ZXID,
  type ElectionWork,
  type PeerState,
} from '../core/election/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { SessionIdGenerator } from '../core/sessions/index.ts'
import { CommittedWindow } from '../core/zab/index.ts'
import { LogFullError } from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import { ElectionDriver } from './election-driver.ts'
import type { ElectionConnections } from './election-connections.ts'
import type { ServedPort } from '../connections/listeners.ts'
import type { Server, ServerMetrics } from '../server.ts'
import { ServerStats } from '../connections/stats.ts'
import { openDatabase } from '../database/index.ts'
import { ClientPorts } from '../connections/client-ports.ts'
import { loadConfigurations } from './configuration-files.ts'
import { dialDefaults } from './dial.ts'
import { LearnerRole } from './learner-role.ts'
import { LeaderRole } from './leader-role.ts'
import type { MemberContext, RoleExit, MemberRole } from './context.ts'
import { memberElectionConnections } from './member-election-connections.ts'
import { SnapshotScheduler } from '../database/index.ts'
import { Membership } from './membership.ts'
import { Oracle } from './oracle.ts'
import { ReadOnlyRole } from './read-only-role.ts'
import { catchUpWindow } from './window-catch-up.ts'

type Decided = Extract<ElectionWork, { do: 'decide' }>
type Configure = Extract<ElectionWork, { do: 'configure' }>

/** Least time without a leader after which a server that may be read-only is, in milliseconds. */
const READ_ONLY_AFTER_MS = 2000
/** Between two attempts to be heard by a leader of this moment. */
const AGAIN_MS = 25

/**
 * Opens the data directory of a member and joins its ensemble. Rejects as `createServer` does; it does not wait for a leader.
 */
export async function startMember(settings: ServerSettings, ports: Platform): Promise<Server> {
  const vault = await openDatabase(settings, ports, { member: true })
  try {
    const known = await loadConfigurations(ports.disk, settings.dataDir, settings.ensemble!, ports.logger)
    const membership = new Membership(settings.serverId, known, {
      disk: ports.disk,
      folder: settings.dataDir,
      written: settings.ensemble!,
    })
    const peer = new Member(settings, ports, vault, membership)
    await peer.start()
    return peer
  } catch (error) {
    await vault.close()
    throw error
  }
}

/** A member of an ensemble, through all its roles. */
class Member implements Server {
  readonly #kit: MemberContext
  readonly #links: ElectionConnections
  readonly #driver: ElectionDriver
  readonly #oracle: Oracle | undefined
  readonly failed: Promise<unknown>
  #settle: (reason: unknown) => void = () => {}
  #state: PeerState = 'looking'
  #term: LeaderRole | LearnerRole | undefined
  #readOnly: ReadOnlyRole | undefined
  /** Timers of the time without a role. */
  #cancels: Cancel[] = []
  /** What follows the end of a role is done one after the other. */
  #moving: Promise<void> = Promise.resolve()
  /** The role that is ending already. */
  #leaving: MemberRole | undefined
  /** When the last election ended, on the monotonic clock. */
  #decidedAt = -Infinity
  /** Called at the end of each role. */
  #ended: () => void = () => {}
  #closing: Promise<void> | undefined
  #isOver = false

  constructor(
    settings: ServerSettings,
    ports: Platform,
    vault: MemberContext['database'],
    membership: Membership,
  ) {
    const stats = new ServerStats()
    const startedAt = ports.clock.monotonic()
    this.failed = new Promise((resolve) => (this.#settle = resolve))
    this.#kit = {
      settings,
      ports,
      database: vault,
      membership,
      stats,
      sessionIds: new SessionIdGenerator(settings.serverId, ports.clock.wall()),
      window: new CommittedWindow(vault.lastZxid, settings.commitLogCount),
      clientPorts: new ClientPorts(settings, ports, membership.clientAddresses, (core) => {
        core.commands = new FourLetterCommands(core, vault.folders, startedAt)
      }),
      snapshots: new SnapshotScheduler({
        settings,
        clock: ports.clock,
        logger: ports.logger,
        database: vault,
        stats,
      }),
      failed: (error) => this.#fail(error),
      configurationChanged: () => this.#configured(),
    }
    this.#links = memberElectionConnections(this.#kit, {
      received: (from, payload) => this.#driver.receive(from, payload),
      reachabilityChanged: (to, reachable) => this.#driver.step({ type: 'reach', to, reachable }),
    })
    this.#driver = new ElectionDriver({
      election: new Election({
        ...electionDefaults,
        self: membership.self,
        minNotificationIntervalMs: settings.minNotificationIntervalMs,
        maxNotificationIntervalMs: settings.maxNotificationIntervalMs,
        adoptsConfigurations: settings.reconfigEnabled,
        oracle: settings.oraclePath !== undefined,
      }),
      clock: ports.clock,
      logger: ports.logger,
      connections: this.#links,
      elected: (work) => this.#decided(work),
      configure: (work) => this.#configure(work),
    })
    if (settings.oraclePath !== undefined)
      this.#oracle = new Oracle(settings, ports, (goOn) => this.#consulted(goOn))
  }

  // What the program sees

  get addresses(): { client: Address } {
    return { client: this.listeners[0]!.address }
  }

  get listeners(): readonly ServedPort[] {
    return this.#kit.clientPorts.served
  }

  get role(): Server['role'] {
    return this.#readOnly === undefined ? this.#state : 'read-only'
  }

  get epoch(): number {
    return this.#kit.database.epochs.current
  }

  get leader(): ServerId | undefined {
    if (this.#term instanceof LearnerRole) return this.#term.leader
    return this.#term === undefined ? undefined : this.#kit.membership.self
  }

  /** Whether clients are served, or could be: the role is filled. */
  get serving(): boolean {
    return this.#kit.clientPorts.service !== undefined
  }

  stats(): ServerMetrics {
    const { database: vault, clientPorts: door } = this.#kit
    const { tree, lastZxid } = vault
    const core = door.service
    return {
      lastZxid: Math.max(lastZxid, tree.lastZxid),
      nodes: tree.nodeCount,
      sessions: vault.sessions.size,
      connections: core?.connections.size ?? 0,
      watches: core?.watches.size ?? 0,
      outstanding: core?.pipeline.outstanding ?? 0,
    }
  }

  snapshot(): Promise<void> {
    return this.#kit.snapshots.take()
  }

  reload(): Promise<void> {
    return this.#kit.clientPorts.reload()
  }

  yieldLeadership(): boolean {
    return this.#term instanceof LeaderRole && this.#term.transferLeadership()
  }

  async start(): Promise<void> {
    const { settings, ports, database: vault, membership, clientPorts: door, snapshots } = this.#kit
    if (!settings.forceSync) {
      const sentence =
        'forceSync=no: acknowledged writes are lost when the machine loses power. Use it for tests only'
      ports.logger.warn({}, sentence)
    }
    // A first snapshot makes the directory complete, for Apache ZooKeeper too, which refuses logs without any.
    if (vault.wasEmpty && vault.isEligibleToVote) await snapshots.take()
    try {
      await door.listen()
      await this.#links.start()
    } catch (error) {
      await door.close()
      await this.#links.close()
      throw error
    }
    snapshots.start()
    this.#recall()
    await this.#oracle?.start()
    const facts = { ...this.addresses.client, self: membership.self, lastZxid: formatZxid(vault.lastZxid) }
    ports.logger.info(facts, 'Joining the ensemble')
    this.#look()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  // Between roles

  /** R5 What was logged of a change of the configuration binds this server, whatever role it was logged in. */
  #recall(): void {
    const { settings, membership, database: vault } = this.#kit
    if (settings.reconfigEnabled) membership.recallLogged(vault.tree)
  }

  #look(): void {
    if (this.#isOver) return
    const { database: vault, membership, ports } = this.#kit
    this.#state = 'looking'
    const facts = {
      self: membership.self,
      lastZxid: formatZxid(vault.lastZxid),
      votes: vault.isEligibleToVote,
    }
    ports.logger.info(facts, 'Looking for a leader')
    this.#driver.step({
      type: 'look',
      footing: {
        zxid: vault.isEligibleToVote ? vault.lastZxid : UNTRUSTED_ZXID,
        epoch: vault.epochs.current,
        ...membership.configurations,
      },
    })
    this.#readOnlyLater()
  }

  /** After leadership was handed over: others are elected first, if they can. */
  #standBack(): void {
    const { database: vault, membership, settings } = this.#kit
    this.#state = 'looking'
    this.#driver.step({
      type: 'look',
      footing: { zxid: UNTRUSTED_ZXID, epoch: vault.epochs.current, ...membership.configurations },
    })
    this.#later(settings.syncLimit * settings.tickTimeMs, 'end of standing back', () => this.#look())
  }

  #readOnlyLater(): void {
    const { settings } = this.#kit
    if (!settings.readOnlyModeEnabled || this.#readOnly !== undefined) return
    this.#later(Math.max(READ_ONLY_AFTER_MS, settings.tickTimeMs), 'read-only mode', () => {
      if (this.#state !== 'looking' || this.#readOnly !== undefined) return
      this.#readOnly = new ReadOnlyRole(this.#kit)
    })
  }

  #decided({ state, vote }: Decided): void {
    this.#decidedAt = this.#kit.ports.clock.monotonic()
    this.#enter(state, vote.leader)
  }

  /** R1 A role begins when the one before it has ended, with a log that nobody else writes to. */
  #enter(state: Exclude<PeerState, 'looking'>, leader: ServerId): void {
    if (this.#isOver) return
    for (const cancel of this.#cancels.splice(0)) cancel()
    this.#readOnly?.end()
    this.#readOnly = undefined
    this.#state = state
    const { ports, membership, failed } = this.#kit
    const term: LeaderRole | LearnerRole =
      state === 'leading'
        ? new LeaderRole(
            this.#kit,
            this.#eventsOf(() => term),
          )
        : new LearnerRole(
            this.#kit,
            leader,
            state === 'observing',
            this.#eventsOf(() => term),
          )
    this.#term = term
    ports.logger.info({ self: membership.self, leader }, roleSentence(state, leader))
    if (term instanceof LeaderRole && this.#oracle?.mayContinueAlone === true) term.setOracle(true)
    term.begin().catch(failed)
  }

  #consulted(goOn: boolean): void {
    this.#driver.step({ type: 'oracle', goOn })
    if (this.#term instanceof LeaderRole) this.#term.setOracle(goOn)
  }

  #eventsOf(term: () => MemberRole): ConstructorParameters<typeof LeaderRole>[1] {
    return {
      established: (epoch) => this.#installed(epoch),
      exited: (because) => this.#over(term(), because),
    }
  }

  #installed(epoch: number): void {
    this.#driver.step({ type: 'installed', epoch })
    const { membership, settings, ports } = this.#kit
    const { leader } = this
    const serves = this.#state !== 'leading' || settings.leaderServes
    const sentence =
      this.#state === 'leading'
        ? `This server leads${serves ? ' and serves clients' : '; clients are served by the others (leaderServes=no)'}`
        : `This server ${this.#state === 'following' ? 'follows' : 'observes'} server ${leader} and serves clients`
    ports.logger.info({ self: membership.self, leader, epoch }, sentence)
  }

  /** R6 A role ends once: a second way out would end the role that comes next, under its feet. */
  #over(term: MemberRole, because: RoleExit): void {
    if (this.#term !== term || this.#isOver) return
    const { logger } = this.#kit.ports
    const { reason } = because
    if (this.#leaving === term) return logger.warn({ reason }, 'More went wrong while a role was ending')
    this.#leaving = term
    logger.info(
      { reason },
      `This server is not ${this.#state} any more, and serves nobody until there is a leader`,
    )
    this.#moving = this.#moving
      .then(() => this.#move(term, because))
      .catch((error: unknown) => {
        // It has not ended; another attempt may.
        if (this.#leaving === term) this.#leaving = undefined
        this.#fail(error)
      })
  }

  /**
   * R2 (16) The way out of a role: its clients and its connections go; what it has logged becomes durable and nothing comes
   * after it; the tree is brought to the end of the log. Only then does this server vote again.
   */
  async #move(
    term: MemberRole,
    { designated, handedOver, electionDelayMs: pauseMs, leaderSilent: unheard, reconnect: again }: RoleExit,
  ): Promise<void> {
    const { database: vault, window, settings, ports } = this.#kit
    await term.end()
    await vault.endRole()
    await catchUpWindow(window, vault)
    this.#recall()
    if (this.#term === term) this.#term = undefined
    const was = this.#state
    const wasObserving = was === 'observing'
    this.#state = 'looking'
    this.#ended()
    if (this.#isOver || this.#closing !== undefined) return
    if (designated !== undefined) return this.#assign(designated)
    if (handedOver === true) return this.#standBack()
    // R4 A leader that was elected in this moment may need another one until it can be spoken to.
    const young = ports.clock.monotonic() - this.#decidedAt < dialDefaults.retryForMs
    const samePlace = again === true || (unheard === true && young)
    if (samePlace && term instanceof LearnerRole && was !== 'looking')
      return this.#later(AGAIN_MS, 'next attempt at the leader', () => this.#enter(was, term.leader))
    // Observers of a leader that has gone do not all come at once.
    const spread = wasObserving ? settings.observerElectionDelayMs + settings.observerReconnectDelayMs : 0
    const wait = (pauseMs ?? 0) + (spread === 0 ? 0 : ports.random.below(spread + 1))
    if (wait === 0) return this.#look()
    this.#later(wait, 'next election', () => this.#look())
  }

  /** A committed change of the configuration says who leads. */
  #assign(leader: ServerId): void {
    const state = this.#stateUnder(leader)
    this.#driver.step({ type: 'assigned', state, leader })
    this.#enter(state, leader)
  }

  #stateUnder(leader: ServerId): Exclude<PeerState, 'looking'> {
    const { membership } = this.#kit
    if (leader === membership.self) return 'leading'
    return membership.role === 'observer' ? 'observing' : 'following'
  }

  #later(ms: number, name: string, action: () => void): void {
    if (this.#isOver) return
    this.#cancels.push(this.#kit.ports.clock.after(ms, name, action))
  }

  // Configurations

  #configure({ configuration, restart }: Pick<Configure, 'configuration' | 'restart'>): void {
    const { membership, settings, ports } = this.#kit
    membership.activate(configuration).kept.then(
      () => {
        this.#configured()
        if (restart && this.#state === 'looking') this.#look()
      },
      (error: unknown) => {
        if (!isFull(error)) return this.#fail(error)
        // O8 There is no role to end; the election goes on when there is space.
        ports.logger.warn({ reason: error.message }, 'A newer configuration cannot be kept yet; trying again')
        this.#later(settings.tickTimeMs, 'configuration', () => this.#configure({ configuration, restart }))
      },
    )
  }

  #configured(): void {
    const { clientPorts: door, membership } = this.#kit
    this.#links.membersChanged()
    door.moveTo(membership.clientAddresses.active)
    this.#driver.step({ type: 'configured', configurations: membership.configurations })
  }

  // The end

  /** R3 A member that can no longer vouch for what it has stops: it cuts everything and writes nothing more. */
  #fail(error: unknown): void {
    if (this.#isOver) return
    if (isFull(error)) return this.#full(error)
    this.#isOver = true
    const reason = error instanceof Error ? error.message : String(error)
    this.#kit.ports.logger.error({ reason }, 'The server stops: it can no longer vouch for its state')
    this.#quiet()
    this.#settle(error)
    void this.#term?.end().catch(() => {})
    void this.#links.close()
    void this.#kit.clientPorts.close()
  }

  /** O8 A full disk is no doubt: what is on it is whole. Between two roles there is nothing to end. */
  #full({ message: reason }: Error): void {
    const { settings, ports } = this.#kit
    if (this.#term !== undefined)
      return this.#over(this.#term, { reason, electionDelayMs: settings.tickTimeMs })
    ports.logger.warn(
      { reason },
      'The disk has refused what the last role had written; it is written again later',
    )
  }

  async #close(): Promise<void> {
    const { database: vault, snapshots, clientPorts: door, ports } = this.#kit
    if (this.#term instanceof LeaderRole) await this.#handOver(this.#term)
    if (this.#isOver) return
    this.#isOver = true
    this.#quiet()
    const stopped = door.close()
    await snapshots.stop()
    await this.#moving
    await this.#term?.end()
    this.#term = undefined
    await stopped
    await this.#links.close()
    await vault.close()
    this.#settle(undefined)
    ports.logger.info({ lastZxid: formatZxid(vault.lastZxid) }, 'Stopped')
  }

  /** Leadership goes to a member that can take it at once, if there is one. */
  async #handOver(term: LeaderRole): Promise<void> {
    const { syncLimit, tickTimeMs } = this.#kit.settings
    const ended = new Promise<void>((resolve) => {
      this.#ended = resolve
      this.#later(syncLimit * tickTimeMs, 'handing leadership over', resolve)
    })
    if (!term.transferLeadership()) return
    await ended
  }

  #quiet(): void {
    for (const cancel of this.#cancels.splice(0)) cancel()
    this.#driver.close()
    this.#oracle?.close()
    this.#readOnly?.end()
    this.#readOnly = undefined
  }
}

/** What comes after an election; the role is filled later, if at all. */
const roleSentence = (state: Exclude<PeerState, 'looking'>, leader: ServerId): string =>
  state === 'leading'
    ? 'This server is elected and gathers its followers'
    : `Server ${leader} is elected; this server joins it`

const isFull = (error: unknown): error is Error =>
  error instanceof LogFullError || (error instanceof DiskError && FULL.has(error.code))

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])
