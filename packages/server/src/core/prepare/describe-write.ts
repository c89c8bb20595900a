import { OpCode, ProtocolError, type ACL, type Reader } from '@zabra/protocol'
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
  /** The create modes of the creations in a multi, in order. */
  readonly modes: readonly number[]
}

const UNKNOWN: WriteDescription = { path: undefined, acl: undefined, mode: undefined, modes: [] }

type DescribedWrite = DecodedWrite & { readonly flags?: number; readonly acl?: readonly ACL[] | null }

/** Describes the write in a body. The reader is at the start of the body again when this returns. */
export function describeWrite(type: number, body: Reader): WriteDescription {
  const { offset } = body
  try {
    if (type === OpCode.multi) return { ...UNKNOWN, modes: modesOf(body) }
    if (type === OpCode.reconfig) return UNKNOWN
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

function modesOf(body: Reader): readonly number[] {
  const modes: number[] = []
  for (const part of multiParts(body, SKIPPING) as Iterable<DescribedWrite>)
    if (part.flags !== undefined) modes.push(part.flags)
  return modes
}
