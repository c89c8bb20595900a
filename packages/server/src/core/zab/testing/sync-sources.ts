import type { SyncSources } from '../sync-plan.ts'
import type { CommittedWindow } from '../committed-window.ts'

/** Returns sync sources with a window and without a log range. */
export const sourcesOf = (window: CommittedWindow, given: Partial<SyncSources> = {}): SyncSources => ({
  window,
  applied: () => window.max,
  disk: () => undefined,
  diskBytesAfter: () => 0,
  snapshotBytes: () => 0,
  snapshotSizeFactor: 0.33,
  forceSnapshot: false,
  truncateFromBytes: 0,
  ...given,
})
