import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import type { LeaderStatus } from '../admin/index.ts'
import type { EnsembleConfiguration } from '../core/quorum/index.ts'
import { SessionTracker } from '../core/sessions/index.ts'
import type { Identity, Zxid } from '../core/types.ts'
import {
  decodeForwardedRequest,
  decodeLearnerInfo,
  decodeRevalidation,
  encodeRevalidationReply,
  Leader,
  PacketType,
  decodeTouches,
  type ConnectionId,
  type LeaderInput,
  type LeaderWork,
  type QuorumPacket,
} from '../core/zab/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { LeaderPipeline, type QuorumProtocol } from '../pipeline/index.ts'
import { listenAddresses } from './addresses.ts'
import { unknownServerRefusal } from './admission.ts'
import { learnerBroadcast } from './broadcast.ts'
import { RoleClients } from './role-clients.ts'
import { roleMetrics } from './role-metrics.ts'
import { Durability } from './durability.ts'
import { LearnerConnection } from './learner-connection.ts'
import type { MemberContext, RoleExit, MemberRole, RoleEvents } from './context.ts'
import { quorumPortDefaults, QuorumPort } from './quorum-port.ts'
import { validateReconfiguration } from './reconfigure.ts'
import { syncSources } from './sync-sources.ts'
import { LearnerSyncs } from './learner-syncs.ts'
import { Mailbox } from './mailbox.ts'

/** How long the answer to `ydld` has to reach who asked, in milliseconds. */
const YIELD_MS = 50

/**
 * A term as leader: what the machine of a leader (`Leader`) asks for is done here, one input after the other.
 * The rules of order are those of `keeper.ts`.
 */
export class LeaderRole implements MemberRole {
  readonly #kit: MemberContext
  readonly #events: RoleEvents
  readonly #turns: Mailbox<LeaderInput, LeaderWork>
  readonly #leader: Leader
  readonly #port: QuorumPort
  readonly #links = new Map<ConnectionId, LearnerConnection>()
  readonly #keeper: Durability
  #clients: RoleClients<LeaderPipeline<ClientChannel>> | undefined
  #nextId = 1
  #nextTicket = 1
  readonly #confirming = new Map<number, () => void>()
  #cancelTick: Cancel = () => {}
  #cancelYield: Cancel = () => {}
  readonly #transfers: LearnerSyncs
  #storing: Promise<void> | undefined
  #over = false
  #leadsSince = 0

