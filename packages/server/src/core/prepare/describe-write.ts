import { OpCode, ProtocolError, Reader, type ACL } from '@zabra/protocol'
import { PATHS, SKIPPING } from '../operations/fields.ts'
import { operationOf } from '../operations/table.ts'
import type { DecodedWrite } from '../operations/types.ts'
import { multiParts } from './multi.ts'

/** The fields of a write that a record of it shows, as the client sent them. */
export interface WriteDescription {
  /** Undefined for a multi, a reconfiguration, and a body that cannot be decoded. */
  readonly path: string | undefined
  readonly acl: readonly ACL[] | undefined
  /** The create mode of a creation. */
  readonly mode: number | undefined
  /** The create mode of each part of a multi that creates, undefined for another part. A large multi is decoded while they are iterated. */
  readonly modes: Iterable<number | undefined>
}

/** Bytes of a multi from which on it is not decoded at once: a million bytes take milliseconds. */
const LARGE_BYTES = 16_384

const UNKNOWN: WriteDescription = { path: undefined, acl: undefined, mode: undefined, modes: [] }

type DescribedWrite = DecodedWrite & { readonly flags?: number; readonly acl?: readonly ACL[] | null }

/** Describes the write in a body. The reader is at the start of the body again when this returns. */
export function describeWrite(type: number, body: Reader): WriteDescription {
  const { offset } = body
  try {
    if (type === OpCode.multi) return { ...UNKNOWN, modes: modesOf(body) }
    if (type === OpCode.reconfig) return UNKNOWN
    if (type === OpCode.setData || type === OpCode.delete)
      return { path: body.string() ?? undefined, acl: undefined, mode: undefined, modes: UNKNOWN.modes }
    const { path, flags, acl }: DescribedWrite = operationOf(type).decode(type, body, PATHS)
    const shown = type === OpCode.setACL ? (acl ?? undefined) : undefined
    return { path: path ?? undefined, acl: shown, mode: flags, modes: [] }
  } catch (error) {
    // The pipeline refuses a body that cannot be decoded.
    if (error instanceof ProtocolError) return UNKNOWN
    throw error
  } finally {
    body.offset = offset
  }
}

function modesOf(body: Reader): Iterable<number | undefined> {
  if (body.remaining < LARGE_BYTES) return [...createModes(body)]
  // The connection reuses the bytes of the request after this turn.
  return createModes(new Reader(body.raw(body.remaining).slice(), 0, undefined, body.maxElement))
}

function* createModes(body: Reader): Generator<number | undefined, void> {
  for (const { flags } of multiParts(body, SKIPPING) as Iterable<DescribedWrite>) yield flags
}
