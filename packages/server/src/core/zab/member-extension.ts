import { Reader, Writer } from '@zabra/protocol'
import { hasClusterId, NO_CLUSTER, type ClusterId } from '../quorum/index.ts'

/** What a member of Zabra says of itself behind the fields of Apache ZooKeeper, which does not read it (quorum-protocol 18.6). */
export interface MemberExtension {
  /** The feature level: the newest formats and packets that the member can read. */
  readonly level: number
  /** Whether the member takes part in the secret of sessions on this connection. */
  readonly sharesSecret: boolean
  /** Whether the member has accepted an epoch or logged a transaction. */
  readonly hasData: boolean
  readonly cluster: ClusterId
}

/** `_zabra`. */
const MARK = Uint8Array.of(0x5f, 0x7a, 0x61, 0x62, 0x72, 0x61)
const SHARES_SECRET = 1
const HAS_DATA = 2
const PROPOSES_CLUSTER = 4
/** Length in bytes. Below 28: Apache ZooKeeper ignores a message of fewer bytes on the election port. */
export const MEMBER_EXTENSION_BYTES = 26

/** Writes an extension. */
export function encodeMemberExtension({
  level,
  sharesSecret,
  hasData,
  cluster,
}: MemberExtension): Uint8Array {
  const writer = new Writer(MEMBER_EXTENSION_BYTES)
  writer.raw(MARK)
  const flags =
    (sharesSecret ? SHARES_SECRET : 0) |
    (hasData ? HAS_DATA : 0) |
    (cluster.isProposed ? PROPOSES_CLUSTER : 0)
  writer.raw(Uint8Array.of(level >> 8, level, flags))
  writer.raw(Uint8Array.of(cluster.generation))
  writer.raw(cluster.bytes)
  return writer.take()
}

/**
 * Reads the extension that begins at `offset`, after the fields of Apache ZooKeeper; undefined where there is none, or not all of it.
 * Ignores bytes after it, which later releases may add.
 */
export function decodeMemberExtension(bytes: Uint8Array | null, offset = 0): MemberExtension | undefined {
  if (bytes === null || bytes.length < offset + MEMBER_EXTENSION_BYTES) return undefined
  if (!MARK.every((byte, i) => byte === bytes[offset + i])) return undefined
  const reader = new Reader(bytes, offset + MARK.length)
  const [high, low, flags, generation] = reader.raw(4)
  const isProposed = (flags! & PROPOSES_CLUSTER) !== 0
  const cluster = { generation: generation!, bytes: reader.raw(16).slice(), isProposed }
  return {
    level: (high! << 8) | low!,
    sharesSecret: (flags! & SHARES_SECRET) !== 0,
    hasData: (flags! & HAS_DATA) !== 0,
    cluster: hasClusterId(cluster) ? cluster : NO_CLUSTER,
  }
}

/** Returns a payload with an extension behind it. */
export function withExtension(payload: Uint8Array, extension: MemberExtension): Uint8Array {
  const extended = new Uint8Array(payload.length + MEMBER_EXTENSION_BYTES)
  extended.set(payload)
  extended.set(encodeMemberExtension(extension), payload.length)
  return extended
}
