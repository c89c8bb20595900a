import { OpCode, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { PreparedTxn } from '../core/prepare/index.ts'
import { encodeLoggedTxn } from '../persistence/index.ts'
import type { LoggedTxn } from '../core/types.ts'
import { InFlightWrite } from './in-flight-write.ts'

const half = fc.integer({ min: 0, max: 0xffff_ffff })

it('InFlightWrite reads and encodes like five separate objects', () => {
  const given = fc.record({
    sessionId: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    xid: fc.integer({ min: -2147483648, max: 2147483647 }),
    type: fc.constantFrom(OpCode.create, OpCode.setData),
    zxid: fc.integer({ min: 1, max: 2 ** 53 - 1 }),
    time: fc.integer({ min: 0, max: 2 ** 53 - 1 }),
    digest: fc.option(fc.record({ hi: half, lo: half }), { nil: undefined }),
    crc: half,
  })
  fc.assert(
    fc.property(given, ({ sessionId, xid, type, zxid, time, digest, crc }) => {
      const txn = { type: OpCode.setData, path: '/a', data: Uint8Array.of(1, 2), version: 3 } as const
      const node = { path: '/a', hash: 5, index: 7, parent: undefined }
      const prepared: PreparedTxn = { txn, digest, node, crc }
      const write = new InFlightWrite({ sessionId, xid, type }, zxid, time, prepared, undefined)
      const plain: LoggedTxn = { header: { sessionId, cxid: xid, zxid, time }, txn, digest }

      const { logged, hint, callback } = write
      const { header } = logged
      expect([write.xid, write.type, callback]).toEqual([xid, type, undefined])
      expect({
        sessionId: header.sessionId,
        cxid: header.cxid,
        zxid: header.zxid,
        time: header.time,
      }).toEqual(plain.header)
      expect(logged.txn).toBe(txn)
      expect([logged.digest?.hi, logged.digest?.lo]).toEqual([digest?.hi, digest?.lo])
      expect([hint.node, hint.crc]).toEqual([node, crc])
      expect(bytesOf(logged)).toEqual(bytesOf(plain))
    }),
    { seed: 11 },
  )
})

function bytesOf(logged: LoggedTxn): Uint8Array {
  const writer = new Writer()
  encodeLoggedTxn(writer, logged)
  return writer.take()
}
