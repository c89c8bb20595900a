import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import type { ServerId } from '../../core/quorum/index.ts'
import type { LearnerSessions } from '../../core/sessions/index.ts'
import type { Identity, Zxid } from '../../core/types.ts'
import {
  configurationIn,
  decodeForwardedRequest,
  decodeLearnerInfo,
  decodeRevalidation,
  encodeInformAndActivate,
  encodeRevalidationAnswer,
  ObserverMaster,
  PacketType,
  readTouches,
  type ConnectionId,
  type ObserverMasterInput,
  type ObserverMasterWork,
  type QuorumPacket,
} from '../../core/zab/index.ts'
import type { ClientConnection } from '../connection.ts'
import type { LearnerWrites } from '../writes/index.ts'
import { listenOn } from './addresses.ts'
import { admission } from './admission.ts'
import { LearnerLink } from './learner-link.ts'
import type { MemberKit } from './member-kit.ts'
import { portDefaults, QuorumPort } from './quorum-port.ts'
import { syncSources } from './sync-sources.ts'
import { Transfers } from './transfers.ts'
import { Turns } from './turns.ts'

/** The follower behind which observers stand. */
export interface FollowerSide {
  readonly epoch: number
  readonly writes: LearnerWrites<ClientConnection>
  readonly sessions: LearnerSessions
  /** Runs what belongs to one turn of the follower's clients. */
  readonly within: (action: () => void) => void
}

/**
 * The observers that a follower keeps up to date (`observerMasterPort`): what the machine `ObserverMaster` asks for is done
 * here. All that the leader says comes in from the follower's own turn.
 */
export class Observers {
  readonly #kit: MemberKit
  readonly #follower: FollowerSide
  readonly #master: ObserverMaster
  readonly #turns: Turns<ObserverMasterInput, ObserverMasterWork>
  readonly #port: QuorumPort
  readonly #links = new Map<ConnectionId, LearnerLink>()
  #nextId = 1
  readonly #transfers: Transfers
  #cancelTick: Cancel = () => {}
  #over = false
  /** A change of the configuration that is committed; who leads under it comes next. */
  #change: { readonly zxid: Zxid; readonly payload: Uint8Array } | undefined

