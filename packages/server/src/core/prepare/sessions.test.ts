import { CreateMode, ErrorCode, OpCode, OPEN_ACL_UNSAFE } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { runToEnd } from '../steps.ts'
import type { PreparedTxn } from './types.ts'
import { PreparerFixture, failure, only } from './testing/preparer-fixture.ts'

const { CONTAINER, EPHEMERAL, PERSISTENT_WITH_TTL } = CreateMode

function applyPrepared(fixture: PreparerFixture, { txn, digest }: PreparedTxn): void {
  fixture.tree.apply({ sessionId: 5n, cxid: 0, zxid: ++fixture.zxid, time: 1 }, txn)
  expect(fixture.preparer.forgetApplied(fixture.zxid)).toBe(true)
  expect(fixture.tree.matches(digest!)).toBe(true)
}

const close = (fixture: PreparerFixture, session = 5n): PreparedTxn =>
  runToEnd(fixture.preparer.closeSession(session, fixture.zxid + 1))
const ephemeral = (path: string) => ({ op: 'create', path, flags: EPHEMERAL }) as const

describe('the end of a session', () => {
  it('removes its ephemeral nodes, and no others', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/p', '/p/plain']) fixture.create(path)
    for (const path of ['/e', '/p/a', '/p/b']) fixture.apply(ephemeral(path))
    expect(close(fixture, 6n).txn).toEqual({ type: OpCode.closeSession, paths2Delete: [] })
    const closed = close(fixture)
    expect(closed.txn).toEqual({ type: OpCode.closeSession, paths2Delete: ['/e', '/p/a', '/p/b'] })
    expect(closed).toMatchObject({ node: undefined, crc: 0 })
    // What is prepared before the end is applied sees it.
    expect(fixture.prepare({ op: 'setData', path: '/e' })).toEqual(failure(ErrorCode.NONODE))
    expect(fixture.preparer.hasPendingChange('/p/a')).toBe(true)
    fixture.zxid--
    applyPrepared(fixture, closed)
    expect(fixture.preparer.pendingNodes).toBe(0)
    expect(fixture.preparer.hasPendingChange('/p/a')).toBe(false)
    expect(fixture.tree.find('/p/b')).toBe(-1)
    expect(fixture.apply({ op: 'delete', path: '/p/plain' })).toMatchObject({ path: '/p/plain' })
    expect(fixture.apply({ op: 'delete', path: '/p' })).toMatchObject({ path: '/p' })
  })

  it('removes pending nodes, but none that a pending change has removed or another session has created again', () => {
    const fixture = new PreparerFixture()
    for (const path of ['/a', '/b']) fixture.apply(ephemeral(path))
    fixture.prepare({ op: 'delete', path: '/a' })
    fixture.prepare({ op: 'delete', path: '/b' })
    fixture.prepare({ op: 'create', path: '/b' })
    fixture.prepare(ephemeral('/c'))
    fixture.prepare(ephemeral('/d'))
    fixture.prepare({ op: 'delete', path: '/d' })
    expect(close(fixture).txn).toEqual({ type: OpCode.closeSession, paths2Delete: ['/c'] })
  })

  it('lets another session create the same node before it is applied, which stays pending after it', () => {
    const fixture = new PreparerFixture()
    fixture.apply(ephemeral('/e'))
    const closed = close(fixture)
    applyPreparedLater(fixture, closed)
    expect(fixture.preparer.hasPendingChange('/e')).toBe(true)
    expect(fixture.prepare({ op: 'create', path: '/e' })).toEqual(failure(ErrorCode.NODEEXISTS))
    expect(close(fixture, 6n).txn).toMatchObject({ paths2Delete: [] })
  })

  it('pauses between every 100 nodes', () => {
    const fixture = new PreparerFixture()
    for (let n = 0; n < 200; n++) fixture.apply(ephemeral(`/e${n}`))
    const steps = fixture.preparer.closeSession(5n, fixture.zxid + 1)
    let pauses = 0
    while (steps.next().done !== true) pauses++
    expect(pauses).toBe(1)
  })
})

/** Prepares a creation of `/e` after the end of a session, and applies only the latter. */
function applyPreparedLater(fixture: PreparerFixture, { txn, digest }: PreparedTxn): void {
  fixture.zxid++
  expect(fixture.prepare({ op: 'create', path: '/e' })).toMatchObject({ path: '/e' })
  fixture.tree.apply({ sessionId: 5n, cxid: 0, zxid: fixture.zxid - 1, time: 1 }, txn)
  expect(fixture.tree.matches(digest!)).toBe(true)
  fixture.preparer.forgetApplied(fixture.zxid - 1)
}

describe('the beginning of a session', () => {
  it('changes no node, and has the digest of the tree', () => {
    const fixture = new PreparerFixture()
    const created = fixture.preparer.createSession(4000)
    expect(created).toMatchObject({
      txn: { type: OpCode.createSession, timeOut: 4000 },
      node: undefined,
      crc: 0,
    })
    expect(fixture.tree.matches(created.digest!)).toBe(true)
  })
})

describe('the removal of a container or a node with a TTL', () => {
  const remove = (fixture: PreparerFixture, path: string): PreparedTxn =>
    fixture.preparer.deleteContainer(path, fixture.zxid + 1)

  it('is a transaction like any other', () => {
    const fixture = new PreparerFixture()
    fixture.apply({ op: 'createContainer', path: '/c', flags: CONTAINER, acl: only(0) })
    fixture.apply({ op: 'createTTL', path: '/t', flags: PERSISTENT_WITH_TTL, acl: OPEN_ACL_UNSAFE })
    for (const path of ['/c', '/t']) {
      const removed = remove(fixture, path)
      expect(removed).toMatchObject({ txn: { type: OpCode.deleteContainer, path }, node: undefined })
      expect(remove(fixture, path).txn).toEqual(failure(ErrorCode.NONODE))
      applyPrepared(fixture, removed)
      expect(fixture.tree.find(path)).toBe(-1)
    }
  })

  it.each([
    ['/none', ErrorCode.NONODE],
    ['/none/x', ErrorCode.NONODE],
    ['/full', ErrorCode.NOTEMPTY],
    ['/full/plain', ErrorCode.BADVERSION],
    ['/e', ErrorCode.BADVERSION],
  ])('of %s fails', (path, err) => {
    const fixture = new PreparerFixture()
    fixture.apply({ op: 'createContainer', path: '/full', flags: CONTAINER })
    fixture.create('/full/plain')
    fixture.apply(ephemeral('/e'))
    expect(remove(fixture, path)).toEqual({ txn: failure(err), digest: undefined, node: undefined, crc: 0 })
  })
})
