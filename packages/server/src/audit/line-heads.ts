import type { SessionId } from '../core/types.ts'
import type { AuditClient, AuditEvent } from './audit-event.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Characters of a path that is copied one by one. */
const MAX_PATH = 512

/** The parts of the lines of a client by operation. */
interface ClientHeads {
  readonly session: SessionId | undefined
  readonly ip: string | undefined
  readonly origin: AuditClient['origin']
  readonly heads: Map<string, Uint8Array>
}

/** The path of the event that `LineHeads` has formatted: it marks where the part to keep ends. */
export const PATH_MARK = '/'

/** Holds the part of a line before its path that all lines of one client and operation have in common. */
export class LineHeads {
  readonly #format: (event: AuditEvent) => Uint8Array
  /** By the names of clients, which stay the same array until they log in. */
  readonly #clients = new WeakMap<readonly string[], ClientHeads>()
  #lastClient: AuditClient | undefined
  #lastOperation = ''
  #last: Uint8Array = new Uint8Array(0)

  /** `format` returns that part of the line of an event, whose path is `PATH_MARK`. */
  constructor(format: (event: AuditEvent) => Uint8Array) {
    this.#format = format
  }

  of(client: AuditClient, operation: string): Uint8Array {
    if (client !== this.#lastClient || operation !== this.#lastOperation) {
      this.#last = this.#find(client, operation)
      this.#lastClient = client
      this.#lastOperation = operation
    }
    return this.#last
  }

  #find(client: AuditClient, operation: string): Uint8Array {
    const { users, session, ip, origin, via } = client
    let known = users === undefined ? undefined : this.#clients.get(users)
    if (known === undefined || known.session !== session || known.ip !== ip || known.origin !== origin) {
      known = { session, ip, origin, heads: new Map() }
      if (users !== undefined) this.#clients.set(users, known)
    }
    let head = known.heads.get(operation)
    if (head === undefined) {
      const event = { category: 'writes', operation, result: 'success', path: PATH_MARK } as const
      head = this.#format({ ...event, session, users, ip, origin, via })
      known.heads.set(operation, head)
    }
    return head
  }
}

/** Writes a path that needs no escapes, in text or in JSON. Returns the offset after it, -1 if it is another path, or a long one. */
export function writePath(path: string, into: Uint8Array, at: number): number {
  if (path.length > MAX_PATH) return -1
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i)
    if (unit < 0x20 || unit > 0x7e || unit === BACKSLASH || unit === QUOTE) return -1
    into[at++] = unit
  }
  return at
}
