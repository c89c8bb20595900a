import { formatZxid } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'

/** Name of the folder below dataDir and dataLogDir in which every ZooKeeper since 3.0 keeps its files (disk-format 2). */
export const VERSION_FOLDER = 'version-2'

/** Name of the file in `version-2` that marks data with which the member must not vote. Apache ZooKeeper ignores it. */
export const DISTRUSTED_FILE = 'distrusted'

export type SnapshotKind = 'none' | 'gz' | 'snappy'

/** Returns the name of the log that begins with a transaction. */
export const logName = (first: Zxid): string => `log.${formatZxid(first)}`
/** Returns the name of the snapshot for which `zxid` was the last transaction applied when writing began. */
export const snapshotName = (zxid: Zxid, kind: SnapshotKind): string =>
  `snapshot.${formatZxid(zxid)}${kind === 'none' ? '' : `.${kind}`}`

/** A log or snapshot with the zxid in its name. */
export interface NamedFile {
  readonly name: string
  readonly zxid: Zxid
}

/** Returns the logs among names, oldest first. */
export const logsIn = (names: readonly string[]): NamedFile[] => named(names, /^log\.([0-9a-f]{1,16})$/i)
/** Returns the snapshots among names, oldest first, without temporary files of any kind. */
export const snapshotsIn = (names: readonly string[]): NamedFile[] =>
  named(names, /^snapshot\.([0-9a-f]{1,16})(?:\.gz|\.snappy)?$/i)

/** Returns how a snapshot of this name is compressed. */
export const snapshotKind = (name: string): SnapshotKind =>
  name.endsWith('.gz') ? 'gz' : name.endsWith('.snappy') ? 'snappy' : 'none'

function named(names: readonly string[], pattern: RegExp): NamedFile[] {
  const files: NamedFile[] = []
  for (const name of names) {
    const match = pattern.exec(name)
    if (match) files.push({ name, zxid: Number.parseInt(match[1]!, 16) })
  }
  return files.toSorted((a, b) => a.zxid - b.zxid)
}
