import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  OpCode,
  ProtocolError,
  readConnectRequest,
  readConnectResponse,
  Reader,
  readMultiRequest,
  readMultiResponse,
  writeConnectRequest,
  writeConnectResponse,
  writeMultiRequest,
  writeMultiResponse,
  Writer,
  type MultiOperation,
  type MultiResult,
} from './index.ts'

const text = fc.option(fc.string({ maxLength: 12 }))
const data = fc.option(fc.uint8Array({ maxLength: 12 }))
const acl = fc.option(
  fc.array(fc.record({ perms: fc.integer(), id: fc.record({ scheme: text, id: text }) }), { maxLength: 2 }),
)
const int = fc.integer()
const long = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)
const stat = fc.record({
  czxid: long,
  mzxid: long,
  ctime: long,
  mtime: long,
  version: int,
  cversion: int,
  aversion: int,
  ephemeralOwner: long,
  dataLength: int,
  numChildren: int,
  pzxid: long,
})
const of = <T extends number>(...types: T[]): fc.Arbitrary<T> => fc.constantFrom(...types)

const operation: fc.Arbitrary<MultiOperation> = fc.oneof(
  fc.record({
    type: of(OpCode.create, OpCode.create2, OpCode.createContainer),
    path: text,
    data,
    acl,
    flags: int,
  }),
  fc.record({ type: of(OpCode.createTTL), path: text, data, acl, flags: int, ttl: long }),
  fc.record({ type: of(OpCode.delete), path: text, version: int }),
  fc.record({ type: of(OpCode.setData), path: text, data, version: int }),
  fc.record({ type: of(OpCode.check), path: text, version: int }),
  fc.record({ type: of(OpCode.getData, OpCode.getChildren), path: text, watch: fc.boolean() }),
)
const result: fc.Arbitrary<MultiResult> = fc.oneof(
  fc.record({ type: of(OpCode.create), path: text }),
  fc.record({ type: of(OpCode.create2), path: text, stat }),
  fc.record({ type: of(OpCode.delete, OpCode.check) }),
  fc.record({ type: of(OpCode.setData), stat }),
  fc.record({ type: of(OpCode.getData), data, stat }),
  fc.record({ type: of(OpCode.getChildren), children: fc.option(fc.array(text, { maxLength: 3 })) }),
  fc.record({ type: of(OpCode.error), err: int }),
)
const passwd = data
const readOnly = fc.option(fc.boolean(), { nil: undefined })
const request = fc.record({
  protocolVersion: int,
  lastZxidSeen: long,
  timeOut: int,
  sessionId: long,
  passwd,
  readOnly,
})
const response = fc.record({ protocolVersion: int, timeOut: int, sessionId: long, passwd, readOnly })

const messages: [string, fc.Arbitrary<unknown>, (w: Writer, value: never) => void, (r: Reader) => unknown][] =
  [
    ['a multi request', fc.array(operation, { maxLength: 4 }), writeMultiRequest, readMultiRequest],
    ['a multi response', fc.array(result, { maxLength: 4 }), writeMultiResponse, readMultiResponse],
    ['a handshake', request, writeConnectRequest, readConnectRequest],
    ['the answer to a handshake', response, writeConnectResponse, readConnectResponse],
  ]

/** Decodes, and returns the ProtocolError of malformed bytes. Any other error fails the test. */
function failure(read: (r: Reader) => unknown, bytes: Uint8Array): ProtocolError | undefined {
  try {
    read(new Reader(bytes))
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error
    throw error
  }
}

describe.each(messages)('%s', (_, values, write, read) => {
  it('is decoded as it was encoded, and every truncation gives a ProtocolError or a shorter message', () => {
    fc.assert(
      fc.property(values, (value) => {
        const writer = new Writer()
        write(writer, value as never)
        const bytes = writer.take()
        const reader = new Reader(bytes)
        expect(read(reader)).toEqual(withoutUndefined(value))
        expect(reader.remaining).toBe(0)
        const wrong = [...bytes.keys()].filter((length) => {
          const error = failure(read, bytes.subarray(0, length))
          // Only the last byte of a handshake is optional.
          if (error === undefined) return length !== bytes.length - 1
          return error.offset > length || error.field === ''
        })
        expect(wrong).toEqual([])
      }),
      { numRuns: 100 },
    )
  })

  it('decodes 10,000 random and mutated frames or gives a ProtocolError', () => {
    const mutated = fc
      .tuple(values, fc.array(fc.tuple(fc.nat(400), fc.nat(255)), { maxLength: 4 }))
      .map(([value, changes]) => {
        const writer = new Writer()
        write(writer, value as never)
        const bytes = writer.take()
        for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte
        return bytes
      })
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 60 }), mutated), (bytes) => {
        const error = failure(read, bytes)
        return error === undefined || (error.offset <= bytes.length && error.field !== '')
      }),
      { numRuns: 10_000 },
    )
  })
})

/** Removes undefined properties, which are not encoded. */
const withoutUndefined = (value: unknown): unknown =>
  Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value as object).filter(([, one]) => one !== undefined))
