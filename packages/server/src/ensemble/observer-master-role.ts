import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Connection } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { LearnerSessions } from '../core/sessions/index.ts'
import type { Identity, Zxid } from '../core/types.ts'
import {
  proposedConfiguration,
  decodeForwardedRequest,
  decodeLearnerInfo,
  decodeRevalidation,
  encodeInformAndActivate,
  encodeRevalidationReply,
  ObserverMaster,
  PacketType,
  decodeTouches,
  type ConnectionId,
  type ObserverMasterInput,
  type ObserverMasterWork,
  type QuorumPacket,
} from '../core/zab/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import type { LearnerPipeline } from '../pipeline/index.ts'
import { listenAddresses } from './addresses.ts'
import { unknownServerRefusal } from './admission.ts'
import { LearnerConnection } from './learner-connection.ts'
import type { MemberContext } from './context.ts'
import { quorumPortDefaults, QuorumPort } from './quorum-port.ts'
import { syncSources } from './sync-sources.ts'
import { LearnerSyncs } from './learner-syncs.ts'
import { Mailbox } from './mailbox.ts'

/** The follower behind which observers stand. */
export interface FollowerContext {
  readonly epoch: number
  readonly pipeline: LearnerPipeline<ClientChannel>
  readonly sessions: LearnerSessions
  /** Runs what belongs to one turn of the follower's clients. */
  readonly runInBatch: (action: () => void) => void
}

/**
 * The observers that a follower keeps up to date (`observerMasterPort`): what the machine `ObserverMaster` asks for is done
 * here. All that the leader says comes in from the follower's own turn.
 */
export class ObserverMasterRole {
  readonly #context: MemberContext
  readonly #follower: FollowerContext
  readonly #master: ObserverMaster
  readonly #mailbox: Mailbox<ObserverMasterInput, ObserverMasterWork>
  readonly #port: QuorumPort
  readonly #links = new Map<ConnectionId, LearnerConnection>()
  #nextId = 1
  readonly #transfers: LearnerSyncs
  #cancelTick: Cancel = () => {}
  #over = false
  /** A change of the configuration that is committed; who leads under it comes next. */
  #change: { readonly zxid: Zxid; readonly payload: Uint8Array } | undefined

