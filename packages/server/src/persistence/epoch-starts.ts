import { formatZxid } from '@zabra/protocol'
import { DiskError, type Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'

/** The file with the last transaction before each epoch, beside the snapshots. */
const EPOCHS_FILE = 'zabra.epochs'
/** The newest epochs are kept: a log that spans more of them is in a backup by then. */
const KEPT_EPOCHS = 100
/** A file that is longer was not written by `addEpochStarts`. */
const MAX_BYTES = 100 * KEPT_EPOCHS
const LINE = /^(\d{1,10}) ([\da-f]{1,14})$/

/** The last transaction before each of some epochs in the history of a server. */
export type EpochStarts = ReadonlyMap<number, Zxid>

/**
 * Reads what `addEpochStarts` has written. What is damaged or cannot be read counts as absent: without it a backup may have a gap, but
 * snapshots must go on.
 */
export async function readEpochStarts(disk: Disk, folder: string): Promise<EpochStarts> {
  const lines = (await textOf(disk, `${folder}/${EPOCHS_FILE}`)).split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [, epoch, zxid] = LINE.exec(line) ?? []
      return epoch === undefined ? [] : [[Number(epoch), Number.parseInt(zxid!, 16)]]
    }),
  )
}

async function textOf(disk: Disk, path: string): Promise<string> {
  try {
    return (await disk.size(path)) > MAX_BYTES ? '' : new TextDecoder().decode(await disk.readFile(path))
  } catch (error) {
    if (error instanceof DiskError) return ''
    throw error
  }
}

/**
 * Adds epochs to the file; durable when it resolves. Writes nothing where it has them. Forgets later ones: they are not in the history,
 * but were before its epochs were renumbered.
 */
export async function addEpochStarts(disk: Disk, folder: string, added: EpochStarts): Promise<void> {
  const known = await readEpochStarts(disk, folder)
  if ([...added].every(([epoch, zxid]) => known.get(epoch) === zxid)) return
  const last = Math.max(...added.keys())
  const kept = [...new Map([...known, ...added])]
    .filter(([epoch]) => epoch <= last)
    .toSorted(([a], [b]) => a - b)
    .slice(-KEPT_EPOCHS)
  const text = kept.map(([epoch, zxid]) => `${epoch} ${formatZxid(zxid)}\n`).join('')
  await disk.replaceFile(`${folder}/${EPOCHS_FILE}`, new TextEncoder().encode(text))
}
