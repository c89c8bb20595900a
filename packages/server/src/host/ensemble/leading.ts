import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import type { LeaderFigures } from '../../admin/index.ts'
import type { EnsembleConfiguration } from '../../core/quorum/index.ts'
import { SessionTracker } from '../../core/sessions/index.ts'
import type { Identity, Zxid } from '../../core/types.ts'
import {
  decodeForwardedRequest,
  decodeLearnerInfo,
  decodeRevalidation,
  encodeRevalidationAnswer,
  Leader,
  PacketType,
  readTouches,
  type ConnectionId,
  type LeaderInput,
  type LeaderWork,
  type QuorumPacket,
} from '../../core/zab/index.ts'
import type { ClientConnection } from '../connection.ts'
import { LeaderWrites, type Quorum } from '../writes/index.ts'
import { listenOn } from './addresses.ts'
import { admission } from './admission.ts'
import { broadcastTo } from './broadcast.ts'
import { ClientSide } from './client-side.ts'
import { roleFigures } from './figures.ts'
import { Keeper } from './keeper.ts'
import { LearnerLink } from './learner-link.ts'
import type { MemberKit, Over, Term, TermEvents } from './member-kit.ts'
import { portDefaults, QuorumPort } from './quorum-port.ts'
import { judgeReconfiguration } from './reconfigure.ts'
import { syncSources } from './sync-sources.ts'
import { Transfers } from './transfers.ts'
import { Turns } from './turns.ts'

/** How long the answer to `ydld` has to reach who asked, in milliseconds. */
const YIELD_MS = 50

/**
 * A term as leader: what the machine of a leader (`Leader`) asks for is done here, one input after the other.
 * The rules of order are those of `keeper.ts`.
 */
export class LeaderTerm implements Term {
  readonly #kit: MemberKit
  readonly #events: TermEvents
  readonly #turns: Turns<LeaderInput, LeaderWork>
  readonly #leader: Leader
  readonly #port: QuorumPort
  readonly #links = new Map<ConnectionId, LearnerLink>()
  readonly #keeper: Keeper
  #clients: ClientSide<LeaderWrites<ClientConnection>> | undefined
  #nextId = 1
  #nextTicket = 1
  readonly #confirming = new Map<number, () => void>()
  #cancelTick: Cancel = () => {}
  #cancelYield: Cancel = () => {}
  readonly #transfers: Transfers
  #storing: Promise<void> | undefined
  #over = false
  #leadsSince = 0

