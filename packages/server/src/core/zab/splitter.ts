import type { Identity, Zxid } from '../types.ts'

export interface PacketSplitterOptions {
  /** Most bytes of a packet's data. A longer one is refused before anything is allocated for it. */
  readonly maxData: number
  /**
   * Takes one packet. `data` is a view of the chunk that was pushed, or of an array of its own: it stays as long as nobody writes into
   * the chunk. With `raw` given, bytes after a SNAP packet go there.
   */
  packet(type: number, zxid: Zxid, data: Uint8Array | null, auth: readonly Identity[] | null): void
  /**
   * Takes bytes after SNAP. Returns how many of them belonged to the snapshot when it is over, so that the rest is cut
   * into packets again, or -1 when all did and more is to come.
   */
  raw?(bytes: Uint8Array): number
}

/** Cuts the stream of the quorum port, which has no lengths of packets, into packets. */
export declare class PacketSplitter {
  constructor(options: PacketSplitterOptions)
  /** Takes the next bytes. Throws a `ProtocolError` when they are malformed; takes nothing more then. */
  push(chunk: Uint8Array): void
  stop(): void
}
