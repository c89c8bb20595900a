import type { Clock } from '@zabra/runtime'
import { timerQueueOf, type TimerEntry } from './timer-queue.ts'
import type { FramedConnection } from './framed-connection.ts'

/** No server has to wait longer than this for a sign of life, however long its sessions live. */
const MAX_PING_INTERVAL_MS = 10_000

export interface HeartbeatCallbacks {
  /** The process could not run for longer than a sixth of the timeout. */
  onStall(lateMs: number): void
}

/**
 * Keeps a connection alive and notices when it is not: pings when nothing was sent for a third of the timeout, and gives
 * up when nothing came for two thirds, so that a third is left to reach another server.
 */
export class Heartbeat implements TimerEntry {
  readonly #clock: Clock
  readonly #callbacks: HeartbeatCallbacks
  #wire: FramedConnection | undefined
  #timeout = 0
  dueAt = 0
  heapIndex = -1
  /** When the pings left that are not answered yet, oldest first. */
  #unansweredPings: number[] | undefined

  constructor(clock: Clock, owner: HeartbeatCallbacks) {
    this.#clock = clock
    this.#callbacks = owner
  }

  start(wire: FramedConnection, timeout: number): void {
    this.stop()
    this.#unansweredPings = undefined
    this.#wire = wire
    this.#timeout = timeout
    this.#arm()
  }

  stop(): void {
    timerQueueOf(this.#clock).clear(this)
    this.#wire = undefined
  }

  /** A ping is answered: when the oldest one left. */
  onPong(): number | undefined {
    const sentAt = this.#unansweredPings?.shift()
    if (this.#unansweredPings?.length === 0) this.#unansweredPings = undefined
    return sentAt
  }

  get #pingDue(): number {
    return this.#wire!.lastSentAt + Math.min(this.#timeout / 3, MAX_PING_INTERVAL_MS)
  }

  get #idleDue(): number {
    return this.#wire!.lastReceivedAt + (2 * this.#timeout) / 3
  }

  #arm(): void {
    timerQueueOf(this.#clock).set(this, Math.min(this.#pingDue, this.#idleDue))
  }

  onDue(): void {
    const wire = this.#wire!
    const now = this.#clock.monotonic()
    const late = now - this.dueAt
    if (late > this.#timeout / 6) {
      // The process stood still. A sign of life goes first; what has arrived meanwhile is read before anything is judged.
      this.#ping(wire, now)
      this.#callbacks.onStall(late)
      this.#clock.immediate(() => this.#checkIdle(wire))
      return
    }
    if (now >= this.#pingDue) this.#ping(wire, now)
    this.#checkIdle(wire)
  }

  #ping(wire: FramedConnection, now: number): void {
    if (this.#unansweredPings === undefined) this.#unansweredPings = [now]
    else this.#unansweredPings.push(now)
    wire.ping()
    // A connection that takes nothing more must not be pinged in a loop.
    wire.lastSentAt = now
  }

  #checkIdle(wire: FramedConnection): void {
    if (this.#wire !== wire) return
    const now = this.#clock.monotonic()
    if (now >= this.#idleDue) {
      const silent = now - wire.lastReceivedAt
      wire.fail(new Error(`Nothing was heard from the server for ${Math.round(silent)} ms`))
    } else this.#arm()
  }
}
