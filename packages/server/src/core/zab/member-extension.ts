import { concatBytes, Reader, Writer } from '@zabra/protocol'
import { hasClusterId, NO_CLUSTER, type ClusterId, type FeatureState } from '../quorum/index.ts'
import { readFeatureState, writeFeatureState } from './feature-report.ts'

/** What a member of Zabra says of itself behind the fields of Apache ZooKeeper, which does not read it (quorum-protocol 18.6). */
export interface MemberExtension {
  /** The feature level: the newest formats and packets that the member can read. */
  readonly level: number
  /** Whether the member takes part in the secret of sessions on this connection. */
  readonly sharesSecret: boolean
  /** Whether the member has accepted an epoch or logged a transaction. */
  readonly hasData: boolean
  readonly cluster: ClusterId
  /** The feature levels that the member has stored, in the infos of learners and leaders; undefined elsewhere. */
  readonly features?: FeatureState | undefined
}

/** `_zabra`. */
const MARK = Uint8Array.of(0x5f, 0x7a, 0x61, 0x62, 0x72, 0x61)
const SHARES_SECRET = 1
const HAS_DATA = 2
const PROPOSES_CLUSTER = 4
/** Length in bytes without the stored levels. Below 28: Apache ZooKeeper ignores a message of fewer bytes on the election port. */
export const MEMBER_EXTENSION_BYTES = 26
const FEATURES_BYTES = 4

/** Writes an extension. */
export function encodeMemberExtension({
  level,
  sharesSecret,
  hasData,
  cluster,
  features,
}: MemberExtension): Uint8Array {
  const writer = new Writer(MEMBER_EXTENSION_BYTES + FEATURES_BYTES)
  writer.raw(MARK)
  const flags =
    (sharesSecret ? SHARES_SECRET : 0) |
    (hasData ? HAS_DATA : 0) |
    (cluster.isProposed ? PROPOSES_CLUSTER : 0)
  writer.raw(Uint8Array.of(level >> 8, level, flags))
  writer.raw(Uint8Array.of(cluster.generation))
  writer.raw(cluster.bytes)
  if (features !== undefined) writeFeatureState(writer, features)
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
  const features = reader.remaining < FEATURES_BYTES ? undefined : readFeatureState(reader)
  return {
    level: (high! << 8) | low!,
    sharesSecret: (flags! & SHARES_SECRET) !== 0,
    hasData: (flags! & HAS_DATA) !== 0,
    cluster: hasClusterId(cluster) ? cluster : NO_CLUSTER,
    ...(features === undefined ? {} : { features }),
  }
}

/** Returns a payload with an extension behind it. */
export const withExtension = (payload: Uint8Array, extension: MemberExtension): Uint8Array =>
  concatBytes([payload, encodeMemberExtension(extension)])
