import { bytes, openAcl } from '../harness/bytes.ts'
import { createBody, multiBody, type MultiPart } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { request, type AddCase } from './case.ts'
import * as r from './requests.ts'

const { part } = r

export function multiCases(add: AddCase): void {
  const good: Record<string, (root: string) => MultiPart[]> = {
    nothing: () => [],
    'one create': (root) => [part.create(`${root}/a`)],
    'a life': (root) => [
      part.create(`${root}/a`),
      part.set(`${root}/a`, 0),
      part.check(`${root}/a`, 1),
      part.delete(`${root}/a`, 1),
    ],
    'parent and child': (root) => [
      part.create(`${root}/a`),
      part.create(`${root}/a/b`),
      part.create(`${root}/a/b/c`),
    ],
    'delete children first': (root) => [
      part.create(`${root}/a`),
      part.create(`${root}/a/b`),
      part.delete(`${root}/a/b`),
      part.delete(`${root}/a`),
    ],
    'all kinds of create': (root) => [
      part.create(`${root}/a`, 0),
      part.create2(`${root}/b`),
      part.container(`${root}/c`),
      part.ttl(`${root}/t`),
      part.create(`${root}/e`, 1),
    ],
    'create with container flags': (root) => [part.create(`${root}/a`, 4), part.create2(`${root}/b`, 4)],
    'createContainer with flags 0': (root) => [part.container(`${root}/c`, 0)],
    'createTTL with plain flags': (root) => [
      part.ttl(`${root}/a`, 0),
      part.ttl(`${root}/b`, 1),
      part.ttl(`${root}/c`, 2),
      part.ttl(`${root}/d`, 3),
    ],
    'two sets': (root) => [part.set(root, 0), part.set(root, 1)],
    'create, delete, create': (root) => [
      part.create(`${root}/a`),
      part.delete(`${root}/a`),
      part.create(`${root}/a`),
    ],
    'checks only': (root) => [part.check(root), part.check(root, 0), part.check('/')],
  }
  for (const [name, parts] of Object.entries(good)) {
    add(`multi of ${name}`, (root) => [r.multi(parts(root)), r.list2(root)])
  }
  const bad: Record<string, (root: string) => MultiPart> = {
    'create of what exists': (root) => part.create(root),
    'create below nothing': (root) => part.create(`${root}/none/x`),
    'create with a bad path': () => part.create('x'),
    'create with a null path': () => part.create(null),
    'create with an empty ACL': (root) => part.create(`${root}/y`, 0, []),
    'create with a null ACL': (root) => part.create(`${root}/y`, 0, null),
    'delete of nothing': (root) => part.delete(`${root}/none`),
    'delete with a wrong version': (root) => part.delete(root, 9),
    'delete of a parent': (root) => part.delete(root),
    'delete of the root': () => part.delete('/'),
    'set of nothing': (root) => part.set(`${root}/none`),
    'set with a wrong version': (root) => part.set(root, 9),
    'check of nothing': (root) => part.check(`${root}/none`),
    'check with a wrong version': (root) => part.check(root, 9),
    'check of a bad path': () => part.check('x'),
    'a child of an ephemeral node': (root) => part.create(`${root}/e/x`),
    'TTL too large': (root) => part.ttl(`${root}/t`, 5, 2n ** 41n),
    'TTL zero': (root) => part.ttl(`${root}/t`, 5, 0n),
    'TTL with illegal flags': (root) => part.ttl(`${root}/t`, 9, 5n),
  }
  for (const [name, failing] of Object.entries(bad)) {
    for (const position of [0, 1, 2]) {
      add(`multi that fails at ${position}: ${name}`, (root) => {
        const parts = [part.create(`${root}/a`), part.set(`${root}/kept`)]
        parts.splice(position, 0, failing(root))
        return [
          r.create(`${root}/kept`),
          r.create(`${root}/e`, '', 1),
          r.multi(parts),
          r.list2(root),
          r.exists(`${root}/kept`),
          r.create(`${root}/after`),
        ]
      })
    }
  }
  for (const flags of [5, 6, 7, -1]) {
    add(`multi with a create of flags ${flags}`, (root) => [
      r.multi([part.check(root), part.create(`${root}/a`, flags)]),
    ])
    add(`multi with a create2 of flags ${flags}`, (root) => [r.multi([part.create2(`${root}/a`, flags)])])
    add(`multi with a createContainer of flags ${flags}`, (root) => [
      r.multi([part.container(`${root}/a`, flags)]),
    ])
  }
  illegal(add)
  reads(add)
  shapes(add)
}

