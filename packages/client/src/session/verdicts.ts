import { ErrorCode } from '@zabra/protocol'

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
