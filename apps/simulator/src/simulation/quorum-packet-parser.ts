/** A packet on the quorum port. */
export interface QuorumPacket {
  readonly type: number
  readonly zxid: number
  readonly data: Uint8Array | undefined
}

export const PacketType = {
  PROPOSAL: 2,
  ACK: 3,
  COMMIT: 4,
  INFORM: 8,
  COMMITANDACTIVATE: 9,
  NEWLEADER: 10,
  UPTODATE: 12,
  DIFF: 13,
  TRUNC: 14,
  SNAP: 15,
  LEADERINFO: 17,
  ACKEPOCH: 18,
  INFORMANDACTIVATE: 19,
} as const

/** Packets between members of Zabra alone (quorum-protocol 18.5 to 18.10). */
const isExtension = (type: number): boolean => type >= 0x7a01 && type <= 0x7a05

/** The end of a snapshot on the wire: a string with its length. */
const SIGNATURE = Uint8Array.of(0, 0, 0, 10, ...new TextEncoder().encode('BenWasHere'))

/**
 * Parses one direction of a connection on the quorum port. Written independently of the server's codec, so as not to
 * share its defects.
 */
export class QuorumPacketParser {
  readonly #onPacket: (packet: QuorumPacket) => void
  #rest: Uint8Array = new Uint8Array(0)
  #inSnapshot = false
  /** Set when bytes cannot be parsed; the rest of the stream is ignored. */
  isBroken = false

  constructor(onPacket: (packet: QuorumPacket) => void) {
    this.#onPacket = onPacket
  }

  /** Parses the next bytes, which must not change any more. Packets keep views of them. */
  push(bytes: Uint8Array): void {
    if (this.isBroken) return
    const all = this.#joined(bytes)
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength)
    let at = 0
    for (;;) {
      const end = this.#inSnapshot ? this.#skip(all, at) : this.#packet(all, view, at)
      if (end < 0) break
      at = end
    }
    this.#rest = all.subarray(at)
  }

  #joined(bytes: Uint8Array): Uint8Array {
    if (this.#rest.length === 0) return bytes
    const all = new Uint8Array(this.#rest.length + bytes.length)
    all.set(this.#rest)
    all.set(bytes, this.#rest.length)
    return all
  }

  #skip(bytes: Uint8Array, at: number): number {
    for (let i = at; i + SIGNATURE.length <= bytes.length; i++) {
      if (!SIGNATURE.every((byte, offset) => bytes[i + offset] === byte)) continue
      this.#inSnapshot = false
      return i + SIGNATURE.length
    }
    // The signature may have begun in the last bytes.
    const kept = bytes.length - SIGNATURE.length + 1
    return kept > at ? kept : -1
  }

  /** Returns the end of the packet at `at`; -1 while it is incomplete. */
  #packet(bytes: Uint8Array, view: DataView, at: number): number {
    if (bytes.length - at < 20) return -1
    const type = view.getInt32(at)
    if ((type < 1 || type > 19) && !isExtension(type)) {
      this.isBroken = true
      return -1
    }
    const zxid = view.getInt32(at + 4) * 2 ** 32 + view.getUint32(at + 8)
    const length = view.getInt32(at + 12)
    let end = at + 16 + Math.max(0, length)
    if (bytes.length < end + 4) return -1
    const identities = view.getInt32(end)
    end += 4
    for (let i = 0; i < 2 * identities; i++) {
      if (bytes.length < end + 4) return -1
      end += 4 + Math.max(0, view.getInt32(end))
      if (bytes.length < end) return -1
    }
    this.#onPacket({ type, zxid, data: length < 0 ? undefined : bytes.subarray(at + 16, at + 16 + length) })
    if (type === PacketType.SNAP) this.#inSnapshot = true
    return end
  }
}
