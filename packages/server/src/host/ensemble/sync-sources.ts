import type { SyncSources } from '../../core/zab/index.ts'
import type { MemberKit } from './member-kit.ts'

/** Where this member takes history from for others. */
export function syncSources({ settings, vault, window }: MemberKit): SyncSources {
  return {
    window,
    applied: () => vault.tree.lastZxid,
    disk: () => vault.verified,
    diskBytesAfter: (zxid) => vault.verified.bytesAfter(zxid),
    snapshotBytes: () => vault.snapshotBytes,
    snapshotSizeFactor: settings.snapshotSizeFactor,
    forceSnapshot: settings.forceSnapshotSync,
    truncateFromBytes: settings.truncateFromBytes,
  }
}