  constructor(kit: MemberKit, follower: FollowerSide) {
    this.#kit = kit
    this.#follower = follower
    const { settings, membership, ports } = kit
    this.#master = new ObserverMaster({
      self: membership.self,
      epoch: follower.epoch,
      // What is proposed may never be: an observer brings what it is given into force.
      configuration: () => membership.active,
      initLimit: settings.initLimit,
      syncLimit: settings.syncLimit,
      sources: syncSources(kit),
    })
    this.#turns = new Turns({
      step: (input) => this.#master.step(input),
      perform: (work) => this.#perform(work),
      failed: kit.failed,
      within: follower.within,
    })
    this.#transfers = new Transfers(kit, (to) => this.#turns.step({ type: 'streamed', to }))
    this.#port = new QuorumPort({
      ...portDefaults,
      network: ports.network,
      clock: ports.clock,
      logger: ports.logger,
      listen: listenOn(kit, 'quorumPort').map((at) => ({ ...at, port: settings.observerMasterPort })),
      objection: admission(kit),
      identified: (packet, wire) => this.#turns.run(() => this.#identified(packet, wire)),
    })
  }

  /** How many are in step. */
  get synced(): number {
    return [...this.#links.values()].filter(({ joined }) => joined).length
  }

  /** Opens the port. A voter without it is a voter all the same: observers go elsewhere. */
  async open(): Promise<void> {
    this.#tick()
    try {
      await this.#port.open()
      const facts = { ports: this.#port.addresses.map(({ host, port }) => `${host}:${port}`) }
      this.#kit.ports.logger.info(facts, 'Observers are kept up to date here')
    } catch (error) {
      if (this.#over) return
      const reason = error instanceof Error ? error.message : String(error)
      this.#kit.ports.logger.error(
        { reason },
        'Observers cannot be kept up to date here: the port cannot be had',
      )
    }
  }

  /** Closes everything; observers look for somebody else. */
  async end(): Promise<void> {
    this.#over = true
    this.#turns.stop()
    this.#cancelTick()
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
    await this.#port.close()
  }

  // What the leader says, in the follower's turn

  /** A transaction is committed, and in the window. One that changes the configuration waits for `activated`. */
  committed(zxid: Zxid, payload: Uint8Array): void {
    if (configurationIn(payload) !== undefined) this.#change = { zxid, payload }
    else this.#inform(PacketType.inform, zxid, payload)
  }

  /** The configuration that was committed last comes into force; with who is to lead. */
  activated(designated: ServerId): void {
    const change = this.#change
    this.#change = undefined
    if (change === undefined) return
    const data = encodeInformAndActivate(designated, change.payload)
    this.#inform(PacketType.informAndActivate, change.zxid, data)
  }

  pinged(zxid: Zxid): void {
    this.#turns.feed({ type: 'pinged', zxid })
  }

  #inform(type: number, zxid: Zxid, data: Uint8Array): void {
    for (const id of this.#master.observers) this.#links.get(id)?.send(type, zxid, data)
    if (this.#master.awaited) this.#turns.feed({ type: 'committed' })
  }

  // Observers

  #tick(): void {
    const { settings, ports } = this.#kit
    this.#cancelTick = ports.clock.after(settings.tickTimeMs / 2, 'half a tick of an observer master', () => {
      if (this.#over) return
      this.#turns.step({ type: 'halfTick' })
      this.#tick()
    })
  }

  #identified(packet: QuorumPacket, wire: Connection): void {
    const id = this.#nextId++
    const { serverId } = decodeLearnerInfo(packet.data)
    const link = new LearnerLink(id, serverId, wire, this.#kit, {
      turn: (read) => this.#turns.run(read),
      packet: (type, zxid, data, auth) =>
        this.#turns.feed({ type: 'packet', from: id, packet: { type, zxid, data, auth } }),
      progress: () => this.#master.heard(id),
      lost: (reason) => this.#turns.run(() => this.#lost(link, reason)),
    })
    link.observer = true
    const { initLimit, tickTimeMs } = this.#kit.settings
    link.expect(initLimit * tickTimeMs)
    this.#links.set(id, link)
    this.#turns.feed({ type: 'accepted', from: id })
    this.#turns.feed({ type: 'packet', from: id, packet })
  }

  #lost(link: LearnerLink, reason: string): void {
    if (!this.#links.delete(link.id)) return
    this.#kit.ports.logger.info({ peer: link.server, reason }, 'An observer is gone')
    this.#turns.feed({ type: 'closed', from: link.id })
  }

  #perform(work: ObserverMasterWork): void {
    switch (work.do) {
      case 'send': {
        const { type, zxid, data, auth } = work.packet
        const link = this.#links.get(work.to)
        link?.send(type, zxid, data, auth)
        if (type === PacketType.upToDate && link !== undefined) this.#joined(link)
        return
      }
      case 'sync': {
        const link = this.#links.get(work.to)
        return link === undefined ? undefined : this.#transfers.begin(link, work.plan)
      }
      case 'drop':
        return this.#drop(work.connection, work.reason)
      case 'deliver':
        return this.#deliver(work.from, work.packet)
      case 'warn':
        return this.#kit.ports.logger.warn(work.facts, work.sentence)
    }
  }

  #joined(link: LearnerLink): void {
    const { syncLimit, tickTimeMs } = this.#kit.settings
    link.joined = true
    link.expect(syncLimit * tickTimeMs)
  }

  #drop(id: ConnectionId, reason: string): void {
    const link = this.#links.get(id)
    if (link === undefined) return
    this.#links.delete(id)
    const facts = { peer: link.server, address: link.address, reason }
    this.#kit.ports.logger.warn(facts, 'An observer was sent away')
    link.close()
  }

  /** What an observer asks for its clients. One that cannot be read ends its connection. */
  #deliver(from: ConnectionId, packet: QuorumPacket): void {
    const link = this.#links.get(from)
    if (link === undefined) return
    try {
      this.#serve(link, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      link.fail(error.message)
    }
  }

  #serve(link: LearnerLink, { type, data, auth }: QuorumPacket): void {
    const { writes, sessions } = this.#follower
    if (type === PacketType.ping) return readTouches(data, (id, timeout) => sessions.report(id, timeout))
    if (type === PacketType.revalidate) {
      const { session, timeout } = decodeRevalidation(data)
      const revalidated = (valid: boolean): void =>
        link.send(PacketType.revalidate, -1, encodeRevalidationAnswer({ session, valid }))
      return writes.revalidate(session, timeout, { revalidated }, link.id)
    }
    const { session: sessionId, ...request } = decodeForwardedRequest(data)
    const identities: readonly Identity[] = auth ?? []
    writes.relay({ sessionId, ...request, identities }, link.id, () => link.send(PacketType.sync, 0))
  }
}
