import { ErrorCode, errors as wireErrors } from '@zabra/protocol'
import {
  abortError,
  ClosedError,
  ConnectFailedError,
  codecError,
  terminalErrorFor,
  errorFromCode,
  errorTable,
  MultiError,
  noChrootError,
  UnknownServerError,
  UsageError,
  type ZooKeeperError,
} from '../errors.ts'

const opening = `# Errors of the client

<!-- Generated from packages/client/src/errors.ts: run pnpm --filter @zabra/client gen:docs. Do not edit by hand. -->

Every call of a client rejects with a \`ZooKeeperError\`, or with an error thrown by your own callback, such as the change function of \`update\`.
An error has

- \`code\`, a stable identifier to switch on, and a class for \`instanceof\`, which also works across copies of the package;
- \`retryable\`: whether the same call may succeed later in this session;
- \`scope\`: what has failed, \`request\`, \`session\` (its ephemeral znodes are gone) or \`client\` (it is closed);
- \`maybeApplied\`, true only if a write was sent and its outcome is unknown;
- \`path\` and \`operation\`, as the caller gave them, and \`wireCode\`, the error code of the protocol, if there is one;
- \`cause\`, the underlying error.

\`ZooKeeperError.is(error, 'NO_NODE')\` tests for one code and narrows to its class; after \`ZooKeeperError.is(error)\`, a
test of \`error.code\` does.

`

/** Advice for each code. */
const advice: Readonly<Record<string, string>> = {
  SYSTEM_ERROR:
    'A Zabra server replies so while its disk is full: reads continue, and writes succeed again when there is space. Otherwise check the log of the server.',
  RUNTIME_INCONSISTENCY: 'Check the error of the operation that failed; a `MultiError` names it.',
  DATA_INCONSISTENCY: 'Check the log of the server.',
  CONNECTION_LOSS:
    'The client reconnects automatically. If `maybeApplied` is false, call again; if it is true, read the znode, or make writes retryable by a version, `idempotent` or `protected`.',
  MARSHALLING_ERROR:
    'Check `cause`. If a reply was longer than `maxFrameBytes`, raise it; otherwise client and server disagree about the protocol: report a bug.',
  UNIMPLEMENTED:
    'The server does not know the operation, or has it disabled (`extendedTypesEnabled` for TTL znodes).',
  OPERATION_TIMEOUT: 'As for CONNECTION_LOSS; allow more time if it happens often.',
  BAD_ARGUMENTS: 'Correct the arguments; the log of the server has the reason.',
  UNKNOWN_SESSION: 'Report a bug: a client only uses its own session.',
  NEW_CONFIG_NO_QUORUM:
    'Start the new members first and let them sync. The client retries automatically, unless `retry` forbids it.',
  RECONFIG_IN_PROGRESS: 'Wait. The client retries automatically, unless `retry` forbids it.',
  API_ERROR: 'Check the log of the server.',
  NO_NODE: 'Create it first, or its parents with `parents: true`; a delete with `missingOk` succeeds.',
  NO_AUTH:
    'Authenticate with `auth` or `addAuth`, or change the ACL with `setACL`. `whoAmI` lists your identities.',
  BAD_VERSION:
    'Another client has written: read again, decide again, write again, as `update` of a typed client does.',
  NO_CHILDREN_FOR_EPHEMERALS: 'Create the child elsewhere: an ephemeral znode cannot have children.',
  NODE_EXISTS: 'Read the existing znode, or use `createMissing`, or `setData` with `createIfMissing`.',
  NOT_EMPTY: 'Delete the children first, or use `recursive: true`.',
  INVALID_CALLBACK: 'Report a bug.',
  INVALID_ACL:
    'Give at least one entry with a scheme that the servers know; the scheme `auth` needs an authenticated identity.',
  SESSION_EXPIRED:
    'Create ephemeral znodes and one-shot watches again in the new session, which the client opens automatically; see `sessionExpiry`.',
  AUTH_FAILED: 'Correct the credentials and connect again: this client is closed.',
  SESSION_MOVED:
    'The client reconnects and retries the request, unless `retry` forbids it. If it happens often, two clients share one session.',
  NOT_READ_ONLY: 'Pass `waitForReadWrite`, or wait for the state `connected`.',
  EPHEMERAL_ON_LOCAL_SESSION: 'Let the servers upgrade local sessions, or disable local sessions there.',
  NO_WATCHER: 'Ignore it: the watch has fired or was removed already.',
  REQUEST_TIMEOUT: 'As for CONNECTION_LOSS: the server does not know the outcome of the request.',
  RECONFIG_DISABLED: 'Set `reconfigEnabled` on the servers.',
  SESSION_CLOSED_REQUIRE_SASL_AUTH:
    'Log in with the option `sasl`, and connect again: this client is closed.',
  QUOTA_EXCEEDED: 'Store less, or raise the quota of the subtree.',
  THROTTLED_OP:
    'The client retries after a delay, unless `retry` forbids it. If it happens often, reduce the number of requests in flight.',
  NO_CHROOT: "Connect with `createChroot: true`, or call `createMissing(['/'])`.",
  MULTI_FAILED: 'Check `index` and `cause`: that operation failed, and none was applied.',
  'UNKNOWN_…': 'Only the request has failed. The server is newer than this client: upgrade the client.',
  ENCODE_FAILED: 'Correct the value, or the schema: `cause` is the error of the codec. No request was sent.',
  DECODE_FAILED:
    'Another program wrote other data, or the schema has changed: `cause` is the error of the codec.',
  CONNECT_FAILED:
    'Correct the address, the certificates or the files that the message names, and connect again.',
  CLOSED: 'The program has called `close` or `detach`. Connect again to continue.',
  USAGE: 'Correct the call; the message says what was expected. No request was sent.',
  ABORTED: '`cause` is the reason of your signal. If `maybeApplied` is true, the write may still be applied.',
}

