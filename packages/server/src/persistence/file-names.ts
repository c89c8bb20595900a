import { formatZxid } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'

/** The folder below dataDir and dataLogDir in which all versions of ZooKeeper since 3.0 keep their files. */
export const VERSION_FOLDER = 'version-2'

export type SnapshotKind = 'none' | 'gz' | 'snappy'

/** A log is named by its first transaction. */
export const logName = (first: Zxid): string => `log.${formatZxid(first)}`
/** A snapshot is named by the last transaction that was applied when it began. */
export const snapshotName = (zxid: Zxid, kind: SnapshotKind): string =>
  `snapshot.${formatZxid(zxid)}${kind === 'none' ? '' : `.${kind}`}`

/** The two folders named `version-2`, which may be one. */
export interface DataFolders {
  readonly snapshots: string
  readonly logs: string
}

export interface NamedFile {
  readonly name: string
  readonly zxid: Zxid
}

/** The logs among names, oldest first. */
export const logsIn = (names: readonly string[]): NamedFile[] => named(names, /^log\.([0-9a-f]{1,16})$/i)
/** The snapshots among names, oldest first. Temporary files of any kind are none. */
export const snapshotsIn = (names: readonly string[]): NamedFile[] =>
  named(names, /^snapshot\.([0-9a-f]{1,16})(?:\.gz|\.snappy)?$/i)

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
