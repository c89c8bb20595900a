import { CreateMode, OpCode, readCreateRequest, Reader } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import {
  belongsToSessionUsers,
  SESSION_USERS_NODE,
  sessionUserOf,
  sessionUserPath,
  sessionUserRequests,
  Tree,
} from './index.ts'

const SESSION = 0x1402ee0000n

function given(): { tree: Tree; create: (path: string, owner?: bigint, data?: string | null) => void } {
  const tree = new Tree({ extendedTypes: true, digest: false })
  const create = (path: string, owner = 0n, data: string | null = null): void => {
    const txn = createOf(path, {
      ephemeral: owner !== 0n,
      data: data === null ? null : new TextEncoder().encode(data),
    })
    tree.apply({ sessionId: owner, cxid: 1, zxid: tree.lastZxid + 1, time: 1 }, txn)
  }
  return { tree, create }
}

it('the node of a session is named by its id, of 16 hexadecimal digits', () => {
  expect(sessionUserPath(SESSION)).toBe('/zookeeper/sessions/0000001402ee0000')
  expect(sessionUserPath(-1n)).toBe('/zookeeper/sessions/ffffffffffffffff')
})

it.each([
  ['/zookeeper/sessions', true],
  ['/zookeeper/sessions/x', true],
  ['/zookeeper/sessions/x/y', true],
  ['/zookeeper/sessions-of-mine', false],
  ['/zookeeper', false],
  ['/zookeeper/quota/x/y', false],
  ['/zookeeper-sessions', false],
  ['/a/zookeeper/sessions', false],
])('%s is kept from clients: %s', (path, isKept) => {
  expect(belongsToSessionUsers(path)).toBe(isKept)
})

it('a session has the user that its own ephemeral node names', () => {
  const { tree, create } = given()
  for (const id of [SESSION, 0n]) expect(sessionUserOf(tree, id)).toBeUndefined()
  create(SESSION_USERS_NODE)
  create(sessionUserPath(SESSION), SESSION, 'proof')
  expect(new TextDecoder().decode(sessionUserOf(tree, SESSION))).toBe('proof')
  // A node that belongs to another session, or to none, proves nothing.
  create(sessionUserPath(7n), SESSION, 'proof')
  create(sessionUserPath(8n), 0n, 'proof')
  expect([sessionUserOf(tree, 7n), sessionUserOf(tree, 8n)]).toEqual([undefined, undefined])
  create(sessionUserPath(9n), 9n)
  expect(sessionUserOf(tree, 9n)).toEqual(new Uint8Array(0))
})

it('the proof of a user is stored in an ephemeral node that no client may use, whose parent is made first', () => {
  const { tree, create } = given()
  const proof = Uint8Array.of(1, 2, 3)
  const acl = [{ perms: 0, id: { scheme: 'world', id: 'anyone' } }]
  const requests = (): unknown[] =>
    sessionUserRequests(tree, SESSION, proof).map((body) => readCreateRequest(new Reader(body)))
  const folder = { path: SESSION_USERS_NODE, data: null, acl, flags: CreateMode.PERSISTENT }
  const node = { path: sessionUserPath(SESSION), data: proof, acl, flags: CreateMode.EPHEMERAL }
  expect(requests()).toEqual([folder, node])
  create(SESSION_USERS_NODE)
  expect(requests()).toEqual([node])
  tree.apply({ sessionId: 0n, cxid: 1, zxid: 9, time: 1 }, { type: OpCode.delete, path: SESSION_USERS_NODE })
  expect(requests()).toHaveLength(2)
})
