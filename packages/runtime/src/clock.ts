/** Cancels something that was scheduled. Calling it twice, or after it ran, does nothing. */
export type Cancel = () => void

/** Time as the system sees it. Everything that waits or stamps takes one of these; nothing reads a global clock. */
export interface Clock {
  /** Wall time in milliseconds since 1970. May jump either way: use it for stamps only, never for timeouts. */
  wall(): number
  /** Milliseconds since an arbitrary start. Never goes back: use it for every deadline. */
  monotonic(): number
  /**
   * Runs `action` once after `delayMs` milliseconds. `name` is what a diagnostic shows for a pending timer.
   * A timer does not keep a process alive.
   */
  after(delayMs: number, name: string, action: () => void): Cancel
  /** Runs `action` in a later turn, after the I/O that is ready now. */
  immediate(action: () => void): void
  /** Runs `action` in this turn, once the promises that are settled by now have been followed to their ends. */
  afterMicrotasks(action: () => void): void
}
