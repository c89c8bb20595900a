import { Reader, type Writer } from '@zabra/protocol'
import type { Identity, Zxid } from '../types.ts'

/** The types of packets on the quorum port (quorum-protocol 7.2). */
export const PacketType = {
  request: 1,
  proposal: 2,
  ack: 3,
  commit: 4,
  ping: 5,
  revalidate: 6,
  sync: 7,
  inform: 8,
  commitAndActivate: 9,
  newLeader: 10,
  followerInfo: 11,
  upToDate: 12,
  diff: 13,
  trunc: 14,
  snap: 15,
  observerInfo: 16,
  leaderInfo: 17,
  ackEpoch: 18,
  informAndActivate: 19,
  /** An extension, between members that have announced it (quorum-protocol 18.5). */
  sessionSecret: 0x7a01,
  /** As `sessionSecret` (quorum-protocol 18.7). */
  stopPermit: 0x7a02,
  /** The id of the ensemble that a quorum has stored (quorum-protocol 18.6). */
  clusterId: 0x7a03,
  /** Between members that have announced the levels they have stored (quorum-protocol 18.9). */
  featureLevel: 0x7a04,
  /** As `sessionSecret` (quorum-protocol 18.10). */
  memberReport: 0x7a05,
} as const
export type PacketType = (typeof PacketType)[keyof typeof PacketType]

const names = new Map(Object.entries(PacketType).map(([name, type]) => [type as number, name]))

/** Returns the name of a type for log messages, or the number of an unknown type. */
export const packetName = (type: number): string => names.get(type) ?? `type ${type}`

/** The zxid field of packets without a zxid. */
export const NO_ZXID = -1

/** A packet between a leader and a learner. */
export interface QuorumPacket {
  /** A `PacketType`, or an unknown number: such packets are ignored. */
  readonly type: number
  readonly zxid: Zxid
  readonly data: Uint8Array | null
  /** The identities of the client, in REQUEST packets. */
  readonly auth: readonly Identity[] | null
}

/** Appends a packet (quorum-protocol 7.1). Absent data and identities are written as null, as Apache ZooKeeper does. */
export function writePacket(
  writer: Writer,
  type: number,
  zxid: Zxid,
  data: Uint8Array | null = null,
  auth: readonly Identity[] | null = null,
): void {
  writer.int(type)
  writer.longNumber(zxid)
  writer.buffer(data)
  writeIdentities(writer, auth)
}

/** Appends the identities of a client, the last field of a packet. */
export function writeIdentities(writer: Writer, auth: readonly Identity[] | null): void {
  if (auth === null) return writer.int(-1)
  writer.int(auth.length)
  for (const { scheme, id } of auth) {
    writer.string(scheme)
    writer.string(id)
  }
}

/** Appends a packet given as an object. */
export function encodePacket(writer: Writer, { type, zxid, data, auth }: QuorumPacket): void {
  writePacket(writer, type, zxid, data, auth)
}

export interface PacketSplitterOptions {
  /**
   * The largest size of a packet's data in bytes, or a function that returns it. A larger packet is rejected before any memory is
   * allocated for it.
   */
  readonly maxData: number | (() => number)
  /**
   * Receives a packet. `data` is a view of the pushed chunk, or of a separate array; it is valid while the chunk is not
   * overwritten. If `raw` is given, it receives the bytes after a SNAP packet.
   */
  packet(type: number, zxid: Zxid, data: Uint8Array | null, auth: readonly Identity[] | null): void
  /**
   * Receives bytes after a SNAP packet. Returns -1 if all of them belong to the snapshot and more follow. At the end of the
   * snapshot returns how many belong to it; the rest is split into packets again.
   */
  raw?(bytes: Uint8Array): number
}

/** Type, zxid and the length of the data. */
const HEAD_BYTES = 16
/** Largest number of identities of a client; far above any real one. */
const MAX_IDENTITIES = 1000
const MAX_IDENTITY_BYTES = 1 << 20
/** Longer lists of identities are not kept for the next packet. */
const KEPT_IDENTITY_BYTES = 256

