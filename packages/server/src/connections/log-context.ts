import type { SessionId } from '../core/types.ts'
import { formatSessionId } from './format-session-id.ts'

/** What tells a client from others. */
export interface LoggedClient {
  /** Its address. */
  readonly host: string
  readonly port: number
  readonly sessionId: SessionId
}

/** Who a client is, for the log. */
export function logContext({ host, port, sessionId }: LoggedClient): {
  readonly client: string
  readonly session: string
} {
  return { client: `${host.includes(':') ? `[${host}]` : host}:${port}`, session: formatSessionId(sessionId) }
}
