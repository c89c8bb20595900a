import { formatZxid, OpCode, Reader } from '@zabra/protocol'
import { failureOf } from '../core/tree/index.ts'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import { decodeLoggedTxn } from '../persistence/index.ts'
import type { BackupStore, Catalog } from './catalog.ts'
import { BackupUsageError } from './errors.ts'
import { scanPiece } from './load-backup.ts'
import type { LogManifest } from './manifest.ts'

/**
 * Returns the last transaction at or before a time, in milliseconds since 1970. Times are those of the leader, which rise with
 * zxids unless its clock was set back. Rejects with a `BackupError` when no log reaches from before the time to it.
 */
export async function lastBefore(store: BackupStore, catalog: Catalog, time: number): Promise<Zxid> {
  const log = catalog.logs.findLast(({ firstTime }) => firstTime <= time)
  if (log === undefined)
    throw new BackupUsageError(
      `Expected a time from ${timeText(catalog.logs[0]?.firstTime)} on, which the log in the target covers, got ${timeText(time)}. Name a later time.`,
    )
  // After its last transaction nothing is known to have happened until the next part of the log was written.
  if (log.lastTime <= time) {
    const newestTime = Math.max(...[...catalog.logs, ...catalog.snapshots].map((one) => one.time))
    if (time > newestTime)
      throw new BackupUsageError(
        `Expected a time up to ${timeText(newestTime)}, when the last backup was made, got ${timeText(time)}. Name an earlier time, or make a backup.`,
      )
    return lastOfPart(catalog, log, time)
  }
  let found = log.after
  await scanPiece(store, log, ({ zxid, bytes, start }) => {
    const at = Number(new DataView(bytes.buffer, bytes.byteOffset + start).getBigInt64(20))
    if (at > time) return false
    found = zxid
    return true
  })
  return found
}

/**
 * Returns the last transaction at or before a time after that of a part of the log. Throws a `BackupUsageError` where the log behind the
 * part is missing, so that transactions before the time may be.
 */
function lastOfPart({ logs, snapshots }: Catalog, { upTo, lastTime }: LogManifest, time: number): Zxid {
  const later = snapshots.filter(({ exactAt }) => exactAt > upTo)
  const isLast = later.length === 0 && logs.every((other) => other.upTo <= upTo)
  const goesOnAfter = (zxid: Zxid): boolean => logs.some((log) => log.after <= zxid && log.upTo > zxid)
  if (isLast || goesOnAfter(upTo)) return upTo
  // When a backup was made that ends with the part, nothing had come after it.
  const same = [
    ...logs.filter((other) => other.upTo === upTo),
    ...snapshots.filter(({ exactAt }) => exactAt === upTo),
  ]
  const before = later.findLast((snapshot) => snapshot.time <= time)
  const zxid = before?.exactAt ?? upTo
  const until = before?.time ?? Math.max(lastTime, ...same.map((one) => one.time))
  if (time <= until || goesOnAfter(zxid)) return zxid
  const next = later.find(({ exactAt }) => exactAt > zxid)
  throw new BackupUsageError(
    `Expected a time that the log in the target covers, got ${timeText(time)}: the log after ${timeText(until)} is in no backup, or retention has removed it. Name the moment before with --zxid 0x${formatZxid(zxid)}${next === undefined ? '' : `, or that of ${timeText(next.time)} with --zxid 0x${formatZxid(next.exactAt)}`}.`,
  )
}

/** A change that a restore goes back before. */
export interface SoughtChange {
  readonly operation: 'create' | 'set' | 'delete'
  readonly path: string
}

/** Reads a change such as `delete /app`. Throws a `BackupError` for anything else. */
export function parseChange(text: string): SoughtChange {
  const [, operation, path] = /^(create|set|delete) +(\/.*)$/.exec(text.trim()) ?? []
  if (operation === undefined)
    throw new BackupUsageError(
      `Expected create, set or delete and a path, such as 'delete /app', got ${JSON.stringify(text)}.`,
    )
  return { operation: operation as SoughtChange['operation'], path: path! }
}

/** A change that was found. */
export interface FoundChange {
  /** The transaction to go back to. */
  readonly before: Zxid
  readonly change: Zxid
  readonly time: number
}

/** Longest time between two deletes of a row, in milliseconds. */
const ROW_MS = 60_000

/**
 * Returns the transaction before the last change of that kind, and the change itself. Where a tree was deleted node by node, the last
 * delete of the path comes after those of its descendants: `before` is the one before the first of them in a row, also where the row
 * began in an earlier part of the log.
 */
export async function lastBeforeChange(
  store: BackupStore,
  catalog: Catalog,
  change: SoughtChange,
): Promise<FoundChange> {
  for (const log of catalog.logs.toReversed()) {
    const row = new DeleteRow(change)
    let found: (FoundChange & { readonly begin: RowBegin }) | undefined
    await scanPart(store, log, (logged, previous) => {
      const { zxid, time } = logged.header
      if (isMatch(logged, change)) {
        const begin = row.beginBefore(time) ?? { before: previous, time, isOpen: row.isOpen }
        found = { before: begin.before, change: zxid, time, begin }
      }
      row.add(logged, previous)
      return true
    })
    if (found === undefined) continue
    const { begin, ...result } = found
    return begin.isOpen
      ? { ...result, before: await rowBefore(store, catalog.logs, log, change, begin) }
      : result
  }
  throw new BackupUsageError(
    `Expected ${change.operation} ${change.path} in the log of the target, which covers 0x${formatZxid(catalog.logs[0]?.first ?? 0)} to 0x${formatZxid(catalog.logs.at(-1)?.upTo ?? 0)}, got no such change. Look for it with zabra log on the members.`,
  )
}

