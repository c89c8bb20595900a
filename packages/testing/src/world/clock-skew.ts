/** The state of a machine's clocks. Change it with `setClockRate` and `jumpWallClock`. */
export interface ClockSkew {
  /** How far the wall clock is ahead of the world's clock. */
  offsetMs: number
  /** Milliseconds that pass on this machine per millisecond of the world. */
  rate: number
  /** When the rate was set, in world time, and the value of the monotonic clock at that time. */
  rateSetAtMs: number
  monotonicAtMs: number
}

/** Changes the rate of a machine's clocks from now on. */
export function setClockRate(clock: ClockSkew, nowMs: number, rate: number): void {
  clock.monotonicAtMs += (nowMs - clock.rateSetAtMs) * clock.rate
  clock.rateSetAtMs = nowMs
  clock.rate = rate
}

/** Moves a machine's wall clock, as an administrator does. The monotonic clock does not change. */
export function jumpWallClock(clock: ClockSkew, ms: number): void {
  clock.offsetMs += ms
}
