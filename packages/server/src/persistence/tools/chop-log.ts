import { formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../../core/types.ts'
import { DamageError } from '../index.ts'
import { copyPrefix } from './copy-prefix.ts'
import { readLog } from './read-log.ts'

export interface ChoppedLog {
  readonly kept: number
  readonly last: Zxid
}

/**
 * Writes the transactions of a log up to `zxid`, with it, to a new file. The log itself is not changed. Rejects with a `DamageError`
 * where the log is corrupt before that transaction, and with a `RangeError` when it does not hold it.
 */
export async function chopLog(disk: Disk, file: string, zxid: Zxid, output: string): Promise<ChoppedLog> {
  let end: number | undefined
  let kept = 0
  const report = await readLog(disk, file, ({ offset, size, logged }) => {
    kept++
    if (logged.header.zxid !== zxid) return true
    end = offset + size
    return false
  })
  if (end === undefined && report.state === 'damaged') {
    const { offset, what, action } = report.problem!
    throw new DamageError(what, file, offset, action)
  }
  if (end === undefined) {
    const range =
      report.first === undefined
        ? 'which holds none'
        : `which holds 0x${formatZxid(report.first)} to 0x${formatZxid(report.last!)}`
    throw new RangeError(`Expected a transaction of ${file}, ${range}, got 0x${formatZxid(zxid)}`)
  }
  // The end mark of the last transaction of a file may be missing.
  await copyPrefix(disk, file, output, Math.min(end, report.size), end > report.size)
  return { kept, last: zxid }
}
