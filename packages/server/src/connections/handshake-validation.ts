import { writeConnectResponse, type ConnectRequest } from '@zabra/protocol'
import { isPasswordOf, negotiateTimeout, passwordFor, type Session } from '../core/sessions/index.ts'
import type { ClientService } from './client-service.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** What becomes of a handshake. A `timeout` is the negotiated one, in milliseconds. */
export type HandshakeDecision =
  /** The connection is closed without an answer; the client tries another server, and its session is not affected. */
  | { readonly kind: 'close'; readonly reason: string }
  /** The client is told that its session is not valid, for ever. */
  | { readonly kind: 'invalid' }
  | { readonly kind: 'create'; readonly timeout: number }
  /** The session goes on if it is alive, which is still to be found out. */
  | { readonly kind: 'resume'; readonly timeout: number }

/** Judges a handshake, in the order of `ZooKeeperServer.processConnectRequest`. */
export function validateHandshake(
  core: ClientService,
  { lastZxidSeen, timeOut, sessionId, passwd, readOnly }: ConnectRequest,
): HandshakeDecision {
  if (!core.isAccepting) return { kind: 'close', reason: 'Closed: the server is stopping' }
  if (!core.takeThrottleToken()) {
    core.stats.connectionsDropped++
    return { kind: 'close', reason: 'Closed: more clients connect than connection_throttle_tokens allows' }
  }
  if (core.isReadOnly && readOnly !== true)
    return {
      kind: 'close',
      reason: 'Closed: this server is read-only, and its client has not said that it may be',
    }
  const { lastVisibleZxid: horizon } = core.pipeline
  if (lastZxidSeen > BigInt(horizon)) {
    const [seen, last] = [`0x${lastZxidSeen.toString(16)}`, `0x${horizon.toString(16)}`]
    return {
      kind: 'close',
      reason: `Closed: its client has seen zxid ${seen} and this server is at ${last}; it may have lost its data`,
    }
  }
  const { minSessionTimeoutMs, maxSessionTimeoutMs, maxSessions } = core.settings
  const timeout = negotiateTimeout(timeOut, minSessionTimeoutMs, maxSessionTimeoutMs)
  if (sessionId === 0n) {
    const sessions = core.sessions.size + (core.localSessions?.size ?? 0)
    if (maxSessions === 0 || sessions < maxSessions) return { kind: 'create', timeout }
    return {
      kind: 'close',
      reason: `Closed: there are ${sessions} sessions and maxSessions is ${maxSessions}`,
    }
  }
  // Whether it lives is not known here: a server that could tell its client that it is over might be wrong.
  if (core.isReadOnly && core.localSessions?.isOpen(sessionId) !== true)
    return {
      kind: 'close',
      reason: 'Closed: this server is read-only and cannot tell whether the session lives',
    }
  return isPasswordOf(sessionId, passwd) ? { kind: 'resume', timeout } : { kind: 'invalid' }
}

/** Answers a handshake; without a session it says that the client's is not valid. Clients before 3.4 expect a byte less. */
export function writeHandshakeResponse(
  outbox: ReplyWriter,
  session: Session | undefined,
  { legacy, readOnly }: { readonly legacy: boolean; readonly readOnly: boolean },
): void {
  const mark = outbox.writer.beginFrame()
  writeConnectResponse(outbox.writer, {
    protocolVersion: 0,
    timeOut: session?.timeout ?? 0,
    sessionId: session?.id ?? 0n,
    passwd: session === undefined ? new Uint8Array(16) : passwordFor(session.id),
    ...(legacy ? {} : { readOnly }),
  })
  outbox.endFrame(mark)
}
