import type { Socket } from 'node:net'
import { NetworkError } from '../network.ts'

export interface PendingSocketLimits {
  /** Sockets at a time; 0 is no limit. */
  readonly limit: number
  readonly timeoutMs: number
}

/** Sockets that are accepted and not ready yet, because of a handshake say: only so many, and each only for so long. */
export class PendingSockets {
  readonly #limits: PendingSocketLimits
  readonly #what: string
  readonly #timers = new Map<string, NodeJS.Timeout>()

  /** `what` is what they wait for, such as "a TLS handshake". */
  constructor(what: string, limits: PendingSocketLimits) {
    this.#what = what
    this.#limits = limits
  }

  /** How many there are now. */
  get size(): number {
    return this.#timers.size
  }

  /** Takes a socket in, or destroys it and tells why. */
  admit(socket: Socket, refused: (error: Error) => void): boolean {
    const { limit, timeoutMs } = this.#limits
    const key = remoteName(socket)
    const refuse = (reason: string, code: string): void => {
      socket.destroy()
      refused(new NetworkError(`${key} is refused: ${reason}`, code))
    }
    if (limit > 0 && this.#timers.size >= limit) {
      socket.on('error', () => {})
      refuse(`${this.#timers.size} others are still at ${this.#what}`, 'ETOOMANY')
      return false
    }
    const timer = setTimeout(
      () => refuse(`${this.#what} took more than ${timeoutMs} ms`, 'ETIMEDOUT'),
      timeoutMs,
    )
    timer.unref()
    this.#timers.set(key, timer)
    socket.once('close', () => this.#forget(key, timer))
    return true
  }

  /** The socket, or the one around it, is ready. */
  ready(socket: Socket): void {
    const key = remoteName(socket)
    this.#forget(key, this.#timers.get(key))
  }

  #forget(key: string, timer: NodeJS.Timeout | undefined): void {
    clearTimeout(timer)
    if (this.#timers.get(key) === timer) this.#timers.delete(key)
  }
}

/** The peer of a socket; no two live ones have the same. */
export function remoteName({ remoteAddress = 'somebody', remotePort = 0 }: Socket): string {
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`
}
