import { DiskError, type Compression, type Disk } from '@zabra/runtime'
import {
  DamageError,
  logsIn,
  readEpochs,
  readFeatureState,
  readLog,
  readSnapshot,
  RecoveryError,
  snapshotsIn,
  VERSION_FOLDER,
} from '@zabra/server/files'
import { finding, type Finding } from './finding.ts'
import { hex } from '../text/hex.ts'

const MIN_FREE_BYTES = 2 ** 30
const LONG_LOG_BYTES = 4 * 2 ** 30
/** Transactions of an epoch from which its end is near: a leader counts to 2^32. */
const HIGH_COUNTER = 0.9 * 2 ** 32
/** How much longer than the newest snapshot the log after it may be, where both are large. */
const LONG_LOG_RATIO = 20
const MIN_RATIO_BYTES = 256 * 2 ** 20
const DAY_MS = 86_400_000
/** Days that logs must cover, so that they tell how fast they grow. */
const MIN_OBSERVED_DAYS = 0.04
const MIN_DAYS_LEFT = 7
const NETWORK_FILE_SYSTEMS = new Set(['nfs', 'nfs4', 'cifs', 'smb3', 'fuse.sshfs', 'glusterfs', '9p'])

export interface DataTools {
  readonly disk: Disk
  readonly compression: Compression
  /** The text of /proc/mounts; undefined where it cannot be read. */
  readonly mounts: string | undefined
  /** Logs after the newest snapshot from which a restart takes long, in bytes: 4 GiB by default. */
  readonly longLogBytes?: number
  /** Resolves to the device of a folder; undefined where that cannot be told. */
  readonly deviceOf?: (folder: string) => Promise<number | undefined>
  /** Memory that a server here may take, in bytes. */
  readonly memoryLimit?: number | undefined
  /** Milliseconds since 1970. */
  readonly now?: number
  /** Whether the process of the lock file of a folder runs: pid and the text that tells it from earlier ones. */
  readonly processIdentity?: (pid: number) => string | undefined
}

/** Checks the files of a data folder, without changing them. A server may run on it. */
export async function* checkData(
  dataDir: string,
  dataLogDir: string,
  tools: DataTools,
): AsyncGenerator<Finding> {
  const { disk, compression, longLogBytes = LONG_LOG_BYTES } = tools
  const [snapshots, logs] = [`${dataDir}/${VERSION_FOLDER}`, `${dataLogDir}/${VERSION_FOLDER}`]
  const folders = [...new Set([dataDir, dataLogDir])]
  for (const folder of folders) yield* checkMount(folder, tools.mounts ?? '')
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
  if (folders.length > 1) {
    yield* checkDevices(dataDir, dataLogDir, tools)
    yield* checkSeparation(snapshots, names, logs, logNames)
  }
  yield* checkLevel(disk, snapshots)
  yield* checkEpochs(disk, snapshots)
  yield* checkNames(snapshots, names)
  if (logs !== snapshots) yield* checkNames(logs, logNames)
  if (tools.processIdentity !== undefined) yield* checkLock(dataDir, disk, tools.processIdentity)
  const files = snapshotsIn(names)
  yield* checkSpace(logs, logsIn(logNames), tools)
  if (files.length > 20)
    yield finding(
      'no-purge',
      snapshots,
      `${files.length} snapshots are kept`,
      'Set autopurge.purgeInterval=1, or run zabra purge.',
    )
  yield* checkSnapshots(snapshots, files, { disk, compression })
  const newest = files.at(-1)
  const bytes = newest === undefined ? 0 : ((await unlessGone(disk.size(`${snapshots}/${newest.name}`))) ?? 0)
  if (newest !== undefined) yield* checkMemory(`${snapshots}/${newest.name}`, bytes, tools.memoryLimit)
  yield* checkLogs(logs, logsIn(logNames), newest?.zxid ?? 0, { disk, longLogBytes, snapshotBytes: bytes })
}

/** Names of what servers and tools keep in `version-2`, also between two steps. */
const KNOWN_FILES =
  /^(?:(?:snapshot|log)\.[\da-f]{1,16}(?:\.gz|\.snappy)?|(?:current|accepted|updating)Epoch(?:\.tmp)?|zabra\.\w+(?:\.tmp)?|distrusted|replacement|incoming[.-].*|set-aside|space-probe\.tmp|writing\..*\.tmp|restoring(?:\.gz|\.snappy)?|zabra-doctor\.tmp)$/i
