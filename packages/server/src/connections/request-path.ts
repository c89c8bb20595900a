import { OpCode } from '@zabra/protocol'

/** The longest name of something that is kept about requests, in bytes; a longer path is cut. */
export const MAX_NAME_BYTES = 512
/** Bytes of the header of a part in a multi. */
const MULTI_HEADER_BYTES = 9

/** Requests whose body begins with a path. */
const WITH_PATH: ReadonlySet<number> = new Set([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.delete,
  OpCode.deleteContainer,
  OpCode.exists,
  OpCode.getData,
  OpCode.setData,
  OpCode.getACL,
  OpCode.setACL,
  OpCode.getChildren,
  OpCode.getChildren2,
  OpCode.getAllChildrenNumber,
  OpCode.getEphemerals,
  OpCode.sync,
  OpCode.check,
  OpCode.checkWatches,
  OpCode.removeWatches,
  OpCode.addWatch,
])

const decoder = new TextDecoder()

/** Returns the path in the body of a request, or in the first part of a multi; undefined when it has none. */
export function pathIn(type: number, bytes: Uint8Array, start: number, end: number): string | undefined {
  const isMulti = type === OpCode.multi || type === OpCode.multiRead
  if (!isMulti && !WITH_PATH.has(type)) return undefined
  const at = isMulti ? start + MULTI_HEADER_BYTES : start
  if (at + 4 > end) return undefined
  const length = new DataView(bytes.buffer, bytes.byteOffset + at, 4).getInt32(0)
  if (length <= 0 || at + 4 + length > end) return undefined
  return decoder.decode(bytes.subarray(at + 4, at + 4 + Math.min(length, MAX_NAME_BYTES)))
}

const encoder = new TextEncoder()

/** Returns a name of at most `MAX_NAME_BYTES` that shares no memory with a longer one. */
export const cutName = (name: string): string =>
  name.length <= MAX_NAME_BYTES / 4
    ? name
    : decoder.decode(encoder.encode(name.slice(0, MAX_NAME_BYTES)).subarray(0, MAX_NAME_BYTES))
