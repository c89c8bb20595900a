import { CreateMode, OPEN_ACL_UNSAFE, OpCode, Reader, Writer, writeCreateRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { describeWrite } from '../core/prepare/index.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

function bodyOf(type: number, path: string): Reader {
  const writer = new Writer(64)
  if (type === OpCode.create)
    writeCreateRequest(writer, { path, data: null, acl: OPEN_ACL_UNSAFE, flags: CreateMode.EPHEMERAL })
  else {
    writer.string(path)
    if (type === OpCode.setData) writer.buffer(null)
    writer.int(-1)
  }
  return new Reader(writer.take())
}

const TYPES = [OpCode.setData, OpCode.delete, OpCode.create]
const PATHS = ['/a', '/é', `/${'x'.repeat(255)}`, `/${'x'.repeat(256)}`, `/${'y'.repeat(100)}`, '']

it('holds the descriptions of many requests of all kinds, in their order', () => {
  const requests = new RequestsInFlight()
  const expected: object[] = []
  let [next, oldest] = [0, 0]
  const takeOne = (): void => {
    expect({ modes: [], ...requests.take(oldest++) }).toEqual(expected.shift())
  }
  for (let round = 1; round <= 400; round++) {
    for (let i = 0; i < round % 40; i++, next++) {
      const type = TYPES[next % TYPES.length]!
      const body = bodyOf(type, PATHS[(next * 7) % PATHS.length]!)
      requests.add(next, type, body)
      expect(body.offset).toBe(0)
      expected.push(describeWrite(type, body))
    }
    // Falls to none in flight now and then.
    while (expected.length > (round % 50 === 0 ? 0 : 60)) takeOne()
  }
  while (expected.length > 0) takeOne()
  expect(requests.take(next)).toEqual({})
})

it('forgets refused requests, and those without a reply that an answered one follows', () => {
  const requests = new RequestsInFlight()
  const add = (xid: number, type: number, path: string): void => requests.add(xid, type, bodyOf(type, path))
  add(-1, OpCode.setData, '/first')
  for (const type of TYPES) {
    add(2, type, '/refused')
    requests.dropNewest()
  }
  add(3, OpCode.create, '/no-reply')
  add(4, OpCode.setData, '/no-reply')
  add(5, OpCode.create, '/create')
  add(6, OpCode.delete, '/delete')
  requests.remove(-1)
  expect(requests.take(5)).toMatchObject({ path: '/create' })
  expect(requests.take(6)).toEqual({ path: '/delete' })
})

it('describes a request that cannot be decoded as describeWrite does', () => {
  const cut = new Reader(Uint8Array.of(0, 0, 1, 0, 47))
  const requests = new RequestsInFlight()
  requests.add(1, OpCode.setData, cut)
  expect({ modes: [], ...requests.take(1) }).toEqual(describeWrite(OpCode.setData, cut))
})
