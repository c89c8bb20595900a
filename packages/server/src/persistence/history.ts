import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { ADOPT_ADVICE, DamageError } from './errors.ts'
import { logsIn } from './file-names.ts'
import type { Pause } from './pause.ts'
import { scanLog, type ScanEnd, type ScanStart } from './log-scan.ts'

/** An encoded transaction, as the log and a proposal carry it. */
export interface RawTxn {
  readonly zxid: Zxid
  /** Header, record, digest: a copy that the caller may keep. */
  readonly payload: Uint8Array
}

/** Bytes of payloads that are read ahead of the consumer. */
const READ_AHEAD_BYTES = 1 << 18

/**
 * Yields the transactions of the log after `after` up to `upTo`, beginning with the file whose name says that it holds `after`.
 * The caller checks whether the first one follows `after`. Throws a `DamageError` where a file is corrupt or transactions are
 * missing between two others. Reads nothing after `upTo`, so the log may be written meanwhile. `pause` is called after each entry that is
 * read, also up to `after`.
 */
export async function* readLog(
  disk: Disk,
  folder: string,
  after: Zxid,
  upTo: Zxid,
  pause?: Pause,
): AsyncGenerator<RawTxn, void, undefined> {
  const files = logsIn(await disk.list(folder))
  const first = Math.max(
    0,
    files.findLastIndex(({ zxid }) => zxid <= after),
  )
  let last = after
  for (const { name, zxid } of files.slice(first)) {
    if (zxid > upTo) break
    const path = `${folder}/${name}`
    for await (const entry of readFile(disk, path, { after: last, upTo, pause })) {
      if (last !== after && !isSuccessor(entry.zxid, last)) throw missing(path, last, entry)
      last = entry.zxid
      yield entry
    }
  }
}

/** Returns whether no transaction can lie between `last` and `zxid`: counters rise by one, and an epoch begins with one. */
export function isSuccessor(zxid: Zxid, last: Zxid): boolean {
  return zxid === last + 1 || (epochOf(zxid) > epochOf(last) && counterOf(zxid) === 1)
}

interface PlacedTxn extends RawTxn {
  readonly offset: number
}

/** Yields the transactions of a file after `after`, each once. Recovery has compared repetitions of earlier entries already. */
async function* readFile(
  disk: Disk,
  path: string,
  { after, upTo, pause }: { readonly after: Zxid; readonly upTo: Zxid; readonly pause: Pause | undefined },
): AsyncGenerator<PlacedTxn, void, undefined> {
  let from: ScanStart | undefined
  let known = after
  for (let more = true; more;) {
    const ahead: PlacedTxn[] = []
    let bytes = 0
    more = false
    const end: ScanEnd = await scanLog(
      disk,
      path,
      (entry) => {
        if (entry.zxid > upTo) return false
        if (entry.zxid <= known) return entry.zxid < upTo
        known = entry.zxid
        const payload = entry.bytes.slice(entry.start, entry.end)
        ahead.push({ zxid: entry.zxid, payload, offset: entry.offset })
        bytes += payload.length
        // Stop at `upTo`: what follows may not be written yet.
        more = bytes >= READ_AHEAD_BYTES && entry.zxid < upTo
        return !more && entry.zxid < upTo
      },
      from,
      pause,
    )
    yield* ahead
    const last = ahead.at(-1)
    if (last !== undefined) from = { offset: end.end, last: last.zxid }
  }
}

function missing(path: string, last: Zxid, entry: PlacedTxn): DamageError {
  return new DamageError(
    `Expected transaction 0x${formatZxid(last + 1)} or the first of a later epoch, got 0x${formatZxid(entry.zxid)}`,
    path,
    entry.offset,
    `Bring the missing log files back; or, ${ADOPT_ADVICE}.`,
  )
}
