/** Why a client connection ends. Each connection that was accepted ends for exactly one of these causes, the first that applied. */
export const CLOSE_CAUSES = [
  /** The client has closed the connection; its session goes on. */
  'client',
  /** The network has failed. */
  'network',
  /** A four-letter command was answered. */
  'command',
  /** The handshake was refused. */
  'refused',
  /** The client has closed its session. */
  'session_closed',
  /** The session has expired, or another server has ended it. */
  'session_expired',
  /** The client has connected again to this server. */
  'reconnected',
  /** The session has moved to another server. */
  'moved',
  /** The client sent no request, or did not log in, in time. */
  'idle',
  /** The bytes are no request, or no client may send it. */
  'protocol',
  /** The length of a request is not allowed. */
  'too_large',
  /** The client holds too much memory. */
  'memory',
  /** The client does not read what was sent. */
  'slow_reader',
  /** The client has not proved the identity that it needs. */
  'login',
  /** An operator has closed the connection, or ended the session. */
  'killed',
  /** The server drains, or an operator moves connections to other servers. */
  'drained',
  'disk_full',
  'role_ended',
  'stopping',
] as const

export type CloseCause = (typeof CLOSE_CAUSES)[number]

/** The causes by which a server refuses a client. */
const REFUSALS: ReadonlySet<CloseCause> = new Set(['refused', 'protocol', 'too_large', 'login'])

/** Returns the event of the log of a connection that ends for a cause. */
export const closeEventOf = (cause: CloseCause): 'client.refused' | 'client.closed' =>
  REFUSALS.has(cause) ? 'client.refused' : 'client.closed'

const ADVICE =
  'servers that no configuration names have as many as they may; add this server to the configuration'
export const SESSION_REFUSED = `Closed: its session is refused, ${ADVICE}`
export const UPGRADE_REFUSED = `Closed: its session was local and may not become global, ${ADVICE}`

export const LOGIN_MISSING = 'Closed: its session belongs to a user, and it has not logged in by SASL'
