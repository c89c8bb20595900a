import type { Disk, Logger } from '@zabra/runtime'
import {
  CLUSTER_FILE,
  dataFoldersOf,
  DISTRUSTED_FILE,
  FEATURE_FILE,
  finishReplacement,
  logsIn,
  RecoveryError,
  rejectMixedFolders,
  SET_ASIDE,
  setAside,
  snapshotsIn,
} from '../index.ts'
import type { DatabaseLocation } from './read-database.ts'

const DYNAMIC_FILE = /^zoo\.cfg\.dynamic\.(?:[\da-f]{1,16}|next)$/

/**
 * Sets the data of a stopped member aside, so that it may join an ensemble that was recovered without it: it starts empty, with no epoch,
 * and does not vote until a leader has sent it everything. Lock the folders. The same call completes one that was cut off. Resolves to
 * the folder with the former files; rejects with a `RecoveryError` where there is no data folder, or logs are in that of the snapshots too.
 */
export async function abandonData(
  location: DatabaseLocation,
  { disk, logger }: { readonly disk: Disk; readonly logger: Logger },
): Promise<{ readonly folder: string }> {
  const folders = dataFoldersOf(location)
  const { snapshots, logs } = folders
  for (const folder of [snapshots, logs])
    if (!(await disk.exists(folder)))
      throw new RecoveryError('Expected the data folder of a member, got none', folder, 'Name its dataDir.')
  await rejectMixedFolders(disk, folders)
  const reason = 'the member joins an ensemble that was recovered without it'
  // First: a start after a crash from here on finds no data with which it could vote.
  await disk.replaceFile(`${snapshots}/${DISTRUSTED_FILE}`, new TextEncoder().encode(`${reason}\n`))
  await finishReplacement(disk, logger, folders)
  const namesOf = (files: readonly { readonly name: string }[]): string[] => files.map(({ name }) => name)
  await setAside(disk, logger, logs, namesOf(logsIn(await disk.list(logs)).toReversed()), reason)
  await setAside(
    disk,
    logger,
    snapshots,
    namesOf(snapshotsIn(await disk.list(snapshots)).toReversed()),
    reason,
  )
  const folder = `${snapshots}/${SET_ASIDE}`
  await disk.makeFolder(folder)
  await disk.syncFolder(snapshots)
  for (const name of ['currentEpoch', 'acceptedEpoch', CLUSTER_FILE, FEATURE_FILE])
    await move(disk, `${snapshots}/${name}`, `${folder}/former.${name}`)
  const dynamic = (await disk.list(location.dataDir)).filter((name) => DYNAMIC_FILE.test(name))
  for (const name of dynamic) await move(disk, `${location.dataDir}/${name}`, `${folder}/former.${name}`)
  for (const changed of [folder, snapshots, location.dataDir]) await disk.syncFolder(changed)
  return { folder }
}

async function move(disk: Disk, from: string, to: string): Promise<void> {
  if (await disk.exists(from)) await disk.rename(from, to)
}