function illegal(add: AddCase): void {
  const types = [
    op.exists,
    op.getACL,
    op.setACL,
    op.sync,
    op.ping,
    op.getChildren2,
    op.multi,
    op.reconfig,
    op.checkWatches,
    op.deleteContainer,
    op.auth,
    op.closeSession,
    op.createSession,
    0,
    -1,
    55,
  ]
  for (const type of types) {
    add(`multi with an operation of type ${type}`, (root) => [
      r.multi([part.create(`${root}/a`), [type, r.watchBody(root, false)]]),
      r.list2(root),
    ])
    add(`multiRead with an operation of type ${type}`, (root) => [
      r.multiRead([part.get(root), [type, r.watchBody(root, false)]]),
    ])
  }
  add('multi of reads', (root) => [r.multi([part.get(root), part.list(root)])])
  add('multi of a write and a read', (root) => [r.multi([part.set(root), part.get(root)]), r.exists(root)])
  add('multi of a read and a write', (root) => [r.multi([part.get(root), part.set(root)]), r.exists(root)])
  add('multiRead of a write', (root) => [r.multiRead([part.set(root)]), r.exists(root)])
  add('multiRead of a read and a write', (root) => [
    r.multiRead([part.get(root), part.set(root)]),
    r.exists(root),
  ])
}

function reads(add: AddCase): void {
  add('multiRead of nothing', () => [r.multiRead([])])
  add('multiRead of data and children', (root) => [
    r.create(`${root}/c`, null),
    r.multiRead([part.get(root), part.list(root), part.get(`${root}/c`)]),
  ])
  add('multiRead goes on behind a failure', (root) => [
    r.multiRead([part.get(`${root}/none`), part.list(`${root}/none`), part.get(root)]),
  ])
  add('multiRead behind a pipelined write', (root) => [
    {
      do: 'pipeline',
      on: 'a',
      requests: [
        { type: op.setData, body: bytes().str(root).buffer('new').int(-1).done(), xid: 5 },
        { type: op.multiRead, body: multiBody([part.get(root)]), xid: 6 },
      ],
    },
  ])
}

function shapes(add: AddCase): void {
  const head = (type: number, done: boolean, err: number): Buffer =>
    bytes().int(type).bool(done).int(err).done()
  const make = (root: string): Buffer =>
    Buffer.concat([head(op.create, false, -1), createBody(`${root}/a`, 'x', 0, openAcl)])
  const bodies: Record<string, (root: string) => Buffer> = {
    'no end marker': (root) => make(root),
    'an end marker cut short': (root) => Buffer.concat([make(root), head(-1, true, -1).subarray(0, 7)]),
    'bytes behind the end': (root) =>
      Buffer.concat([make(root), head(-1, true, -1), Buffer.from('0badcafe', 'hex')]),
    'an end marker with another type': (root) => Buffer.concat([make(root), head(op.create, true, 0)]),
    'odd values in the headers': (root) =>
      Buffer.concat([head(op.create, false, 77), createBody(`${root}/a`), head(9, true, 99)]),
    'an end marker with done = 2': (root) =>
      Buffer.concat([make(root), bytes().int(-1).bool(2).int(-1).done()]),
    'a header alone': () => head(op.create, false, -1),
    'an operation cut short': (root) => make(root).subarray(0, 30),
  }
  for (const [name, body] of Object.entries(bodies)) {
    add(`multi with ${name}`, (root) => [request(op.multi, body(root)), r.list2(root)])
    add(`multiRead with ${name}`, (root) => [request(op.multiRead, body(root)), r.list2(root)])
  }
  add('a multi of two hundred', (root) => [
    r.multi(Array.from({ length: 200 }, (_, index) => part.create(`${root}/${index}`))),
    r.count(root),
  ])
}
