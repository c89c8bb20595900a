import type { Client, ErrorPolicy } from '@zabra/client/core'

/**
 * Returns the time, on the monotonic clock, at which a lock under this policy is lost unless a reply arrives
 * before.
 */
function horizonOf(client: Client, policy: ErrorPolicy): number {
  if (policy === 'session') return Infinity
  return policy === 'connection' ? client.lastContact + client.session.timeoutMs : client.leaseHorizon
}

/**
 * Calls `check` whenever the horizon is reached, until the returned function is called. Connection states alone
 * are not enough: after a pause, a process may read a reply from before the pause that makes its connection look
 * healthy while its session expires.
 */
export function watchHorizon(client: Client, policy: ErrorPolicy, check: () => void): () => void {
  const { clock } = client.platform
  let cancel = (): void => {}
  let over = false
  const arm = (): void => {
    // At least the resolution of the clock: a sum that is rounded down must not end in a busy loop.
    const left = Math.max(1, horizonOf(client, policy) - clock.monotonic())
    cancel = clock.after(left, 'loss horizon of a lock', () => {
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
