import type { Clock } from '@zabra/runtime'
import { timerQueueOf, type TimerEntry } from './timer-queue.ts'
import type { FramedConnection } from './framed-connection.ts'

/** Maximum ping interval, however long the session timeout is. */
const MAX_PING_INTERVAL_MS = 10_000

export interface HeartbeatCallbacks {
  /** The event loop was blocked for longer than a sixth of the timeout. */
  onStall(lateMs: number): void
}

/**
 * Sends heartbeats and detects a dead connection: pings when no request was sent for a third of the timeout, and
 * fails the connection when no bytes arrived for two thirds, which leaves a third to reach another server.
 */
export class Heartbeat implements TimerEntry {
  readonly #clock: Clock
  readonly #callbacks: HeartbeatCallbacks
  #connection: FramedConnection | undefined
  #timeout = 0
  dueAt = 0
  heapIndex = -1
  /** Send times of the unanswered pings, oldest first. */
  #unansweredPings: number[] | undefined

  constructor(clock: Clock, callbacks: HeartbeatCallbacks) {
    this.#clock = clock
    this.#callbacks = callbacks
  }

  start(connection: FramedConnection, timeout: number): void {
    this.stop()
    this.#unansweredPings = undefined
    this.#connection = connection
    this.#timeout = timeout
    this.#arm()
  }

  stop(): void {
    timerQueueOf(this.#clock).clear(this)
    this.#connection = undefined
  }

  /** Records a ping reply. Returns when the oldest unanswered ping was sent. */
  onPong(): number | undefined {
    const sentAt = this.#unansweredPings?.shift()
    if (this.#unansweredPings?.length === 0) this.#unansweredPings = undefined
    return sentAt
  }

  get #pingDue(): number {
    return this.#connection!.lastSentAt + Math.min(this.#timeout / 3, MAX_PING_INTERVAL_MS)
  }

  get #idleDue(): number {
    return this.#connection!.lastReceivedAt + (2 * this.#timeout) / 3
  }

  #arm(): void {
    timerQueueOf(this.#clock).set(this, Math.min(this.#pingDue, this.#idleDue))
  }

  onDue(): void {
    const connection = this.#connection!
    const now = this.#clock.monotonic()
    const lateMs = now - this.dueAt
    if (lateMs > this.#timeout / 6) {
      // The event loop was blocked. Send a ping first, and read the bytes that have arrived before checking for
      // silence.
      this.#ping(connection, now)
      this.#callbacks.onStall(lateMs)
      this.#clock.immediate(() => this.#checkIdle(connection))
      return
    }
    if (now >= this.#pingDue) this.#ping(connection, now)
    this.#checkIdle(connection)
  }

  #ping(connection: FramedConnection, now: number): void {
    if (this.#unansweredPings === undefined) this.#unansweredPings = [now]
    else this.#unansweredPings.push(now)
    connection.ping()
    // A connection with backpressure must not be pinged in a loop.
    connection.lastSentAt = now
  }

  #checkIdle(connection: FramedConnection): void {
    if (this.#connection !== connection) return
    const now = this.#clock.monotonic()
    if (now >= this.#idleDue) {
      const silentMs = now - connection.lastReceivedAt
      connection.fail(new Error(`No bytes arrived from the server for ${Math.round(silentMs)} ms`))
    } else this.#arm()
  }
}
