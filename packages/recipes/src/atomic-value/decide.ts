import { UsageError, type Bytes, type Codec, utf8 } from '@zabra/client/core'

/** What a znode held when it was written to. */
export interface WrittenVersion {
  readonly czxid: bigint
  readonly version: number
}

/**
 * What became of a write whose reply was lost together with its session, and with it its mark. A znode that is as it was
 * before cannot have been written; nothing of the dead session is on its way any more. One that is a version further and holds
 * something else was written by somebody else. In all other cases nobody can tell.
 */
export function outcomeOf(
  before: WrittenVersion,
  now: (WrittenVersion & { readonly same: boolean }) | undefined,
): 'notWritten' | 'unknown' {
  if (now === undefined || now.czxid !== before.czxid) return 'unknown'
  if (now.version === before.version) return 'notWritten'
  return now.version === nextVersion(before.version) && !now.same ? 'notWritten' : 'unknown'
}

/** Versions wrap, and leave out -1, which means any version to a request. */
export const nextVersion = (version: number): number => {
  const next = (version + 1) | 0
  return next === -1 ? 0 : next
}

/** Milliseconds to wait before the next try, by how many have lost the race. `chance` is from 0 up to 1. */
export const backoffMs = (lost: number, chance: number): number =>
  Math.floor(chance * Math.min(2 ** lost, 64))

const MAX = { 4: 2n ** 31n - 1n, 8: 2n ** 63n - 1n }

/** Whole numbers as decimal text, as kazoo's counter writes them. */
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

/** Whole numbers of 4 or 8 bytes with a sign, the highest first, as Curator writes them. */
export const bigEndian = (size: 4 | 8): Codec<bigint> => ({
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
})