const MAX_SHOWN_NAMES = 5

function* checkNames(folder: string, names: readonly string[]): Generator<Finding> {
  const foreign = names.filter((name) => !KNOWN_FILES.test(name)).toSorted()
  if (foreign.length === 0) return
  const shown = foreign.slice(0, MAX_SHOWN_NAMES).join(', ')
  yield finding(
    'foreign-files',
    folder,
    `${foreign.length} ${foreign.length === 1 ? 'file is' : 'files are'} of no server: ${shown}${foreign.length > MAX_SHOWN_NAMES ? ' …' : ''}`,
    'Move them elsewhere, if they are yours: no server reads or removes them, and they take space.',
  )
}

function* checkMount(folder: string, mounts: string): Generator<Finding> {
  const mount = mountOf(folder, mounts)
  if (mount === undefined) return
  if (NETWORK_FILE_SYSTEMS.has(mount.type))
    yield finding(
      'network-disk',
      folder,
      `it is on ${mount.type}, where syncs are slow and locks may not hold`,
      'Use a disk of this machine.',
    )
  const option = mount.options.find((one) => one === 'nobarrier' || one === 'barrier=0')
  if (option !== undefined)
    yield finding(
      'no-barrier',
      folder,
      `it is mounted with ${option}: a power cut loses acknowledged writes, unless the disk keeps its cache`,
      `Mount ${mount.at} without ${option}.`,
    )
  if (mount.options.includes('ro'))
    yield finding(
      'read-only-disk',
      folder,
      `${mount.at} is mounted for reading only: the system does that after errors of the disk`,
      'Look at dmesg, repair or replace the disk, and mount it again.',
    )
}

async function* checkDevices(
  dataDir: string,
  dataLogDir: string,
  { deviceOf }: DataTools,
): AsyncGenerator<Finding> {
  const devices = [await deviceOf?.(dataDir), await deviceOf?.(dataLogDir)]
  if (devices[0] !== undefined && devices[0] === devices[1])
    yield finding(
      'one-device',
      dataLogDir,
      `it is on the same device as ${dataDir}, so a snapshot delays the sync of writes`,
      'Move dataLogDir to a device of its own, where writes must be fast.',
    )
}

/** A server refuses to start with files in the folder of the others: they would not be read. */
function* checkSeparation(
  snapshots: string,
  names: readonly string[],
  logs: string,
  logNames: readonly string[],
): Generator<Finding> {
  const [log] = logsIn(names)
  if (log !== undefined)
    yield finding(
      'mixed-folders',
      `${snapshots}/${log.name}`,
      'a log is in the folder of the snapshots, though dataLogDir is another one',
      `Move all log.* files to ${logs}, or remove dataLogDir from the configuration.`,
    )
  const [snapshot] = snapshotsIn(logNames)
  if (snapshot !== undefined)
    yield finding(
      'mixed-folders',
      `${logs}/${snapshot.name}`,
      'a snapshot is in the folder of the logs',
      `Move all snapshot.* files to ${snapshots}.`,
    )
}

async function* checkEpochs(disk: Disk, folder: string): AsyncGenerator<Finding> {
  try {
    const { accepted, current } = await readEpochs(disk, folder)
    if (accepted !== undefined && current !== undefined && current > accepted)
      yield finding(
        'epoch-files',
        folder,
        `currentEpoch is ${current}, above the acceptedEpoch ${accepted}`,
        'The files come from different servers or times: bring the right ones back; or empty the member with zabra recover adopt --yes, so that it gets everything from its leader.',
      )
  } catch (error) {
    if (!(error instanceof RecoveryError)) throw error
    yield finding('epoch-files', folder, error.message, error.action)
  }
}

async function* checkLock(
  folder: string,
  disk: Disk,
  processIdentity: (pid: number) => string | undefined,
): AsyncGenerator<Finding> {
  const owner = await lockOwner(disk, folder, processIdentity)
  if (owner !== undefined)
    yield finding(
      'in-use',
      folder,
      `process ${owner} runs a server on it`,
      'Nothing is to be done; tools that change files refuse the folder until it stops.',
    )
}

