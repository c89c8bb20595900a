import type { Client, ErrorPolicy } from '@zabra/client/core'

/** When a right under this policy ends unless something is answered before, on the monotonic clock. */
function horizonOf(client: Client, policy: ErrorPolicy): number {
  if (policy === 'session') return Infinity
  return policy === 'connection' ? client.lastContact + client.session.timeout : client.leaseHorizon
}

/**
 * Calls `check` whenever the horizon has been reached, until the returned function is called. States of the connection
 * alone are not enough: a process that stood still may find an answer from before that makes its connection look well, while
 * its session ends.
 */
export function watchHorizon(client: Client, policy: ErrorPolicy, check: () => void): () => void {
  const { clock } = client.platform
  let cancel = (): void => {}
  let over = false
  const arm = (): void => {
    // Not less than the clock can tell apart: a sum that is rounded down must not end in a loop.
    const left = Math.max(1, horizonOf(client, policy) - clock.monotonic())
    cancel = clock.after(left, 'horizon of a right', () => {
      check()
      if (!over) arm()
    })
  }
  if (policy !== 'session') arm()
  return () => {
    over = true
    cancel()
  }
}
