import { formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'

/** The file with the last transaction before each epoch, beside the snapshots. */
const EPOCHS_FILE = 'zabra.epochs'
/** The newest epochs are kept: a log that spans more of them is in a backup by then. */
const KEPT_EPOCHS = 100
const LINE = /^(\d{1,10}) ([\da-f]{1,14})$/

/** The last transaction before each of some epochs in the history of a server. */
export type EpochStarts = ReadonlyMap<number, Zxid>

/** Reads what `addEpochStarts` has written. Lines that are damaged count as absent: without them a backup may have a gap. */
export async function readEpochStarts(disk: Disk, folder: string): Promise<EpochStarts> {
  const path = `${folder}/${EPOCHS_FILE}`
  if (!(await disk.exists(path))) return new Map()
  const lines = new TextDecoder().decode(await disk.readFile(path)).split('\n')
  return new Map(
    lines.flatMap((line) => {
      const [, epoch, zxid] = LINE.exec(line) ?? []
      return epoch === undefined ? [] : [[Number(epoch), Number.parseInt(zxid!, 16)]]
    }),
  )
}

/** Adds epochs to the file; durable when it resolves. Writes nothing where it has them. */
export async function addEpochStarts(disk: Disk, folder: string, added: EpochStarts): Promise<void> {
  const known = await readEpochStarts(disk, folder)
  if ([...added].every(([epoch, zxid]) => known.get(epoch) === zxid)) return
  const kept = [...new Map([...known, ...added])].toSorted(([a], [b]) => a - b).slice(-KEPT_EPOCHS)
  const text = kept.map(([epoch, zxid]) => `${epoch} ${formatZxid(zxid)}\n`).join('')
  await disk.replaceFile(`${folder}/${EPOCHS_FILE}`, new TextEncoder().encode(text))
}
