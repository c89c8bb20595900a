import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../../core/types.ts'
import { DamageError } from '../index.ts'
import { ENTRY_END, LOG_HEADER_BYTES } from '../log-format.ts'
import { copyPrefix, folderOf } from './copy-prefix.ts'
import type { LogReport } from './read-log.ts'

export interface RepairOptions {
  /** A new file for the sound part; the log itself is not changed. By default the log is repaired in place. */
  readonly output?: string
  /** Drops everything from the first bad byte of a damaged file on. Those transactions may have been acknowledged. */
  readonly force?: boolean
}

export interface LogRepair {
  /** The file that is sound now; undefined when no part of the log was sound. */
  readonly written: string | undefined
  /** A copy of the file as it was; undefined when the log itself was not changed. */
  readonly backup: string | undefined
  /** Number of transactions that were kept. */
  readonly kept: number
  readonly last: Zxid | undefined
  readonly bytesCut: number
}

/**
 * Repairs a log by the report that `readLog` has just returned. Makes a durable copy before it changes the file. No server may use
 * the folder meanwhile: lock it. Resolves to undefined when the file is sound already. Rejects with a `DamageError` when
 * acknowledged transactions would be lost and `force` is not set.
 */
export async function repairLog(
  disk: Disk,
  report: LogReport,
  { output, force = false }: RepairOptions = {},
): Promise<LogRepair | undefined> {
  const { file, state, problem, end } = report
  if (problem === undefined) return undefined
  if (state === 'damaged' && !force) {
    throw new DamageError(
      problem.what,
      file,
      problem.offset,
      'Transactions after it may have been acknowledged: bring the file back from a backup or another server. To give them up, repair with --force; a copy of the file is kept.',
    )
  }
  const hasHeader = end >= LOG_HEADER_BYTES
  const result = { kept: report.transactions, last: report.last, bytesCut: report.size - end }
  if (output !== undefined) {
    if (!hasHeader) return { ...result, written: undefined, backup: undefined }
    await copyPrefix(disk, file, output, end, state === 'unmarked')
    return { ...result, written: output, backup: undefined }
  }
  const backup = await freeName(disk, file)
  await copyPrefix(disk, file, backup, report.size, false)
  if (!hasHeader) {
    await disk.remove(file)
    await disk.syncFolder(folderOf(file))
    return { ...result, written: undefined, backup }
  }
  const writer = await disk.openWrite(file, { create: false, durable: false })
  try {
    await writer.truncate(end)
    if (state === 'unmarked') await writer.write(new Uint8Array([ENTRY_END]), end)
    await writer.sync()
  } finally {
    await writer.close()
  }
  return { ...result, written: file, backup }
}

/** Returns an unused name beside the file that no server takes for a log. */
async function freeName(disk: Disk, file: string): Promise<string> {
  const name = file.slice(file.lastIndexOf('/') + 1)
  for (let number = 1; ; number++) {
    const path = `${folderOf(file)}/backup.${name}.${number}`
    if (!(await disk.exists(path))) return path
  }
}
