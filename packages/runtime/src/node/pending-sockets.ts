import type { Socket } from 'node:net'
import { NetworkError } from '../network.ts'

export interface PendingSocketLimits {
  /** Most pending sockets; 0 is no limit. */
  readonly limit: number
  readonly timeoutMs: number
  /** Whether a new socket over the limit replaces the oldest one, instead of being refused. */
  readonly replacesOldest?: boolean
}

/** Limits the number of accepted sockets that are not ready yet, during a handshake for example, and their time. */
export class PendingSockets {
  readonly #limits: PendingSocketLimits
  readonly #what: string
  readonly #timers = new Map<string, NodeJS.Timeout>()
  readonly #refusals = new Map<string, (reason: string, code: string) => void>()

  /** `what` is what the sockets wait for, such as "a TLS handshake". */
  constructor(what: string, limits: PendingSocketLimits) {
    this.#what = what
    this.#limits = limits
  }

  /** Number of pending sockets. */
  get size(): number {
    return this.#timers.size
  }

  /** Adds a socket. Over the limit, destroys it, calls `refused` and returns false. */
  admit(socket: Socket, refused: (error: Error) => void): boolean {
    const { limit, timeoutMs, replacesOldest = false } = this.#limits
    const key = remoteName(socket)
    const refuse = (reason: string, code: string): void => {
      socket.destroy()
      refused(new NetworkError(`${key} is refused: ${reason}`, code))
    }
    const isFull = limit > 0 && this.#timers.size >= limit
    if (isFull && replacesOldest) {
      const [oldest] = this.#timers.keys()
      const reason = `newer connections are at ${this.#what}, and there may be ${limit} of them`
      this.#refusals.get(oldest!)!(reason, 'ETOOMANY')
      this.#remove(oldest!, this.#timers.get(oldest!))
    } else if (isFull) {
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
    this.#refusals.set(key, refuse)
    socket.once('close', () => this.#remove(key, timer))
    return true
  }

  /** Removes a socket that is ready. A TLS socket counts as the socket that it wraps. */
  ready(socket: Socket): void {
    const key = remoteName(socket)
    this.#remove(key, this.#timers.get(key))
  }

  #remove(key: string, timer: NodeJS.Timeout | undefined): void {
    clearTimeout(timer)
    if (this.#timers.get(key) !== timer) return
    this.#timers.delete(key)
    this.#refusals.delete(key)
  }
}

/** Returns the address of the peer of a socket, which is unique among open sockets. */
export function remoteName({ remoteAddress = 'unknown', remotePort = 0 }: Socket): string {
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`
}
