import { OpCode } from '@zabra/protocol'
import { silentLogger, type Logger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { createOf } from '../core/testing/create-of.ts'
import { OPEN_ACL_ID, Tree } from '../core/tree/index.ts'
import type { LoggedTxn, Txn, Zxid } from '../core/types.ts'
import type { RawTxn, Recovery } from '../persistence/index.ts'
import { encodeTxn, zxidOf } from './testing/database-fixture.ts'
import { TreeState } from './tree-state.ts'

/** A digest that no tree of these tests has. */
const WRONG = { hi: 1, lo: 1 }
const STAT = {
  czxid: 1,
  mzxid: 1,
  pzxid: 1,
  ctime: 1,
  mtime: 1,
  version: 0,
  cversion: 0,
  aversion: 0,
  owner: 0n,
}
const DIVERGED = 'the data of this server differ from the ensemble'

interface Given {
  readonly canCompareDigests?: boolean
  readonly isDigestEnabled?: boolean
}

/** The state of a server that has recovered the first transaction of epoch 1, and what it logs. */
function given({ canCompareDigests = true, isDigestEnabled = true }: Given = {}) {
  const lines: [object, string][] = []
  const note = (facts: object, sentence: string): void => void lines.push([facts, sentence])
  const logger: Logger = { ...silentLogger, info: note, warn: note }
  const state = new TreeState(recovery({ canCompareDigests }), logger, isDigestEnabled)
  return { state, lines }
}

const newTree = (): Tree => new Tree({ digest: true, extendedTypes: false })

function recovery({ canCompareDigests = true } = {}): Recovery {
  const tree = newTree()
  tree.apply({ sessionId: 7n, cxid: 1, zxid: zxidOf(1, 1), time: 1 }, createOf('/first'))
  return { tree, sessions: new SessionMap([[7n, 4000]]), canCompareDigests } as unknown as Recovery
}

const entry = (zxid: Zxid, txn: Txn, digest?: LoggedTxn['digest'], sessionId = 7n): RawTxn => ({
  zxid,
  payload: encodeTxn({ header: { sessionId, cxid: 1, zxid, time: 1 }, txn, digest }),
})

async function* entriesOf(...entries: RawTxn[]): AsyncGenerator<RawTxn> {
  yield* entries
}

describe('TreeState', () => {
  it('applies transactions to the tree and its sessions, and returns them', () => {
    const { state } = given()
    const opened = state.apply(
      entry(zxidOf(1, 2), { type: OpCode.createSession, timeOut: 5000 }, undefined, 8n).payload,
    )
    expect([opened.header.zxid, [...state.sessions]]).toEqual([
      zxidOf(1, 2),
      [
        [7n, 4000],
        [8n, 5000],
      ],
    ])
    state.apply(entry(zxidOf(1, 3), createOf('/a')).payload)
    expect(state.sessions.has(7n)).toBe(true)
    state.apply(entry(zxidOf(1, 4), { type: OpCode.closeSession, paths2Delete: [] }).payload)
    expect([state.tree.has('/a'), state.tree.lastZxid, [...state.sessions]]).toEqual([
      true,
      zxidOf(1, 4),
      [[8n, 5000]],
    ])
  })

  describe('compares the tree with the digest of a transaction', () => {
    const wrong = entry(zxidOf(1, 2), createOf('/a'), WRONG).payload

    it('and throws where they differ', () => {
      const { state } = given()
      expect(() => state.apply(wrong)).toThrow(DIVERGED)
    })

    it('but not where the digests of a recovery cannot be compared, until the tree is installed', () => {
      const { state } = given({ canCompareDigests: false })
      state.apply(wrong)
      state.installed()
      expect(() => state.apply(entry(zxidOf(1, 3), createOf('/b'), WRONG).payload)).toThrow(DIVERGED)
      state.load(recovery({ canCompareDigests: false }))
      state.apply(wrong)
      state.load(recovery())
      expect(() => state.apply(wrong)).toThrow(DIVERGED)
    })

    it('but not where digests are switched off', () => {
      const { state } = given({ isDigestEnabled: false })
      state.apply(wrong)
    })

    it('but not for a transaction without one', () => {
      const { state } = given()
      state.apply(entry(zxidOf(1, 2), createOf('/a')).payload)
    })

    it('but not for a transaction that the tree has already', () => {
      const { state } = given()
      state.apply(entry(zxidOf(1, 1), createOf('/first'), WRONG).payload)
    })

    it('but not in a tree that is received, until it is installed', () => {
      const { state } = given()
      state.replace({ tree: newTree(), sessions: new SessionMap(), nodesWithoutAcl: [] }, zxidOf(1, 1))
      state.apply(wrong)
      state.installed()
      expect(() => state.apply(entry(zxidOf(1, 3), createOf('/b'), WRONG).payload)).toThrow(DIVERGED)
    })

    it('until a tree with names beyond ASCII differs once, and warns then', () => {
      const { state, lines } = given()
      state.apply(entry(zxidOf(1, 2), createOf('/ä')).payload)
      expect(lines).toEqual([])
      for (const counter of [3, 4])
        state.apply(entry(zxidOf(1, counter), createOf(`/${counter}`), WRONG).payload)
      expect(lines).toEqual([[{ zxid: '100000003' }, expect.stringContaining('beyond ASCII')]])
      // Without such names, too: no later digest can agree.
      state.apply(entry(zxidOf(1, 5), { type: OpCode.delete, path: '/ä' }, WRONG).payload)
      expect(lines.length).toBe(1)
    })
  })

  it('knows the last transaction of the files while the tree is another one', () => {
    const { state } = given()
    expect([state.zxidOfFiles, state.isUninstalled, state.isWrong]).toEqual([undefined, false, false])
    const received = { tree: newTree(), sessions: new SessionMap([[9n, 1]]), nodesWithoutAcl: [] }
    state.replace(received, zxidOf(1, 1))
    // The second one replaces a tree that never was on disk.
    state.replace(received, zxidOf(1, 9))
    expect([state.zxidOfFiles, state.isUninstalled]).toEqual([zxidOf(1, 1), true])
    expect([state.tree, state.sessions]).toEqual([received.tree, received.sessions])
    state.isWrong = true
    state.installed()
    expect([state.zxidOfFiles, state.isUninstalled, state.isWrong]).toEqual([undefined, false, false])
    state.replace(received, zxidOf(1, 9))
    const loaded = recovery()
    state.load(loaded)
    expect([state.zxidOfFiles, state.tree, state.sessions]).toEqual([undefined, loaded.tree, loaded.sessions])
  })

  describe('catches up with the log', () => {
    const [second, third] = [
      entry(zxidOf(1, 2), { type: OpCode.createSession, timeOut: 5000 }, undefined, 8n),
      entry(zxidOf(1, 3), createOf('/a')),
    ]

    it('and says from where to where', async () => {
      const { state, lines } = given()
      await state.catchUp(entriesOf(second, third), zxidOf(1, 3))
      expect([state.tree.has('/a'), state.sessions.has(8n)]).toEqual([true, true])
      expect(lines).toEqual([
        [{ from: '100000001', to: '100000003', transactions: 2 }, expect.stringContaining('Applied')],
      ])
    })

    it('and rejects a log that does not continue where the tree ends', async () => {
      const { state } = given()
      await expect(state.catchUp(entriesOf(third), zxidOf(1, 3))).rejects.toThrow(
        'The log continues where the tree ends.',
      )
      expect(state.tree.lastZxid).toBe(zxidOf(1, 1))
    })

    it('and rejects a log that ends too early', async () => {
      const { state } = given()
      await expect(state.catchUp(entriesOf(second), zxidOf(1, 3))).rejects.toThrow(
        'A role leaves a tree that has all of its log.',
      )
    })
  })

  describe('rejects a tree with a node whose access list is nowhere', () => {
    const acl = [{ perms: 1, id: { scheme: 'world', id: 'anyone' } }]
    const receiving = (...nodesWithoutAcl: string[]) => {
      const { state } = given()
      const tree = newTree()
      // A node gets this number when its list is unknown.
      for (const path of ['/first', '/second']) tree.loadNode(path, null, OPEN_ACL_ID, STAT)
      tree.endLoad(zxidOf(1, 1))
      state.replace({ tree, sessions: new SessionMap(), nodesWithoutAcl }, 0)
      return state
    }

    it('naming the node', () => {
      const state = receiving('/gone', '/first')
      expect(() => state.rejectNodesWithoutAcl('/data')).toThrow('Expected the access list of /first')
    })

    it('unless a later transaction has deleted the node, or set its list', () => {
      receiving().rejectNodesWithoutAcl('/data')
      receiving('/gone').rejectNodesWithoutAcl('/data')
      const state = receiving('/first')
      state.apply(entry(zxidOf(1, 2), { type: OpCode.setACL, path: '/first', acl, version: 1 }).payload)
      state.rejectNodesWithoutAcl('/data')
    })

    it('unless the files are loaded again', () => {
      const state = receiving('/first')
      state.load(recovery())
      state.rejectNodesWithoutAcl('/data')
    })
  })
})
