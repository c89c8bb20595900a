import { errorName, Perms, type ACL } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { maskDigests } from '../core/auth/index.ts'
import type { SessionId, Zxid } from '../core/types.ts'
import type { ClientOrigin } from '../pipeline/index.ts'

/** What a line of the audit log is about; `audit.events` chooses among them. */
export type AuditCategory = 'writes' | 'auth' | 'sessions' | 'admin' | 'config' | 'reads'

/** How a request came: in the protocol of clients, over HTTP, or as a four-letter word. */
export type AuditVia = 'zk' | 'http' | 'word'

/** The result of an event. `invoked`: the outcome is not known when the line is written. */
export type AuditResult = 'success' | 'failure' | 'invoked'

/** One line of the audit log. Absent and undefined fields are left out of it. */
export interface AuditEvent {
  readonly category: AuditCategory
  /** The name of the operation, where Apache ZooKeeper has one by its name. */
  readonly operation: string
  readonly result: AuditResult
  readonly session?: SessionId | undefined
  /** Names of the identities of the client; never a password or a hash of one. */
  readonly users?: readonly string[] | undefined
  /** The IP address of the client. */
  readonly ip?: string | undefined
  /** Where the client connects from; absent where only its address is known. */
  readonly origin?: ClientOrigin | undefined
  readonly via?: AuditVia | undefined
  readonly path?: string | undefined
  /** The create mode of a creation, as text. */
  readonly mode?: string | undefined
  readonly acl?: readonly ACL[] | undefined
  /** The error number of a failure, or a reason. */
  readonly error?: number | string | undefined
  readonly zxid?: Zxid | undefined
  readonly xid?: number | undefined
  /** The version of the data or of the ACL after the change. */
  readonly version?: number | undefined
  /** The version before the change. */
  readonly versionBefore?: number | undefined
  /** Bytes of data. */
  readonly bytes?: number | undefined
  /** The scheme of a login. */
  readonly scheme?: string | undefined
  /** What was changed to what, in a change of the server itself. */
  readonly detail?: string | undefined
  /** Lines that are missing in the log before this one. */
  readonly lost?: number | undefined
}

/** Who a client is, in its lines. */
export type AuditClient = Pick<AuditEvent, 'session' | 'users' | 'ip' | 'origin' | 'via'>

/** The fields of a successful write beside its client and its path. Lines in the format of Apache ZooKeeper have the create mode only. */
export type PlainChange = Pick<
  AuditEvent,
  'operation' | 'mode' | 'version' | 'versionBefore' | 'bytes' | 'xid' | 'zxid'
>

/** Returns where the client of a connection or of an HTTP request connects from. */
export function originOf(
  ip: string,
  { remote, tls, peer }: Pick<Connection, 'remote' | 'tls' | 'peer'>,
): ClientOrigin {
  const subject = peer === undefined ? {} : { subject: peer.subject }
  return { ip, port: remote.port, tls: tls === undefined ? undefined : { ...tls, ...subject } }
}

/** What a line says about its place in the log. */
export interface AuditStamp {
  /** Milliseconds since 1970. */
  readonly time: number
  /** The number of the line since the server started. Lost lines have numbers too, so a gap shows a loss. */
  readonly id: number
  readonly serverId: number
}

const ESCAPES: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }

/** Control characters, line separators and those that change the direction of text, and the backslash. */
const ESCAPED = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\\]/u
const ALL_ESCAPED = new RegExp(ESCAPED, 'gu')

/**
 * Escapes what would end a field or a line, for a reader that ends lines as Unicode does too, or command a terminal: a path may
 * hold such characters, with which a client could forge fields and lines.
 */
const escape = (text: string): string =>
  ESCAPED.test(text) ? text.replace(ALL_ESCAPED, (one) => ESCAPES[one] ?? unicodeEscape(one)) : text

const unicodeEscape = (one: string): string => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`

const hex = (value: bigint | number): string =>
  typeof value === 'number' && value >= 0
    ? `0x${value.toString(16)}`
    : `0x${BigInt.asUintN(64, BigInt(value)).toString(16)}`

/** Formats the fields about the client of an event, with the tab behind them. */
function clientText({ session, users, ip }: AuditEvent): string {
  let text = session === undefined ? '' : `session=${hex(session)}\t`
  if (users !== undefined && users.length > 0) text += `user=${escape(users.join(','))}\t`
  return ip === undefined ? text : `${text}ip=${escape(ip)}\t`
}

/** Formats an event as Apache ZooKeeper does: `key=value` fields separated by tabs, in its order. */
export function apacheLine(event: AuditEvent): string {
  const { path, mode, acl, scheme, detail, lost, result } = event
  let line = `${clientText(event)}operation=${escape(event.operation)}\t`
  if (path !== undefined) line += `znode=${escape(path)}\t`
  if (mode !== undefined) line += `znode_type=${mode}\t`
  if (acl !== undefined) line += `acl=${escape(aclTexts(acl).join(','))}\t`
  if (scheme !== undefined) line += `scheme=${escape(scheme)}\t`
  if (detail !== undefined) line += `detail=${escape(detail)}\t`
  if (lost !== undefined) line += `lost=${lost}\t`
  return `${line}result=${result}`
}

/**
 * Returns the fields of an event for a line of JSON. Ids are texts, since they may exceed 2^53. `JSON.stringify` leaves out those that
 * are undefined.
 */
export function jsonFields(event: AuditEvent, { time, id, serverId }: AuditStamp): object {
  const { session, origin, acl, error, zxid } = event
  return {
    time: new Date(time).toISOString(),
    id,
    member: serverId,
    event: event.category,
    op: event.operation,
    result: event.result,
    error: typeof error === 'number' ? errorName(error).toLowerCase() : error,
    session: session === undefined ? undefined : hex(session),
    user: event.users,
    ip: event.ip,
    port: origin?.port,
    via: event.via,
    tls: origin?.tls,
    path: event.path,
    mode: event.mode,
    version: event.version,
    versionBefore: event.versionBefore,
    zxid: zxid === undefined ? undefined : hex(zxid),
    bytes: event.bytes,
    acl: acl === undefined ? undefined : aclTexts(acl),
    requestId: event.xid,
    scheme: event.scheme,
    detail: event.detail,
    lost: event.lost,
  }
}

/** Formats the time of a line as the logging configuration of Apache ZooKeeper does; in UTC. */
export const fileTime = (time: number): string =>
  new Date(time).toISOString().replace('T', ' ').replace('.', ',').replace('Z', '')

/** Formats a line of a file as the logging configuration of Apache ZooKeeper does for its audit log. `at` is its `fileTime`. */
export function fileLine(event: AuditEvent, at: string): string {
  return `${at} ${event.result === 'failure' ? 'ERROR' : 'INFO'} audit.Slf4jAuditLogger: ${apacheLine(event)}`
}

/** Formats an access list. The hashes of passwords are masked, as they are for clients that may not administer the node. */
const aclTexts = (acl: readonly ACL[]): string[] => maskDigests(acl).map(aclText)

/** Formats an entry of an access list as `scheme:id:cdrwa`. */
function aclText({ perms, id }: ACL): string {
  const letters = PERMISSIONS.filter(([, bit]) => (perms & bit) !== 0).map(([letter]) => letter)
  return `${id.scheme}:${id.id}:${letters.join('')}`
}

const PERMISSIONS = [
  ['c', Perms.CREATE],
  ['d', Perms.DELETE],
  ['r', Perms.READ],
  ['w', Perms.WRITE],
  ['a', Perms.ADMIN],
] as const
