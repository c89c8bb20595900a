import type { SyncSources } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'

/** Where this member takes history from for others. */
export function syncSources({ settings, database: vault, window }: MemberContext): SyncSources {
  return {
    window,
    applied: () => vault.tree.lastZxid,
    disk: () => vault.logRange,
    diskBytesAfter: (zxid) => vault.logRange.bytesAfter(zxid),
    snapshotBytes: () => vault.snapshotBytes,
    snapshotSizeFactor: settings.snapshotSizeFactor,
    forceSnapshot: settings.forceSnapshotSync,
    truncateFromBytes: settings.truncateFromBytes,
  }
}
