import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import type { EnsembleConfiguration, ServerId } from '../quorum/index.ts'
import { RingBuffer } from '../ring-buffer.ts'
import type { Zxid } from '../types.ts'
import type { ConnectionId, LeaderInput, LeaderWork } from './leader-types.ts'
import { silenceReason, type LearnerProgress } from './learner-progress.ts'
import { LearnerRegistry } from './learner-registry.ts'
import { LearnerSync } from './learner-sync.ts'
import { packetName, PacketType, type QuorumPacket } from './packets.ts'
import { decodeLearnerInfo, encodeLeaderInfo, PROTOCOL_VERSION } from './payloads.ts'
import type { SyncSources } from './sync-plan.ts'
import { TickCounter } from './tick-counter.ts'

/** Options of an observer master. Times are in ticks. */
export interface ObserverMasterOptions {
  readonly self: ServerId
  /** The epoch of the leader that this server follows. */
  readonly epoch: number
  /** Returns the active configuration, which observers activate too. */
  readonly configuration: () => EnsembleConfiguration
  readonly initLimit: number
  readonly syncLimit: number
  /** Sources to synchronise observers from: committed transactions only. */
  readonly sources: SyncSources
  /** Largest number of observers; default 1000. */
  readonly maxObservers?: number
}

/** Inputs of an observer master. */
export type ObserverMasterInput =
  | Extract<LeaderInput, { type: 'accepted' | 'packet' | 'closed' | 'streamed' | 'halfTick' }>
  /** The leader has sent a PING. */
  | { readonly type: 'pinged'; readonly zxid: Zxid }
  /** A transaction is committed here: it is in the window, and INFORM of it was sent to `observers`. */
  | { readonly type: 'committed' }

/** Work of an observer master. */
export type ObserverMasterWork = Extract<LeaderWork, { do: 'send' | 'sync' | 'drop' | 'deliver' | 'warn' }>

/**
 * The state machine of a follower that serves observers in place of the leader (quorum-protocol 13), without clock, network or
 * disk. It lives as long as the follower is synced with its leader, decides nothing, and passes on committed transactions only.
 *
 * An observer gets the epoch of the established leader; the observer's own acceptedEpoch cannot raise it. PINGs are forwarded
 * when the leader sends them, so an observer that receives them knows that the leader is alive and can keep its clients'
 * sessions; Apache ZooKeeper sends PINGs of its own, even without contact to the leader. An observer that is ahead of
 * this server within the epoch waits until this server has committed the same; Apache ZooKeeper would truncate committed
 * transactions.
 */
export class ObserverMaster {
  readonly #options: ObserverMasterOptions
  readonly #ticks = new TickCounter()
  readonly #observers: LearnerRegistry
  readonly #sync: LearnerSync
  readonly #work = new RingBuffer<ObserverMasterWork | undefined>(undefined)

  constructor(options: ObserverMasterOptions) {
    this.#options = options
    const { initLimit, syncLimit, sources, epoch, configuration } = options
    const emit = (work: ObserverMasterWork): void => this.#work.push(work)
    this.#observers = new LearnerRegistry({ initLimit, syncLimit, ticks: this.#ticks, emit })
    this.#sync = new LearnerSync(this.#observers, { sources, epoch: () => epoch, configuration, emit })
  }

  /** The connections to which INFORM is sent. The list is replaced, never changed. */
  get observers(): readonly ConnectionId[] {
    return this.#observers.observers
  }

  /** Whether an observer waits for the next commits. */
  get hasWaitingObservers(): boolean {
    for (const { state } of this.#observers) if (state === 'epochAccepted') return true
    return false
  }

  /** Removes and returns the next work for the host, or returns undefined. */
  nextWork(): ObserverMasterWork | undefined {
    return this.#work.shift()
  }

  /** Extends the deadline of an observer: bytes were received from it, or it reads the data that is sent to it. */
  heartbeat(from: ConnectionId): void {
    const observer = this.#observers.get(from)
    if (observer !== undefined) this.#observers.heartbeat(observer)
  }

  /** Processes an input. Afterwards the host performs all work that `nextWork` returns. */
  step(input: ObserverMasterInput): void {
    switch (input.type) {
      case 'accepted':
        return this.#observers.add(input.from, input.isAuthenticated === true)
      case 'packet':
        return this.#receivePacket(this.#observers.get(input.from), input.packet)
      case 'closed':
        return this.#observers.remove(this.#observers.get(input.from))
      case 'streamed':
        return this.#sync.sendNewLeader(this.#observers.get(input.to))
      case 'pinged':
        return this.#forwardPing(input.zxid)
      case 'committed':
        return this.#syncWaiting()
      case 'halfTick':
        return this.#halfTick()
    }
  }

  #receivePacket(observer: LearnerProgress | undefined, packet: QuorumPacket): void {
    if (observer === undefined) return
    this.#observers.heartbeat(observer)
    try {
      this.#dispatchPacket(observer, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#observers.drop(observer, error.message)
    }
  }

