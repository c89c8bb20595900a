import { CreateMode, OPEN_ACL_UNSAFE, OpCode, Reader, Writer, writeCreateRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { describeWrite } from '../core/prepare/index.ts'
import { RequestsInFlight } from './requests-in-flight.ts'

function bodyOf(type: number, path: string, flags: number = CreateMode.EPHEMERAL): Reader {
  const writer = new Writer(64)
  if (CREATES.has(type)) writeCreateRequest(writer, { path, data: null, acl: OPEN_ACL_UNSAFE, flags })
  else {
    writer.string(path)
    if (type === OpCode.setData) writer.buffer(null)
    writer.int(-1)
  }
  return new Reader(writer.take())
}

const CREATES = new Set<number>([OpCode.create, OpCode.create2, OpCode.createContainer])
const TYPES = [OpCode.setData, OpCode.delete, OpCode.create, OpCode.create2, OpCode.createContainer]
const PATHS = ['/a', '/é', `/${'x'.repeat(255)}`, `/${'x'.repeat(256)}`, `/${'y'.repeat(100)}`, '']

/** Returns a description with the fields that are left out where they say nothing. */
const whole = (description: object): object => ({
  acl: undefined,
  mode: undefined,
  modes: [],
  ...description,
})

it('holds the descriptions of many requests of all kinds, in their order', () => {
  const requests = new RequestsInFlight()
  const expected: object[] = []
  let [next, oldest] = [0, 0]
  const takeOne = (): void => {
    expect(whole(requests.take(oldest++))).toEqual(expected.shift())
  }
  for (let round = 1; round <= 400; round++) {
    for (let i = 0; i < round % 40; i++, next++) {
      const type = TYPES[next % TYPES.length]!
      const body = bodyOf(type, PATHS[(next * 7) % PATHS.length]!, next % 9)
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
  expect(requests.find(-1)).toBe(true)
  requests.removeFirst()
  expect(requests.take(5)).toEqual({ path: '/create', mode: CreateMode.EPHEMERAL })
  expect(requests.take(6)).toEqual({ path: '/delete' })
})

it('describes a request that is cut anywhere as describeWrite does', () => {
  const requests = new RequestsInFlight()
  for (const type of TYPES) {
    const bytes = bodyOf(type, '/abc').bytes
    for (let length = 0; length < bytes.length; length++) {
      // What a connection has received before stands behind the request.
      const cut = new Reader(bytes, 0, length)
      requests.add(length, type, cut)
      const expected = describeWrite(type, cut)
      const got = whole(requests.take(length))
      // A path is what a refused request shows, whether or not the rest can be decoded.
      expect(got).toEqual(expected)
    }
  }
})

it('describes creations with modes that do not exist', () => {
  const requests = new RequestsInFlight()
  for (const flags of [-1, -2, 7, 15, 16, 0x7fffffff, -0x80000000]) {
    const body = bodyOf(OpCode.create, '/a', flags)
    requests.add(flags, OpCode.create, body)
    expect(whole(requests.take(flags))).toEqual(describeWrite(OpCode.create, body))
  }
})

it('copies a path into a line unless a character of it needs an escape, wherever that stands', () => {
  const requests = new RequestsInFlight()
  const line = new Uint8Array(64)
  const wrong: string[] = []
  for (let length = 1; length <= 9; length++)
    for (let at = 0; at < length; at++)
      for (let code = 0; code < 0x100; code++) {
        const path = `${'x'.repeat(at)}${String.fromCharCode(code)}${'~'.repeat(length - at - 1)}`
        requests.add(code, OpCode.delete, bodyOf(OpCode.delete, path))
        const isPlain = /^[ -~]*$/.test(path) && !/["\\]/.test(path)
        const plainLength = requests.plainLength
        if (plainLength !== (isPlain ? length : -1)) wrong.push(`${path} has ${plainLength}`)
        requests.copyPlain(new DataView(line.buffer), 1)
        if (isPlain && new TextDecoder().decode(line.subarray(1, 1 + length)) !== path) wrong.push(path)
        requests.removeFirst()
      }
  expect(wrong).toEqual([])
})
