import type { SessionId } from '../core/types.ts'

/** Formats a session id as Apache ZooKeeper prints it: unsigned hexadecimal. */
export const formatSessionId = (id: SessionId): string => `0x${BigInt.asUintN(64, id).toString(16)}`

/** A client, as log entries identify it. */
export interface LoggedClient {
  /** The IP address of the client. */
  readonly host: string
  readonly port: number
  readonly sessionId: SessionId
}

/** Returns the fields that identify a client in log entries. */
export function logContext({ host, port, sessionId }: LoggedClient): {
  readonly client: string
  readonly session: string
} {
  return { client: `${host.includes(':') ? `[${host}]` : host}:${port}`, session: formatSessionId(sessionId) }
}