  #dispatchPacket(observer: LearnerProgress, packet: QuorumPacket): void {
    const { type, zxid } = packet
    const { state } = observer
    if (state === 'unidentified') return this.#receiveObserverInfo(observer, packet)
    if (state === 'epochSent' && type === PacketType.ackEpoch) return this.#receiveAckEpoch(observer, zxid)
    if (state === 'syncing' && type === PacketType.ack) {
      if (this.#sync.isNewLeaderAck(observer, zxid)) this.#sync.activate(observer)
      return
    }
    if (state === 'active') return this.#receiveActive(observer, packet)
    this.#observers.drop(observer, `unexpected ${packetName(type)} in state ${state}`)
  }

  /** Accepts an observer whatever epoch it has accepted: one after that of the leader leaves, or follows without a vote (quorum-protocol 8.3). */
  #receiveObserverInfo(observer: LearnerProgress, packet: QuorumPacket): void {
    const { data } = packet
    if (packet.type !== PacketType.observerInfo)
      return this.#observers.drop(observer, `only observers can connect here, got ${packetName(packet.type)}`)
    const { serverId, protocolVersion } = decodeLearnerInfo(data)
    const refusal = this.#refusalReason(serverId, protocolVersion)
    if (refusal !== undefined) return this.#observers.drop(observer, refusal)
    observer.serverId = serverId
    const occupied = this.#observers.placeRefusal(observer)
    if (occupied !== undefined) return this.#observers.drop(observer, occupied)
    const { epoch, maxObservers = 1000 } = this.#options
    if (this.#observers.identifiedCount >= maxObservers)
      return this.#observers.drop(observer, `there are already ${maxObservers} observers`)
    observer.isObserver = true
    observer.state = 'epochSent'
    this.#observers.awaitPacket(observer)
    this.#observers.send(observer, PacketType.leaderInfo, makeZxid(epoch, 0), encodeLeaderInfo())
  }

  #refusalReason(serverId: ServerId, protocolVersion: number): string | undefined {
    const { self } = this.#options
    if (protocolVersion < PROTOCOL_VERSION) return `its protocol version ${protocolVersion} is not supported`
    if (serverId === self) return 'it has the id of this server'
    return undefined
  }

  #receiveAckEpoch(observer: LearnerProgress, zxid: Zxid): void {
    const occupied = this.#observers.placeRefusal(observer)
    if (occupied !== undefined) return this.#observers.drop(observer, occupied)
    this.#observers.replaceOthers(observer)
    observer.lastZxid = zxid
    observer.state = 'epochAccepted'
    this.#observers.awaitPacket(observer)
    if (zxid > 0 && epochOf(zxid) > this.#options.epoch)
      return this.#observers.drop(
        observer,
        `it has ${formatZxid(zxid)}, of an epoch after that of the leader`,
      )
    this.#syncUnlessAhead(observer)
  }

  #syncWaiting(): void {
    for (const observer of this.#observers)
      if (observer.state === 'epochAccepted') this.#syncUnlessAhead(observer)
  }

  /** Synchronises an observer unless it has transactions of this epoch that are not committed here yet. */
  #syncUnlessAhead(observer: LearnerProgress): void {
    const { epoch, sources } = this.#options
    const { lastZxid } = observer
    if (lastZxid > sources.window.max && counterOf(lastZxid) > 0 && epochOf(lastZxid) === epoch) return
    this.#sync.begin(observer)
  }

  #receiveActive({ connection, serverId: server }: LearnerProgress, packet: QuorumPacket): void {
    switch (packet.type) {
      case PacketType.ping:
      case PacketType.request:
      case PacketType.revalidate:
        this.#work.push({ do: 'deliver', from: connection, server, packet })
        return
      case PacketType.ack:
        // The ACK of UPTODATE. Observers acknowledge nothing else.
        if (counterOf(packet.zxid) === 0) return
    }
    const context = { server, packet: packetName(packet.type), zxid: formatZxid(packet.zxid) }
    this.#work.push({ do: 'warn', context, message: 'Ignored an unexpected packet of an observer' })
  }

  #forwardPing(zxid: Zxid): void {
    for (const observer of this.#observers)
      if (observer.state === 'active') this.#observers.send(observer, PacketType.ping, zxid, null)
  }

  #halfTick(): void {
    if (!this.#ticks.advance()) return
    for (const observer of this.#observers)
      if (this.#ticks.now > observer.deadline) this.#observers.drop(observer, silenceReason(observer))
  }
}
