import { OPEN_ACL_UNSAFE, OpCode, type ACL } from '@zabra/protocol'
import type { LoggedTxn, Txn } from '@zabra/server/files'
import { chronicleOf, printOf, type ServerLog } from '../../history/chronicle.ts'
import { keptAcl, type AclKind } from '../../history/acl.ts'
import {
  History,
  type Notice,
  type Operation,
  type Rearmed,
  type Request,
  type Result,
  type SeenStat,
} from '../../history/records.ts'
import { checkers, type Evidence } from '../index.ts'

export const S = 0x100n
export const session = S.toString(16)

export const logged = (zxid: number, cxid: number, txn: Txn, sessionId = S): LoggedTxn => ({
  header: { sessionId, cxid, zxid, time: 1_700_000_001_000 + zxid * 10 },
  txn,
  digest: undefined,
})
export const begin = (zxid: number, id = S): LoggedTxn =>
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
export const remove = (zxid: number, path: string): LoggedTxn => logged(zxid, 5, { type: OpCode.delete, path })

/** A history of one session, with what it was answered. */
export class Case {
  readonly history = new History()
  readonly transactions: LoggedTxn[] = [begin(1), make(2, 0, '/w', 1), make(3, 1, '/w/a', 1)]
  #xid = 10
  readonly more: Partial<Evidence> = {}

  constructor() {
    this.history.arrivals.push(this.attached())
  }

  attached(isNew = true, connection = 1): Evidence['history']['arrivals'][number] & { kind: 'attached' } {
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

  asked(request: Request, { invoked = 10, xid = this.#xid++, connection = 1, client = 'c' } = {}): Operation {
    return this.history.begin({ client, session, connection, server: 's1', xid, request, invoked })
  }

  answered(
    request: Request,
    zxid: number,
    result: Result,
    at: Parameters<Case['asked']>[1] & { returned?: number } = {},
  ): Operation {
    const operation = this.asked(request, at)
    this.history.answered(operation, at.returned ?? 20, zxid, result)
    return operation
  }

  cameBack(connection: number, ...then: readonly Evidence['history']['arrivals'][number][]): void {
    this.history.arrivals.push(this.attached(false, connection), ...then)
  }

  log(server: string, transactions: readonly LoggedTxn[]): ServerLog {
    const entries = new Map(
      transactions.map((one) => [one.header.zxid, { logged: one, print: printOf(one) }]),
    )
    return { server, entries, aside: new Map(), complaints: [] }
  }

  complaintsOf(name: string, more: Partial<Evidence> = {}): string[] {
    const checker = checkers.find((one) => one.name === name)!
    return checker.check({
      history: this.history,
      chronicle: chronicleOf(this.transactions),
      logs: [this.log('s1', this.transactions)],
      wire: undefined,
      readers: new Map(),
      healedAt: 0,
      silent: new Set(),
      wallErrorMs: 0,
      staleMs: undefined,
      diskWasFull: false,
      epochs: [],
      ...more,
    })
  }
}

export const stat = (fields: Partial<SeenStat>): SeenStat => ({
  czxid: 3,
  mzxid: 3,
  pzxid: 3,
  version: 0,
  cversion: 0,
  aversion: 0,
  owner: 0n,
  dataLength: 1,
  children: 0,
  ...fields,
})
/** The access list that `ann` gets who asks for one of this kind. */
export const aclOf = (kind: AclKind): ACL[] =>
  keptAcl(kind, 'ann')!.map((one) => {
    const [, perms, scheme, id] = /^(\d+) (\w+):(.*)$/.exec(one)!
    return { perms: Number(perms), id: { scheme: scheme!, id: id! } }
  })
export const guard = (zxid: number, path: string, kind: AclKind = 'mine'): LoggedTxn =>
  logged(zxid, 5, { type: OpCode.setACL, path, acl: aclOf(kind), version: 1 })
export const notice = (type: number, path: string): Notice => ({
  kind: 'notice',
  client: 'c',
  session,
  connection: 1,
  at: 1,
  type,
  path,
})
/** Watches set again at a zxid by a client that says it knows everything up to another. */
export const rearmed = (zxid: number, since: number, asked: Partial<Rearmed['asked']>): Rearmed => ({
  kind: 'rearmed',
  client: 'c',
  session,
  connection: 1,
  at: 1,
  since,
  zxid,
  asked: { data: [], exist: [], child: [], ...asked },
})
export const set: Request = { op: 'set', path: '/w/a', data: 'y', version: -1 }
export const get = { op: 'get', path: '/w/a', watch: false } as const satisfies Request
