import { Reader } from '@zabra/protocol'
import type { Identity, Zxid } from '../types.ts'
import { PacketType } from './packets.ts'

export interface PacketSplitterOptions {
  /** Most bytes of a packet's data. A longer one is refused before anything is allocated for it. */
  readonly maxData: number
  /**
   * Takes one packet. `data` is a view of the chunk that was pushed, or of an array of its own: it stays as long as nobody
   * writes into the chunk. With `raw` given, bytes after a SNAP packet go there.
   */
  packet(type: number, zxid: Zxid, data: Uint8Array | null, auth: readonly Identity[] | null): void
  /**
   * Takes bytes after SNAP. Returns how many of them belonged to the snapshot when it is over, so that the rest is cut
   * into packets again, or -1 when all did and more is to come.
   */
  raw?(bytes: Uint8Array): number
}

/** Type, zxid and the length of the data. */
const HEAD_BYTES = 16
/** Proofs of identity that one client can have; nobody has so many. */
const MAX_IDENTITIES = 1000
const MAX_IDENTITY_BYTES = 1 << 20

/**
 * Cuts the stream of the quorum port into packets. Packets there have no length in front of them, so where one ends is
 * known only from what is in it (7.1). A packet that lies in one chunk is handed on in place. Of one that spans chunks no
 * more is held than has come in, whatever lengths it claims.
 */
export class PacketSplitter {
  readonly #options: PacketSplitterOptions
  readonly #reader = new Reader()
  /** The beginning of a packet that waits for more. */
  #buffer = new Uint8Array(0)
  #filled = 0
  /** So many bytes the packet that waits has at least. */
  #needed = 0
  #isRaw = false
  #isStopped = false

  constructor(options: PacketSplitterOptions) {
    this.#options = options
  }

  /** Bytes held for a packet that is not whole yet. */
  get bufferedBytes(): number {
    return this.#filled
  }

  /** Hands out nothing further, also not what is left of the chunk that is being cut. */
  stop(): void {
    this.#isStopped = true
    this.#buffer = new Uint8Array(0)
    this.#filled = 0
  }

  /** Takes the next bytes of the stream. Throws a `ProtocolError` when they are malformed, and is stopped then. */
  push(chunk: Uint8Array): void {
    try {
      let at = 0
      while (!this.#isStopped && at < chunk.length) at = this.#next(chunk, at)
    } catch (error) {
      this.stop()
      throw error
    }
  }

  #next(chunk: Uint8Array, at: number): number {
    if (this.#isRaw) return this.#passRaw(chunk, at)
    if (this.#filled > 0) return this.#complete(chunk, at)
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

  /** Adds to the packet that waits no more than it surely has. */
  #complete(chunk: Uint8Array, at: number): number {
    const end = this.#append(chunk, at, Math.min(chunk.length, at + this.#needed - this.#filled))
    if (this.#filled < this.#needed) return end
    const length = this.#measure(this.#buffer, 0, this.#filled)
    if (length <= 0) {
      this.#needed = -length
      return end
    }
    const whole = this.#buffer
    this.#buffer = new Uint8Array(0)
    this.#filled = 0
    this.#emit(whole, 0, length)
    return end
  }

  #append(chunk: Uint8Array, at: number, end: number): number {
    const filled = this.#filled + end - at
    if (filled > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(filled, Math.min(this.#needed, this.#buffer.length * 2)))
      grown.set(this.#buffer.subarray(0, this.#filled))
      this.#buffer = grown
    }
    this.#buffer.set(chunk.subarray(at, end), this.#filled)
    this.#filled = filled
    return end
  }

  /** The length of the packet that begins here, or, negative, how many bytes must be there to know more. */
  #measure(bytes: Uint8Array, start: number, end: number): number {
    const there = end - start
    if (there < HEAD_BYTES) return -HEAD_BYTES
    const reader = this.#reader.reset(bytes, start, end)
    reader.offset = start + HEAD_BYTES - 4
    let needed = HEAD_BYTES + readLength(reader, this.#options.maxData, 'the data of a packet') + 4
    if (there < needed) return -needed
    reader.offset = start + needed - 4
    const identities = readLength(reader, MAX_IDENTITIES, 'the identities of a packet')
    const limit = needed + MAX_IDENTITY_BYTES
    for (let i = 0; i < identities * 2; i++) {
      needed += 4
      if (there < needed) return -needed
      reader.offset = start + needed - 4
      needed += readLength(reader, limit - needed, 'an identity of a packet')
    }
    return there < needed ? -needed : needed
  }

  #emit(bytes: Uint8Array, start: number, end: number): void {
    const reader = this.#reader.reset(bytes, start, end)
    const type = reader.int()
    const zxid = reader.longNumber()
    const data = reader.buffer()
    const auth = readIdentities(reader)
    this.#isRaw = type === PacketType.snap && this.#options.raw !== undefined
    this.#options.packet(type, zxid, data, auth)
  }
}

/** A length, or a count, of 0 up to a limit; null counts as 0. */
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
