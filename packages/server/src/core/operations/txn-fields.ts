import {
  OPEN_ACL_BYTES,
  OPEN_ACL_UNSAFE,
  readACL,
  writeACL,
  type ACL,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import type { PathLookup } from './types.ts'

/** Reads the path of a transaction; `paths` supplies the string where it knows the path. */
export function readTxnPath(reader: Reader, paths?: PathLookup): string {
  const node = paths === undefined ? -1 : paths.findFromReader(reader)
  return node === -1
    ? (reader.string() ?? reader.fail('Expected a path, got null', 'path'))
    : paths!.pathOf(node)
}

/** Writes an ACL. Most are the open one, whose bytes are known. */
export function writeTxnAcl(writer: Writer, acl: readonly ACL[]): void {
  if (acl === OPEN_ACL_UNSAFE) return writer.raw(OPEN_ACL_BYTES)
  writer.int(acl.length)
  for (const entry of acl) writeACL(writer, entry)
}

/** Reads an ACL; null is an empty one. */
export function readTxnAcl(reader: Reader): readonly ACL[] {
  if (reader.skipIfEqual(OPEN_ACL_BYTES)) return OPEN_ACL_UNSAFE
  const count = Math.max(0, reader.vectorLength())
  const acl: ACL[] = []
  for (let i = 0; i < count; i++) acl.push(readACL(reader))
  return acl
}
