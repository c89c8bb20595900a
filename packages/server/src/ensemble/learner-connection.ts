import { ProtocolError, Writer } from '@zabra/protocol'
import type { Clock, Connection } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Identity, Zxid } from '../core/types.ts'
import {
  encodeSnapshotInfo,
  PacketSplitter,
  PacketType,
  writePacket,
  type ConnectionId,
  type MemberExtension,
  type MemberFeatures,
  type QuorumPacket,
  type SyncPlan,
} from '../core/zab/index.ts'
import type { Database, SnapshotSource } from '../database/index.ts'
import type { RawTxn } from '../persistence/index.ts'
import type { ObserverReport, PeerReport } from '../connections/role-metrics.ts'
import type { MemberContext } from './context.ts'
import type { ForwardedBytes } from './forwarded-bytes.ts'
import { isBelieved } from './forwarded-identities.ts'
import { PacketQueueStats } from './packet-queue-stats.ts'
import { MAX_UNKNOWN_SERVERS } from './quorum-port.ts'
import { ReadScheduler } from './read-scheduler.ts'
import { PeerConnection } from './peer-connection.ts'

/** Receives the events of a connection to a learner. All but `lost` are called inside `received`. */
export interface LearnerConnectionEvents {
  /** Bytes have arrived; `read` splits them into packets. A `ProtocolError` that it throws ends the connection. */
  received(read: () => void): void
  /** A packet has arrived. Its data may be kept. */
  packet(type: number, zxid: Zxid, data: Uint8Array | null, auth: readonly Identity[] | null): void
  /** The learner has drained a part of a sync. */
  progress(): void
  lost(reason: string): void
}

/**
 * The longest reply to a PING, which has 12 bytes for each touched session: more than a million sessions. A server that no configuration
 * names may report as many as fit into the longest request, a hundred thousand: one program may claim the ids of many servers.
 */
const MAX_TOUCHES_BYTES = 16 << 20
/** The longest packet of a learner that is not up to date: what it has stored. Anything else would take memory for a stranger. */
const MAX_BYTES_BEFORE_SYNC = 64 * 1024
/** Bytes of history that are written at once during a sync. */
const SLICE_BYTES = 64 * 1024

/**
 * Milliseconds of one turn of the event loop for the packets of one learner. Under load 2 ms made creations through three servers a fifth
 * more expensive: fewer acknowledgements and requests came together.
 */
const TURN_MS = 5
/** The same for a server that no configuration names: all of them together have as much as one member. */
const UNKNOWN_TURN_MS = TURN_MS / MAX_UNKNOWN_SERVERS

/** The packets that a learner may receive between NEWLEADER and UPTODATE, and UPTODATE. */
const passesSync: ReadonlySet<number> = new Set([
  PacketType.ping,
  PacketType.sessionSecret,
  PacketType.clusterId,
  PacketType.featureLevel,
  PacketType.upToDate,
])

/** The connection of a leader, or of an observer master, to a learner. */
export class LearnerConnection implements ObserverReport, PeerReport {
  readonly id: ConnectionId
  readonly address: string
  readonly serverId: ServerId
  readonly establishedAt: number
  packetsReceived = 0
  packetsSent = 0
  requests = 0
  lastZxid: Zxid = -1
  /** The connection as it was accepted. */
  readonly accepted: Connection
  isObserver = false
  /** What the learner has said of itself; undefined for a member of Apache ZooKeeper. */
  extension: MemberExtension | undefined
  /** The feature levels of the learner and of its observers; undefined before it has reported them. */
  levels: readonly MemberFeatures[] | undefined
  /** Its requests in flight, or those of several learners that share a limit. */
  forwarded!: ForwardedBytes
  /** Whether LEADERINFO named the id of the ensemble, or the learner has said since that it has stored it. */
  wasToldCluster = false
  /** Whether the learner takes part in the secret of sessions. */
  sharesSecret = false
  /** Until when the learner holds a permit to stop, on the monotonic clock. */
  stopsUntil = -Infinity
  /** Whether the learner has stored the epoch and the history of the leader. */
  hasAckedNewLeader = false
  /** Whether the learner receives proposals and commits. */
  isSynced = false
  roundTripMs: number | undefined
  #pingedAt: number | undefined
  readonly #clock: Clock
  readonly #connection: PeerConnection
  readonly #reads: ReadScheduler
  readonly #splitter: PacketSplitter
  /** The most bytes that are queued for the learner. Beyond them a new sync after a reconnect is faster. */
  readonly #maxUnsentBytes: number
  readonly #events: LearnerConnectionEvents
  /** Packets after NEWLEADER, until UPTODATE is sent. */
  #held: QuorumPacket[] | undefined
  #heldBytes = 0
  /** Whether UPTODATE was sent. */
  #isUpToDate = false
  #onDrained: () => void = () => {}
  /** Whether it is paused until its requests are finished. */
  #awaitsRequests = false

