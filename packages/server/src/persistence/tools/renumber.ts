import { counterOf, epochOf, formatZxid, makeZxid } from '@zabra/protocol'
import type { Compression, Disk, Logger } from '@zabra/runtime'
import { CONFIGURATION_NODE, Tree } from '../../core/tree/index.ts'
import type { Zxid } from '../../core/types.ts'
import { dataFoldersOf, recover, RecoveryError } from '../index.ts'
import { dynamicFilesIn } from './dynamic-files.ts'
import { replaceData } from './replace-data.ts'

export interface RenumberOptions {
  readonly disk: Disk
  readonly logger: Logger
  readonly compression: Compression
  /** The folders of the settings; files lie in `version-2` below them. */
  readonly dataDir: string
  readonly dataLogDir: string
}

/** The result of a renumbering. */
export interface Renumbering {
  /** The last transaction before and after. */
  readonly from: Zxid
  readonly to: Zxid
  /** The snapshot that holds everything now. */
  readonly snapshot: string
}

const PROPOSED_FILE = 'zoo.cfg.dynamic.next'
const VERSION_LINE = /^version=([\da-f]{1,13})$/m

/**
 * Renumbers the epochs in the data of a stopped server from 1 up, without gaps: an ensemble that has used its last epoch can
 * elect leaders again. Order and counters of all zxids stay. The result is one snapshot and lower epoch files; the former files
 * are set aside. The same files must then replace those of all other members. Lock the folders. Rejects with a `DamageError` or
 * `RecoveryError` when the data cannot be read.
 */
export async function renumber(options: RenumberOptions): Promise<Renumbering> {
  const { disk, dataDir } = options
  const recovery = await recover({
    ...options,
    autoCreate: false,
    trustEmptySnapshot: false,
    createTree: () => new Tree({ extendedTypes: true, digest: false }),
  })
  const { tree, lastZxid: from } = recovery
  const folders = dataFoldersOf(options)
  if (recovery.wasEmpty)
    throw new RecoveryError(
      'Expected data to renumber, got none',
      folders.snapshots,
      'Name the data folder of a member.',
    )
  const map = compactEpochs(zxidsOf(tree))
  renumberTree(tree, map)
  // A run that is cut off before the data are replaced leaves all that a server reads as it was.
  const old = await copyDynamicFile(disk, dataDir, map)
  const proposed = (await disk.exists(`${dataDir}/${PROPOSED_FILE}`))
    ? withVersion(await disk.readFile(`${dataDir}/${PROPOSED_FILE}`), map)
    : undefined

  const snapshot = await replaceData(recovery, folders, options)
  if (proposed !== undefined) await disk.replaceFile(`${dataDir}/${PROPOSED_FILE}`, proposed)
  for (const name of old) await disk.remove(`${dataDir}/${name}`)
  await disk.syncFolder(dataDir)
  const epoch = new TextEncoder().encode(String(epochOf(tree.lastZxid)))
  for (const name of ['currentEpoch', 'acceptedEpoch'])
    if (await disk.exists(`${folders.snapshots}/${name}`))
      await disk.replaceFile(`${folders.snapshots}/${name}`, epoch)
  await disk.syncFolder(folders.snapshots)
  return { from, to: tree.lastZxid, snapshot }
}

/** Returns the zxids of a tree: its last one, and those of its nodes. */
function* zxidsOf(tree: Tree): Generator<Zxid> {
  yield tree.lastZxid
  for (const [columns, i] of slotsOf(tree)) {
    yield columns.czxid[i]!
    yield columns.mzxid[i]!
    yield columns.pzxid[i]!
  }
}

type Columns = ReturnType<Tree['store']['columns']>

function* slotsOf(tree: Tree): Generator<[Columns, number]> {
  const cursor = tree.scan()
  try {
    const met: [Columns, number][] = []
    do {
      met.length = 0
      cursor.next(1000, (node) => met.push([tree.store.columns(node), tree.store.slot(node)]))
      yield* met
    } while (!cursor.isFinished)
  } finally {
    cursor.close()
  }
}

/** Returns a function that keeps the order and the counters of zxids, and numbers their epochs from 1 up. Epoch 0 stays. */
function compactEpochs(zxids: Iterable<Zxid>): (zxid: Zxid) => Zxid {
  const epochs = new Set<number>()
  for (const zxid of zxids) if (zxid > 0) epochs.add(epochOf(zxid))
  epochs.delete(0)
  const numbers = new Map([...epochs].sort((a, b) => a - b).map((epoch, index) => [epoch, index + 1]))
  return (zxid) => {
    const epoch = epochOf(Math.max(zxid, 0))
    // A configuration whose version no node has is not newer than the last transaction.
    return epoch === 0 ? zxid : makeZxid(numbers.get(epoch) ?? numbers.size, counterOf(zxid))
  }
}

function renumberTree(tree: Tree, map: (zxid: Zxid) => Zxid): void {
  for (const [columns, i] of slotsOf(tree)) {
    columns.czxid[i] = map(columns.czxid[i]!)
    columns.mzxid[i] = map(columns.mzxid[i]!)
    columns.pzxid[i] = map(columns.pzxid[i]!)
  }
  const node = tree.find(CONFIGURATION_NODE)
  const data = node === -1 ? null : tree.dataOf(node)
  if (data !== null) tree.store.setData(node, withVersion(data, map))
  tree.lastZxid = map(tree.lastZxid)
}

/** Renumbers the version in the text of a configuration. */
function withVersion(text: Uint8Array, map: (zxid: Zxid) => Zxid): Uint8Array {
  const renumbered = new TextDecoder()
    .decode(text)
    .replace(VERSION_LINE, (_, version: string) => `version=${formatZxid(map(Number.parseInt(version, 16)))}`)
  return new TextEncoder().encode(renumbered)
}

/**
 * Writes the newest stored configuration under its new version. Returns the names of the old files, which hide the new one until they
 * are removed.
 */
async function copyDynamicFile(
  disk: Disk,
  folder: string,
  map: (zxid: Zxid) => Zxid,
): Promise<readonly string[]> {
  const stored = dynamicFilesIn(await disk.list(folder))
  const newest = stored.at(-1)
  if (newest === undefined) return []
  const name = `zoo.cfg.dynamic.${formatZxid(map(newest.version))}`
  await disk.replaceFile(`${folder}/${name}`, await disk.readFile(`${folder}/${newest.name}`))
  return stored.map((each) => each.name).filter((each) => each !== name)
}
