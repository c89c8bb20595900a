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

/**
 * How a caller can handle an error. `recoverable`: the same call may succeed later in the same session. `state`: the state of the
 * tree or the arguments forbid it; retrying does not help. `fatal`: the session has ended.
 */
export type ErrorKind = 'recoverable' | 'state' | 'fatal'

export interface ErrorInfo {
  readonly code: number
  readonly name: ErrorName
  readonly kind: ErrorKind
  /** One sentence for users. */
  readonly meaning: string
}

const rows: Readonly<Record<ErrorName, readonly [ErrorKind, string]>> = {
  OK: ['state', 'The request succeeded.'],
  SYSTEMERROR: ['fatal', 'Marks the range of system errors; no server sends it.'],
  RUNTIMEINCONSISTENCY: ['state', 'A multi failed at an earlier operation, so this one was not tried.'],
  DATAINCONSISTENCY: ['fatal', 'The data is inconsistent; no server sends it.'],
  CONNECTIONLOSS: [
    'recoverable',
    'The connection broke before the reply came; the request may or may not have been carried out.',
  ],
  MARSHALLINGERROR: ['state', 'The server could not decode the request.'],
  UNIMPLEMENTED: ['state', 'The server does not know this operation, or has it switched off.'],
  OPERATIONTIMEOUT: ['recoverable', 'The operation took too long.'],
  BADARGUMENTS: ['state', 'A path, flag or other argument is not valid.'],
  UNKNOWNSESSION: ['fatal', 'The server does not know this session.'],
  NEWCONFIGNOQUORUM: ['recoverable', 'No quorum of the new configuration is connected and up to date.'],
  RECONFIGINPROGRESS: ['recoverable', 'Another reconfiguration is under way.'],
  APIERROR: ['fatal', 'Marks the range of API errors; no server sends it.'],
  NONODE: ['state', 'The znode, or the parent that it needs, does not exist.'],
  NOAUTH: ['state', 'No identity of this connection has the permission that the operation needs.'],
  BADVERSION: ['state', 'The version that was expected is not the version that the znode has.'],
  NOCHILDRENFOREPHEMERALS: ['state', 'An ephemeral znode cannot have children.'],
  NODEEXISTS: ['state', 'The znode exists already.'],
  NOTEMPTY: ['state', 'The znode has children.'],
  SESSIONEXPIRED: ['fatal', 'The session has expired or was closed; its ephemeral znodes are gone.'],
  INVALIDCALLBACK: ['state', 'A callback is not valid; no server sends it.'],
  INVALIDACL: ['state', 'The access control list is empty, or an entry of it is not valid.'],
  AUTHFAILED: ['fatal', 'The credentials were refused; the connection is closed.'],
  SESSIONMOVED: ['recoverable', 'The session has moved to another server; connect again.'],
  NOTREADONLY: ['recoverable', 'This server is read-only for now; another may take the write.'],
  EPHEMERALONLOCALSESSION: ['state', 'A local session cannot make ephemeral znodes here.'],
  NOWATCHER: ['state', 'There is no such watch to check or remove.'],
  REQUESTTIMEOUT: ['recoverable', 'No reply came in time; the request may or may not have been carried out.'],
  RECONFIGDISABLED: ['state', 'Reconfiguration is switched off.'],
  SESSIONCLOSEDREQUIRESASLAUTH: [
    'fatal',
    'The server demands authentication that this session lacks; the connection is closed.',
  ],
  QUOTAEXCEEDED: ['state', 'The change would exceed a hard quota.'],
  THROTTLEDOP: [
    'recoverable',
    'The server is overloaded and did not carry the request out; wait and try again.',
  ],
}

/** Every error by its code. */
export const errors: ReadonlyMap<number, ErrorInfo> = new Map(
  (Object.keys(rows) as ErrorName[]).map((name) => {
    const [kind, meaning] = rows[name]
    return [ErrorCode[name], { code: ErrorCode[name], name, kind, meaning }]
  }),
)

/** Returns the name of an error code, or the code as text when it is unknown. */
export const errorName = (code: number): string => errors.get(code)?.name ?? String(code)