  constructor(
    id: ConnectionId,
    serverId: ServerId,
    connection: Connection,
    context: MemberContext,
    events: LearnerConnectionEvents,
  ) {
    const { settings, platform, membership, stats } = context
    this.id = id
    this.serverId = serverId
    this.accepted = connection
    this.address = `${connection.remote.host}:${connection.remote.port}`
    this.establishedAt = Math.floor(platform.clock.wall())
    this.#events = events
    this.#clock = platform.clock
    this.#maxUnsentBytes = settings.maxUnsentBytes
    const { juteMaxBufferBytes, juteMaxBufferExtraBytes } = settings
    const maxRequest = juteMaxBufferBytes + juteMaxBufferExtraBytes
    const maxData = Math.max(maxRequest, MAX_TOUCHES_BYTES)
    let isKnown = false
    const isBelievedNow = (): boolean => (isKnown ||= isBelieved(context, this))
    const splitter = new PacketSplitter({
      maxData: () => (!this.#isUpToDate ? MAX_BYTES_BEFORE_SYNC : isBelievedNow() ? maxData : maxRequest),
      packet: (type, zxid, data, auth) => {
        this.packetsReceived++
        if (type === PacketType.request) this.requests++
        else if (type === PacketType.ping) this.#endRoundTrip()
        events.packet(type, zxid, data, auth)
        reads.count((data?.length ?? 0) + 64 * (auth?.length ?? 0))
      },
    })
    this.#splitter = splitter
    const reads = (this.#reads = new ReadScheduler(
      platform.clock,
      () => (isBelievedNow() ? TURN_MS : UNKNOWN_TURN_MS),
      {
        pause: () => this.#pause(),
        resume: () => this.#resume(),
      },
    ))
    this.#connection = new PeerConnection({
      connection,
      clock: platform.clock,
      maxUnsentBytes: settings.maxUnsentBytes,
      // Any program may claim an id: those of members are bounded.
      queueStats: new PacketQueueStats(platform.clock, () =>
        membership.member(serverId) !== undefined ? stats.ensemble.packetQueueOf(serverId) : undefined,
      ),
      received: (chunk) =>
        events.received(() => {
          splitter.push(chunk)
          // Node reads up to 2 MiB of each connection in a turn, also of packets that never end.
          if (!isKnown && splitter.bufferedBytes > 0) reads.count(chunk.length)
        }),
      drained: () => this.#onDrained(),
      lost: (reason) => {
        splitter.stop()
        reads.stop()
        this.#onDrained()
        events.lost(reason)
      },
    })
  }

  get isOpen(): boolean {
    return this.#connection.isOpen
  }

  /** Whether UPTODATE was sent to it. */
  get isUpToDate(): boolean {
    return this.#isUpToDate
  }

  /** Whether nothing is read of it. */
  get isPaused(): boolean {
    return this.#connection.isPaused
  }

  /** Whether nothing is read of it until its requests are finished: it cannot report the sessions of its clients meanwhile. */
  get isHeldUp(): boolean {
    return this.isOpen && this.#awaitsRequests
  }

  /** Reads nothing until its requests in flight are fewer. Called while it has too many. */
  pauseUntilFinished(): void {
    if (this.#awaitsRequests) return
    this.#awaitsRequests = true
    this.#pause()
    const { forwarded } = this
    forwarded.onceFinished(() => {
      if (this.forwarded === forwarded) this.#endWait()
    })
  }

  /** Counts its requests by another limit from now on. Reads them again in a later turn, if it was paused by the earlier one. */
  moveTo(forwarded: ForwardedBytes): void {
    this.forwarded = forwarded
    if (this.#awaitsRequests) this.#clock.immediate(() => this.#endWait())
  }

  #endWait(): void {
    if (!this.#awaitsRequests) return
    this.#awaitsRequests = false
    this.#resume()
  }

  #pause(): void {
    this.#splitter.pause()
    this.#connection.pause()
  }

  #resume(): void {
    if (!this.isOpen) return
    this.#connection.resume()
    this.#connection.read(() => this.#events.received(() => this.#splitter.resume()))
  }

  get heldPackets(): number {
    return this.#held?.length ?? 0
  }

  get unsentBytes(): number {
    return this.#connection.unsentBytes + this.#heldBytes
  }

  resetStats(): void {
    this.packetsReceived = this.packetsSent = this.requests = 0
    this.lastZxid = -1
  }

  /** Fails the connection when the learner is silent for this long. */
  setReadTimeout(timeoutMs: number): void {
    this.#connection.setReadTimeout(timeoutMs)
  }

  /**
   * Sends a packet. Packets between NEWLEADER and UPTODATE are held until UPTODATE is sent: learners of 3.8 fail at a COMMIT
   * there (ZOOKEEPER-4394) and acknowledge proposals too early (ZOOKEEPER-4685), repeatedly while there are writes.
   */
  send(
    type: number,
    zxid: Zxid,
    data: Uint8Array | null = null,
    auth: readonly Identity[] | null = null,
  ): void {
    if (this.#held !== undefined && !passesSync.has(type)) return this.#hold({ type, zxid, data, auth })
    if (type === PacketType.ping) this.#pingedAt ??= this.#clock.monotonic()
    else if (type === PacketType.upToDate) this.#isUpToDate = true
    this.#transmit(type, zxid, data, auth)
    if (type === PacketType.newLeader) this.#held = []
    else if (type === PacketType.upToDate) this.#releaseHeld()
  }

  #transmit(type: number, zxid: Zxid, data: Uint8Array | null, auth: readonly Identity[] | null): void {
    this.packetsSent++
    if (zxid > 0) this.lastZxid = zxid
    this.#connection.send(type, zxid, data, auth)
  }

  #endRoundTrip(): void {
    if (this.#pingedAt !== undefined) this.roundTripMs = this.#clock.monotonic() - this.#pingedAt
    this.#pingedAt = undefined
  }

  #hold(packet: QuorumPacket): void {
    this.#held!.push(packet)
    this.#heldBytes += (packet.data?.length ?? 0) + 64
    if (this.#heldBytes > this.#maxUnsentBytes)
      this.#connection.fail(`${this.#heldBytes} bytes are queued until it is synced`)
  }

  #releaseHeld(): void {
    const held = this.#held ?? []
    this.#held = undefined
    this.#heldBytes = 0
    for (const { type, zxid, data, auth } of held) this.#transmit(type, zxid, data, auth)
  }

  /**
   * Sends the history of a plan, no faster than the learner reads it. Packets that are sent meanwhile follow it. Starts
   * synchronously, so that no transaction comes between the plan and its first packet.
   */
  async sync(plan: SyncPlan, database: Pick<Database, 'readHistory' | 'streamSnapshot'>): Promise<void> {
    this.#connection.beginStream()
    if (plan.kind === 'snap') await this.#sendSnapshot(database.streamSnapshot())
    else await this.#write(encodeHeader(plan.kind === 'diff' ? PacketType.diff : PacketType.trunc, plan.zxid))
    if (plan.kind !== 'snap' && plan.disk !== undefined)
      await this.#sendHistory(database.readHistory(plan.disk.after, plan.disk.upTo))
    const writer = new Writer(SLICE_BYTES)
    for (const { zxid, payload } of plan.entries) {
      writeCommitted(writer, zxid, payload)
      if (writer.length >= SLICE_BYTES) await this.#write(writer.take())
    }
    if (writer.length > 0) await this.#write(writer.take())
    this.#connection.endStream()
  }

  /** Does the work of a packet in steps, over as many turns as it takes. The packets behind it wait. */
  run(steps: Iterator<unknown>): void {
    if (this.isOpen) void this.#reads.run(steps)
  }

  /** Sends queued packets and closes. */
  close(): void {
    this.#connection.close()
    this.#reads.stop()
    this.#onDrained()
  }

  /** Handles a packet. One that cannot be decoded ends the connection. */
  handle(packet: () => void): void {
    try {
      packet()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.fail(error.message)
    }
  }

  /** Closes at once and reports the connection as lost. */
  fail(reason: string): void {
    this.#connection.fail(reason)
  }

  async #sendSnapshot({ zxid, nodes, chunks }: SnapshotSource): Promise<void> {
    const info = this.extension === undefined ? null : encodeSnapshotInfo(nodes)
    await this.#write(encodeHeader(PacketType.snap, zxid, info))
    for await (const chunk of chunks) {
      if (!this.isOpen) return
      await this.#write(chunk)
    }
  }

  async #sendHistory(history: AsyncIterable<RawTxn>): Promise<void> {
    const writer = new Writer(SLICE_BYTES)
    for await (const { zxid, payload } of history) {
      if (!this.isOpen) return
      writeCommitted(writer, zxid, payload)
      if (writer.length >= SLICE_BYTES) await this.#write(writer.take())
    }
    if (writer.length > 0) await this.#write(writer.take())
  }

  /** Writes a part of the stream. Returns a promise only when the caller must wait for the learner to drain. */
  #write(bytes: Uint8Array): Promise<void> | undefined {
    const isReady = this.#connection.stream(bytes)
    this.#connection.markAlive()
    this.#events.progress()
    if (isReady || !this.isOpen) return undefined
    return new Promise((resolve) => (this.#onDrained = resolve))
  }
}

function encodeHeader(type: number, zxid: Zxid, data: Uint8Array | null = null): Uint8Array {
  const writer = new Writer(28)
  writePacket(writer, type, zxid, data)
  return writer.take()
}

/** Writes a transaction of the history: a proposal that is already committed. */
function writeCommitted(writer: Writer, zxid: Zxid, payload: Uint8Array): void {
  writePacket(writer, PacketType.proposal, zxid, payload)
  writePacket(writer, PacketType.commit, zxid)
}
