import type { CommittedWindow } from '../../core/zab/index.ts'
import type { Vault } from '../vault/index.ts'

/** More than these are not worth reading for the window. */
const MOST_BYTES = 64 << 20

/**
 * Brings the window to the end of the log between two roles: what the last role has logged without knowing that it was
 * committed is history now, and the next role begins with it. Where the log does not continue the window it begins anew.
 */
export async function catchUp(window: CommittedWindow, vault: Vault): Promise<void> {
  const last = vault.lastZxid
  if (window.max === last) return
  const history = window.max < last ? await vault.history(window.max, last, MOST_BYTES) : undefined
  if (history === undefined) return window.restart(last)
  if (history.base === window.max)
    for await (const { zxid, payload } of history.entries) window.add(zxid, payload)
  else await history.entries.return?.()
  if (window.max !== last) window.restart(last)
}
