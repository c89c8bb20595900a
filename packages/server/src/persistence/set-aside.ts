import type { Disk, Logger } from '@zabra/runtime'

/** The folder, below `version-2`, of files that do not count any more. Neither server looks into it. */
export const SET_ASIDE = 'set-aside'
/** How many numbers are kept: an exchange of all data takes up to three. */
const KEPT = 6

/**
 * Moves files of a folder out of the way, in the order given, and makes each move durable before the next one, so that a
 * crash leaves all files before some point moved and all others in place. They are `set-aside/<number>.<name>` afterwards,
 * with one number for each call; the oldest numbers are removed. Nothing happens without names.
 */
export async function setAside(
  disk: Disk,
  logger: Logger,
  folder: string,
  names: readonly string[],
  why: string,
): Promise<void> {
  if (names.length === 0) return
  const target = `${folder}/${SET_ASIDE}`
  await disk.makeFolder(target)
  await disk.syncFolder(folder)
  const number = Math.max(0, ...(await disk.list(target)).map(numberOf)) + 1
  for (const name of names) {
    await disk.rename(`${folder}/${name}`, `${target}/${number}.${name}`)
    // The new name first: a crash between the two must not leave the file without any.
    await disk.syncFolder(target)
    await disk.syncFolder(folder)
  }
  logger.warn({ folder: target, number, files: names }, `Set ${names.length} files aside: ${why}`)
  await forget(disk, logger, target, number - KEPT)
}

async function forget(disk: Disk, logger: Logger, target: string, upTo: number): Promise<void> {
  const old = (await disk.list(target)).filter((name) => {
    const number = numberOf(name)
    return number > 0 && number <= upTo
  })
  if (old.length === 0) return
  for (const name of old) await disk.remove(`${target}/${name}`)
  await disk.syncFolder(target)
  logger.info({ folder: target, files: old }, `Removed ${old.length} files that were set aside long ago`)
}

const numberOf = (name: string): number => Number(/^(\d{1,15})\.(?:log|snapshot)\./.exec(name)?.[1] ?? 0)
