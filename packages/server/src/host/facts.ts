import type { SessionId } from '../core/types.ts'
import { hex } from './hex.ts'

/** What tells a client from others. */
export interface Named {
  /** Its address. */
  readonly host: string
  readonly port: number
  readonly sessionId: SessionId
}

/** Who a client is, for the log. */
export function factsOf({ host, port, sessionId }: Named): {
  readonly client: string
  readonly session: string
} {
  return { client: `${host.includes(':') ? `[${host}]` : host}:${port}`, session: hex(sessionId) }
}