/** Returns the id of the process that locks a folder and runs; undefined where there is none. */
export async function lockOwner(
  disk: Disk,
  folder: string,
  processIdentity: (pid: number) => string | undefined,
): Promise<number | undefined> {
  const bytes = await unlessGone(disk.readFile(`${folder}/zabra.lock`))
  const [pid = '', , identity = ''] = new TextDecoder().decode(bytes).trim().split(' ')
  return identity !== '' && processIdentity(Number(pid)) === identity ? Number(pid) : undefined
}

/** Growth is estimated from the files that are there: what was logged since the oldest of them began. */
async function* checkSpace(
  folder: string,
  files: ReturnType<typeof logsIn>,
  { disk, now }: DataTools,
): AsyncGenerator<Finding> {
  const { free } = await disk.space(folder)
  if (free < MIN_FREE_BYTES) {
    yield finding(
      'disk-full',
      folder,
      `${free} bytes are free: writes are refused when none are`,
      'Make space, or set autopurge.purgeInterval.',
    )
    return
  }
  if (now === undefined) return
  let [bytes, oldest] = [0, Infinity]
  for (const [index, { name }] of files.entries()) {
    const path = `${folder}/${name}`
    const changed = await unlessGone(disk.modifiedAt(path))
    if (changed === undefined) continue
    oldest = Math.min(oldest, changed)
    // The oldest file ended when its time says; when it began is not known.
    if (index > 0) bytes += (await unlessGone(disk.size(path))) ?? 0
  }
  const days = (now - oldest) / DAY_MS
  if (!(days > MIN_OBSERVED_DAYS) || bytes === 0) return
  const left = free / (bytes / days)
  if (left < MIN_DAYS_LEFT)
    yield finding(
      'disk-days',
      folder,
      `at ${Math.ceil(bytes / days / 2 ** 20)} MiB of log a day, ${Math.floor(free / 2 ** 20)} MiB are full in ${left < 1 ? 'less than a day' : `${Math.floor(left)} days`}, unless old files are purged before`,
      'Make space, set autopurge.purgeInterval and a lower autopurge.snapRetainCount, or use a larger disk.',
    )
}

/** A snapshot holds what the tree does, so its size tells that of the tree well enough; a compressed one too little. */
function* checkMemory(path: string, bytes: number, limit: number | undefined): Generator<Finding> {
  if (limit === undefined || bytes * MEMORY_FACTOR <= limit) return
  yield finding('little-memory', path, describeMemory(bytes, limit), MORE_MEMORY)
}

/** How many times the size of the tree a server takes at most, while it writes a snapshot and collects garbage. */
export const MEMORY_FACTOR = 2.5
export const MORE_MEMORY =
  'Give the server more memory (memory.max of its control group, resources.limits.memory), or keep fewer data.'
export const describeMemory = (tree: number, limit: number): string =>
  `the tree takes ${Math.ceil(tree / 2 ** 20)} MiB, and a server may take ${MEMORY_FACTOR} times as much while it writes a snapshot; its limit is ${Math.floor(limit / 2 ** 20)} MiB`

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
  {
    disk,
    longLogBytes,
    snapshotBytes,
  }: { readonly disk: Disk; readonly longLogBytes: number; readonly snapshotBytes: number },
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
        `the epoch has used ${hex(counter)} of 0x100000000 transactions`,
        'The leader hands over when they are used up. Do it now, at a quiet time: zabra transfer.',
      )
  }
  const isLopsided = bytes > MIN_RATIO_BYTES && bytes > LONG_LOG_RATIO * snapshotBytes
  if (bytes > longLogBytes || isLopsided)
    yield finding(
      'long-log',
      folder,
      `${bytes} bytes of log follow the newest snapshot of ${snapshotBytes} bytes, so a restart takes long`,
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

/** Where a file system is mounted. */
interface Mount {
  readonly at: string
  readonly type: string
  readonly options: readonly string[]
}

/** Returns the mount of a folder: that with the longest mount point above it, the last one of several. */
function mountOf(folder: string, mounts: string): Mount | undefined {
  let best: Mount | undefined
  for (const line of mounts.split('\n')) {
    const [, at = '', type = '', options = ''] = line.split(' ')
    const isAbove = at === '/' || folder === at || folder.startsWith(`${at}/`)
    if (at !== '' && isAbove && at.length >= (best?.at.length ?? 0))
      best = { at, type, options: options.split(',') }
  }
  return best
}
