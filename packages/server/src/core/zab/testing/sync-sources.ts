import type { SyncSources } from '../sync-plan.ts'
import type { CommittedWindow } from '../committed-window.ts'

/** A history of a window and nothing behind it on disk. */
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