/** Meanings of codes that no server sends, or that the protocol describes differently. */
const meanings: Readonly<Record<string, string>> = {
  NO_CHROOT: 'The chroot of this client does not exist.',
  MULTI_FAILED: 'A multi failed as a whole.',
  'UNKNOWN_…':
    'The server replied with an error code that this version does not know; it follows the underscore.',
  ENCODE_FAILED: 'The codec could not encode the value.',
  DECODE_FAILED: 'The codec could not decode the data of the znode.',
  CONNECT_FAILED:
    'No attempt to connect can succeed: a certificate, a file or the protocol of the port is wrong.',
  CLOSED: 'The client is closed.',
  USAGE: 'The call is invalid in any state of the tree.',
  ABORTED: "The caller's signal aborted the call. Its `name` is `AbortError`.",
}

interface Row {
  readonly code: string
  readonly error: ZooKeeperError
  readonly meaning: string
}

function rows(): Row[] {
  const numbers = [...errorTable.keys(), ErrorCode.SESSIONEXPIRED].toSorted((a, b) => b - a)
  const wireRows = numbers.map((number) => {
    const error = errorFromCode(number, {})
    return { code: error.code, error, meaning: meanings[error.code] ?? wireErrors.get(number)?.meaning ?? '' }
  })
  const cause = errorFromCode(ErrorCode.NONODE, {})
  const own = {
    NO_CHROOT: noChrootError('/app', {}),
    MULTI_FAILED: new MultiError('', 0, cause),
    'UNKNOWN_…': new UnknownServerError('', 'UNKNOWN_1', {}),
    ENCODE_FAILED: codecError('ENCODE_FAILED', undefined, {}),
    DECODE_FAILED: codecError('DECODE_FAILED', undefined, {}),
    CONNECT_FAILED: new ConnectFailedError('', 'CONNECT_FAILED'),
    CLOSED: terminalErrorFor(new ClosedError('', 'CLOSED'), {}),
    USAGE: new UsageError(''),
    ABORTED: abortError('', {}),
  }
  return [
    ...wireRows,
    ...Object.entries(own).map(([code, error]) => ({ code, error, meaning: meanings[code] ?? '' })),
  ]
}

/** Returns the codes on the page and the codes with advice; a test compares them. */
export const documented = (): { rows: string[]; advice: string[] } => ({
  rows: rows()
    .map(({ code }) => code)
    .toSorted(),
  advice: Object.keys(advice).toSorted(),
})

/** Renders the error reference as Markdown. */
export function renderErrors(): string {
  const lines = rows().map(({ code, error, meaning }) => {
    const number = code === 'MULTI_FAILED' ? 'of its cause' : String(error.wireCode ?? '')
    const type = (error.constructor as unknown as { tag: string }).tag
    return `| \`${code}\` | \`${type}\` | ${number} | ${error.retryable ? 'yes' : 'no'} | ${error.scope} | ${meaning} | ${advice[code] ?? ''} |`
  })
  const head = ['code', 'class', 'number', 'retryable', 'scope', 'meaning', 'what to do']
  const table = [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines]
  return `${opening}## All codes\n\n${table.join('\n')}\n`
}
