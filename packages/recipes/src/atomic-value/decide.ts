import { UsageError, type Bytes, type Codec, utf8 } from '@zabra/client/core'
import { checkArgument, oneOf } from '../support/checks.ts'

/** Identity and version of the znode before the write. */
export interface WrittenVersion {
  readonly czxid: bigint
  readonly version: number
}

/**
 * Returns the outcome of a write whose reply and marker were lost together with the session. An unchanged znode
 * was not written, since no request of the expired session can still be applied. A znode that is one version
 * further and holds other data was written by another client. In all other cases the outcome is unknown.
 */
export function outcomeOf(
  before: WrittenVersion,
  now: (WrittenVersion & { readonly same: boolean }) | undefined,
): 'notWritten' | 'unknown' {
  if (now === undefined || now.czxid !== before.czxid) return 'unknown'
  if (now.version === before.version) return 'notWritten'
  return now.version === nextVersion(before.version) && !now.same ? 'notWritten' : 'unknown'
}

/** Versions wrap around and skip -1, which means "any version" in a request. */
export const nextVersion = (version: number): number => {
  const next = (version + 1) | 0
  return next === -1 ? 0 : next
}

/** Returns the backoff in milliseconds after `lost` lost races. `chance` is in [0, 1). */
export const backoffMs = (lost: number, chance: number): number =>
  Math.floor(chance * Math.min(2 ** lost, 64))

const MAX = { 4: 2n ** 31n - 1n, 8: 2n ** 63n - 1n }

/** Encodes integers as decimal text, as kazoo's counter does. */
export const decimal: Codec<bigint> = {
  encode: (value) => utf8.encode(value.toString()),
  decode(data) {
    const text = utf8.decode(data).trim()
    if (text === '') return 0n
    if (!/^-?\d+$/.test(text))
      throw new UsageError(`Expected a whole number, got ${JSON.stringify(text.slice(0, 40))}`)
    return BigInt(text)
  },
}

/** Encodes signed big-endian integers of 4 or 8 bytes, as Curator does. */
export function bigEndian(size: 4 | 8): Codec<bigint> {
  checkArgument('bigEndian', 'a size in bytes', size, oneOf(4, 8))
  return {
    encode(value) {
      if (value > MAX[size] || value < -MAX[size] - 1n) {
        throw new UsageError(`Expected a number that fits ${size} bytes, got ${value}`)
      }
      const view = new DataView(new ArrayBuffer(size))
      if (size === 4) view.setInt32(0, Number(value))
      else view.setBigInt64(0, value)
      return new Uint8Array(view.buffer)
    },
    decode(data: Bytes) {
      if (data.length === 0) return 0n
      if (data.length !== size) throw new UsageError(`Expected a number of ${size} bytes, got ${data.length}`)
      const view = new DataView(data.buffer, data.byteOffset, size)
      return size === 4 ? BigInt(view.getInt32(0)) : view.getBigInt64(0)
    },
  }
}
