import { ErrorCode, type Reader } from '@zabra/protocol'

/** The server did not carry it out, and may later. */
export const retryableCodes: ReadonlySet<number> = new Set([
  ErrorCode.THROTTLEDOP,
  ErrorCode.NEWCONFIGNOQUORUM,
  ErrorCode.RECONFIGINPROGRESS,
])

/** The server does not know whether it was carried out. */
export const ambiguousCodes: ReadonlySet<number> = new Set([
  ErrorCode.CONNECTIONLOSS,
  ErrorCode.OPERATIONTIMEOUT,
  ErrorCode.REQUESTTIMEOUT,
])

/** Errors that say something of the session or the server, so of each request alike, and nothing of what was asked. */
export const connectionWideCodes: ReadonlySet<number> = new Set([
  ...retryableCodes,
  ...ambiguousCodes,
  ErrorCode.SESSIONEXPIRED,
  ErrorCode.AUTHFAILED,
  ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH,
])

/** The zxid in the header of the reply that a reader stands in. */
export function readReplyZxid(reader: Reader): bigint {
  const { offset } = reader
  reader.offset = reader.start + 4
  const zxid = reader.long()
  reader.offset = offset
  return zxid
}
