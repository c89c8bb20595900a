import { ErrorCode, type Reader } from '@zabra/protocol'
import type { Zxid } from '../types.ts'

/** The server did not apply the request, and a retry may succeed. */
export const retryableCodes: ReadonlySet<number> = new Set([
  ErrorCode.THROTTLEDOP,
  ErrorCode.NEWCONFIGNOQUORUM,
  ErrorCode.RECONFIGINPROGRESS,
])

/** The server does not know whether the request was applied. */
export const ambiguousCodes: ReadonlySet<number> = new Set([
  ErrorCode.CONNECTIONLOSS,
  ErrorCode.OPERATIONTIMEOUT,
  ErrorCode.REQUESTTIMEOUT,
])

/** Returns the zxid in the reply header of the current frame. */
export function readReplyZxid(reader: Reader): Zxid {
  const { offset } = reader
  reader.offset = reader.start + 4
  const zxid = reader.long() as Zxid
  reader.offset = offset
  return zxid
}
