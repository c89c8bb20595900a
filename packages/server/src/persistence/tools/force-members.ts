import { epochOf, makeZxid, MAX_EPOCH } from '@zabra/protocol'
import type { Compression, Disk, Logger, Random } from '@zabra/runtime'
import {
  parseConfiguration,
  printConfiguration,
  printDynamicFile,
  votersOf,
  type EnsembleConfiguration,
  type ServerId,
} from '../../core/quorum/index.ts'
import { readConfigurationNode, writeConfigurationNode } from '../../core/tree/index.ts'
import type { Zxid } from '../../core/types.ts'
import { readEpochs } from '../epoch-files.ts'
import { beginNextCluster, dataFoldersOf, readData, RecoveryError } from '../index.ts'
import { dynamicFilesIn } from './dynamic-files.ts'
import type { DatabaseLocation } from './read-database.ts'
import { replaceData } from './replace-data.ts'

/** Epochs that a forced recovery skips: none of the lost members can have led them. */
const SKIPPED_EPOCHS = 2

/** What the data of a stopped member say. */
export interface MemberState extends DatabaseLocation {
  readonly lastZxid: Zxid
  /** The epoch files; undefined where they are missing. */
  readonly acceptedEpoch: number | undefined
  readonly currentEpoch: number | undefined
  readonly nodes: number
  /** The members as the tree names them, else as the newest `zoo.cfg.dynamic.*` does; undefined where neither does. */
  readonly configuration: EnsembleConfiguration | undefined
}

interface Tools {
  readonly disk: Disk
  readonly compression: Compression
  readonly logger: Logger
}

/** Reads the data of a stopped member, as a server does at a start, and changes nothing. Rejects as `readData` does. */
export async function readMemberState(location: DatabaseLocation, tools: Tools): Promise<MemberState> {
  return (await load(location, tools)).state
}

/**
 * Compares members: the greatest one has the history with which an ensemble goes on. A history of a later epoch wins, as in an
 * election (quorum-protocol 5.1).
 */
export const compareStates = (a: MemberState, b: MemberState): number =>
  epochIn(a) - epochIn(b) || a.lastZxid - b.lastZxid

const epochIn = ({ currentEpoch, lastZxid }: MemberState): number => currentEpoch ?? epochOf(lastZxid)

/** The result of a forced recovery. */
export interface ForcedMembers {
  readonly from: Zxid
  /** The last transaction now, which is also the version of the configuration. */
  readonly to: Zxid
  readonly epoch: number
  readonly snapshot: string
  readonly configuration: EnsembleConfiguration
}

/**
 * Makes a stopped member, whose ensemble has lost its quorum, go on with the members `ids` alone: writes a configuration that is newer
 * than all others, in an epoch that no member can have accepted, and the id of a new ensemble, and sets the former files aside. Lock the folders. Transactions that
 * only lost members hold are lost. A crash leaves data with which no server starts; the same call completes it. Rejects with a
 * `RecoveryError` when the data cannot be used, or an id is that of no member.
 */
export async function forceMembers(
  location: DatabaseLocation,
  ids: readonly ServerId[],
  {
    known,
    random,
    ...tools
  }: Tools & {
    readonly random: Random
    readonly known?: EnsembleConfiguration | undefined
  },
): Promise<ForcedMembers> {
  const { disk } = tools
  const { state, tree, sessions } = await load(location, tools)
  const folders = dataFoldersOf(location)
  const current = known ?? state.configuration
  if (current === undefined)
    throw new RecoveryError(
      'Expected the members of the ensemble in /zookeeper/config or zoo.cfg.dynamic.*, got none',
      location.dataDir,
      'Name the zoo.cfg of this member with --config.',
    )
  const epoch =
    Math.max(state.acceptedEpoch ?? 0, state.currentEpoch ?? 0, epochOf(state.lastZxid)) + SKIPPED_EPOCHS
  if (epoch >= MAX_EPOCH)
    throw new RecoveryError(
      `Expected an epoch below ${MAX_EPOCH}, got ${epoch}`,
      folders.snapshots,
      'Run zabra recover --renumber first.',
    )
  const to = makeZxid(epoch, 1)
  const configuration = { version: to, members: membersOf(current, ids, folders.snapshots) }
  tree.lastZxid = to
  writeConfigurationNode(tree, new TextEncoder().encode(printConfiguration(configuration)), to, 0)
  const snapshot = await replaceData({ tree, sessions }, folders, tools)
  // The epochs last: a server refuses data of a later epoch than it has accepted, so it starts with all of this or not at all.
  await beginNextCluster(disk, random, folders.snapshots)
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
  const file = `${location.dataDir}/zoo.cfg.dynamic.${to.toString(16)}`
  await disk.replaceFile(file, encode(printDynamicFile(configuration)))
  for (const name of ['currentEpoch', 'acceptedEpoch'])
    await disk.replaceFile(`${folders.snapshots}/${name}`, encode(String(epoch)))
  return { from: state.lastZxid, to, epoch, snapshot, configuration }
}

function membersOf(
  { members }: EnsembleConfiguration,
  ids: readonly ServerId[],
  folder: string,
): EnsembleConfiguration['members'] {
  const action = `Name some of ${[...members.keys()].join(', ')}.`
  const kept = ids.map((id) => {
    const member = members.get(id)
    if (member !== undefined) return [id, member] as const
    throw new RecoveryError(`Expected the ids of members, got ${id}`, folder, action)
  })
  const result = new Map(kept)
  if (votersOf({ version: 0, members: result }).length > 0) return result
  throw new RecoveryError('Expected at least one participant, got observers', folder, action)
}

async function load(location: DatabaseLocation, { disk, compression, logger }: Tools) {
  const { tree, sessions, lastZxid, wasEmpty } = await readData({ ...location, disk, logger, compression })
  const folder = dataFoldersOf(location).snapshots
  if (wasEmpty)
    throw new RecoveryError('Expected the data of a member, got none', folder, 'Name its data folder.')
  const { accepted, current } = await readEpochs(disk, folder)
  const state: MemberState = {
    ...location,
    lastZxid,
    acceptedEpoch: accepted,
    currentEpoch: current,
    nodes: tree.nodeCount,
    configuration:
      configurationIn(readConfigurationNode(tree).text) ??
      (await storedConfiguration(disk, location.dataDir)),
  }
  return { state, tree, sessions }
}

/** Reads the newest configuration that is stored beside `myid`. A tree names its members only after a reconfiguration. */
async function storedConfiguration(disk: Disk, folder: string): Promise<EnsembleConfiguration | undefined> {
  const newest = dynamicFilesIn(await disk.list(folder)).at(-1)
  if (newest === undefined) return undefined
  return configurationIn(new TextDecoder().decode(await disk.readFile(`${folder}/${newest.name}`)))
}

function configurationIn(text: string): EnsembleConfiguration | undefined {
  try {
    return parseConfiguration(text)
  } catch {
    // A client with all permissions can write anything to the node, and an operator to the file.
    return undefined
  }
}
