import { bytes, openAcl } from '../harness/bytes.ts'
import { createBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { request, type AddCase } from './case.ts'
import * as r from './requests.ts'

/** A well-formed body for every operation, which the cases truncate, extend and corrupt. */
const wellFormed: Record<string, { type: number; body: (root: string) => Buffer }> = {
  create: { type: op.create, body: (root) => createBody(`${root}/n`, 'abc') },
  create2: { type: op.create2, body: (root) => createBody(`${root}/n`, 'abc') },
  createContainer: { type: op.createContainer, body: (root) => createBody(`${root}/n`, 'abc', 4) },
  createTTL: { type: op.createTTL, body: (root) => r.ttlBody(`${root}/n`, 5, 60_000n) },
  delete: { type: op.delete, body: (root) => r.versionBody(root, -1) },
  exists: { type: op.exists, body: (root) => r.watchBody(root, false) },
  getData: { type: op.getData, body: (root) => r.watchBody(root, false) },
  setData: { type: op.setData, body: (root) => bytes().str(root).buffer('abc').int(-1).done() },
  getACL: { type: op.getACL, body: (root) => r.pathBody(root) },
  setACL: { type: op.setACL, body: (root) => bytes().str(root).acl(openAcl).int(-1).done() },
  getChildren: { type: op.getChildren, body: (root) => r.watchBody(root, false) },
  getChildren2: { type: op.getChildren2, body: (root) => r.watchBody(root, false) },
  sync: { type: op.sync, body: (root) => r.pathBody(root) },
  reconfig: { type: op.reconfig, body: () => bytes().str(null).str('3').str(null).long(-1).done() },
  checkWatches: { type: op.checkWatches, body: (root) => r.versionBody(root, 3) },
  removeWatches: { type: op.removeWatches, body: (root) => r.versionBody(root, 3) },
  auth: { type: op.auth, body: () => bytes().int(0).str('digest').buffer('u:p').done() },
  setWatches: {
    type: op.setWatches,
    body: (root) =>
      bytes()
        .long(2n ** 50n)
        .strings([root])
        .strings([])
        .strings([])
        .done(),
  },
  setWatches2: {
    type: op.setWatches2,
    body: (root) =>
      bytes()
        .long(2n ** 50n)
        .strings([root])
        .strings([])
        .strings([])
        .strings([])
        .strings([])
        .done(),
  },
  sasl: { type: op.sasl, body: () => bytes().buffer('abc').done() },
  getEphemerals: { type: op.getEphemerals, body: (root) => r.pathBody(root) },
  getAllChildrenNumber: { type: op.getAllChildrenNumber, body: (root) => r.pathBody(root) },
  addWatch: { type: op.addWatch, body: (root) => r.versionBody(root, 0) },
}

export function malformedCases(add: AddCase): void {
  for (const [name, { type, body }] of Object.entries(wellFormed)) {
    const corruptions: Record<string, (whole: Buffer) => Buffer> = {
      'an empty body': () => Buffer.alloc(0),
      'one byte': (whole) => whole.subarray(0, 1),
      'its last byte missing': (whole) => whole.subarray(0, -1),
      'half a body': (whole) => whole.subarray(0, whole.length >> 1),
      'bytes behind its end': (whole) => Buffer.concat([whole, Buffer.from('00ff', 'hex')]),
      'a first length of -2': (whole) => Buffer.concat([bytes().int(-2).done(), whole.subarray(4)]),
      'a first length of 2 GiB': (whole) =>
        Buffer.concat([bytes().int(2147483647).done(), whole.subarray(4)]),
    }
    for (const [what, change] of Object.entries(corruptions)) {
      add(`${name} with ${what}`, (root) => [request(type, change(body(root))), r.exists(root, false, 'b')])
    }
  }
  for (const length of [1, 4, 7]) {
    add(`a frame of ${length} bytes`, (root) => [
      r.exists(root),
      { do: 'raw', on: 'a', bytes: bytes().int(length).raw(Buffer.alloc(length)).done() },
    ])
  }
  for (const count of [-2, -2147483648, 2, 1000, 2147483647]) {
    add(`create with ${count} ACL entries announced`, (root) => [
      request(
        op.create,
        bytes().str(`${root}/n`).buffer('').int(count).raw(createBody('', '').subarray(12)).done(),
      ),
    ])
    add(`setWatches with ${count} paths announced`, (root) => [
      request(
        op.setWatches,
        bytes()
          .long(2n ** 50n)
          .int(count)
          .str(root)
          .strings([])
          .strings([])
          .done(),
      ),
    ])
  }
  for (const value of [2, 127, 255]) {
    add(`a watch flag of ${value}`, (root) => [
      request(op.exists, bytes().str(root).bool(value).done()),
      r.set(root),
    ])
  }
  for (const extra of [Buffer.alloc(1), Buffer.from('x'.repeat(1000))]) {
    for (const [name, type] of Object.entries({
      ping: op.ping,
      closeSession: op.closeSession,
      whoAmI: op.whoAmI,
    })) {
      add(`${name} with ${extra.length} bytes behind its header`, () => [request(type, extra)])
    }
  }
}
