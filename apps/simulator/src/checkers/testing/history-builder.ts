import { OPEN_ACL_UNSAFE, OpCode, type ACL } from '@zabra/protocol'
import type { LoggedTxn, Txn } from '@zabra/server/files'
import { committedHistoryOf, DistinctTransactions, type ServerLog } from '../../history/committed-history.ts'
import { storedAcl, type AclKind } from '../../history/acl.ts'
import {
  History,
  type WatchNotification,
  type Operation,
  type WatchesReset,
  type Request,
  type Result,
  type PlainStat,
} from '../../history/records.ts'
import { checkers, type Evidence } from '../index.ts'

export const SESSION_ID = 0x100n
export const session = SESSION_ID.toString(16)

/** The time of the transaction with this zxid. */
const timeOf = (zxid: number): number => 1_700_000_001_000 + zxid * 10

export const logged = (zxid: number, cxid: number, txn: Txn, sessionId = SESSION_ID): LoggedTxn => ({
  header: { sessionId, cxid, zxid, time: timeOf(zxid) },
  txn,
  digest: undefined,
})
export const begin = (zxid: number, id = SESSION_ID): LoggedTxn =>
  logged(zxid, 0, { type: OpCode.createSession, timeOut: 1000 }, id)
export const end = (zxid: number, paths2Delete: string[], cxid = 0): LoggedTxn =>
  logged(zxid, cxid, { type: OpCode.closeSession, paths2Delete })
export const make = (
  zxid: number,
  cxid: number,
  path: string,
  parentCVersion: number,
  ephemeral = false,
  acl = OPEN_ACL_UNSAFE,
): LoggedTxn =>
  logged(zxid, cxid, {
    type: OpCode.create2,
    path,
    data: new TextEncoder().encode('x'),
    acl,
    ephemeral,
    parentCVersion,
  })
export const put = (zxid: number, cxid: number, path: string, version: number): LoggedTxn =>
  logged(zxid, cxid, { type: OpCode.setData, path, data: new TextEncoder().encode('y'), version })
export const remove = (zxid: number, path: string): LoggedTxn =>
  logged(zxid, 5, { type: OpCode.delete, path })

/** Builds the history of one session. */
export class HistoryBuilder {
  readonly history = new History()
  readonly transactions: LoggedTxn[] = [begin(1), make(2, 0, '/w', 1), make(3, 1, '/w/a', 1)]
  #xid = 10
  readonly #distinct = new DistinctTransactions()
  readonly more: Partial<Evidence> = {}

  constructor() {
    this.history.events.push(this.attached())
  }

  attached(isNew = true, connection = 1): Evidence['history']['events'][number] & { kind: 'attached' } {
    return {
      kind: 'attached',
      client: 'c',
      session,
      connection,
      server: 's1',
      at: 0,
      timeoutMs: 1000,
      isNew,
      seen: 0,
    }
  }

  send(request: Request, { invoked = 10, xid = this.#xid++, connection = 1, client = 'c' } = {}): Operation {
    return this.history.begin({ client, session, connection, server: 's1', xid, request, invoked })
  }

  answer(
    request: Request,
    zxid: number,
    result: Result,
    at: Parameters<HistoryBuilder['send']>[1] & { returned?: number } = {},
  ): Operation {
    const operation = this.send(request, at)
    this.history.complete(operation, at.returned ?? 20, zxid, result)
    return operation
  }

  reattach(connection: number, ...then: readonly Evidence['history']['events'][number][]): void {
    this.history.events.push(this.attached(false, connection), ...then)
  }

  log(server: string, transactions: readonly LoggedTxn[]): ServerLog {
    const entries = new Map(transactions.map((one) => [one.header.zxid, this.#distinct.of(one)]))
    return { server, entries, removed: new Map(), snapshots: [], problems: [] }
  }

  violationsOf(name: string, more: Partial<Evidence> = {}): string[] {
    const checker = checkers.find((one) => one.name === name)!
    return checker.check({
      history: this.history,
      committed: committedHistoryOf(this.transactions),
      logs: [this.log('s1', this.transactions)],
      quorum: undefined,
      readers: new Map(),
      healedAt: 0,
      silentSessions: new Set(),
      maxClockErrorMs: 0,
      maxEarlyEndMs: 0,
      maxStalenessMs: undefined,
      unnamedServers: new Set(),
      diskWasFull: false,
      epochs: [],
      ...more,
    })
  }
}

export const stat = (fields: Partial<PlainStat>): PlainStat => ({
  czxid: 3,
  mzxid: 3,
  ctime: timeOf(fields.czxid ?? 3),
  mtime: timeOf(fields.mzxid ?? 3),
  pzxid: 3,
  version: 0,
  cversion: 0,
  aversion: 0,
  owner: 0n,
  dataLength: 1,
  children: 0,
  ...fields,
})
/** Returns the access list that the server stores when `ann` sets this kind. */
export const aclOf = (kind: AclKind): ACL[] =>
  storedAcl(kind, 'ann')!.map((one) => {
    const [, perms, scheme, id] = /^(\d+) (\w+):(.*)$/.exec(one)!
    return { perms: Number(perms), id: { scheme: scheme!, id: id! } }
  })
export const setAcl = (zxid: number, path: string, kind: AclKind = 'mine'): LoggedTxn =>
  logged(zxid, 5, { type: OpCode.setACL, path, acl: aclOf(kind), version: 1 })
export const notice = (type: number, path: string): WatchNotification => ({
  kind: 'notice',
  client: 'c',
  session,
  connection: 1,
  at: 1,
  type,
  path,
})
/** Returns a reset of watches, answered at `zxid`, of a client whose last zxid is `since`. */
export const rearmed = (
  zxid: number,
  since: number,
  requested: Partial<WatchesReset['requested']>,
): WatchesReset => ({
  kind: 'rearmed',
  client: 'c',
  session,
  connection: 1,
  at: 1,
  since,
  zxid,
  requested: { data: [], exist: [], child: [], ...requested },
})
export const set: Request = { op: 'set', path: '/w/a', data: 'y', version: -1 }
export const get = { op: 'get', path: '/w/a', watch: false } as const satisfies Request
