import type { SyncSources } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'

/** Where this member takes history from for others. */
export function syncSources({ settings, database, window }: MemberContext): SyncSources {
  return {
    window,
    applied: () => database.tree.lastZxid,
    disk: () => database.logRange,
    diskBytesAfter: (zxid) => database.logRange.bytesAfter(zxid),
    snapshotBytes: () => database.snapshotBytes,
    snapshotSizeFactor: settings.snapshotSizeFactor,
    forceSnapshot: settings.forceSnapshotSync,
    truncateFromBytes: settings.truncateFromBytes,
  }
}
