import { OpCode } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import type { RequestDispatcher } from './request-dispatcher.ts'
import type { Operation } from './pending-request.ts'

/** Closes the session; the server replies and closes the connection. */
export const closeSession: Operation = {
  name: 'closeSession',
  opCode: OpCode.closeSession,
  isWrite: true,
  encode() {},
  decode: () => undefined,
  isIdempotent: () => false,
}

/** Maximum time to wait for the reply. */
const MAX_WAIT_MS = 2000

/** Sends closeSession, and calls `finish` when the reply arrives or the time limit passes. */
export function requestSessionClose(
  requests: RequestDispatcher,
  clock: Clock,
  timeout: number,
  finish: () => void,
): void {
  const cancel = clock.after(Math.min(timeout / 3, MAX_WAIT_MS), 'close', finish)
  requests.submit(requests.acquire(closeSession)).then(finish, finish).finally(cancel)
}
