import type { Disk, Logger } from '@zabra/runtime'

/** The folder below `version-2` for files that are not part of the history any more. No server reads it. */
export const SET_ASIDE = 'set-aside'
/** Sets of files that are kept; a replacement of all data makes up to three. */
const KEPT_SETS = 6

/**
 * Moves files to `set-aside/<number>.<name>`, in the order given and with one number for each call. Each move is durable before
 * the next one, so a crash leaves the files before some point moved and all others in place; with `anyOrder` all are durable only at the
 * end, which takes less time. Removes the oldest sets. Does nothing without names. `reason` completes the log message.
 */
export async function setAside(
  disk: Disk,
  logger: Logger,
  folder: string,
  names: readonly string[],
  reason: string,
  { anyOrder = false } = {},
): Promise<void> {
  if (names.length === 0) return
  const target = `${folder}/${SET_ASIDE}`
  await disk.makeFolder(target)
  await disk.syncFolder(folder)
  const number = Math.max(0, ...(await disk.list(target)).map(numberOf)) + 1
  for (const name of names) {
    await disk.rename(`${folder}/${name}`, `${target}/${number}.${name}`)
    if (anyOrder && name !== names.at(-1)) continue
    // The new name first: a crash between the two syncs must not leave the file without a name.
    await disk.syncFolder(target)
    await disk.syncFolder(folder)
  }
  logger.warn(
    { id: 'log.files-set-aside', folder: target, number, files: names },
    `Set ${names.length} files aside: ${reason}`,
  )
  await removeOld(disk, logger, target, number - KEPT_SETS)
}

async function removeOld(disk: Disk, logger: Logger, target: string, upTo: number): Promise<void> {
  const old = (await disk.list(target)).filter((name) => {
    const number = numberOf(name)
    return number > 0 && number <= upTo
  })
  if (old.length === 0) return
  for (const name of old) await disk.remove(`${target}/${name}`)
  await disk.syncFolder(target)
  logger.info(
    { id: 'log.old-files-removed', folder: target, files: old },
    `Removed ${old.length} files that were set aside long ago`,
  )
}

const numberOf = (name: string): number => Number(/^(\d{1,15})\.(?:log|snapshot)\./.exec(name)?.[1] ?? 0)
