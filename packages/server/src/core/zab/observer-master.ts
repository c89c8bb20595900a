import { counterOf, epochOf, formatZxid, makeZxid, ProtocolError } from '@zabra/protocol'
import { printConfiguration, type EnsembleConfiguration, type ServerId } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import { LearnerProgress, LearnerRegistry } from './learner-progress.ts'
import type { ConnectionId, LeaderInput, LeaderWork } from './leader-types.ts'
import { NO_ZXID, packetName, PacketType, type QuorumPacket } from './packets.ts'
import { decodeLearnerInfo, encodeConfigurationText, encodeLeaderInfo, PROTOCOL_VERSION } from './payloads.ts'
import { planSync, type SyncSources } from './sync-plan.ts'

/** What an observer master is made with. Times are in ticks. */
export interface ObserverMasterOptions {
  readonly self: ServerId
  /** The epoch of the leader that this server follows. */
  readonly epoch: number
  /** The configuration in force, which an observer brings into force as well. */
  readonly configuration: () => EnsembleConfiguration
  readonly initLimit: number
  readonly syncLimit: number
  /** Where observers are brought up to date from: what is committed and known here, and nothing else. */
  readonly sources: SyncSources
  /** Most observers at a time; default 1000. */
  readonly maxObservers?: number
}

export type ObserverMasterInput =
  | Extract<LeaderInput, { type: 'accepted' | 'packet' | 'closed' | 'streamed' | 'halfTick' }>
  /** The leader has sent PING: it is still there. */
  | { readonly type: 'pinged'; readonly zxid: Zxid }
  /** More is committed here: the window has it, and INFORM of it was sent to `observers`. */
  | { readonly type: 'committed' }

export type ObserverMasterWork = Extract<LeaderWork, { do: 'send' | 'sync' | 'drop' | 'deliver' | 'warn' }>

/**
 * A follower that keeps observers up to date in its leader's place (13), without clock, network or disk: inputs in, work out.
 * It lives as long as the follower is in step with its leader, decides nothing, and hands on nothing but what is committed.
 *
 * M1 An observer hears of the leader's epoch as of one that stands already; nobody's promise is asked for.
 * M2 PINGs are handed on as they come from the leader: an observer that hears them knows the leader to live, so it may keep
 *    the sessions of its clients. The reference sends its own, also while it hears nothing itself.
 * M3 An observer may be ahead of this server, within the epoch. What it has then is on its way here, so it waits for that; the
 *    reference would have it cut away what is committed.
 */
export class ObserverMaster {
  readonly #options: ObserverMasterOptions
  readonly #observers = new LearnerRegistry()
  #halfTicks = 0
  #work: ObserverMasterWork[] = []

  constructor(options: ObserverMasterOptions) {
    this.#options = options
  }

  /** To whom INFORM goes. The array is this machine's; do not keep it. */
  get observers(): readonly ConnectionId[] {
    return this.#observers.observers
  }

  /** Whether an observer waits for what is committed next. */
  get hasWaitingObservers(): boolean {
    for (const { state: phase } of this.#observers) if (phase === 'promised') return true
    return false
  }

  /** Takes one input and returns what is to be done. The result holds until the next call. */
  step(input: ObserverMasterInput): readonly ObserverMasterWork[] {
    this.#work = []
    this.#dispatchInput(input)
    return this.#work
  }

  /** HOT. Something came from an observer, or a long transfer to it made progress: it is alive. */
  heartbeat(from: ConnectionId): void {
    const handle = this.#observers.get(from)
    if (handle !== undefined) this.#extendDeadline(handle)
  }

  #dispatchInput(input: ObserverMasterInput): void {
    switch (input.type) {
      case 'accepted':
        return this.#observers.add(new LearnerProgress(input.from, this.#tick + this.#options.initLimit))
      case 'packet':
        return this.#receivePacket(this.#observers.get(input.from), input.packet)
      case 'closed':
        return this.#removeObserver(this.#observers.get(input.from))
      case 'streamed':
        return this.#sendNewLeader(this.#observers.get(input.to))
      case 'pinged':
        return this.#forwardPing(input.zxid)
      case 'committed':
        return this.#syncWaiting()
      case 'halfTick':
        return this.#halfTick()
    }
  }