  constructor(kit: MemberKit, events: TermEvents) {
    this.#kit = kit
    this.#events = events
    const { settings, membership, vault } = kit
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
      broadcastTo(this.#links, {
        commit: (zxid) => this.#clients!.writes.commit(zxid),
        activate: (configuration) => this.#activate(configuration),
        confirmed: (ticket) => this.#confirmed(ticket),
      }),
    )
    this.#turns = new Turns({
      step: (input) => this.#leader.step(input),
      perform: (work) => this.#perform(work),
      failed: kit.failed,
      within: (action) => (this.#clients === undefined ? action() : this.#clients.core.turn(action)),
    })
    this.#transfers = new Transfers(kit, (to) => this.#turns.feed({ type: 'streamed', to }))
    this.#keeper = new Keeper(kit, {
      durable: (zxid) => this.#turns.run(() => this.#durable(zxid)),
      over: (because) => this.#leave(because),
    })
    this.#port = new QuorumPort({
      ...portDefaults,
      network: kit.ports.network,
      clock: kit.ports.clock,
      logger: kit.ports.logger,
      listen: listenOn(kit, 'quorumPort'),
      objection: admission(kit),
      identified: (packet, wire) => this.#turns.run(() => this.#identified(packet, wire)),
    })
  }

  get epoch(): number {
    return this.#leader.epoch
  }

  get links(): Iterable<LearnerLink> {
    return this.#links.values()
  }

  async begin(): Promise<void> {
    // O1 Nobody else writes to it from now on.
    void this.#keeper.log
    this.#turns.step({ type: 'start' })
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
  transfer(): boolean {
    this.#turns.step({ type: 'transfer' })
    return this.#clients !== undefined && (this.#over || !this.#leader.accepting)
  }

  /** What the oracle says from now on. */
  oracle(goOn: boolean): void {
    this.#turns.step({ type: 'oracle', goOn })
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

  #leave(because: Over): void {
    if (this.#over) return
    this.#over = true
    // O7
    this.#turns.stop()
    this.#events.over(because)
  }

  // Time

  /** Half ticks come at their times, however long a turn was. */
  #tick(at: number): void {
    const { clock } = this.#kit.ports
    const next = Math.max(at + this.#kit.settings.tickTimeMs / 2, clock.monotonic())
    this.#cancelTick = clock.after(next - clock.monotonic(), 'half a tick of a leader', () => {
      this.#turns.step({ type: 'halfTick' })
      if (this.#leader.accepting && this.#clients?.writes.swallowed === true)
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
    const link = new LearnerLink(id, serverId, wire, this.#kit, {
      turn: (read) => this.#turns.run(read),
      packet: (type, zxid, data, auth) => this.#packet(link, type, zxid, data, auth),
      progress: () => this.#leader.heard(id),
      lost: (reason) => this.#turns.run(() => this.#lost(link, reason)),
    })
    link.observer = packet.type === PacketType.observerInfo
    link.expect(this.#kit.settings.initLimit * this.#kit.settings.tickTimeMs)
    this.#links.set(id, link)
    this.#turns.feed({ type: 'accepted', from: id })
    this.#turns.feed({ type: 'packet', from: id, packet })
  }

  #packet(
    link: LearnerLink,
    type: number,
    zxid: Zxid,
    data: Uint8Array | null,
    auth: readonly Identity[] | null,
  ): void {
    if (type === PacketType.ack && this.#leader.ack(link.id, zxid)) return
    // What is asked for comes as often as writes do, and the machine would only hand it on.
    if (type === PacketType.request && this.#leader.heard(link.id)) return this.#request(link, data, auth)
    // Once this server leads a learner hears pings, and answers them.
    if (type === PacketType.ack && this.#leader.phase === 'broadcast') link.expect(this.#syncLimitMs)
    this.#turns.feed({ type: 'packet', from: link.id, packet: { type, zxid, data, auth } })
  }

  #lost(link: LearnerLink, reason: string): void {
    if (!this.#links.delete(link.id)) return
    this.#kit.ports.logger.info({ peer: link.server, reason }, 'A member that followed is gone')
    this.#turns.feed({ type: 'closed', from: link.id })
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
        return link === undefined ? undefined : this.#transfers.begin(link, work.plan)
      }
      case 'drop':
        return this.#drop(work.connection, work.reason)
      case 'store':
        return this.#store(work.what, work.epoch)
      case 'proposeConfiguration':
        membership.propose(work.configuration).catch(this.#kit.failed)
        return this.#kit.configured()
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
      { peer: link.server, address: link.address, reason },
      'A member was sent away',
    )
    link.close()
  }

  #store(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    this.#storing = this.#keeper
      .store(what, epoch)
      .then(() => this.#turns.step({ type: 'stored', what, epoch }), this.#kit.failed)
  }

  #durable(zxid: Zxid): void {
    this.#leader.durable(zxid)
    this.#clients?.core.releaseHeld()
  }

  #activate(configuration: EnsembleConfiguration): void {
    const { membership, failed, configured } = this.#kit
    membership.activate(configuration).kept.catch(failed)
    configured()
  }

  // Leading

  #lead(epoch: number, zxid: Zxid): void {
    const { settings, ports, vault } = this.#kit
    const writer = this.#keeper.log
    const now = ports.clock.monotonic()
    this.#clients = new ClientSide(this.#kit, {
      sessions: new SessionTracker(settings.tickTimeMs, now, { table: vault.sessions }),
      reaps: true,
      role: roleFigures(this.#kit, {
        mode: 'leader',
        peerState: () => `leading - ${this.#leader.phase}`,
        leader: () => this.#figures(),
        yieldLeadership: () => {
          // The answer goes out first.
          const { clock } = this.#kit.ports
          this.#cancelYield = clock.after(YIELD_MS, 'leadership that was yielded', () => this.transfer())
          return 'Sent yield leadership request to leader.'
        },
      }),
      reconfigure: (request, of) => judgeReconfiguration(this.#kit, this.#leader, request, of),
      writes: (kit) =>
        new LeaderWrites({
          ...kit,
          journal: {
            get state() {
              return writer.state
            },
            append: (logged, payload, adler) => writer.appendPayload(logged.header.zxid, payload!, adler),
          },
          quorum: this.#quorum(),
          lastZxid: zxid,
          serverId: settings.serverId,
          upgradesSessions: settings.localSessionsUpgradingEnabled,
        }),
    })
    this.#leadsSince = now
    this.#events.installed(epoch)
    for (const link of this.#links.values()) if (link.joined) link.expect(this.#syncLimitMs)
    const { core, writes } = this.#clients
    core.turn(() => writes.endOrphans())
    if (settings.leaderServes) this.#clients.open()
  }

  get #syncLimitMs(): number {
    return this.#kit.settings.syncLimit * this.#kit.settings.tickTimeMs
  }

  #quorum(): Quorum {
    const leader = this.#leader
    return {
      propose: (zxid, payload) => this.#leader.propose(zxid, payload),
      confirm: (done) => {
        const ticket = this.#nextTicket++
        this.#confirming.set(ticket, done)
        this.#turns.feed({ type: 'confirm', ticket })
      },
      synced: (learner) => (learner as LearnerLink).send(PacketType.sync, 0),
      get accepting() {
        return leader.accepting
      },
    }
  }

  #figures(): LeaderFigures {
    const links = [...this.#links.values()].filter(({ joined }) => joined)
    const { writes } = this.#clients!
    const isVoter = ({ server, observer }: LearnerLink): boolean =>
      !observer && this.#kit.membership.active.members.get(server)?.role === 'participant'
    const observers = links.filter(({ observer }) => observer).length
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
    if (link !== undefined) link.joined = true
  }

  #left(id: ConnectionId): void {
    const link = this.#links.get(id)
    if (link !== undefined) this.#clients?.writes.learnerGone(link)
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

  #serve(link: LearnerLink, { type, data, auth }: QuorumPacket): void {
    const { writes } = this.#clients!
    if (type === PacketType.ping) return readTouches(data, (id, timeout) => writes.touch(id, timeout))
    if (type === PacketType.revalidate) {
      const { session, timeout } = decodeRevalidation(data)
      return writes.revalidateBehind(link, session, timeout, (valid) =>
        link.send(PacketType.revalidate, -1, encodeRevalidationAnswer({ session, valid })),
      )
    }
    this.#request(link, data, auth)
  }

  #request(link: LearnerLink, data: Uint8Array | null, auth: readonly Identity[] | null): void {
    const { session: sessionId, cxid, type, body } = decodeForwardedRequest(data)
    this.#clients?.writes.request(link, { sessionId, cxid, type, body, identities: auth ?? NOBODY })
  }
}

const NOBODY: readonly Identity[] = []
