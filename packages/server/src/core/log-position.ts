import type { Zxid } from './types.ts'

/** How recent the history of a server is: its currentEpoch, then its last zxid. */
export interface LogPosition {
  readonly epoch: number
  readonly zxid: Zxid
}

/** Returns whether `a` is more recent than `b`. */
export function isAhead(a: LogPosition, b: LogPosition): boolean {
  return a.epoch !== b.epoch ? a.epoch > b.epoch : a.zxid > b.zxid
}