  get #tick(): number {
    return this.#halfTicks >> 1
  }

  #extendDeadline(handle: LearnerProgress): void {
    const { initLimit, syncLimit } = this.#options
    if (handle.state === 'active') handle.deadline = this.#tick + syncLimit
    else if (handle.state === 'syncing') handle.deadline = this.#tick + initLimit + syncLimit
  }

  #receivePacket(handle: LearnerProgress | undefined, packet: QuorumPacket): void {
    if (handle === undefined) return
    this.#extendDeadline(handle)
    try {
      this.#dispatchPacket(handle, packet)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#drop(handle, error.message)
    }
  }

  #dispatchPacket(handle: LearnerProgress, packet: QuorumPacket): void {
    const { type, zxid } = packet
    if (handle.state === 'stranger') return this.#receiveObserverInfo(handle, packet)
    if (handle.state === 'asked' && type === PacketType.ackEpoch) return this.#receiveAckEpoch(handle, zxid)
    if (handle.state === 'syncing' && type === PacketType.ack) return this.#activateObserver(handle, zxid)
    if (handle.state === 'active') return this.#receiveActive(handle, packet)
    this.#drop(handle, `${packetName(type)} is not due while it is ${handle.state}`)
  }

  // An observer comes

  #receiveObserverInfo(handle: LearnerProgress, { type, zxid, data }: QuorumPacket): void {
    if (type !== PacketType.observerInfo)
      return this.#drop(handle, `only observers are kept up to date here, got ${packetName(type)}`)
    const { self, epoch, initLimit, maxObservers = 1000 } = this.#options
    const { serverId, protocolVersion } = decodeLearnerInfo(data)
    if (protocolVersion < PROTOCOL_VERSION)
      return this.#drop(handle, `its protocol ${protocolVersion} is not known here`)
    if (serverId === self) return this.#drop(handle, 'it has the id of this server')
    if (epochOf(zxid) > epoch)
      return this.#drop(
        handle,
        `it has accepted epoch ${epochOf(zxid)}, after the ${epoch} of the leader here`,
      )
    for (const other of this.#observers)
      if (other.serverId === serverId) this.#drop(other, 'the same server has come again')
    if (this.#observers.identifiedCount >= maxObservers)
      return this.#drop(handle, `there are ${maxObservers} observers already`)
    handle.serverId = serverId
    handle.isObserver = true
    handle.state = 'asked'
    handle.deadline = this.#tick + initLimit
    // M1
    this.#send(handle, PacketType.leaderInfo, makeZxid(epoch, 0), encodeLeaderInfo())
  }

  #receiveAckEpoch(handle: LearnerProgress, zxid: Zxid): void {
    handle.lastZxid = zxid
    handle.state = 'promised'
    handle.deadline = this.#tick + this.#options.initLimit
    if (zxid > 0 && epochOf(zxid) > this.#options.epoch)
      return this.#drop(handle, `it has ${formatZxid(zxid)}, of an epoch after the one here`)
    this.#sync(handle)
  }

  /** M3 */
  #isAhead({ lastZxid: zxid }: LearnerProgress): boolean {
    const { epoch, sources } = this.#options
    return zxid > sources.window.max && counterOf(zxid) > 0 && epochOf(zxid) === epoch
  }

  #syncWaiting(): void {
    for (const handle of this.#observers) if (handle.state === 'promised') this.#sync(handle)
  }

  /** History, then NEWLEADER; from here on INFORM goes to it too, behind these. */
  #sync(handle: LearnerProgress): void {
    if (this.#isAhead(handle)) return
    const { initLimit, syncLimit, sources } = this.#options
    handle.state = 'syncing'
    handle.deadline = this.#tick + initLimit + syncLimit
    const plan = planSync(handle.lastZxid, sources)
    this.#work.push({ do: 'sync', to: handle.connection, plan })
    handle.isStreaming = true
    if (plan.how !== 'snap') this.#sendNewLeader(handle)
    this.#observers.join(handle)
  }

  /** NEWLEADER waits for the end of a snapshot: what changes the tree while it is sent belongs before NEWLEADER. */
  #sendNewLeader(handle: LearnerProgress | undefined): void {
    if (handle?.isStreaming !== true) return
    handle.isStreaming = false
    const { epoch, configuration } = this.#options
    const text = encodeConfigurationText(printConfiguration(configuration()))
    this.#send(handle, PacketType.newLeader, makeZxid(epoch, 0), text)
  }

  #activateObserver(handle: LearnerProgress, zxid: Zxid): void {
    const expected = makeZxid(this.#options.epoch, 0)
    if (zxid !== expected || handle.isStreaming)
      return this.#drop(handle, `it acknowledges ${formatZxid(zxid)} instead of ${formatZxid(expected)}`)
    handle.state = 'active'
    this.#extendDeadline(handle)
    this.#send(handle, PacketType.upToDate, NO_ZXID, null)
  }

  #receiveActive(handle: LearnerProgress, packet: QuorumPacket): void {
    const { connection, serverId: server } = handle
    switch (packet.type) {
      case PacketType.ping:
      case PacketType.request:
      case PacketType.revalidate:
        this.#work.push({ do: 'deliver', from: connection, server, packet })
        return
      case PacketType.ack:
        // That of UPTODATE. An observer acknowledges nothing else, and nobody would count it.
        if (counterOf(packet.zxid) === 0) return
    }
    const facts = { server, packet: packetName(packet.type), zxid: formatZxid(packet.zxid) }
    const sentence = 'An observer sent what no observer should send now; it is ignored'
    this.#work.push({ do: 'warn', facts, sentence })
  }

  // Time

  /** M2 */
  #forwardPing(zxid: Zxid): void {
    for (const handle of this.#observers)
      if (handle.state === 'active') this.#send(handle, PacketType.ping, zxid, null)
  }

  #halfTick(): void {
    this.#halfTicks++
    if (this.#halfTicks % 2 !== 0) return
    for (const handle of this.#observers)
      if (this.#tick > handle.deadline)
        this.#drop(handle, `it was silent for too long while it was ${handle.state}`)
  }

  #send({ connection }: LearnerProgress, type: number, zxid: Zxid, data: Uint8Array | null): void {
    this.#work.push({ do: 'send', to: connection, packet: { type, zxid, data, auth: null } })
  }

  #drop(handle: LearnerProgress, reason: string): void {
    this.#work.push({ do: 'drop', connection: handle.connection, reason })
    this.#removeObserver(handle)
  }

  #removeObserver(handle: LearnerProgress | undefined): void {
    if (handle !== undefined) this.#observers.remove(handle)
  }
}
