import { Writer } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Identity, SessionId, Zxid } from '../core/types.ts'
import {
  PacketSplitter,
  PacketType,
  writePacket,
  type ConnectionId,
  type QuorumPacket,
  type SyncPlan,
} from '../core/zab/index.ts'
import type { RawTxn } from '../persistence/index.ts'
import type { SnapshotSource, Database } from '../database/index.ts'
import type { MemberContext } from './context.ts'
import { PeerConnection } from './peer-connection.ts'

/** What a connection to a learner tells its leader. All but `lost` come inside the leader's turn. */
export interface LearnerConnectionEvents {
  /** Bytes came; `read` cuts them into packets. A `ProtocolError` out of it ends the connection. */
  received(read: () => void): void
  /** A packet came. Its data is free to keep. */
  packet(type: number, zxid: Zxid, data: Uint8Array | null, auth: readonly Identity[] | null): void
  /** A long transfer to the learner goes on. */
  progress(): void
  lost(reason: string): void
}

/** What an answer to a PING may have, of 12 bytes for each session that was heard of: more than a million of them. */
const MAX_TOUCHES_BYTES = 16 << 20
/** Bytes that are written at a time while a learner is brought up to date. */
const SLICE_BYTES = 64 * 1024

/** One connection of a leader to a learner. */
export class LearnerConnection {
  readonly id: ConnectionId
  readonly address: string
  /** Known once it has introduced itself. */
  serverId: ServerId
  isObserver = false
  /** Whether it takes part in the broadcast. */
  isSynced = false
  /** Sessions of its clients, as its last answer to a PING has them: for figures. */
  sessions: readonly SessionId[] = []
  readonly #wire: PeerConnection
  /** Packets behind NEWLEADER, until UPTODATE is sent. */
  #kept: QuorumPacket[] | undefined
  #keptBytes = 0
  #drained: () => void = () => {}

  constructor(
    id: ConnectionId,
    server: ServerId,
    connection: Connection,
    { settings, platform }: MemberContext,
    events: LearnerConnectionEvents,
  ) {
    this.id = id
    this.serverId = server
    this.address = `${connection.remote.host}:${connection.remote.port}`
    const splitter = new PacketSplitter({
      maxData: Math.max(settings.juteMaxBufferBytes + settings.juteMaxBufferExtraBytes, MAX_TOUCHES_BYTES),
      packet: (type, zxid, data, auth) => events.packet(type, zxid, data, auth),
    })
    this.#wire = new PeerConnection({
      connection: connection,
      clock: platform.clock,
      maxUnsentBytes: MAX_UNSENT_BYTES,
      received: (chunk) => events.received(() => splitter.push(chunk)),
      drained: () => this.#drained(),
      lost: (reason) => {
        splitter.stop()
        this.#drained()
        events.lost(reason)
      },
    })
    this.#progress = () => events.progress()
  }

  readonly #progress: () => void

  get isOpen(): boolean {
    return this.#wire.isOpen
  }

  /** Bytes that it has not taken yet. */
  get unsentBytes(): number {
    return this.#wire.unsentBytes + this.#keptBytes
  }

  /** How long the learner may be silent, in milliseconds. */
  setReadTimeout(withinMs: number): void {
    this.#wire.setReadTimeout(withinMs)
  }

  /**
   * Sends a packet. What comes between NEWLEADER and UPTODATE is kept until UPTODATE is sent: learners of 3.8 fail at a COMMIT
   * there (ZOOKEEPER-4394) and acknowledge proposals too early (ZOOKEEPER-4685), again and again while there are pipeline.
   */
  send(
    type: number,
    zxid: Zxid,
    data: Uint8Array | null = null,
    auth: readonly Identity[] | null = null,
  ): void {
    if (this.#kept !== undefined && type !== PacketType.ping && type !== PacketType.upToDate)
      return this.#keep({ type, zxid, data, auth })
    this.#wire.send(type, zxid, data, auth)
    if (type === PacketType.newLeader) this.#kept = []
    else if (type === PacketType.upToDate) this.#release()
  }

  #keep(packet: QuorumPacket): void {
    this.#kept!.push(packet)
    this.#keptBytes += (packet.data?.length ?? 0) + 64
    if (this.#keptBytes > MAX_UNSENT_BYTES)
      this.#wire.fail(`${this.#keptBytes} bytes wait for it to come into step`)
  }

  #release(): void {
    const kept = this.#kept ?? []
    this.#kept = undefined
    this.#keptBytes = 0
    for (const { type, zxid, data, auth } of kept) this.#wire.send(type, zxid, data, auth)
  }

  /**
   * Sends what brings the learner up to date, no faster than it takes it. Packets that are sent meanwhile go behind it. Does
   * at once what can be done at once, so that nothing comes between the plan and its first packet.
   */
  async sync(plan: SyncPlan, database: Pick<Database, 'readHistory' | 'streamSnapshot'>): Promise<void> {
    this.#wire.beginStream()
    if (plan.how === 'snap') await this.#sendSnapshot(database.streamSnapshot())
    else await this.#write(bare(plan.how === 'diff' ? PacketType.diff : PacketType.trunc, plan.zxid))
    if (plan.how !== 'snap' && plan.disk !== undefined)
      await this.#sendHistory(database.readHistory(plan.disk.after, plan.disk.upTo))
    const writer = new Writer(SLICE_BYTES)
    for (const { zxid, payload } of plan.entries) {
      writeCommitted(writer, zxid, payload)
      if (writer.length >= SLICE_BYTES) await this.#write(writer.take())
    }
    if (writer.length > 0) await this.#write(writer.take())
    this.#wire.endStream()
  }

  /** Sends what is collected and closes. */
  close(): void {
    this.#wire.close()
    this.#drained()
  }

  /** Gives it up: closes at once. */
  fail(reason: string): void {
    this.#wire.fail(reason)
  }

  async #sendSnapshot({ zxid, chunks }: SnapshotSource): Promise<void> {
    await this.#write(bare(PacketType.snap, zxid))
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

  /** Writes a part; waits only if the learner has enough to take. */
  #write(bytes: Uint8Array): Promise<void> | undefined {
    const ready = this.#wire.stream(bytes)
    this.#wire.markAlive()
    this.#progress()
    if (ready || !this.isOpen) return undefined
    return new Promise((resolve) => (this.#drained = resolve))
  }
}

/** What may wait for one learner. More than that is faster sent anew once it is back. */
const MAX_UNSENT_BYTES = 128 << 20

function bare(type: number, zxid: Zxid): Uint8Array {
  const writer = new Writer(20)
  writePacket(writer, type, zxid)
  return writer.take()
}

/** A transaction of the past: a proposal that is committed already. */
function writeCommitted(writer: Writer, zxid: Zxid, payload: Uint8Array): void {
  writePacket(writer, PacketType.proposal, zxid, payload)
  writePacket(writer, PacketType.commit, zxid)
}
