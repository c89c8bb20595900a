import { ErrorCode, errors as wireErrors } from '@zabra/protocol'
import {
  abortError,
  ClosedError,
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

Every call of a client rejects with a \`ZooKeeperError\` and with nothing else, but for what your own codec or
your own change function throws. An error has

- \`code\`, a stable text to switch on, and a class for \`instanceof\`, which also knows errors of another copy of the package;
- \`category\`, what it asks of you: see below;
- \`maybeApplied\`, true only if a write has left and nobody knows whether it was carried out;
- \`path\` and \`operation\`, as the caller gave them, and \`wireCode\`, the number of the protocol, when there is one;
- \`cause\`, what lies behind it.

| category | class | asks for |
| --- | --- | --- |
| recoverable | \`RecoverableError\` | The same call may succeed later in this session. |
| state | \`StateError\` | The tree, or what the call asked of it, forbids the request. Trying again unchanged changes nothing. |
| fatal | \`FatalError\` | The session, the client or this request is over for good. |
| usage | \`UsageError\`, \`AbortedError\` | The call was wrong, or its caller has ended it. |

`

/** What to do about each, by its code. */
const advice: Readonly<Record<string, string>> = {
  SYSTEM_ERROR:
    'A Zabra server says so while its disk is full: reads go on, and writes are taken again when there is space. Else look into the log of the server.',
  RUNTIME_INCONSISTENCY: 'Look at the error of the operation before it; a `MultiError` names it.',
  DATA_INCONSISTENCY: 'Look into the log of the server.',
  CONNECTION_LOSS:
    'Nothing for the connection: the client makes another. If `maybeApplied` is false, call again; if it is true, read what is there, or let writes be repeated by a version, `idempotent` or `protected`.',
  MARSHALLING_ERROR:
    'Look at `cause`. If an answer was longer than `maxFrame`, raise it; else client and server disagree about the protocol: report it.',
  UNIMPLEMENTED:
    'The server is older than the operation, or has it switched off (`extendedTypesEnabled` for times to live).',
  OPERATION_TIMEOUT: 'As for a lost connection; allow more time if it happens often.',
  BAD_ARGUMENTS: 'Correct the arguments; the log of the server says what was wrong.',
  UNKNOWN_SESSION: 'Report it: a client never asks about sessions that are not its own.',
  NEW_CONFIG_NO_QUORUM:
    'Start the new members first and let them catch up. The client tries again by itself, unless `retry` forbids it.',
  RECONFIG_IN_PROGRESS: 'Wait. The client tries again by itself, unless `retry` forbids it.',
  API_ERROR: 'Look into the log of the server.',
  NO_NODE: 'Create it first, or its parents with `parents: true`; `missingOk` makes a delete content.',
  NO_AUTH:
    'Prove an identity with `auth` or `addAuth`, or change the list with `setACL`. `whoAmI` tells who you are.',
  BAD_VERSION:
    'Somebody else was faster: read again, decide again, write again. `update` of a typed client does.',
  NO_CHILDREN_FOR_EPHEMERALS: 'Put the child somewhere else: what goes with a session has no children.',
  NODE_EXISTS: 'Often good news. Read it, or use `mkdirp`, or `setData` with `createIfMissing`.',
  NOT_EMPTY: 'Delete the children first, or with it by `recursive: true`.',
  INVALID_CALLBACK: 'Report it.',
  INVALID_ACL:
    'Give at least one entry, with a scheme that the servers know; `auth` needs an identity that was proved.',
  SESSION_EXPIRED:
    'Make ephemeral znodes and one-shot watches again under the new session, which the client opens by itself; see `sessionExpiry`.',
  AUTH_FAILED: 'Correct the credentials and connect anew: this client is finished.',
  SESSION_MOVED:
    'Nothing: the client connects again and repeats the request, unless `retry` forbids it. If it happens often, two clients share one session.',
  NOT_READ_ONLY: 'Ask with `waitForReadWrite`, or wait for the state `connected`.',
  EPHEMERAL_ON_LOCAL_SESSION: 'Let the servers upgrade local sessions, or switch local sessions off there.',
  NO_WATCHER: 'Nothing: it has fired or was removed already.',
  REQUEST_TIMEOUT: 'As for a lost connection: the server does not know what became of the request.',
  RECONFIG_DISABLED: 'Set `reconfigEnabled` on the servers.',
  SESSION_CLOSED_REQUIRE_SASL_AUTH:
    'Log in with the option `sasl`, and connect anew: this client is finished.',
  QUOTA_EXCEEDED: 'Store less, or raise the quota of the subtree.',
  THROTTLED_OP:
    'Nothing: the client waits and asks again, unless `retry` forbids it. If it happens often, ask for less at a time.',
  NO_CHROOT: "Connect with `createChroot: true`, or call `mkdirp('/')`.",
  MULTI_FAILED: 'Look at `index` and `cause`: that operation failed, and none was carried out.',
  'UNKNOWN_…': 'Only the request has failed. The server is newer than this client: upgrade.',
  CLOSED: 'Somebody has called `close` or `detach`. Connect anew if that was not the end.',
  USAGE: 'Correct the call; the message says what was expected. Nothing was sent.',
  ABORTED:
    '`cause` is the reason of your signal. If `maybeApplied` is true, the write may still take effect.',
}

/** What no server answers with, or means otherwise. */
const meanings: Readonly<Record<string, string>> = {
  SYSTEM_ERROR: 'The server could not carry the request out.',
  NO_CHROOT: 'The root of this client does not exist.',
  MULTI_FAILED: 'A multi failed as a whole.',
  'UNKNOWN_…':
    'The server has answered with a number that this version does not know; it stands behind the underscore.',
  CLOSED: 'The client or the view is closed.',
  USAGE: 'The call cannot be right, whatever the servers hold.',
  ABORTED: "The caller's signal has ended the call. Its `name` is `AbortError`.",
}

interface Row {
  readonly code: string
  readonly error: ZooKeeperError
  readonly meaning: string
}

function rows(): Row[] {
  const numbers = [...errorTable.keys(), ErrorCode.SESSIONEXPIRED].toSorted((a, b) => b - a)
  const told = numbers.map((number) => {
    const error = errorFromCode(number, {})
    return { code: error.code, error, meaning: meanings[error.code] ?? wireErrors.get(number)?.meaning ?? '' }
  })
  const cause = errorFromCode(ErrorCode.NONODE, {})
  const own = {
    NO_CHROOT: noChrootError('/app', {}),
    MULTI_FAILED: new MultiError('', 0, cause),
    'UNKNOWN_…': new UnknownServerError('', 'UNKNOWN_1', {}),
    CLOSED: terminalErrorFor(new ClosedError('', 'CLOSED'), {}),
    USAGE: new UsageError(''),
    ABORTED: abortError('', {}),
  }
  return [
    ...told,
    ...Object.entries(own).map(([code, error]) => ({ code, error, meaning: meanings[code] ?? '' })),
  ]
}

/** The codes that the page tells of, and those for which there is advice: one list, or somebody forgot a row. */
export const documented = (): { rows: string[]; advice: string[] } => ({
  rows: rows()
    .map(({ code }) => code)
    .toSorted(),
  advice: Object.keys(advice).toSorted(),
})

/** The reference page of all errors, as Markdown. */
export function renderErrors(): string {
  const lines = rows().map(({ code, error, meaning }) => {
    const number = code === 'MULTI_FAILED' ? 'of its cause' : String(error.wireCode ?? '')
    const type = (error.constructor as unknown as { tag: string }).tag
    return `| \`${code}\` | \`${type}\` | ${number} | ${error.category} | ${meaning} | ${advice[code] ?? ''} |`
  })
  const head = ['code', 'class', 'number', 'category', 'meaning', 'what to do']
  const table = [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines]
  return `${opening}## All codes\n\n${table.join('\n')}\n`
}
