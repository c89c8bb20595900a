import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  writeCheckVersionRequest,
  writeCreateRequest,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeMultiHeader,
  Writer,
  writeSetACLRequest,
  writeSetDataRequest,
  type ACL,
} from '@zabra/protocol'
import { AclRules } from '../../auth/index.ts'
import { Tree } from '../../tree/index.ts'
import type { Digest, Identity, Txn } from '../../types.ts'
import { Preparer, type PreparedTxn } from '../index.ts'

/** A write; fields that are left out have harmless values. */
export interface RequestSpec {
  readonly op:
    | 'create'
    | 'create2'
    | 'createContainer'
    | 'createTTL'
    | 'delete'
    | 'setData'
    | 'setACL'
    | 'check'
  readonly path: string | null
  readonly data?: string
  readonly acl?: readonly ACL[] | null
  readonly flags?: number
  readonly ttl?: bigint
  readonly version?: number
}

export const BOB: Identity = { scheme: 'digest', id: 'bob:hash' }
export const only = (perms: number): ACL[] => [{ perms, id: { scheme: BOB.scheme, id: BOB.id } }]
export const failure = (err: number): object => ({ type: OpCode.error, err })

/** A preparer with its tree. */
export class PreparerFixture {
  readonly tree: Tree
  readonly preparer: Preparer
  open = true
  identities: readonly Identity[] = []
  digest: Digest | undefined
  zxid = 0
  /** The quotas that were exceeded. */
  readonly breaches: string[] = []

  constructor({
    extendedTypes = true,
    enforceQuota = false,
    skipACL = false,
    quotaRequiresAdmin = false,
    maxAclBytes = Infinity,
    isMemoryFull = (): boolean => false,
  } = {}) {
    this.tree = new Tree({ extendedTypes, digest: true })
    this.preparer = new Preparer({
      tree: this.tree,
      acls: new AclRules({ skipACL }),
      sessions: { check: () => (this.open ? 0 : ErrorCode.SESSIONEXPIRED) },
      enforceQuota,
      quotaRequiresAdmin,
      reconfigEnabled: false,
      maxAclBytes,
      onAclsFull: () => void this.breaches.push('access lists'),
      isMemoryFull,
      onMemoryFull: () => void this.breaches.push('memory'),
      onQuotaExceeded: (subject, { what, isHard, limit, use }) =>
        this.breaches.push(`${subject} ${isHard ? 'hard' : 'soft'} ${what} ${use} of ${limit}`),
    })
  }

  /** Prepares one request, or several as one multi, without applying the transaction. */
  prepare(ask: RequestSpec | readonly RequestSpec[]): Txn | number {
    const { type, body } = encodeRequest(ask)
    return this.prepareBytes(type, body)
  }

  /** Prepares a request with this body, which changes afterwards: the next request is read into the same bytes. */
  prepareBytes(type: number, body: Uint8Array): Txn | number {
    const prepared = this.prepareWith({ sessionId: 5n, type, identities: this.identities }, body, 1)
    return typeof prepared === 'number' ? prepared : prepared.txn
  }

  /** The same for any session and time. */
  prepareWith(
    request: Parameters<Preparer['prepare']>[0],
    body: Uint8Array,
    time: number,
  ): PreparedTxn | number {
    const prepared = this.preparer.prepare(request, new Reader(body), this.zxid + 1, time)
    body.fill(0xee)
    if (typeof prepared === 'number') return prepared
    this.zxid++
    this.digest = prepared.digest
    return prepared
  }

  /** Creates a node, with the mode of `flags`. */
  create(path: string, data?: string, flags: number = CreateMode.PERSISTENT): Txn | number {
    return this.apply({ op: 'create', path, flags, ...(data === undefined ? {} : { data }) })
  }

  dataOf(path: string): string {
    return new TextDecoder().decode(this.tree.dataOf(this.tree.find(path))!)
  }

  apply(ask: RequestSpec | readonly RequestSpec[]): Txn | number {
    const txn = this.prepare(ask)
    if (typeof txn === 'number') return txn
    this.tree.apply({ sessionId: 5n, cxid: 0, zxid: this.zxid, time: 1 }, txn)
    this.preparer.forgetApplied(this.zxid)
    return txn
  }
}

/** Returns the type and the body of a request, or of a multi of several. */
export function encodeRequest(ask: RequestSpec | readonly RequestSpec[]): { type: number; body: Uint8Array } {
  const w = new Writer()
  if ('op' in ask) {
    write(w, ask)
    return { type: OpCode[ask.op], body: w.take() }
  }
  for (const part of ask) {
    writeMultiHeader(w, { type: OpCode[part.op], done: false, err: -1 })
    write(w, part)
  }
  writeMultiHeader(w, { type: -1, done: true, err: -1 })
  return { type: OpCode.multi, body: w.take() }
}

const bytes = (text: string | undefined): Uint8Array | null =>
  text === undefined ? null : new TextEncoder().encode(text)

function write(
  w: Writer,
  { op, path, data, acl: list = OPEN_ACL_UNSAFE, flags = 0, ttl = 1n, version = -1 }: RequestSpec,
): void {
  const acl = list === null ? null : [...list]
  switch (op) {
    case 'delete':
      return writeDeleteRequest(w, { path, version })
    case 'setData':
      return writeSetDataRequest(w, { path, data: bytes(data), version })
    case 'setACL':
      return writeSetACLRequest(w, { path, acl, version })
    case 'check':
      return writeCheckVersionRequest(w, { path, version })
    case 'createTTL':
      return writeCreateTTLRequest(w, { path, data: bytes(data), acl, flags, ttl })
    case 'create':
    case 'create2':
    case 'createContainer':
      return writeCreateRequest(w, { path, data: bytes(data), acl, flags })
  }
}
