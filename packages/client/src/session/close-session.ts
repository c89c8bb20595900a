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

/** Asks the server to end the session, and calls `finish` with its answer or after so many milliseconds. */
export function endSession(requests: Requests, clock: Clock, limitMs: number, finish: () => void): void {
  const cancel = clock.after(limitMs, 'close', finish)
  requests.submit(requests.take(closeSession)).then(finish, finish).finally(cancel)
}
