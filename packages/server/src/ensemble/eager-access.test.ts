import { ErrorCode, OpCode, Perms, writeCreateRequest, writeSetACLRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

const readOnly = [{ perms: Perms.READ, id: { scheme: 'world', id: 'anyone' } }]
const nonsense = [{ perms: Perms.ALL, id: { scheme: 'nonsense', id: 'x' } }]

it.each([
  [true, 'none', 1],
  [false, 'one each', 7],
])(
  'writes refused by any member take zxids with enableEagerACLCheck=%s: %s',
  async (eagerAclCheck, _, taken) => {
    const ensemble = await Ensemble.start(3, { eagerAclCheck })
    for (const id of [1, 2, 3]) {
      const client = await ensemble.client(id)
      const path = `/n${id}`
      client.ask(1, OpCode.create, (w) =>
        writeCreateRequest(w, { path, data: null, acl: readOnly, flags: 0 }),
      )
      client.read(2, OpCode.exists, path)
      await ensemble.advance(100)
      const before = client.replies().at(-1)!.zxid
      client.set(3, path, 'x')
      client.create(4, `${path}/x`)
      client.ask(5, OpCode.create2, (w) =>
        writeCreateRequest(w, { path: `${path}/y`, data: null, acl: readOnly, flags: 0 }),
      )
      client.ask(6, OpCode.delete, (w) => {
        w.string(`${path}/x`)
        w.int(-1)
      })
      client.ask(7, OpCode.setACL, (w) => writeSetACLRequest(w, { path, acl: readOnly, version: -1 }))
      client.ask(8, OpCode.create, (w) =>
        writeCreateRequest(w, { path: '/z', data: null, acl: nonsense, flags: 0 }),
      )
      client.set(9, '/none', 'x')
      client.read(10, OpCode.exists, path)
      await ensemble.advance(100)
      const replies = client.replies()
      const { NOAUTH, INVALIDACL, NONODE } = ErrorCode
      expect(replies.map(({ err }) => err)).toEqual([
        NOAUTH,
        NOAUTH,
        NOAUTH,
        NOAUTH,
        NOAUTH,
        INVALIDACL,
        NONODE,
        0,
      ])
      // The set of a node that does not exist is judged when it is prepared.
      expect(replies.at(-1)!.zxid - before).toBe(taken)
    }
  },
)
