import { formatZxid } from '@zabra/protocol'
import { DiskError, type Compression, type Disk } from '@zabra/runtime'
import {
  DamageError,
  logsIn,
  readFeatureState,
  readLog,
  readSnapshot,
  RecoveryError,
  snapshotsIn,
  VERSION_FOLDER,
} from '@zabra/server/files'
import { finding, type Finding } from './finding.ts'

const MIN_FREE_BYTES = 2 ** 30
const LONG_LOG_BYTES = 4 * 2 ** 30
/** Transactions of an epoch from which its end is near: a leader counts to 2^32. */
const HIGH_COUNTER = 0.9 * 2 ** 32
const NETWORK_FILE_SYSTEMS = new Set(['nfs', 'nfs4', 'cifs', 'smb3', 'fuse.sshfs', 'glusterfs', '9p'])

export interface DataTools {
  readonly disk: Disk
  readonly compression: Compression
  /** The text of /proc/mounts; undefined where it cannot be read. */
  readonly mounts: string | undefined
  /** Logs after the newest snapshot from which a restart takes long, in bytes: 4 GiB by default. */
  readonly longLogBytes?: number
}

/** Checks the files of a data folder, without changing them. A server may run on it. */
export async function* checkData(
  dataDir: string,
  dataLogDir: string,
  { disk, compression, mounts, longLogBytes = LONG_LOG_BYTES }: DataTools,
): AsyncGenerator<Finding> {
  const [snapshots, logs] = [`${dataDir}/${VERSION_FOLDER}`, `${dataLogDir}/${VERSION_FOLDER}`]
  for (const folder of new Set([dataDir, dataLogDir])) {
    const type = fileSystemOf(folder, mounts ?? '')
    if (type !== undefined && NETWORK_FILE_SYSTEMS.has(type))
      yield finding(
        'network-disk',
        folder,
        `it is on ${type}, where syncs are slow and locks may not hold`,
        'Use a disk of this machine.',
      )
  }
  const names = await listFolder(disk, snapshots)
  const logNames = await listFolder(disk, logs)
  if (names === undefined || logNames === undefined) {
    const missing = names === undefined ? snapshots : logs
    yield finding(
      'no-data',
      missing,
      'there is no such folder',
      'Name the dataDir of the server with --data, and dataLogDir with --logs.',
    )
    return
  }
  yield* checkLevel(disk, snapshots)
  const { free } = await disk.space(logs)
  if (free < MIN_FREE_BYTES)
    yield finding(
      'disk-full',
      logs,
      `${free} bytes are free: writes are refused when none are`,
      'Make space, or set autopurge.purgeInterval.',
    )
  const files = snapshotsIn(names)
  if (files.length > 20)
    yield finding(
      'no-purge',
      snapshots,
      `${files.length} snapshots are kept`,
      'Set autopurge.purgeInterval=1, or run zabra purge.',
    )
  yield* checkSnapshots(snapshots, files, { disk, compression })
  yield* checkLogs(logs, logsIn(logNames), files.at(-1)?.zxid ?? 0, { disk, longLogBytes })
}

async function* checkLevel(disk: Disk, folder: string): AsyncGenerator<Finding> {
  try {
    const { finalized, proposed } = await readFeatureState(disk, folder)
    if (finalized + proposed === 0) return
    const [level, state] = proposed > finalized ? [proposed, 'was asked for'] : [finalized, 'is finalized']
    yield finding(
      'finalized',
      folder,
      `feature level ${level} ${state}: this folder cannot go back to Apache ZooKeeper, nor to a release below that level`,
      'Nothing is to be done.',
    )
  } catch (error) {
    if (!(error instanceof RecoveryError)) throw error
    yield finding('level-file', folder, error.message, error.action)
  }
}

async function* checkSnapshots(
  folder: string,
  files: ReturnType<typeof snapshotsIn>,
  { disk, compression }: Pick<DataTools, 'disk' | 'compression'>,
): AsyncGenerator<Finding> {
  const newest = files.at(-1)
  if (newest === undefined) return
  const path = `${folder}/${newest.name}`
  const remedy = 'A server starts from an older one. Take another with zabra snapshot take.'
  try {
    const found = await unlessGone(readSnapshot(disk, path, compression))
    if (found?.digest?.matches === false)
      yield finding('snapshot', path, 'its digest does not match its nodes', remedy)
  } catch (cause) {
    if (!(cause instanceof DamageError) && !(cause instanceof RecoveryError)) throw cause
    yield finding('snapshot', path, cause.message, remedy)
  }
}

async function* checkLogs(
  folder: string,
  files: ReturnType<typeof logsIn>,
  snapshotZxid: number,
  { disk, longLogBytes }: { readonly disk: Disk; readonly longLogBytes: number },
): AsyncGenerator<Finding> {
  let bytes = 0
  const first = Math.max(
    0,
    files.findLastIndex(({ zxid }) => zxid <= snapshotZxid + 1),
  )
  for (const { name } of files.slice(first)) {
    const path = `${folder}/${name}`
    const report = await unlessGone(readLog(disk, path))
    if (report === undefined) continue
    bytes += report.end
    if (report.state === 'damaged')
      yield finding(
        'log',
        path,
        report.problem!.what,
        `${report.problem!.action.replace(/\.$/, '')}. zabra log --check shows more.`,
      )
    const counter = (report.last ?? 0) % 2 ** 32
    if (counter > HIGH_COUNTER)
      yield finding(
        'zxid-counter',
        path,
        `the epoch has used 0x${formatZxid(counter)} of 0x100000000 transactions`,
        'The leader hands over when they are used up. Do it now, at a quiet time: zabra transfer.',
      )
  }
  if (bytes > longLogBytes)
    yield finding(
      'long-log',
      folder,
      `${bytes} bytes of log follow the newest snapshot, so a restart takes long`,
      'Take a snapshot: zabra snapshot take. Lower snapCount.',
    )
}

const listFolder = (disk: Disk, folder: string): Promise<string[] | undefined> =>
  unlessGone(disk.list(folder))

/** Resolves to undefined where a file or folder is not there: a server may have purged it, or set it aside, meanwhile. */
async function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (cause) {
    if (cause instanceof DiskError && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR')) return undefined
    throw cause
  }
}

/** Returns the type of the file system of a folder, by the longest mount point above it. */
function fileSystemOf(folder: string, mounts: string): string | undefined {
  let [best, type]: [string, string | undefined] = ['', undefined]
  for (const line of mounts.split('\n')) {
    const [, at = '', kind] = line.split(' ')
    const isAbove = at === '/' || folder === at || folder.startsWith(`${at}/`)
    if (at !== '' && isAbove && at.length >= best.length) [best, type] = [at, kind]
  }
  return type
}
