/** Error codes of replies, with the names of `KeeperException.Code`. */
export const ErrorCode = {
  OK: 0,
  SYSTEMERROR: -1,
  RUNTIMEINCONSISTENCY: -2,
  DATAINCONSISTENCY: -3,
  CONNECTIONLOSS: -4,
  MARSHALLINGERROR: -5,
  UNIMPLEMENTED: -6,
  OPERATIONTIMEOUT: -7,
  BADARGUMENTS: -8,
  UNKNOWNSESSION: -12,
  NEWCONFIGNOQUORUM: -13,
  RECONFIGINPROGRESS: -14,
  APIERROR: -100,
  NONODE: -101,
  NOAUTH: -102,
  BADVERSION: -103,
  NOCHILDRENFOREPHEMERALS: -108,
  NODEEXISTS: -110,
  NOTEMPTY: -111,
  SESSIONEXPIRED: -112,
  INVALIDCALLBACK: -113,
  INVALIDACL: -114,
  AUTHFAILED: -115,
  SESSIONMOVED: -118,
  NOTREADONLY: -119,
  EPHEMERALONLOCALSESSION: -120,
  NOWATCHER: -121,
  REQUESTTIMEOUT: -122,
  RECONFIGDISABLED: -123,
  SESSIONCLOSEDREQUIRESASLAUTH: -124,
  QUOTAEXCEEDED: -125,
  THROTTLEDOP: -127,
} as const
export type ErrorName = keyof typeof ErrorCode
export type ErrorCode = (typeof ErrorCode)[ErrorName]

export interface ErrorInfo {
  readonly code: number
  readonly name: ErrorName
  /** One sentence for users. */
  readonly meaning: string
}

const rows: Readonly<Record<ErrorName, string>> = {
  OK: 'The request succeeded.',
  SYSTEMERROR: 'The server could not process the request, because its disk is full for example.',
  RUNTIMEINCONSISTENCY: 'A multi failed at an earlier operation, so this one was not tried.',
  DATAINCONSISTENCY: 'The data is inconsistent; no server sends it.',
  CONNECTIONLOSS:
    'The connection broke before the reply came; the request may or may not have been carried out.',
  MARSHALLINGERROR: 'The server could not decode the request.',
  UNIMPLEMENTED: 'The server does not know this operation, or has it switched off.',
  OPERATIONTIMEOUT: 'The operation took too long.',
  BADARGUMENTS: 'A path, flag or other argument is not valid.',
  UNKNOWNSESSION: 'The server does not know this session.',
  NEWCONFIGNOQUORUM: 'No quorum of the new configuration is connected and up to date.',
  RECONFIGINPROGRESS: 'Another reconfiguration is under way.',
  APIERROR: 'Marks the range of API errors; no server sends it.',
  NONODE: 'The znode, or the parent that it needs, does not exist.',
  NOAUTH: 'No identity of this connection has the permission that the operation needs.',
  BADVERSION: 'The version that was expected is not the version that the znode has.',
  NOCHILDRENFOREPHEMERALS: 'An ephemeral znode cannot have children.',
  NODEEXISTS: 'The znode exists already.',
  NOTEMPTY: 'The znode has children.',
  SESSIONEXPIRED: 'The session has expired or was closed; its ephemeral znodes are gone.',
  INVALIDCALLBACK: 'A callback is not valid; no server sends it.',
  INVALIDACL: 'The access control list is empty, or an entry of it is not valid.',
  AUTHFAILED: 'The credentials were refused; the connection is closed.',
  SESSIONMOVED: 'The session has moved to another server; connect again.',
  NOTREADONLY: 'This server is read-only for now; another may take the write.',
  EPHEMERALONLOCALSESSION: 'A local session cannot make ephemeral znodes here.',
  NOWATCHER: 'There is no such watch to check or remove.',
  REQUESTTIMEOUT: 'No reply came in time; the request may or may not have been carried out.',
  RECONFIGDISABLED: 'Reconfiguration is switched off.',
  SESSIONCLOSEDREQUIRESASLAUTH:
    'The server demands authentication that this session lacks; the connection is closed.',
  QUOTAEXCEEDED: 'The change would exceed a hard quota.',
  THROTTLEDOP: 'The server is overloaded and did not carry the request out; wait and try again.',
}

const byCode = (): ReadonlyMap<number, ErrorInfo> =>
  new Map(
    (Object.keys(rows) as ErrorName[]).map((name) => [
      ErrorCode[name],
      { code: ErrorCode[name], name, meaning: rows[name] },
    ]),
  )

/** Every error by its code. Marked as pure, so that applications without it load no meanings. */
export const errors: ReadonlyMap<number, ErrorInfo> = /* @__PURE__ */ byCode()

/** Returns the name of an error code, or the code as text when it is unknown. */
export const errorName = (code: number): string => errors.get(code)?.name ?? String(code)
