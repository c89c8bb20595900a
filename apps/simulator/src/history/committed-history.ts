import { logsIn, readLog, snapshotsIn, type LoggedTxn } from '@zabra/server/files'
import type { Disk } from '@zabra/runtime'
import { TreeModel, type CommittedTxn } from './model.ts'
import { formatZxid } from './records.ts'

/** The transactions in the logs of one server. */
export interface ServerLog {
  readonly server: string
  /** Transactions by zxid. In the logs of one run, equal transactions are one object. */
  readonly entries: ReadonlyMap<number, LoggedTxn>
  /** Transactions of logs that were removed. */
  readonly removed: ReadonlyMap<number, LoggedTxn>
  /** The zxids of the snapshots. */
  readonly snapshots: readonly number[]
  /** Unreadable files, and zxids logged twice with different contents. */
  readonly problems: readonly string[]
}

/** The committed history of the ensemble as the disks hold it, and every state that the tree went through. */
export interface CommittedHistory {
  readonly entries: readonly CommittedTxn[]
  readonly byZxid: ReadonlyMap<number, CommittedTxn>
  /** Transactions by session and xid. */
  readonly byRequest: ReadonlyMap<string, readonly CommittedTxn[]>
  readonly model: TreeModel
}

export const requestKey = (session: string, xid: number): string => `${session} ${xid}`

/** The files of a server that has stopped. */
export interface ServerFiles {
  hasFolder(path: string): boolean
  list(folder: string): string[]
  file(path: string): { readonly bytes: Uint8Array } | undefined
}

/** Reads every log in folders of a server's disk, as a program would. */
export async function readServerLog(
  server: string,
  platter: ServerFiles,
  folders: readonly string[],
  gone: readonly Uint8Array[],
  distinct: DistinctTransactions,
): Promise<ServerLog> {
  const disk = readOnlyDisk((path) => platter.file(path)?.bytes)
  const entries = new Map<number, LoggedTxn>()
  const removed = new Map<number, LoggedTxn>()
  for (const bytes of gone) {
    await readLog(
      readOnlyDisk(() => bytes),
      'a log that is gone',
      ({ logged, bytes: stored }) => {
        removed.set(logged.header.zxid, distinct.of(logged, stored))
      },
    )
  }
  const problems: string[] = []
  const filesIn = (folder: string): string[] => (platter.hasFolder(folder) ? platter.list(folder) : [])
  const snapshots = folders.flatMap((folder) => snapshotsIn(filesIn(folder)).map(({ zxid }) => zxid))
  const logs = folders.flatMap((folder) => logsIn(filesIn(folder)).map(({ name }) => `${folder}/${name}`))
  for (const path of logs) {
    const report = await readLog(disk, path, ({ logged, bytes }) => {
      const { zxid } = logged.header
      const one = distinct.of(logged, bytes)
      const other = entries.get(zxid)
      if (other !== undefined && other !== one)
        problems.push(`${server} has two transactions ${formatZxid(zxid)} in its logs`)
      entries.set(zxid, one)
    })
    if (report.state === 'damaged')
      problems.push(`${server}: ${report.file}: ${report.problem?.what ?? 'damaged'}`)
  }
  return { server, entries, removed, snapshots, problems }
}

/** Sorts transactions by zxid and applies them to a tree model. */
export function committedHistoryOf(
  transactions: Iterable<LoggedTxn>,
  localSessions = false,
): CommittedHistory {
  const entries = [...transactions]
    .map((logged) => ({ zxid: logged.header.zxid, logged }))
    .sort((a, b) => a.zxid - b.zxid)
  const model = new TreeModel(localSessions)
  const byZxid = new Map<number, CommittedTxn>()
  const byRequest = new Map<string, CommittedTxn[]>()
  for (const entry of entries) {
    byZxid.set(entry.zxid, entry)
    const { sessionId, cxid } = entry.logged.header
    const key = requestKey(BigInt.asUintN(64, sessionId).toString(16), cxid)
    const same = byRequest.get(key)
    if (same === undefined) byRequest.set(key, [entry])
    else same.push(entry)
    model.apply(entry)
  }
  return { entries, byZxid, byRequest, model }
}

interface Distinct {
  readonly logged: LoggedTxn
  readonly bytes: Uint8Array | undefined
  digest?: string
}

/** Finds equal transactions: those with equal bytes, and those with equal contents in different encodings. */
export class DistinctTransactions {
  readonly #known = new Map<number, Distinct[]>()

  /** Returns the first transaction that equals this one. `bytes`: how a log holds it, which is compared first. */
  of(logged: LoggedTxn, bytes?: Uint8Array): LoggedTxn {
    const known = this.#known.get(logged.header.zxid)
    if (known === undefined) {
      this.#known.set(logged.header.zxid, [{ logged, bytes }])
      return logged
    }
    const same = known.find((one) => areEqual(one.bytes, bytes))
    if (same !== undefined) return same.logged
    const digest = digestOf(logged)
    const alike = known.find((one) => (one.digest ??= digestOf(one.logged)) === digest)
    if (alike !== undefined) return alike.logged
    known.push({ logged, bytes, digest })
    return logged
  }
}

function areEqual(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined || a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false
  return true
}

/** Returns a string that is equal for two transactions only if they are the same. */
function digestOf({ header, txn }: LoggedTxn): string {
  return JSON.stringify([header, txn], (_, value: unknown) => {
    if (typeof value === 'bigint') return value.toString(16)
    if (value instanceof Uint8Array) return [...value].join()
    return value
  })
}

/** Returns a read-only disk over bytes outside of any process. */
function readOnlyDisk(find: (path: string) => Uint8Array | undefined): Disk {
  const bytes = (path: string): Uint8Array => {
    const found = find(path)
    if (found === undefined) throw new Error(`There is no ${path}`)
    return found
  }
  const refuse = (): never => {
    throw new Error('This disk is for reading')
  }
  return {
    list: refuse,
    exists: (path) => Promise.resolve(find(path) !== undefined),
    makeFolder: refuse,
    size: (path) => Promise.resolve(bytes(path).length),
    modifiedAt: refuse,
    readFile: (path) => Promise.resolve(bytes(path).slice()),
    replaceFile: refuse,
    createFile: refuse,
    openRead: (path) =>
      Promise.resolve({
        read: (into, position) => {
          const part = bytes(path).subarray(position, position + into.length)
          into.set(part)
          return Promise.resolve(part.length)
        },
        size: () => Promise.resolve(bytes(path).length),
        close: () => Promise.resolve(),
      }),
    openWrite: refuse,
    rename: refuse,
    renameNew: refuse,
    remove: refuse,
    syncFolder: refuse,
    space: () => Promise.resolve({ free: 0, size: 0 }),
  }
}
