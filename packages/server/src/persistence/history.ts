import { counterOf, epochOf, formatZxid } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { DamageError } from './errors.ts'
import { logsIn } from './file-names.ts'
import { scanLog, type ScanEnd, type ScanStart } from './log-scan.ts'

/** A transaction as it lies in the log and goes over the wire. */
export interface RawTxn {
  readonly zxid: Zxid
  /** Header, record, digest: a copy, free to keep. */
  readonly payload: Uint8Array
}

/** Payloads that are read ahead; what follows is read when they are used. */
const AHEAD_BYTES = 1 << 18

/**
 * The transactions of the log behind `after` up to `upTo`. It starts at the file whose name says that `after` is there; the
 * caller judges whether the first one follows what it knows. Throws a `DamageError` where a file is not sound and where
 * transactions are missing between two. What lies behind `upTo` is not looked at, so that the log may be written meanwhile.
 */
export async function* readLog(
  disk: Disk,
  folder: string,
  after: Zxid,
  upTo: Zxid,
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
    for await (const entry of readFile(disk, path, last, upTo)) {
      if (last !== after && !isSuccessor(entry.zxid, last)) throw missing(path, last, entry)
      last = entry.zxid
      yield entry
    }
  }
}

/** Whether nothing can lie between two transactions: counters rise by one, and a new epoch begins with one. */
export function isSuccessor(zxid: Zxid, last: Zxid): boolean {
  return zxid === last + 1 || (epochOf(zxid) > epochOf(last) && counterOf(zxid) === 1)
}

interface PlacedTxn extends RawTxn {
  readonly offset: number
}

/** What a file has behind `after`, each once. What is known already, or repeats an earlier entry, recovery has compared. */
async function* readFile(
  disk: Disk,
  path: string,
  after: Zxid,
  upTo: Zxid,
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
        // The one that is asked for last is where reading ends: what follows may not be written yet.
        more = bytes >= AHEAD_BYTES && entry.zxid < upTo
        return !more && entry.zxid < upTo
      },
      from,
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
    'Bring the missing log files back, or let this server take a snapshot from its leader.',
  )
}
