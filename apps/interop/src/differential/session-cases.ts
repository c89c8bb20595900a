import { bytes } from '../harness/bytes.ts'
import { connectRequest, createBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { request, type Request, type Step, type AddCase } from './case.ts'
import * as r from './requests.ts'

/** Handshakes, session resumption, xids, pipelines and errors that end a connection. */
export function sessionCases(add: AddCase): void {
  handshakes(add)
  resumption(add)
  xids(add)
  pipelines(add)
  special(add)
}

function handshakes(add: AddCase): void {
  const request = (
    timeout: number,
    password: Uint8Array | null,
    version = 0,
    zxid: bigint = 0n,
    id: bigint = 0n,
  ): Buffer => bytes().int(version).long(zxid).int(timeout).long(id).buffer(password).done()
  const zeros = Buffer.alloc(16)
  const readOnly = (value: number): Buffer => Buffer.from([value])
  const bodies: Record<string, Buffer> = {
    usual: connectRequest(),
    'no readOnly byte': request(10_000, zeros),
    'readOnly set': Buffer.concat([request(10_000, zeros), readOnly(1)]),
    'readOnly 2': Buffer.concat([request(10_000, zeros), readOnly(2)]),
    'trailing bytes': Buffer.concat([request(10_000, zeros), readOnly(0), Buffer.from('junk')]),
    'protocol version 7': Buffer.concat([request(10_000, zeros, 7), readOnly(0)]),
    'negative protocol version': Buffer.concat([request(10_000, zeros, -1), readOnly(0)]),
    'negative zxid': Buffer.concat([request(10_000, zeros, 0, -5n), readOnly(0)]),
    'a zxid from the future': Buffer.concat([request(10_000, zeros, 0, 2n ** 62n), readOnly(0)]),
    'null password': Buffer.concat([request(10_000, null), readOnly(0)]),
    'null password and no readOnly byte': request(10_000, null),
    'empty password': Buffer.concat([request(10_000, Buffer.alloc(0)), readOnly(0)]),
    'password of 4': Buffer.concat([request(10_000, Buffer.alloc(4)), readOnly(0)]),
    'password of 20': Buffer.concat([request(10_000, Buffer.alloc(20)), readOnly(0)]),
    'password of 15 and readOnly': Buffer.concat([request(10_000, Buffer.alloc(15)), readOnly(0)]),
    'unknown session': Buffer.concat([request(10_000, zeros, 0, 0n, 12345n), readOnly(0)]),
    'unknown session without readOnly byte': request(10_000, zeros, 0, 0n, -12345n),
    'cut after the version': Buffer.alloc(4),
    'cut in the password': request(10_000, zeros).subarray(0, 40),
    'password length -2': bytes().int(0).long(0).int(10_000).long(0).int(-2).done(),
    'password length of 2 GiB': bytes().int(0).long(0).int(10_000).long(0).int(2147483647).done(),
    'one byte': Buffer.alloc(1),
  }
  for (const [name, body] of Object.entries(bodies))
    add(`handshake: ${name}`, () => [{ do: 'connect', on: 'h', body }])
  for (const timeout of [-2147483648, -1, 0, 1, 3999, 4000, 4001, 39_999, 40_000, 40_001, 2147483647]) {
    add(`handshake with timeout ${timeout}`, () => [
      { do: 'connect', on: 'h', body: connectRequest({ timeoutMs: timeout }) },
    ])
  }
  for (const length of [0, -1, 1_048_576, 2147483647]) {
    add(`first frame of length ${length}`, () => [
      { do: 'connect', on: 'h', asIs: true, body: bytes().int(length).done() },
    ])
  }
  add('an unknown four-letter word', () => [
    { do: 'connect', on: 'h', asIs: true, body: Buffer.from('abcd') },
  ])
  add('a four-letter word behind the handshake', () => [
    r.whoAmI(),
    { do: 'raw', on: 'a', bytes: Buffer.from('ruok') },
  ])
}

function resumption(add: AddCase): void {
  add('a dropped connection is resumed', (root) => [
    r.create(`${root}/e`, '', 1),
    { do: 'drop', on: 'a' },
    { do: 'resume', on: 'a2', of: 'a' },
    r.exists(`${root}/e`, false, 'a2'),
    r.close('a2'),
    r.exists(`${root}/e`, false, 'b'),
  ])
  add('a live connection is taken over', (root) => [
    r.create(`${root}/e`, '', 1),
    { do: 'resume', on: 'a2', of: 'a', timeoutMs: 9000 },
    r.ephemerals('/', 'a2'),
    r.close('a2'),
  ])
  add('a wrong password is refused', (root) => [
    r.create(`${root}/e`, '', 1),
    { do: 'drop', on: 'a' },
    { do: 'resume', on: 'a2', of: 'a', spoil: true },
    { do: 'resume', on: 'a3', of: 'a' },
    r.exists(`${root}/e`, false, 'a3'),
    r.close('a3'),
  ])
  add('a closed session is not resumed', () => [r.close(), { do: 'resume', on: 'a2', of: 'a' }])
  add('identities end with the connection', () => [
    r.auth('digest', 'bob:pw'),
    { do: 'drop', on: 'a' },
    { do: 'resume', on: 'a2', of: 'a' },
    r.whoAmI('a2'),
    r.close('a2'),
  ])
}

function xids(add: AddCase): void {
  for (const xid of [0, -1, -2, -4, -8, -2147483648, 2147483647]) {
    add(`xid ${xid} is echoed`, (root) => [
      request(op.exists, r.watchBody(root, false), 'a', xid),
      request(op.setData, bytes().str(root).buffer('x').int(-1).done(), 'a', xid),
      request(op.whoAmI, Buffer.alloc(0), 'a', xid),
      request(op.auth, bytes().int(3).str('digest').buffer('u:p').done(), 'a', xid),
    ])
    add(`ping with xid ${xid}`, () => [request(op.ping, Buffer.alloc(0), 'a', xid)])
    add(`closeSession with xid ${xid}`, () => [request(op.closeSession, Buffer.alloc(0), 'b', xid)])
  }
}

function pipelines(add: AddCase): void {
  const make = (path: string, xid: number, flags = 0): Request => ({
    type: op.create,
    body: createBody(path, '', flags),
    xid,
  })
  const look = (path: string, xid: number): Request => ({
    type: op.getChildren2,
    body: r.watchBody(path, true),
    xid,
  })
  const remove = (path: string, xid: number): Request => ({
    type: op.delete,
    body: r.versionBody(path, -1),
    xid,
  })
  const pipelineOf: Record<string, (root: string) => Request[]> = {
    'create, read, delete, read': (root) => [
      make(`${root}/a`, 1),
      look(root, 2),
      remove(`${root}/a`, 3),
      look(root, 4),
    ],
    'dependent creates': (root) => [
      make(`${root}/a`, 1),
      make(`${root}/a/b`, 2),
      make(`${root}/a/b/c`, 3),
      look(`${root}/a/b`, 4),
    ],
    'failures between successes': (root) => [
      make(`${root}/x/y`, 1),
      make(`${root}/x`, 2),
      make(`${root}/x`, 3),
      remove(`${root}/none`, 4),
      remove(`${root}/x`, 5),
    ],
    'equal xids': (root) => [make(`${root}/a`, 7), make(`${root}/b`, 7), look(root, 7)],
    'closeSession in the middle': (root) => [
      make(`${root}/e`, 1, 1),
      { type: op.closeSession, body: Buffer.alloc(0), xid: 2 },
    ],
    'sequential creates': (root) =>
      Array.from({ length: 30 }, (_, index) => make(`${root}/s-`, index + 1, 2)),
    'a ping between writes': (root) => [
      make(`${root}/a`, 1),
      { type: op.ping, body: Buffer.alloc(0), xid: -2 },
      make(`${root}/b`, 2),
    ],
    'versions that build on each other': (root) =>
      [0, 1, 2, 5].map((version, index) => ({
        type: op.setData,
        body: bytes().str(root).buffer('x').int(version).done(),
        xid: index + 1,
      })),
    'a malformed request in the middle': (root) => [
      make(`${root}/a`, 1),
      { type: op.getData, body: Buffer.from('00', 'hex'), xid: 2 },
      make(`${root}/b`, 3),
    ],
  }
  for (const [name, requests] of Object.entries(pipelineOf)) {
    add(`pipeline: ${name}`, (root): Step[] => [
      { do: 'pipeline', on: 'a', requests: requests(root) },
      r.list2(root, false, 'b'),
    ])
  }
  add('requests behind the handshake in one write', (root) => {
    const look = bytes().int(3).int(op.exists).raw(r.watchBody(root, false)).done()
    const hello = connectRequest()
    const whole = bytes().int(hello.length).raw(hello).int(look.length).raw(look).done()
    return [{ do: 'connect', on: 'h', asIs: true, body: whole, behind: [[3, op.exists]] }, r.whoAmI('h')]
  })
}

function special(add: AddCase): void {
  add('sync echoes its path', (root) => [r.sync(root), r.sync('/none'), r.sync(null), r.sync('')])
  add('sasl without configuration', () => [
    request(op.sasl, bytes().buffer('').done()),
    request(op.sasl, bytes().buffer(null).done()),
    request(op.sasl, bytes().buffer('abc').done()),
    r.whoAmI(),
  ])
  add('reconfig while disabled', () => [
    request(op.reconfig, bytes().str(null).str('3').str(null).long(-1).done()),
  ])
  add('reconfig by the super user while disabled', () => [
    r.auth('digest', 'super:secret'),
    request(op.reconfig, bytes().str(null).str('3').str(null).long(-1).done()),
  ])
  add('check outside of a multi that fails', (root) => [request(op.check, r.versionBody(`${root}/none`, -1))])
  add('deleteContainer from a client', (root) => [
    r.create(`${root}/n`),
    request(op.deleteContainer, r.pathBody(`${root}/n`)),
    r.exists(`${root}/n`, false, 'b'),
  ])
  add('whoAmI of a new connection', () => [r.whoAmI()])
  add('the nodes that exist from the beginning', () => [
    r.exists('/zookeeper/quota/none'),
    r.getAcl('/zookeeper/quota'),
    r.getAcl('/zookeeper/config'),
  ])
  for (const type of [-2147483648, -12, -1, 0, 10, 23, 24, 55, 99, 108, 109, 1000, 2147483647]) {
    add(`unknown opcode ${type}`, (root) => [
      request(type, r.watchBody(root, false)),
      r.exists(root, false, 'b'),
    ])
  }
}
