import { OpCode } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { Requests } from './requests.ts'
import type { Kind } from './slot.ts'

/** Ends the session; the server answers and closes the connection. */
const closeSession: Kind = {
  name: 'closeSession',
  type: OpCode.closeSession,
  commits: true,
  encode() {},
  decode: () => undefined,
  repeatable: () => false,
}

/** How long the answer is waited for at most. */
const LONGEST_MS = 2000

/** Asks the server to end the session, and calls `finish` with its answer or when that takes too long. */
export function endSession(requests: Requests, clock: Clock, timeout: number, finish: () => void): void {
  const cancel = clock.after(Math.min(timeout / 3, LONGEST_MS), 'close', finish)
  requests.submit(requests.take(closeSession)).then(finish, finish).finally(cancel)
}
