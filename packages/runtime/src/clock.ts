/** Cancels a scheduled action. Calling it twice, or after the action has run, does nothing. */
export type Cancel = () => void

/** The time, and timers. All code takes a `Clock`; nothing reads a global clock. */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970. May jump either way: use it for timestamps, never for timeouts. */
  wall(): number
  /** Milliseconds since an arbitrary start. Never goes back: use it for deadlines. */
  monotonic(): number
  /**
   * Runs `action` once after `delayMs` milliseconds. Diagnostics show `name` for a pending timer.
   * A timer does not keep a process alive.
   */
  after(delayMs: number, name: string, action: () => void): Cancel
  /** Runs `action` in a later turn of the event loop, after the I/O that is ready now (`setImmediate`). */
  immediate(action: () => void): void
  /** Runs `action` in this turn of the event loop, when the queue of microtasks is empty. */
  afterMicrotasks(action: () => void): void
}
