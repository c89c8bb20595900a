import { ProtocolError, Reader, Writer } from '@zabra/protocol'
import type { FeatureState, ServerId } from '../quorum/index.ts'

/** The feature levels of a member: what its release reads, and what it has stored (quorum-protocol 18.9). */
export interface MemberFeatures {
  readonly id: ServerId
  readonly release: number
  readonly stored: FeatureState
}

const FIELD = 'feature levels'
/** The most servers in a report: a member, and its observers. */
const MAX_SERVERS = 1000

/** Appends levels, in 4 bytes. */
export function writeFeatureState(writer: Writer, { finalized, proposed }: FeatureState): void {
  writer.raw(Uint8Array.of(finalized >> 8, finalized, proposed >> 8, proposed))
}

export function readFeatureState(reader: Reader): FeatureState {
  const [a, b, c, d] = reader.raw(4)
  return { finalized: (a! << 8) | b!, proposed: (c! << 8) | d! }
}

/** Returns what a leader sends: the levels that it has stored. */
export function encodeFeatureState(state: FeatureState): Uint8Array {
  const writer = new Writer(4)
  writeFeatureState(writer, state)
  return writer.take()
}

/** Throws a `ProtocolError` for malformed data. */
export const decodeFeatureState = (data: Uint8Array | null): FeatureState => readFeatureState(readerOf(data))

/** Returns what a learner sends: its own levels, then those of its observers. */
export function encodeFeatureReport(members: readonly MemberFeatures[]): Uint8Array {
  const writer = new Writer(64)
  const named = members.slice(0, MAX_SERVERS)
  writer.int(named.length)
  for (const { id, release, stored } of named) {
    writer.longNumber(id)
    writer.raw(Uint8Array.of(release >> 8, release))
    writeFeatureState(writer, stored)
  }
  return writer.take()
}

/** Throws a `ProtocolError` for malformed data. */
export function decodeFeatureReport(data: Uint8Array | null): readonly MemberFeatures[] {
  const reader = readerOf(data)
  const count = reader.int()
  if (count < 0 || count > MAX_SERVERS)
    throw new ProtocolError(`Expected at most ${MAX_SERVERS} servers, got ${count}`, 0, FIELD)
  return Array.from({ length: count }, () => {
    const id = reader.longNumber()
    const [high, low] = reader.raw(2)
    return { id, release: (high! << 8) | low!, stored: readFeatureState(reader) }
  })
}

function readerOf(data: Uint8Array | null): Reader {
  if (data === null) throw new ProtocolError('Expected data, got null', 0, FIELD)
  return new Reader(data)
}
