import { DiskError, type Disk } from '@zabra/runtime'
import { lockFolder, logsIn, snapshotsIn, VERSION_FOLDER, type DatabaseLocation } from '@zabra/server/files'
import { realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'

/** Resolves a path to log or snapshot files: the file itself, or those in a folder or in its `version-2`, oldest first. */
export async function findFiles(disk: Disk, target: string, kind: 'log' | 'snapshot'): Promise<string[]> {
  const names = await listFolder(disk, target)
  if (names === undefined) return [target]
  const inner = names.includes(VERSION_FOLDER) ? join(target, VERSION_FOLDER) : target
  const select = kind === 'log' ? logsIn : snapshotsIn
  const files = select(inner === target ? names : await disk.list(inner))
  if (files.length === 0)
    throw new UsageError(
      `Expected files named ${kind}.<zxid> in ${inner}, got none. Name a file, a data folder or its ${VERSION_FOLDER}.`,
    )
  return files.map(({ name }) => join(inner, name))
}

/** Returns the folder whose `version-2` a path names or contains; undefined for a file and for a folder of any other name. */
export async function dataFolderOf(disk: Disk, target: string): Promise<string | undefined> {
  const names = await listFolder(disk, target)
  if (names?.includes(VERSION_FOLDER)) return target
  return names !== undefined && basename(resolve(target)) === VERSION_FOLDER
    ? dirname(resolve(target))
    : undefined
}

/** Returns the folder whose `version-2` a path names or contains. Rejects with a `UsageError` that gives this advice for any other path. */
export async function requireDataFolder(disk: Disk, target: string, advice: string): Promise<string> {
  const folder = await dataFolderOf(disk, target)
  if (folder !== undefined) return folder
  throw new UsageError(`Expected a folder with a folder ${VERSION_FOLDER}, got ${target}. ${advice}`)
}

async function listFolder(disk: Disk, target: string): Promise<string[] | undefined> {
  try {
    return await disk.list(target)
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
    if (error.code === 'ENOTDIR') return undefined
    throw new UsageError(`Cannot read ${target} (${error.code}). Check the path and its permissions.`)
  }
}

/**
 * Runs `work` with the lock that keeps Zabra servers out of a data folder, under whatever name a path reaches it. A file outside a `version-2`
 * folder needs no lock.
 */
export async function withFolderLock<T>(io: Io, file: string, work: () => Promise<T>): Promise<T> {
  const folders = [resolve(file), await targetOf(file)].map((path) => dirname(path))
  const dataFolders = folders.filter((folder) => basename(folder) === VERSION_FOLDER)
  return withLocks(
    io,
    dataFolders.map((folder) => dirname(folder)),
    work,
  )
}

/** Runs `work` with the locks that keep Zabra servers out of the data folder of a member and out of that of its logs. */
export const withDataLocks = <T>(
  io: Io,
  { dataDir, dataLogDir }: DatabaseLocation,
  work: () => Promise<T>,
): Promise<T> => withLocks(io, [resolve(dataDir), resolve(dataLogDir)], work)

async function withLocks<T>(
  { platform: { disk, system, random } }: Io,
  folders: readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  const token = Buffer.from(random.bytes(8)).toString('hex')
  const unlocks: (() => Promise<void>)[] = []
  try {
    for (const folder of new Set(folders)) unlocks.push(await lockFolder(disk, folder, system, token))
    return await work()
  } finally {
    for (const unlock of unlocks.reverse()) await unlock()
  }
}

/** Resolves to the path of a file, or of one that is not there yet, without symbolic links. */
async function targetOf(file: string): Promise<string> {
  const path = resolve(file)
  for (const [existing, rest] of [
    [path, ''],
    [dirname(path), basename(path)],
  ] as const) {
    try {
      return join(await realpath(existing), rest)
    } catch {
      // It is not there, or cannot be used: `work` says so.
    }
  }
  return path
}