/** Returns the transaction before a row of deletes that may have begun before a part of the log. */
async function rowBefore(
  store: BackupStore,
  logs: readonly LogManifest[],
  { after, first }: LogManifest,
  change: SoughtChange,
  begin: RowBegin,
): Promise<Zxid> {
  const part = logs.findLast((log) => log.after < after && log.upTo >= after)
  if (change.operation !== 'delete' || part === undefined || begin.time - part.lastTime > ROW_MS)
    return begin.before
  const row = new DeleteRow(change)
  await scanPart(store, part, (logged, previous) => {
    if (logged.header.zxid >= first) return false
    row.add(logged, previous)
    return true
  })
  const earlier = row.beginBefore(begin.time)
  if (earlier === undefined) return row.isOpen ? rowBefore(store, logs, part, change, begin) : begin.before
  return earlier.isOpen ? rowBefore(store, logs, part, change, earlier) : earlier.before
}

/** Where a row of deletes begins. */
interface RowBegin {
  readonly before: Zxid
  readonly time: number
  /** Whether it may have begun in an earlier part of the log. */
  readonly isOpen: boolean
}

/** Follows the deletes below a path that come after each other: without other deletes in between, and within a minute each. */
class DeleteRow {
  readonly #change: SoughtChange
  #begin: RowBegin | undefined
  #lastTime = 0
  #isOpen = true

  constructor(change: SoughtChange) {
    this.#change = change
  }

  /** Whether nothing has ended a row yet. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Returns where the row begins that goes on at a time; undefined for none. */
  beginBefore(time: number): RowBegin | undefined {
    return time - this.#lastTime > ROW_MS ? undefined : this.#begin
  }

  add(logged: LoggedTxn, previous: Zxid): void {
    const { time } = logged.header
    if (this.#change.operation === 'delete' && deletesBelow(logged, this.#change.path)) {
      if (this.#begin !== undefined && time - this.#lastTime > ROW_MS) this.#end()
      this.#begin ??= { before: previous, time, isOpen: this.#isOpen }
      this.#lastTime = time
    } else if (deletesAny(logged)) this.#end()
  }

  #end(): void {
    this.#begin = undefined
    this.#isOpen = false
  }
}

/** Reads a part of the log, and calls `visit` with each transaction and the one before it, until it returns false. */
async function scanPart(
  store: BackupStore,
  log: LogManifest,
  visit: (logged: LoggedTxn, previous: Zxid) => boolean,
): Promise<void> {
  const reader = new Reader()
  let previous = log.after
  await scanPiece(store, log, ({ zxid, bytes, start, end }) => {
    const goesOn = visit(decodeLoggedTxn(reader.reset(bytes, start, end)), previous)
    previous = zxid
    return goesOn
  })
}

interface Change {
  readonly operation: SoughtChange['operation']
  readonly path: string
}

const isMatch = (logged: LoggedTxn, { operation, path }: SoughtChange): boolean =>
  changesOf(logged).some((change) => change.operation === operation && change.path === path)

const deletesAny = (logged: LoggedTxn): boolean =>
  changesOf(logged).some(({ operation }) => operation === 'delete')

function deletesBelow(logged: LoggedTxn, path: string): boolean {
  const changes = changesOf(logged)
  return (
    changes.length > 0 &&
    changes.every(({ operation, path: at }) => operation === 'delete' && at.startsWith(`${path}/`))
  )
}

function changesOf({ txn }: LoggedTxn): readonly Change[] {
  if (txn.type !== OpCode.multi) return changeOf(txn)
  return failureOf(txn.txns) === undefined ? [...txn.txns].flatMap(changeOf) : []
}

function changeOf(txn: Exclude<LoggedTxn['txn'], { readonly type: typeof OpCode.multi }>): readonly Change[] {
  switch (txn.type) {
    case OpCode.create:
    case OpCode.create2:
    case OpCode.createContainer:
    case OpCode.createTTL:
      return [{ operation: 'create', path: txn.path }]
    case OpCode.setData:
    case OpCode.reconfig:
      return [{ operation: 'set', path: txn.path }]
    case OpCode.delete:
    case OpCode.deleteContainer:
      return [{ operation: 'delete', path: txn.path }]
    case OpCode.closeSession:
      return txn.paths2Delete.map((path) => ({ operation: 'delete', path }))
    case OpCode.setACL:
    case OpCode.check:
    case OpCode.error:
    case OpCode.createSession:
      return []
  }
}

const timeText = (time: number | undefined): string =>
  time === undefined ? 'now' : new Date(time).toISOString()
