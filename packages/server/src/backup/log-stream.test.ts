import { Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createTxn, payloadOf, writeEntry } from '../persistence/testing/log-fixture.ts'
import { writeLogHeader } from '../persistence/log-format.ts'
import { writeEncodedEntry } from '../persistence/txn-codec.ts'
import { oneChunk } from './target.ts'
import { encodeLog, LogStreamCheck, type LogEntry } from './log-stream.ts'

/** Returns a log with these transactions, and where each of them begins. */
function logOf(zxids: readonly number[]): {
  readonly bytes: Uint8Array
  readonly offsets: readonly number[]
} {
  const writer = new Writer()
  writeLogHeader(writer)
  const offsets = zxids.map((zxid) => {
    const at = writer.length
    writeEntry(writer, createTxn(zxid))
    return at
  })
  return { bytes: writer.take(), offsets }
}

async function check(bytes: Uint8Array, after: number, chunkBytes = bytes.length) {
  const entries: LogEntry[] = []
  const stream = new LogStreamCheck(after, (entry) => entries.push(entry))
  const passed: number[] = []
  async function* chunks() {
    // Each chunk is valid until the next one is asked for.
    const chunk = new Uint8Array(chunkBytes)
    for (let at = 0; at < bytes.length; at += chunkBytes) {
      const part = bytes.subarray(at, at + chunkBytes)
      chunk.set(part)
      yield chunk.subarray(0, part.length)
      chunk.fill(0xff)
    }
  }
  for await (const chunk of stream.pass(chunks())) passed.push(...chunk)
  expect(new Uint8Array(passed)).toEqual(bytes)
  return { summary: stream.summary, entries }
}

describe('a log that is sent to a target', () => {
  it('is a log file, in chunks that may be kept', async () => {
    const zxids = Array.from({ length: 2000 }, (_, index) => index + 1)
    async function* txns() {
      for (const zxid of zxids) yield { zxid, payload: payloadOf(createTxn(zxid)) }
    }
    const chunks: Uint8Array[] = []
    for await (const chunk of encodeLog(txns())) chunks.push(chunk)
    expect(Buffer.concat(chunks)).toEqual(Buffer.from(logOf(zxids).bytes))
    expect(chunks.length).toBeGreaterThan(2)
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThan(2 * 65_536)
    expect(Math.min(...chunks.slice(0, -1).map((chunk) => chunk.length))).toBeGreaterThanOrEqual(65_536)
    const empty: Uint8Array[] = []
    for await (const chunk of encodeLog((async function* () {})())) empty.push(chunk)
    expect(empty).toEqual([logOf([]).bytes])
  })

  it('is described by its first and last transactions, in whatever pieces it comes', async () => {
    const { bytes } = logOf([0x100000005, 0x100000006, 0x200000001])
    for (const chunkBytes of [1, 7, 16, 100, bytes.length]) {
      const { summary, entries } = await check(bytes, 0x100000004, chunkBytes)
      expect(summary).toEqual({
        first: 0x100000005,
        beforeLast: 0x100000006,
        upTo: 0x200000001,
        lastChecksum: entries[2]!.checksum,
        firstTime: 1000 + 0x100000005,
        lastTime: 1000 + 0x200000001,
        transactions: 3,
      })
      expect(entries.map(({ zxid }) => zxid)).toEqual([0x100000005, 0x100000006, 0x200000001])
    }
    expect((await check(logOf([5]).bytes, 4)).summary).toMatchObject({ beforeLast: 4, transactions: 1 })
    expect((await check(logOf([]).bytes, 4)).summary).toBeUndefined()
  })

  it('may have transactions without a record', async () => {
    const writer = new Writer()
    writeLogHeader(writer)
    const header = payloadOf(createTxn(1)).slice(0, 32)
    writeEncodedEntry(writer, header)
    expect((await check(writer.take(), 0)).summary).toMatchObject({ upTo: 1 })
  })

  it('is refused where it ends in the middle of a transaction, or before one could begin', async () => {
    const { bytes, offsets } = logOf([1, 2])
    for (let end = 0; end < bytes.length; end++) {
      const isWhole = end === offsets[0] || end === offsets[1]
      const checked = check(bytes.subarray(0, end), 0)
      if (isWhole) await checked
      else await expect(checked, String(end)).rejects.toThrow('cut short')
    }
  })

  it('is refused where a byte of it was changed, or its length is none', async () => {
    const { bytes, offsets } = logOf([1, 2])
    const changedAt = (at: number, byte: number): Promise<unknown> =>
      check(bytes.slice().fill(byte, at, at + 1), 0)
    await expect(changedAt(0, 0)).rejects.toThrow('it does not begin as one')
    const [second] = offsets.slice(1)
    // A checksum, a byte of the transaction, the end mark.
    for (const at of [second! + 7, second! + 20, bytes.length - 1])
      await expect(changedAt(at, 0x55), String(at)).rejects.toThrow('the checksum of an entry does not fit')
    for (const length of [31, 2 ** 30 + 1, -1]) {
      const changed = bytes.slice()
      new DataView(changed.buffer).setInt32(second! + 8, length)
      await expect(check(changed, 0)).rejects.toThrow(`an entry has ${length} bytes`)
    }
  })

  it('is refused where transactions are missing', async () => {
    await expect(check(logOf([2]).bytes, 0)).rejects.toThrow('Expected the transaction after 0x0, got 0x2')
    await expect(check(logOf([1, 3]).bytes, 0)).rejects.toThrow('Expected the transaction after 0x1, got 0x3')
  })

  it('may be checked without a look at each transaction', async () => {
    const stream = new LogStreamCheck(0)
    for await (const _ of stream.pass(oneChunk(logOf([1]).bytes)));
    expect(stream.summary?.upTo).toBe(1)
  })
})
