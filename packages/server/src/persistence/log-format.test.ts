import { OpCode, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { LoggedTxn } from '../core/types.ts'
import { writeEncodedEntry, encodePayloadInSteps } from './log-format.ts'
import { writeEntry } from './testing/log-fixture.ts'

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