/**
 * Splits the byte stream of the quorum port into packets. Packets have no length prefix, so only their fields tell where
 * one ends (quorum-protocol 7.1). A packet within one chunk is emitted without a copy. For a packet that spans chunks, no
 * more memory is allocated than for twice the bytes received, whatever lengths it claims.
 */
export class PacketSplitter {
  readonly #options: PacketSplitterOptions
  readonly #reader = new Reader()
  /** The beginning of an incomplete packet. */
  #buffer = new Uint8Array(0)
  #filled = 0
  /** Minimum length of the incomplete packet. */
  #needed = 0
  /** The length of the part of the incomplete packet that is measured: what follows are identities. 0 before its data are. */
  #measured = 0
  /** Scheme and id of each identity that is not measured. */
  #stringsLeft = 0
  /** The length of the longest packet with these data. */
  #longest = 0
  #isRaw = false
  #isStopped = false
  /** Pauses that have not ended. */
  #pauses = 0
  /** The bytes that were received while paused. */
  #rest: Uint8Array = new Uint8Array(0)
  /** The last list of identities and its bytes, at first those of an empty list: consecutive requests often have the same. */
  #identities: readonly Identity[] = []
  #identityBytes: Uint8Array = new Uint8Array(4)

  constructor(options: PacketSplitterOptions) {
    this.#options = options
  }

  /** Bytes buffered for an incomplete packet. */
  get bufferedBytes(): number {
    return this.#filled
  }

  /** Emits nothing further, not even the rest of the current chunk. */
  stop(): void {
    this.#isStopped = true
    this.#buffer = this.#rest = new Uint8Array(0)
    this.#filled = 0
  }

  /** Emits no further packet until `resume` is called as often, not even from the current chunk. Bytes are kept. */
  pause(): void {
    this.#pauses++
  }