  constructor(context: MemberContext, follower: FollowerContext) {
    this.#context = context
    this.#follower = follower
    const { settings, membership, platform } = context
    this.#master = new ObserverMaster({
      self: membership.self,
      epoch: follower.epoch,
      // What is proposed may never be: an observer brings what it is given into force.
      configuration: () => membership.active,
      initLimit: settings.initLimit,
      syncLimit: settings.syncLimit,
      sources: syncSources(context),
    })
    this.#mailbox = new Mailbox({
      step: (input) => this.#master.step(input),
      perform: (work) => this.#perform(work),
      failed: context.failed,
      runInBatch: follower.runInBatch,
    })
    this.#transfers = new LearnerSyncs(context, (to) => this.#mailbox.post({ type: 'streamed', to }))
    this.#port = new QuorumPort({
      ...quorumPortDefaults,
      network: platform.network,
      clock: platform.clock,
      logger: platform.logger,
      listen: listenAddresses(context, 'quorumPort').map((at) => ({
        ...at,
        port: settings.observerMasterPort,
      })),
      refusal: unknownServerRefusal(context),
      identified: (packet, wire) => this.#mailbox.run(() => this.#identified(packet, wire)),
    })
  }

  /** How many are in step. */
  get syncedObservers(): number {
    return [...this.#links.values()].filter(({ isSynced: joined }) => joined).length
  }

  /** Opens the port. A voter without it is a voter all the same: observers go elsewhere. */
  async open(): Promise<void> {
    this.#tick()
    try {
      await this.#port.open()
      const facts = { ports: this.#port.addresses.map(({ host, port }) => `${host}:${port}`) }
      this.#context.platform.logger.info(facts, 'Observers are kept up to date here')
    } catch (error) {
      if (this.#over) return
      const reason = error instanceof Error ? error.message : String(error)
      this.#context.platform.logger.error(
        { reason },
        'Observers cannot be kept up to date here: the port cannot be had',
      )
    }
  }

  /** Closes everything; observers look for somebody else. */
  async end(): Promise<void> {
    this.#over = true
    this.#mailbox.stop()
    this.#cancelTick()
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
    await this.#port.close()
  }

  // What the leader says, in the follower's turn

  /** A transaction is committed, and in the window. One that changes the configuration waits for `activated`. */
  committed(zxid: Zxid, payload: Uint8Array): void {
    if (proposedConfiguration(payload) !== undefined) this.#change = { zxid, payload }
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
    this.#mailbox.enqueue({ type: 'pinged', zxid })
  }

  #inform(type: number, zxid: Zxid, data: Uint8Array): void {
    for (const id of this.#master.observers) this.#links.get(id)?.send(type, zxid, data)
    if (this.#master.hasWaitingObservers) this.#mailbox.enqueue({ type: 'committed' })
  }

  // Observers

  #tick(): void {
    const { settings, platform } = this.#context
    this.#cancelTick = platform.clock.after(
      settings.tickTimeMs / 2,
      'half a tick of an observer master',
      () => {
        if (this.#over) return
        this.#mailbox.post({ type: 'halfTick' })
        this.#tick()
      },
    )
  }

  #identified(packet: QuorumPacket, wire: Connection): void {
    const id = this.#nextId++
    const { serverId } = decodeLearnerInfo(packet.data)
    const link = new LearnerConnection(id, serverId, wire, this.#context, {
      received: (read) => this.#mailbox.run(read),
      packet: (type, zxid, data, auth) =>
        this.#mailbox.enqueue({ type: 'packet', from: id, packet: { type, zxid, data, auth } }),
      progress: () => this.#master.heartbeat(id),
      lost: (reason) => this.#mailbox.run(() => this.#lost(link, reason)),
    })
    link.isObserver = true
    const { initLimit, tickTimeMs } = this.#context.settings
    link.setReadTimeout(initLimit * tickTimeMs)
    this.#links.set(id, link)
    this.#mailbox.enqueue({ type: 'accepted', from: id })
    this.#mailbox.enqueue({ type: 'packet', from: id, packet })
  }

  #lost(link: LearnerConnection, reason: string): void {
    if (!this.#links.delete(link.id)) return
    this.#context.platform.logger.info({ peer: link.serverId, reason }, 'An observer is gone')
    this.#mailbox.enqueue({ type: 'closed', from: link.id })
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
        return link === undefined ? undefined : this.#transfers.start(link, work.plan)
      }
      case 'drop':
        return this.#drop(work.connection, work.reason)
      case 'deliver':
        return this.#deliver(work.from, work.packet)
      case 'warn':
        return this.#context.platform.logger.warn(work.facts, work.sentence)
    }
  }

  #joined(link: LearnerConnection): void {
    const { syncLimit, tickTimeMs } = this.#context.settings
    link.isSynced = true
    link.setReadTimeout(syncLimit * tickTimeMs)
  }

  #drop(id: ConnectionId, reason: string): void {
    const link = this.#links.get(id)
    if (link === undefined) return
    this.#links.delete(id)
    const facts = { peer: link.serverId, address: link.address, reason }
    this.#context.platform.logger.warn(facts, 'An observer was sent away')
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

  #serve(link: LearnerConnection, { type, data, auth }: QuorumPacket): void {
    const { pipeline, sessions } = this.#follower
    if (type === PacketType.ping)
      return decodeTouches(data, (id, timeout) => sessions.touchFromObserver(id, timeout))
    if (type === PacketType.revalidate) {
      const { session, timeout } = decodeRevalidation(data)
      const revalidated = (valid: boolean): void =>
        link.send(PacketType.revalidate, -1, encodeRevalidationReply({ session, valid }))
      return pipeline.revalidate(session, timeout, { onRevalidated: revalidated }, link.id)
    }
    const { session: sessionId, ...request } = decodeForwardedRequest(data)
    const identities: readonly Identity[] = auth ?? []
    pipeline.forwardFromObserver({ sessionId, ...request, identities }, link.id, () =>
      link.send(PacketType.sync, 0),
    )
  }
}
