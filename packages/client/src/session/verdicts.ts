import { ErrorCode, type Reader } from '@zabra/protocol'

/** The server did not carry it out, and may later. */
export const laterCodes: ReadonlySet<number> = new Set([
  ErrorCode.THROTTLEDOP,
  ErrorCode.NEWCONFIGNOQUORUM,
  ErrorCode.RECONFIGINPROGRESS,
])

/** The server does not know whether it was carried out. */
export const openCodes: ReadonlySet<number> = new Set([
  ErrorCode.CONNECTIONLOSS,
  ErrorCode.OPERATIONTIMEOUT,
  ErrorCode.REQUESTTIMEOUT,
])

/** The zxid in the header of the reply that a reader stands in. */
export function zxidOf(reader: Reader): bigint {
  const { offset } = reader
  reader.offset = reader.start + 4
  const zxid = reader.long()
  reader.offset = offset
  return zxid
}