  constructor(kit: MemberContext, events: RoleEvents) {
    this.#kit = kit
    this.#events = events
    const { settings, membership, database: vault } = kit
    this.#leader = new Leader(
      {
        self: membership.self,
        ...membership.configurations,
        acceptedEpoch: vault.epochs.accepted,
        currentEpoch: vault.epochs.current,
        lastZxid: vault.lastZxid,
        initLimit: settings.initLimit,
        syncLimit: settings.syncLimit,
        reconfigEnabled: settings.reconfigEnabled,
        oracle: settings.oraclePath !== undefined,
        sources: syncSources(kit),
      },
      learnerBroadcast(this.#links, {
        commit: (zxid) => this.#clients!.pipeline.commit(zxid),
        activate: (configuration) => this.#activate(configuration),
        leadershipConfirmed: (ticket) => this.#confirmed(ticket),
      }),
    )
    this.#turns = new Mailbox({
      step: (input) => this.#leader.step(input),
      perform: (work) => this.#perform(work),
      failed: kit.failed,
      runInBatch: (action) =>
        this.#clients === undefined ? action() : this.#clients.service.runTurn(action),
    })
    this.#transfers = new LearnerSyncs(kit, (to) => this.#turns.enqueue({ type: 'streamed', to }))
    this.#keeper = new Durability(kit, {
      durable: (zxid) => this.#turns.run(() => this.#durable(zxid)),
      exited: (because) => this.#leave(because),
    })
    this.#port = new QuorumPort({
      ...quorumPortDefaults,
      network: kit.ports.network,
      clock: kit.ports.clock,
      logger: kit.ports.logger,
      listen: listenAddresses(kit, 'quorumPort'),
      refusal: unknownServerRefusal(kit),
      identified: (packet, wire) => this.#turns.run(() => this.#identified(packet, wire)),
    })
  }

  get epoch(): number {
    return this.#leader.epoch
  }

  get links(): Iterable<LearnerConnection> {
    return this.#links.values()
  }

  async begin(): Promise<void> {
    // O1 Nobody else writes to it from now on.
    void this.#keeper.log
    this.#turns.post({ type: 'start' })
    this.#tick(this.#kit.ports.clock.monotonic())
    try {
      await this.#port.open()
    } catch (error) {
      this.#leave({ reason: error instanceof Error ? error.message : String(error) })
    }
  }

  /**
   * Asks another member to take over. The role is over once one of them can; meanwhile nothing is written. False when there is
   * nothing to hand over, or nobody to take it.
   */
  transferLeadership(): boolean {
    this.#turns.post({ type: 'transfer' })
    return this.#clients !== undefined && (this.#over || !this.#leader.canPropose)
  }

  /** What the oracle says from now on. */
  setOracle(goOn: boolean): void {
    this.#turns.post({ type: 'oracle', goOn })
  }

  async end(): Promise<void> {
    this.#over = true
    this.#turns.stop()
    this.#cancelTick()
    this.#cancelYield()
    this.#clients?.end('Closed: this server does not lead any more')
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
    this.#confirming.clear()
    await this.#port.close()
    // What the disk has begun comes to its end before another role looks at it.
    await this.#storing
  }

  #leave(because: RoleExit): void {
    if (this.#over) return
    this.#over = true
    // O7
    this.#turns.stop()
    this.#events.exited(because)
  }

  // Time

  /** Half ticks come at their times, however long a turn was. */
  #tick(at: number): void {
    const { clock } = this.#kit.ports
    const next = Math.max(at + this.#kit.settings.tickTimeMs / 2, clock.monotonic())
    this.#cancelTick = clock.after(next - clock.monotonic(), 'half a tick of a leader', () => {
      this.#turns.post({ type: 'halfTick' })
      if (this.#leader.canPropose && this.#clients?.pipeline.hasDroppedRequest === true)
        this.#leave({
          reason: 'nobody has taken the leadership over, and what was asked meanwhile has no answer',
        })
      if (!this.#over) this.#tick(next)
    })
  }

  // Learners

  #identified(packet: QuorumPacket, wire: Connection): void {
    const id = this.#nextId++
    const { serverId } = decodeLearnerInfo(packet.data)
    const link = new LearnerConnection(id, serverId, wire, this.#kit, {
      received: (read) => this.#turns.run(read),
      packet: (type, zxid, data, auth) => this.#packet(link, type, zxid, data, auth),
      progress: () => this.#leader.heartbeat(id),
      lost: (reason) => this.#turns.run(() => this.#lost(link, reason)),
    })
    link.isObserver = packet.type === PacketType.observerInfo
    link.setReadTimeout(this.#kit.settings.initLimit * this.#kit.settings.tickTimeMs)
    this.#links.set(id, link)
    this.#turns.enqueue({ type: 'accepted', from: id })
    this.#turns.enqueue({ type: 'packet', from: id, packet })
  }

  #packet(
    link: LearnerConnection,
    type: number,
    zxid: Zxid,
    data: Uint8Array | null,
    auth: readonly Identity[] | null,
  ): void {
    if (type === PacketType.ack && this.#leader.ack(link.id, zxid)) return
    // What is asked for comes as often as writes do, and the machine would only hand it on.
    if (type === PacketType.request && this.#leader.heartbeat(link.id)) return this.#request(link, data, auth)
    // Once this server leads a learner hears pings, and answers them.
    if (type === PacketType.ack && this.#leader.phase === 'broadcast') link.setReadTimeout(this.#syncLimitMs)
    this.#turns.enqueue({ type: 'packet', from: link.id, packet: { type, zxid, data, auth } })
  }

  #lost(link: LearnerConnection, reason: string): void {
    if (!this.#links.delete(link.id)) return
    this.#kit.ports.logger.info({ peer: link.serverId, reason }, 'A member that followed is gone')
    this.#turns.enqueue({ type: 'closed', from: link.id })
  }

  // Work

  #perform(work: LeaderWork): void {
    const { ports, membership } = this.#kit
    switch (work.do) {
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        return this.#links.get(work.to)?.send(type, zxid, data, auth)
      }
      case 'sync': {
        const link = this.#links.get(work.to)
        return link === undefined ? undefined : this.#transfers.start(link, work.plan)
      }
      case 'drop':
        return this.#drop(work.connection, work.reason)
      case 'store':
        return this.#store(work.what, work.epoch)
      case 'proposeConfiguration':
        membership.propose(work.configuration).catch(this.#kit.failed)
        return this.#kit.configurationChanged()
      case 'activate':
        return this.#activate(work.configuration)
      case 'lead':
        return this.#lead(work.epoch, work.zxid)
      case 'deliver':
        return this.#deliver(work.from, work.packet)
      case 'joined':
        return this.#joined(work.connection)
      case 'left':
        return this.#left(work.connection)
      case 'stop': {
        const { reason, designated, successor } = work.because
        return this.#leave({
          reason,
          ...(designated === undefined ? {} : { designated }),
          ...(successor === undefined ? {} : { handedOver: true }),
        })
      }
      case 'warn':
        return ports.logger.warn(work.facts, work.sentence)
    }
  }

  #drop(id: ConnectionId, reason: string): void {
    const link = this.#links.get(id)
    if (link === undefined) return
    this.#links.delete(id)
    this.#kit.ports.logger.warn(
      { peer: link.serverId, address: link.address, reason },
      'A member was sent away',
    )
    link.close()
  }

  #store(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    this.#storing = this.#keeper
      .storeEpoch(what, epoch)
      .then(() => this.#turns.post({ type: 'stored', what, epoch }), this.#kit.failed)
  }

  #durable(zxid: Zxid): void {
    this.#leader.markDurable(zxid)
    this.#clients?.service.throttler.release()
  }

  #activate(configuration: EnsembleConfiguration): void {
    const { membership, failed, configurationChanged: configured } = this.#kit
    membership.activate(configuration).kept.catch(failed)
    configured()
  }

  // Leading

  #lead(epoch: number, zxid: Zxid): void {
    const { settings, ports, database: vault } = this.#kit
    const writer = this.#keeper.log
    const now = ports.clock.monotonic()
    this.#clients = new RoleClients(this.#kit, {
      sessions: new SessionTracker(settings.tickTimeMs, now, { table: vault.sessions }),
      managesContainers: true,
      role: roleMetrics(this.#kit, {
        mode: 'leader',
        peerState: () => `leading - ${this.#leader.phase}`,
        leader: () => this.#figures(),
        yieldLeadership: () => {
          // The answer goes out first.
          const { clock } = this.#kit.ports
          this.#cancelYield = clock.after(YIELD_MS, 'leadership that was yielded', () =>
            this.transferLeadership(),
          )
          return 'Sent yield leadership request to leader.'
        },
      }),
      reconfigure: (request, of) => validateReconfiguration(this.#kit, this.#leader, request, of),
      pipeline: (kit) =>
        new LeaderPipeline({
          ...kit,
          log: {
            get state() {
              return writer.state
            },
            append: (logged, payload, adler) => writer.appendPayload(logged.header.zxid, payload!, adler),
          },
          quorum: this.#quorum(),
          lastZxid: zxid,
          serverId: settings.serverId,
          canUpgradeSessions: settings.localSessionsUpgradingEnabled,
        }),
    })
    this.#leadsSince = now
    this.#events.established(epoch)
    for (const link of this.#links.values()) if (link.isSynced) link.setReadTimeout(this.#syncLimitMs)
    const { service: core, pipeline: writes } = this.#clients
    core.runTurn(() => writes.closeOrphanedSessions())
    if (settings.leaderServes) this.#clients.open()
  }

  get #syncLimitMs(): number {
    return this.#kit.settings.syncLimit * this.#kit.settings.tickTimeMs
  }

  #quorum(): QuorumProtocol {
    const leader = this.#leader
    return {
      propose: (zxid, payload) => this.#leader.propose(zxid, payload),
      confirmLeadership: (done) => {
        const ticket = this.#nextTicket++
        this.#confirming.set(ticket, done)
        this.#turns.enqueue({ type: 'confirm', ticket })
      },
      sendSync: (learner) => (learner as LearnerConnection).send(PacketType.sync, 0),
      get isAccepting() {
        return leader.canPropose
      },
    }
  }

  #figures(): LeaderStatus {
    const links = [...this.#links.values()].filter(({ isSynced: joined }) => joined)
    const { pipeline: writes } = this.#clients!
    const isVoter = ({ serverId: server, isObserver: observer }: LearnerConnection): boolean =>
      !observer && this.#kit.membership.active.members.get(server)?.role === 'participant'
    const observers = links.filter(({ isObserver: observer }) => observer).length
    const voters = links.filter(isVoter).length
    const { min, max } = writes.proposalSize
    return {
      learners: this.#links.size,
      syncedFollowers: voters,
      syncedNonVotingFollowers: links.length - observers - voters,
      syncedObservers: observers,
      pendingSyncs: writes.pendingSyncs,
      uptimeMs: this.#kit.ports.clock.monotonic() - this.#leadsSince,
      lastProposalSize: writes.lastProposalSize,
      minProposalSize: writes.lastProposalSize === -1 ? -1 : min,
      maxProposalSize: writes.lastProposalSize === -1 ? -1 : max,
    }
  }

  #confirmed(ticket: number): void {
    const done = this.#confirming.get(ticket)
    this.#confirming.delete(ticket)
    done?.()
  }

  #joined(id: ConnectionId): void {
    const link = this.#links.get(id)
    if (link !== undefined) link.isSynced = true
  }

  #left(id: ConnectionId): void {
    const link = this.#links.get(id)
    if (link !== undefined) this.#clients?.pipeline.removeLearner(link)
  }

  /** What a learner asks for its clients. One that cannot be read ends its connection. */
  #deliver(from: ConnectionId, packet: QuorumPacket): void {
    const link = this.#links.get(from)
    if (link === undefined || this.#clients === undefined) return
    try {
      this.#serve(link, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      link.fail(error.message)
    }
  }

  #serve(link: LearnerConnection, { type, data, auth }: QuorumPacket): void {
    const { pipeline: writes } = this.#clients!
    if (type === PacketType.ping)
      return decodeTouches(data, (id, timeout) => writes.touchSession(id, timeout))
    if (type === PacketType.revalidate) {
      const { session, timeout } = decodeRevalidation(data)
      return writes.revalidateInOrder(link, session, timeout, (valid) =>
        link.send(PacketType.revalidate, -1, encodeRevalidationReply({ session, valid })),
      )
    }
    this.#request(link, data, auth)
  }

  #request(link: LearnerConnection, data: Uint8Array | null, auth: readonly Identity[] | null): void {
    const { session: sessionId, cxid, type, body } = decodeForwardedRequest(data)
    this.#clients?.pipeline.submitForwarded(link, { sessionId, cxid, type, body, identities: auth ?? NOBODY })
  }
}

const NOBODY: readonly Identity[] = []