  /** Ends a pause, and with the last one emits the packets that were held back. Throws as `push` does. */
  resume(): void {
    if (--this.#pauses > 0) return
    const rest = this.#rest
    this.#rest = new Uint8Array(0)
    if (rest.length > 0) this.#process(rest, true)
  }

  /** Processes the next bytes of the stream. Throws a `ProtocolError` and stops if they are malformed. */
  push(chunk: Uint8Array): void {
    this.#process(chunk, false)
  }

  /** `isHeld` tells whether the bytes stay as they are: those of the caller are valid during the call only. */
  #process(chunk: Uint8Array, isHeld: boolean): void {
    let at = 0
    try {
      while (!this.#isStopped && this.#pauses === 0 && at < chunk.length) at = this.#next(chunk, at)
    } catch (error) {
      this.stop()
      throw error
    }
    if (this.#pauses === 0 || this.#isStopped || at === chunk.length) return
    if (isHeld) this.#rest = chunk.subarray(at)
    else this.#hold(chunk.subarray(at))
  }

  /** Appends a copy of bytes to those that wait for `resume`. */
  #hold(bytes: Uint8Array): void {
    const both = new Uint8Array(this.#rest.length + bytes.length)
    both.set(this.#rest)
    both.set(bytes, this.#rest.length)
    this.#rest = both
  }

  #next(chunk: Uint8Array, at: number): number {
    if (this.#isRaw) return this.#passRaw(chunk, at)
    if (this.#filled > 0) return this.#complete(chunk, at)
    this.#measured = 0
    const length = this.#measure(chunk, at, chunk.length)
    if (length <= 0) {
      this.#needed = -length
      return this.#append(chunk, at, chunk.length)
    }
    this.#emit(chunk, at, at + length)
    return at + length
  }

  #passRaw(chunk: Uint8Array, at: number): number {
    const rest = chunk.length - at
    const taken = this.#options.raw!(chunk.subarray(at))
    if (taken === -1) return chunk.length
    if (taken < 0 || taken > rest)
      throw new RangeError(`Expected a snapshot to take up to ${rest} bytes, got ${taken}`)
    this.#isRaw = false
    return at + taken
  }

  /** Completes the incomplete packet. Takes only bytes that certainly belong to it. */
  #complete(chunk: Uint8Array, at: number): number {
    const end = this.#append(chunk, at, Math.min(chunk.length, at + this.#needed - this.#filled))
    if (this.#filled < this.#needed) return end
    const length = this.#measure(this.#buffer, 0, this.#filled)
    if (length <= 0) {
      this.#needed = -length
      return end
    }
    const packet = this.#buffer
    this.#buffer = new Uint8Array(0)
    this.#filled = 0
    this.#emit(packet, 0, length)
    return end
  }

  #append(chunk: Uint8Array, at: number, end: number): number {
    const filled = this.#filled + end - at
    if (filled > this.#buffer.length) {
      // The length of all identities is not known, and they must not be copied for each of them.
      const most = this.#measured > 0 ? Infinity : this.#needed
      const grown = new Uint8Array(Math.max(filled, Math.min(most, this.#buffer.length * 2)))
      grown.set(this.#buffer.subarray(0, this.#filled))
      this.#buffer = grown
    }
    this.#buffer.set(chunk.subarray(at, end), this.#filled)
    this.#filled = filled
    return end
  }

  /**
   * Returns the length of the packet that begins here, or, negative, how many bytes are needed to find out more. Goes on where it was
   * left for the same packet: a thousand identities that arrive one by one are measured once each.
   */
  #measure(bytes: Uint8Array, start: number, end: number): number {
    const available = end - start
    const reader = this.#reader.reset(bytes, start, end)
    if (this.#measured === 0) {
      if (available < HEAD_BYTES) return -HEAD_BYTES
      reader.offset = start + HEAD_BYTES - 4
      const { maxData } = this.#options
      const most = typeof maxData === 'number' ? maxData : maxData()
      const needed = HEAD_BYTES + readLength(reader, most, 'the data of a packet') + 4
      if (available < needed) return -needed
      reader.offset = start + needed - 4
      this.#stringsLeft = 2 * readLength(reader, MAX_IDENTITIES, 'the identities of a packet')
      this.#measured = needed
      this.#longest = needed + MAX_IDENTITY_BYTES
    }
    while (this.#stringsLeft > 0) {
      const needed = this.#measured + 4
      if (available < needed) return -needed
      reader.offset = start + needed - 4
      this.#measured = needed + readLength(reader, this.#longest - needed, 'an identity of a packet')
      this.#stringsLeft--
    }
    return available < this.#measured ? -this.#measured : this.#measured
  }

  #emit(bytes: Uint8Array, start: number, end: number): void {
    const reader = this.#reader.reset(bytes, start, end)
    const type = reader.int()
    const zxid = reader.longNumber()
    const data = reader.buffer()
    const auth = this.#readIdentities(reader)
    this.#isRaw = type === PacketType.snap && this.#options.raw !== undefined
    this.#options.packet(type, zxid, data, auth)
  }

  #readIdentities(reader: Reader): readonly Identity[] | null {
    if (reader.skipIfEqual(this.#identityBytes)) return this.#identities
    const start = reader.offset
    const identities = readIdentities(reader)
    if (identities === null || reader.offset - start > KEPT_IDENTITY_BYTES) return identities
    // Not `slice`, which returns a view where the bytes are a Buffer of Node.
    this.#identityBytes = new Uint8Array(reader.bytes.subarray(start, reader.offset))
    return (this.#identities = identities)
  }
}

/** Reads a length or count of 0 to `limit`; null yields 0. */
function readLength(reader: Reader, limit: number, field: string): number {
  const length = reader.int()
  if (length >= -1 && length <= limit) return Math.max(length, 0)
  reader.offset -= 4
  return reader.fail(`Expected a length from -1 to ${limit}, got ${length}`, field)
}

function readIdentities(reader: Reader): readonly Identity[] | null {
  const count = reader.int()
  if (count === -1) return null
  const identities: Identity[] = []
  for (let i = 0; i < count; i++)
    identities.push({ scheme: reader.string() ?? '', id: reader.string() ?? '' })
  return identities
}
