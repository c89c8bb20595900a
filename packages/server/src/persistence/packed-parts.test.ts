import { OPEN_ACL_UNSAFE, OpCode, Reader, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PathLookup } from '../core/operations/index.ts'
import { failureOf } from '../core/tree/index.ts'
import type { LoggedTxn, SubTxn } from '../core/types.ts'
import { decodePart, PartsPacker } from './packed-parts.ts'
import { hexBytes } from './testing/log-fixture.ts'
import { decodeInSteps, decodeLoggedTxn, encodeLoggedTxn } from './txn-codec.ts'

const path = fc.constantFrom('/a', '/b/c', '/ü')
const data = fc.option(fc.uint8Array({ maxLength: 5 }), { nil: null })
const version = fc.integer({ min: 0, max: 9 })
const acl = fc.constantFrom(OPEN_ACL_UNSAFE, [{ perms: 1, id: { scheme: 'digest', id: 'ann:x' } }])
const created = { path, data, acl, parentCVersion: version }
const part: fc.Arbitrary<SubTxn> = fc.oneof(
  fc.record({
    type: fc.constantFrom(OpCode.create, OpCode.create2),
    ...created,
    ephemeral: fc.boolean(),
  }),
  fc.record({ type: fc.constant(OpCode.createContainer), ...created }),
  fc.record({
    type: fc.constant(OpCode.createTTL),
    ...created,
    ttl: fc.integer({ min: 1, max: 2 ** 40 - 1 }),
  }),
  fc.record({ type: fc.constant(OpCode.delete), path }),
  fc.record({ type: fc.constant(OpCode.setData), path, data, version }),
  fc.record({ type: fc.constant(OpCode.check), path, version }),
  fc.record({ type: fc.constant(OpCode.error), err: fc.integer({ min: -120, max: 0 }) }),
)
const parts = fc.array(part, { maxLength: 30 })

const logged = (txns: LoggedTxn['txn'] & { type: typeof OpCode.multi }): LoggedTxn => ({
  header: { sessionId: 5n, cxid: 1, zxid: 0x1_0000_0007, time: 1000 },
  txn: txns,
  digest: { hi: 1, lo: 2 },
})

function pack(list: readonly SubTxn[], known?: PathLookup): PartsPacker {
  const packer = new PartsPacker(64, known)
  for (const each of list) packer.add(each)
  return packer
}

function written(txn: LoggedTxn): Uint8Array {
  const writer = new Writer()
  encodeLoggedTxn(writer, txn)
  return writer.take()
}

describe('PackedParts', () => {
  it('yields the parts that were packed, in each iteration', () => {
    fc.assert(
      fc.property(parts, (list) => {
        const packed = pack(list).done()
        expect(packed).toHaveLength(list.length)
        for (let walk = 0; walk < 2; walk++) expect([...packed]).toEqual(list)
        expect(packed.failure).toEqual(list.find(({ type }) => type === OpCode.error))
      }),
      { seed: 3, numRuns: 300 },
    )
  })

  it('encodes as an array of the parts does, and decodeInSteps returns it without copying the bytes', () => {
    fc.assert(
      fc.property(parts, (list) => {
        const bytes = written(logged({ type: OpCode.multi, txns: list }))
        expect(written(logged({ type: OpCode.multi, txns: pack(list).done() }))).toEqual(bytes)
        const steps = decodeInSteps(new Reader(bytes), undefined, 4)
        let turns = 1
        let read = steps.next()
        for (; read.done !== true; read = steps.next()) turns++
        expect(turns).toBe(Math.max(1, Math.ceil(list.length / 4)))
        const atOnce = decodeLoggedTxn(new Reader(bytes))
        const { txn, ...rest } = read.value
        if (txn.type !== OpCode.multi || atOnce.txn.type !== OpCode.multi) throw new Error('Not a multi')
        expect({ ...rest, txn: { ...txn, txns: [...txn.txns] } }).toEqual(atOnce)
        expect(failureOf(txn.txns)).toEqual(list.find(({ type }) => type === OpCode.error))
      }),
      { seed: 4, numRuns: 300 },
    )
  })

  it('yields the strings of known paths', () => {
    const known: PathLookup = {
      findFromReader: (reader) => {
        const { offset } = reader
        if (reader.string() === '/known') return 7
        reader.offset = offset
        return -1
      },
      pathOf: (node) => `the path of ${node}`,
    }
    const changes = ['/known', '/other'].map((each) => ({
      type: OpCode.setData as typeof OpCode.setData,
      path: each,
      data: null,
      version: 1,
    }))
    expect([...pack(changes, known).done()]).toMatchObject([{ path: 'the path of 7' }, { path: '/other' }])
  })

  it('decodeInSteps rejects a malformed part before it returns any part', () => {
    const bytes = written(
      logged({
        type: OpCode.multi,
        txns: [
          { type: OpCode.delete, path: '/a' },
          { type: OpCode.error, err: -4 },
        ],
      }),
    )
    // The type of the second part, after header, count and first part.
    new DataView(bytes.buffer, bytes.byteOffset).setInt32(32 + 4 + (4 + 4 + 6), OpCode.multi)
    expect(() => decodeInSteps(new Reader(bytes)).next()).toThrow('a type that a multi may hold')
  })

  it('counts the parts that were packed so far', () => {
    const packer = new PartsPacker(64)
    expect(packer.length).toBe(0)
    packer.add({ type: OpCode.delete, path: '/a' })
    expect(packer.length).toBe(1)
  })

  it.each([
    ['00000002 ffffffff', 'the record of a part, got null'],
    ['0000000e 00000000', 'a type that a multi may hold, got 14'],
    ['fffffff6 00000000', 'a type that a multi may hold, got -10'],
    ['fffffff5 00000000', 'a type that a multi may hold, got -11'],
  ])('decodePart refuses the bytes %s', (text, message) => {
    const bytes = hexBytes(text)
    expect(() => decodePart(new Reader(bytes), new Reader())).toThrow(message)
  })
})
