import type { Session } from '../core/sessions/index.ts'
import type { ClientService } from './client-service.ts'

/** Sessions that are ended in one turn, and for how long, in milliseconds. */
const ENDED_IN_A_TURN = 100
const ENDING_MS = 2

/** Has sessions ended, some of them in a turn. All are closing already. */
export function endSessionsInSlices(
  core: ClientService,
  over: readonly Session[],
  end: (session: Session) => void,
): void {
  if (over.length === 0) return
  const most = Math.min(over.length, ENDED_IN_A_TURN)
  const until = core.turnTime + ENDING_MS
  let ended = 0
  do end(over[ended++]!)
  while (ended < most && core.ports.clock.monotonic() < until)
  core.runLater(() => endSessionsInSlices(core, over.slice(ended), end))
}
