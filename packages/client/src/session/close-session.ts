import { OpCode } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { RequestDispatcher } from './request-dispatcher.ts'
import type { Operation } from './pending-request.ts'

/** Ends the session; the server answers and closes the connection. */
const closeSession: Operation = {
  name: 'closeSession',
  opCode: OpCode.closeSession,
  isWrite: true,
  encode() {},
  decode: () => undefined,
  isIdempotent: () => false,
}

/** How long the answer is waited for at most. */
const MAX_WAIT_MS = 2000

/** Asks the server to end the session, and calls `finish` with its answer or when that takes too long. */
export function requestSessionClose(
  requests: RequestDispatcher,
  clock: Clock,
  timeout: number,
  finish: () => void,
): void {
  const cancel = clock.after(Math.min(timeout / 3, MAX_WAIT_MS), 'close', finish)
  requests.submit(requests.acquire(closeSession)).then(finish, finish).finally(cancel)
}
