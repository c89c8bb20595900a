import { adler32, OPEN_ACL_UNSAFE, OpCode, ProtocolError, Reader, Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { PieceWriter } from '../core/piece-writer.ts'
import type { LoggedTxn, Txn } from '../core/types.ts'
import { decodeLoggedTxn, encodeLoggedTxn } from './index.ts'
import { createTxn, hexBytes, newTree, payloadOf } from './testing/log-fixture.ts'
import {
  attachEncodedEntry,
  decodeInSteps,
  encodePayloadInSteps,
  writeEncodedEntry,
  writeEntry,
  zxidOfPayload,
} from './txn-codec.ts'

describe('the transaction codec', () => {
  it('zxidOfPayload returns the zxid of an encoded transaction, whatever bits it has', () => {
    for (const zxid of [1, 0x7fff_ffff, 0x8000_0000, 0x1_ffff_ffff, 0x1f_ffff_8000_0001]) {
      const writer = new Writer()
      const header = { sessionId: -1n, cxid: -1, zxid, time: -1 }
      encodeLoggedTxn(writer, { header, txn: { type: OpCode.error, err: -1 }, digest: undefined })
      const within = new Uint8Array(writer.length + 5)
      within.set(writer.bytes(), 5)
      expect(zxidOfPayload(within.subarray(5))).toBe(zxid)
      expect(zxidOfPayload(within.subarray(5, 36))).toBeUndefined()
    }
  })

  it.each([
    '0100001402ee0000 00000000 0000000100000001 000001a1fb44a723 fffffff6 00001f40 00000002 0000000051c6d660',
    '0100001402ee0000 00000001 0000000100000002 000001a1fb44a73e 00000001 00000002 2f61 00000005 68656c6c6f 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00 00000001 00000002 0000000152415ba6',
    '0100001402ee0000 00000005 0000000100000005 000001a1fb44a9bd ffffffff ffffff9b',
    '0000000000000000 00000000 0000000100000007 000001a1fb46273f 00000014 00000005 2f636f6e74 00000002 000000005355f74b',
  ])('re-encodes a transaction to the bytes that Apache ZooKeeper logged: %s', (text) => {
    const bytes = hexBytes(text)
    const writer = new Writer()
    encodeLoggedTxn(writer, decodeLoggedTxn(new Reader(bytes)))
    expect(Buffer.from(writer.bytes()).toString('hex')).toBe(Buffer.from(bytes).toString('hex'))
  })

  it('decodes a closeSession without its record, and a failed part of a multi with other bytes after its code', () => {
    const close = hexBytes('0100001402ee0000 00000000 0000000100000001 000001a1fb44a723 fffffff5')
    expect(decodeLoggedTxn(new Reader(close)).txn).toEqual({ type: OpCode.closeSession, paths2Delete: [] })
    const multi = hexBytes(
      '0100001402ee0000 00000000 0000000100000001 000001a1fb44a723 0000000e 00000001 ffffffff 00000008 ffffff9b 12345678',
    )
    expect(decodeLoggedTxn(new Reader(multi)).txn).toEqual({
      type: OpCode.multi,
      txns: [{ type: OpCode.error, err: -101 }],
    })
  })

  it('encodes a create2 inside a multi as create, so that servers before 3.8.2 apply the multi', () => {
    const { header, txn } = createTxn(1, 5)
    const part = { ...txn, type: OpCode.create2 } as const
    const writer = new Writer()
    encodeLoggedTxn(writer, { header, txn: { type: OpCode.multi, txns: [part as never] }, digest: undefined })
    const { txn: read } = decodeLoggedTxn(new Reader(writer.bytes()))
    expect(read).toMatchObject({ type: OpCode.multi, txns: [{ type: OpCode.create, path: '/n1' }] })
  })

  it('decodes every type of transaction to what was encoded', () => {
    const base = { path: '/a', data: null, acl: OPEN_ACL_UNSAFE, parentCVersion: 3 }
    const txns: Txn[] = [
      { type: OpCode.create2, ...base, ephemeral: true },
      { type: OpCode.createContainer, ...base },
      { type: OpCode.createTTL, ...base, ttl: 2 ** 40 - 1 },
      { type: OpCode.reconfig, path: '/zookeeper/config', data: new Uint8Array([1]), version: -1 },
      { type: OpCode.setACL, path: '/a', acl: OPEN_ACL_UNSAFE, version: 1 },
      { type: OpCode.closeSession, paths2Delete: ['/a', '/b'] },
      {
        type: OpCode.multi,
        txns: [
          { type: OpCode.check, path: '/a', version: 2 },
          { type: OpCode.delete, path: '/a' },
        ],
      },
    ]
    for (const txn of txns) {
      for (const digest of [undefined, { hi: 0xffffffff, lo: 1 }]) {
        const logged = { header: { sessionId: -5n, cxid: -1, zxid: 2 ** 33, time: 2 ** 41 }, txn, digest }
        const writer = new Writer()
        encodeLoggedTxn(writer, logged)
        const bytes = writer.take()
        expect(decodeLoggedTxn(new Reader(bytes))).toEqual(logged)
        // Also with a lookup of known paths.
        expect(decodeLoggedTxn(new Reader().resetToView(bytes), newTree().store)).toEqual(logged)
      }
    }
  })

  it('decodes paths of existing nodes to the strings of the tree, and other paths to new strings', () => {
    const { store } = newTree()
    const top = store.find('/')
    for (const path of ['/a', '/ü', '/gone']) store.add(path, top)
    store.remove(store.find('/gone'))
    for (const path of ['/a', '/ü', '/gone', '/b', '/', '/a/']) {
      const txn: Txn = { type: OpCode.setData, path, data: new Uint8Array([1]), version: 3 }
      const writer = new Writer()
      encodeLoggedTxn(writer, {
        header: { sessionId: 1n, cxid: 2, zxid: 3, time: 4 },
        txn,
        digest: undefined,
      })
      expect(decodeLoggedTxn(new Reader(writer.take()), store).txn).toEqual(txn)
    }
  })
})

const multi = (parts: number): LoggedTxn => ({
  header: { sessionId: 5n, cxid: 1, zxid: 0x1_0000_0007, time: 1000 },
  txn: {
    type: OpCode.multi,
    txns: Array.from({ length: parts }, (_, i) => ({
      type: OpCode.setData,
      path: `/node-${i}`,
      data: new Uint8Array(20).fill(i),
      version: i,
    })),
  },
  digest: { hi: 1, lo: 2 },
})

it.each([0, 1, 99, 100, 101, 5000])(
  'encodePayloadInSteps makes the bytes that writeEntry makes, for the end of a session with %i paths',
  (paths) => {
    const ended: LoggedTxn = {
      ...multi(0),
      txn: {
        type: OpCode.closeSession,
        paths2Delete: Array.from({ length: paths }, (_, i) => `/ü${i}${'x'.repeat(i % 7 === 0 ? 2000 : 3)}`),
      },
    }
    const [inSteps, atOnce] = [new Writer(), new Writer()]
    const making = encodePayloadInSteps(ended)
    let steps = 1
    let made = making.next()
    for (; made.done !== true; made = making.next()) steps++
    const { payload, adler } = made.value
    if (paths > 100) expect(steps).toBeGreaterThanOrEqual(paths / 100)
    writeEncodedEntry(inSteps, payload, adler)
    writeEntry(atOnce, ended)
    expect(Buffer.from(inSteps.bytes()).equals(atOnce.bytes())).toBe(true)
    const read = decodeInSteps(new Reader(payload))
    let turns = 1
    let decoded = read.next()
    for (; decoded.done !== true; decoded = read.next()) turns++
    expect(decoded.value).toEqual(ended)
    expect(decodeLoggedTxn(new Reader(payload))).toEqual(ended)
    if (paths > 100) expect(turns).toBeGreaterThanOrEqual(paths / 100)
    expect(turns).toBeLessThanOrEqual(1 + paths / 5)
  },
)

it.each([1, 100, 5000, 20_000])(
  'encodePayloadInSteps makes the bytes that writeEntry makes, for a multi of %i parts',
  (parts) => {
    const [inSteps, atOnce] = [new Writer(), new Writer()]
    const making = encodePayloadInSteps(multi(parts))
    let steps = 1
    let made = making.next()
    for (; made.done !== true; made = making.next()) steps++
    writeEncodedEntry(inSteps, made.value.payload, made.value.adler)
    writeEntry(atOnce, multi(parts))
    expect(Buffer.from(inSteps.bytes()).equals(atOnce.bytes())).toBe(true)
    const pieces = Math.ceil(made.value.payload.length / 2 ** 16)
    expect(steps).toBe(Math.ceil(parts / 100) + pieces - 1)
  },
)

it('writeEncodedEntry computes the checksum that it is not given, and attachEncodedEntry writes the same bytes', () => {
  const payload = payloadOf(createTxn(1, 5))
  const [given, computed, attached] = [new Writer(), new Writer(), new PieceWriter(1 << 10)]
  for (const writer of [given, computed]) writer.raw(Uint8Array.of(1, 2, 3))
  writeEncodedEntry(given, payload, adler32(payload))
  writeEncodedEntry(computed, payload)
  expect(computed.bytes()).toEqual(given.bytes())
  attachEncodedEntry(attached, payload, adler32(payload))
  expect(Buffer.concat(attached.takePieces())).toEqual(Buffer.from(given.bytes().subarray(3)))
})

it('zxidOfPayload needs a header and nothing more', () => {
  const payload = payloadOf(createTxn(7)).subarray(0, 32)
  expect([zxidOfPayload(payload), zxidOfPayload(payload.subarray(0, 31))]).toEqual([7, undefined])
})

describe('a transaction of Apache ZooKeeper', () => {
  const HEAD = '0100001402ee0000 00000000 0000000100000001 000001a1fb44a723'
  const read = (text: string): LoggedTxn => decodeLoggedTxn(new Reader(hexBytes(`${HEAD} ${text}`)))

  it('that ends a session may have a digest and no record', () => {
    expect(read('fffffff5 00000002 0000000a 0000000b')).toMatchObject({
      txn: { type: OpCode.closeSession, paths2Delete: [] },
      digest: { hi: 10, lo: 11 },
    })
    expect(read('fffffff5 00000001 00000002 2f61')).toMatchObject({
      txn: { paths2Delete: ['/a'] },
      digest: undefined,
    })
    for (const text of [
      '00000002 0000000a',
      '00000001 00000002 2f61 00000002 0000000a',
      '7fffffff 00000000 00000000 00',
    ])
      expect(() => read(`fffffff5 ${text}`)).toThrow(ProtocolError)
  })

  it('has a digest that counts where it is of version 2', () => {
    for (const version of [1, 3])
      expect(read(`ffffffff ffffff9b 0000000${version} 0000000a 0000000b`).digest).toBeUndefined()
    expect(read('ffffffff ffffff9b 00000002 fffffffa fffffffb').digest).toEqual({
      hi: 0xffff_fffa,
      lo: 0xffff_fffb,
    })
  })

  it('is no check that stands alone', () => {
    expect(() => read('0000000d 00000002 2f61 00000001')).toThrow(
      'a transaction that can be logged alone, got a check',
    )
  })
})
