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
    return log.upTo
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

/**
 * Returns the transaction before the last change of that kind, and the change itself. Where a tree was deleted node by node, the last
 * delete of the path comes after those of its descendants: `before` is the one before the first of them in a row.
 */
export async function lastBeforeChange(
  store: BackupStore,
  catalog: Catalog,
  change: SoughtChange,
): Promise<{ readonly before: Zxid; readonly change: Zxid; readonly time: number }> {
  for (const log of catalog.logs.toReversed()) {
    const found = await lastMatchIn(store, log, change)
    if (found !== undefined) return found
  }
  throw new BackupUsageError(
    `Expected ${change.operation} ${change.path} in the log of the target, which covers 0x${formatZxid(catalog.logs[0]?.first ?? 0)} to 0x${formatZxid(catalog.logs.at(-1)?.upTo ?? 0)}, got no such change. Look for it with zabra log on the members.`,
  )
}

async function lastMatchIn(store: BackupStore, log: LogManifest, change: SoughtChange) {
  const reader = new Reader()
  let previous = log.after
  let found: { readonly before: Zxid; readonly change: Zxid; readonly time: number } | undefined
  /** The transaction before a row of deletes below the path. */
  let beforeRow: Zxid | undefined
  await scanPiece(store, log, ({ zxid, bytes, start, end }) => {
    const logged = decodeLoggedTxn(reader.reset(bytes, start, end))
    if (change.operation === 'delete' && deletesBelow(logged, change.path)) beforeRow ??= previous
    else if (isMatch(logged, change)) {
      found = { before: beforeRow ?? previous, change: zxid, time: logged.header.time }
      beforeRow = undefined
    } else if (deletesAny(logged)) beforeRow = undefined
    previous = zxid
    return true
  })
  return found
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
  const prefix = path === '/' ? '/' : `${path}/`
  return (
    changes.length > 0 &&
    changes.every(({ operation, path: at }) => operation === 'delete' && at.startsWith(prefix))
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
