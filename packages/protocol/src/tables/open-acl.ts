import { writeACLList } from '../gen/records.gen.ts'
import { Writer } from '../wire/writer.ts'
import { OPEN_ACL_UNSAFE } from './acl.ts'

/** `OPEN_ACL_UNSAFE` encoded. Nearly every create request contains these bytes, so decoders compare with them first. */
export const OPEN_ACL_BYTES: Uint8Array = encoded()

function encoded(): Uint8Array {
  const writer = new Writer(64)
  writeACLList(writer, [...OPEN_ACL_UNSAFE])
  return writer.take()
}
