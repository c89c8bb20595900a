import {
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Perms,
  Reader,
  readStat,
  writeReconfigRequest,
  Writer,
  writeSetDataRequest,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { Preparer, type PreparerOptions } from '../prepare/index.ts'
import { createOf } from '../testing/create-of.ts'
import { CONFIGURATION_NODE, Tree } from '../tree/index.ts'
import type { SetDataTxn, Txn } from '../types.ts'
import { operationOf } from './table.ts'

function readerOf(write: (writer: Writer) => void): Reader {
  const writer = new Writer()
  write(writer)
  return new Reader(writer.take())
}

function replyTo(tree: Tree, txn: Txn, requested: number = txn.type): Reader {
  return readerOf((w) => operationOf(txn.type).writeReply!(tree, txn, requested, w))
}

describe('a reconfig', () => {
  const boss = { scheme: 'super', id: '' }

  /** Prepares reconfigurations of a tree with some options. */
  function given(options: Partial<PreparerOptions>, skipACL = true) {
    const tree = new Tree({ extendedTypes: true, digest: true })
    const preparer = new Preparer({
      tree,
      acls: new AclRules({ skipACL }),
      sessions: { check: () => 0 },
      enforceQuota: false,
      quotaRequiresAdmin: false,
      reconfigEnabled: true,
      maxAclBytes: Infinity,
      onAclsFull: () => {},
      isMemoryFull: () => false,
      onMemoryFull: () => {},
      onQuotaExceeded: () => {},
      ...options,
    })
    let zxid = 0
    const prepare = (type: number, body: Reader, identities = [boss]): unknown => {
      const prepared = preparer.prepare({ sessionId: 5n, type, identities }, body, ++zxid, 1)
      return typeof prepared === 'number' ? prepared : prepared.txn
    }
    const request = (): Reader =>
      readerOf((w) =>
        writeReconfigRequest(w, {
          joiningServers: 'server.1=a:1:2;3',
          leavingServers: null,
          newMembers: null,
          curConfigId: -1n,
        }),
      )
    const reconfig = (identities = [boss]): unknown => prepare(OpCode.reconfig, request(), identities)
    return { tree, prepare, reconfig }
  }
  const failed = (err: number): object => ({ type: OpCode.error, err })

  it('replaces the configuration by what its text and zxid give, and the version stays as it is', () => {
    const { prepare, reconfig } = given({
      reconfigure: ({ joiningServers }, zxid) => `${joiningServers} ${zxid}`,
    })
    expect(reconfig()).toEqual({
      type: OpCode.reconfig,
      path: CONFIGURATION_NODE,
      data: new TextEncoder().encode('server.1=a:1:2;3 1'),
      version: -1,
    })
    const set = readerOf((w) => writeSetDataRequest(w, { path: CONFIGURATION_NODE, data: null, version: -1 }))
    expect(prepare(OpCode.setData, set)).toMatchObject({ version: 0 })
  })

  it('is refused where it is disabled, has no effect, cannot be done, or is not allowed', () => {
    const reconfigure = (): string => 'members'
    expect(given({ reconfigure, reconfigEnabled: false }).reconfig()).toEqual(
      failed(ErrorCode.RECONFIGDISABLED),
    )
    expect(given({}).reconfig()).toEqual(failed(ErrorCode.UNIMPLEMENTED))
    expect(given({ reconfigure: () => ErrorCode.RECONFIGINPROGRESS }).reconfig()).toEqual(
      failed(ErrorCode.RECONFIGINPROGRESS),
    )
    const { reconfig } = given({ reconfigure }, false)
    expect(reconfig([{ scheme: 'ip', id: '10.0.0.1' }])).toEqual(failed(ErrorCode.NOAUTH))
    expect(reconfig()).toMatchObject({ type: OpCode.reconfig })
  })

  it('is answered with the new configuration and its stat', () => {
    const { tree } = given({})
    const data = new TextEncoder().encode('members')
    const txn: SetDataTxn = { type: OpCode.reconfig, path: CONFIGURATION_NODE, data, version: -1 }
    tree.apply({ sessionId: 5n, cxid: 1, zxid: 7, time: 1 }, txn)
    const reply = replyTo(tree, txn)
    expect(reply.buffer()).toEqual(data)
    expect(readStat(reply)).toMatchObject({ mzxid: 7n, version: -1, dataLength: data.length })
    expect(reply.remaining).toBe(0)
  })
})

describe('the reply to', () => {
  const tree = new Tree({ extendedTypes: true, digest: true })
  const apply = (zxid: number, txn: Txn): number => tree.apply({ sessionId: 5n, cxid: 1, zxid, time: 1 }, txn)

  it('a creation is its path, and its stat unless the request was create', () => {
    const txn = createOf('/a')
    apply(1, txn)
    const plain = replyTo(tree, txn)
    expect([plain.string(), plain.remaining]).toEqual(['/a', 0])
    for (const requested of [OpCode.create2, OpCode.createContainer, OpCode.createTTL]) {
      const reply = replyTo(tree, txn, requested)
      expect([reply.string(), readStat(reply).czxid, reply.remaining]).toEqual(['/a', 1n, 0])
    }
  })

  it('a change of data or of an access control list is the stat', () => {
    const set: Txn = { type: OpCode.setData, path: '/a', data: new Uint8Array(3), version: 4 }
    apply(2, set)
    expect(readStat(replyTo(tree, set))).toMatchObject({ mzxid: 2n, version: 4, dataLength: 3 })
    const acl = OPEN_ACL_UNSAFE.map(({ id }) => ({ perms: Perms.READ, id }))
    const list: Txn = { type: OpCode.setACL, path: '/a', acl, version: 5 }
    apply(3, list)
    expect(readStat(replyTo(tree, list))).toMatchObject({ aversion: 5, version: 4 })
  })
})
