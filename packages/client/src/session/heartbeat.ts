import type { Clock } from '@zabra/runtime'
import { dueTimesOf, type Due } from './due-times.ts'
import type { Wire } from './wire.ts'

/** No server has to wait longer than this for a sign of life, however long its sessions live. */
const LONGEST_PING_MS = 10_000

export interface HeartbeatOwner {
  /** The process could not run for longer than a sixth of the timeout. */
  stalled(lateMs: number): void
}

/**
 * Keeps a connection alive and notices when it is not: pings when nothing was sent for a third of the timeout, and gives
 * up when nothing came for two thirds, so that a third is left to reach another server.
 */
export class Heartbeat implements Due {
  readonly #clock: Clock
  readonly #owner: HeartbeatOwner
  #wire: Wire | undefined
  #timeout = 0
  due = 0
  place = -1
  /** When the pings left that are not answered yet, oldest first. */
  #pings: number[] | undefined

  constructor(clock: Clock, owner: HeartbeatOwner) {
    this.#clock = clock
    this.#owner = owner
  }

  start(wire: Wire, timeout: number): void {
    this.stop()
    this.#pings = undefined
    this.#wire = wire
    this.#timeout = timeout
    this.#arm()
  }

  stop(): void {
    dueTimesOf(this.#clock).clear(this)
    this.#wire = undefined
  }

  /** A ping is answered: when the oldest one left. */
  ponged(): number | undefined {
    const sentAt = this.#pings?.shift()
    if (this.#pings?.length === 0) this.#pings = undefined
    return sentAt
  }

  get #pingDue(): number {
    return this.#wire!.lastSent + Math.min(this.#timeout / 3, LONGEST_PING_MS)
  }

  get #idleDue(): number {
    return this.#wire!.lastHeard + (2 * this.#timeout) / 3
  }

  #arm(): void {
    dueTimesOf(this.#clock).set(this, Math.min(this.#pingDue, this.#idleDue))
  }

  fallDue(): void {
    const wire = this.#wire!
    const now = this.#clock.monotonic()
    const late = now - this.due
    if (late > this.#timeout / 6) {
      // The process stood still. A sign of life goes first; what has arrived meanwhile is read before anything is judged.
      this.#ping(wire, now)
      this.#owner.stalled(late)
      this.#clock.soon(() => this.#judge(wire))
      return
    }
    if (now >= this.#pingDue) this.#ping(wire, now)
    this.#judge(wire)
  }

  #ping(wire: Wire, now: number): void {
    if (this.#pings === undefined) this.#pings = [now]
    else this.#pings.push(now)
    wire.ping()
    // A connection that takes nothing more must not be pinged in a loop.
    wire.lastSent = now
  }

  #judge(wire: Wire): void {
    if (this.#wire !== wire) return
    const now = this.#clock.monotonic()
    if (now >= this.#idleDue) {
      const silent = now - wire.lastHeard
      wire.fail(new Error(`Nothing was heard from the server for ${Math.round(silent)} ms`))
    } else this.#arm()
  }
}
