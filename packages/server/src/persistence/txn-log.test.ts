import { adler32, Writer } from '@zabra/protocol'
import { DiskError, ManualClock, MemoryDisk, silentLogger } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import type { LoggedTxn } from '../core/types.ts'
import { ENTRY_HEAD_BYTES, LOG_HEADER_BYTES } from './log-format.ts'
import { LogRange } from './log-range.ts'
import {
  createTxn,
  diskWithLog,
  FOLDER,
  LogFixture,
  openLog,
  recoverFrom,
  timers,
  appendTo,
  payloadOf,
} from './testing/log-fixture.ts'
import { writeEncodedEntry } from './txn-codec.ts'
import { TxnLog, type TxnLogOptions } from './txn-log.ts'

const EPOCH_1 = 0x1_0000_0000
/** Bytes of an entry of `createTxn`. */
const ENTRY = payloadOf(createTxn(1)).length + ENTRY_HEAD_BYTES + 1

/** A log whose events and lines are noted, on a clock that does not advance by itself. */
function given(options: Partial<TxnLogOptions> = {}) {
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const events: string[] = []
  const lines: [context: unknown, text: string][] = []
  const note = (context: unknown, text: string): void => void lines.push([context, text])
  const range = new LogRange(options.lastZxid ?? 0)
  const log = new TxnLog(
    {
      disk,
      clock,
      random: { below: () => 0, bytes: (n) => new Uint8Array(n) },
      logger: { ...silentLogger, info: note, warn: note, error: note },
      folder: FOLDER,
      lastZxid: 0,
      range,
      isDurable: true,
      preallocateBytes: 0,
      snapCount: () => 1000,
      snapSizeLimitBytes: 0,
      fileSizeLimitBytes: 0,
      syncWarningMs: () => 1000,
      ...options,
    },
    {
      durable: (zxid, entries, ms) => void events.push(`durable ${zxid}: ${entries} in ${ms} ms`),
      snapshotDue: () => void events.push('snapshot due'),
      diskFull: (zxid, error) => void events.push(`full after ${zxid}: ${error.code}`),
      spaceAvailable: () => void events.push('space'),
      fatal: (error) => void events.push(error.message),
    },
  )
  const append = (...zxids: readonly number[]): void => {
    for (const zxid of zxids) log.append(createTxn(zxid))
  }
  /** Appends each transaction in a write of its own. */
  const write = async (...zxids: readonly number[]): Promise<void> => {
    for (const zxid of zxids) {
      append(zxid)
      await log.flush()
    }
  }
  const names = (): string[] => disk.paths().map((path) => path.slice(FOLDER.length + 1))
  return { disk, clock, events, lines, range, log, append, write, names }
}

/** Holds the writes of a disk back until `release` is called. */
function holdWrites(disk: MemoryDisk): () => void {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  disk.beforeWrite = () => held
  return () => {
    disk.beforeWrite = undefined
    release()
  }
}

/** Returns the array of each write to a disk, while it is written. */
function buffersOf(disk: MemoryDisk): ArrayBufferLike[] {
  const buffers: ArrayBufferLike[] = []
  const openWrite = disk.openWrite.bind(disk)
  disk.openWrite = async (path, options) => {
    const writer = await openWrite(path, options)
    const write = writer.write.bind(writer)
    return Object.assign(writer, {
      write: (bytes: Uint8Array, position: number) => {
        buffers.push(bytes.buffer)
        return write(bytes, position)
      },
    })
  }
  return buffers
}

const unencodable = (zxid: number): LoggedTxn => ({
  ...createTxn(zxid),
  txn: { type: 9999 } as unknown as LoggedTxn['txn'],
})

describe('TxnLog', () => {
  it('makes everything that is appended during a write durable by one further write', async () => {
    const disk = await diskWithFolder(FOLDER)
    const durable: number[] = []
    const log = openLog(disk, 0, { durable: (zxid) => durable.push(zxid) })
    let release = (): void => {}
    disk.beforeWrite = () => new Promise((resolve) => (release = resolve))
    appendTo(log, createTxn(1, 5))
    const flushed = log.flush()
    while (disk.writes === 0) await Promise.resolve()
    for (let z = 2; z <= 100; z++) appendTo(log, createTxn(z, 5))
    disk.beforeWrite = undefined
    release()
    await flushed
    await log.flush()
    expect({ writes: disk.writes, durable }).toEqual({ writes: 2, durable: [1, 100] })
    disk.powerCut()
    expect((await recoverFrom(disk)).lastZxid).toBe(100)
  })

  it('rejects a zxid that is not above the last one', async () => {
    expect(() => appendTo(openLog(new MemoryDisk(), 5), createTxn(5, 5))).toThrow(RangeError)
  })

  it.each([0, 7, 60])(
    'removes a write that a full disk cut after %d bytes, rejects appends, and accepts them when the disk has space',
    async (keep) => {
      const disk = await diskWithLog(3)
      const full: number[] = []
      let space = 0
      const log = openLog(disk, 3, { diskFull: (zxid) => full.push(zxid), spaceAvailable: () => space++ })
      appendTo(log, createTxn(4, 5))
      await log.flush()
      disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC', writtenBytes: keep } : undefined)
      appendTo(log, createTxn(5, 5))
      await expect(log.flush()).rejects.toThrow('No space is left')
      expect(full).toEqual([4])
      expect(() => appendTo(log, createTxn(5, 5))).toThrow('No space is left')
      disk.injectFault = undefined
      timers.splice(0).forEach((run) => run())
      while (space === 0) await new Promise((resolve) => setImmediate(resolve))
      appendTo(log, createTxn(5, 5))
      await log.close()
      disk.powerCut()
      expect(await recoverFrom(disk)).toMatchObject({ lastZxid: 5, replayed: 5, tornWrites: [] })
    },
  )

  it('reports any other disk error as fatal and writes nothing afterwards', async () => {
    const disk = await diskWithLog(1)
    const failures: Error[] = []
    const log = openLog(disk, 1, { fatal: (error) => failures.push(error) })
    disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    appendTo(log, createTxn(2, 5))
    await expect(log.flush()).rejects.toThrow('failed')
    expect(failures).toHaveLength(1)
    expect(() => appendTo(log, createTxn(2, 5))).toThrow('failed')
  })

  it('begins a new file and requests a snapshot after a random number of transactions up to snapCount', async () => {
    const fixture = await new LogFixture().open({ snapCount: () => 100 })
    await fixture.appendAll(1, 400)
    expect(fixture.snapshotsDue).toBeGreaterThanOrEqual(4)
    expect(fixture.snapshotsDue).toBeLessThanOrEqual(8)
    const starts = fixture.fileNames().map((name) => Number.parseInt(name.slice(4), 16))
    const lengths = starts.slice(1).map((start, i) => start - starts[i]!)
    expect(new Set(lengths).size).toBeGreaterThan(1)
    for (const length of lengths) expect(length).toBeLessThanOrEqual(106)
  })

  it('counts transactions before a restart towards the next snapshot', async () => {
    const fixture = await new LogFixture().open({ snapCount: () => 100, sinceSnapshot: 99 })
    fixture.append(1)
    expect(fixture.snapshotsDue).toBe(1)
  })

  it('begins a new file when the current one has reached its size limit', async () => {
    const fixture = await new LogFixture().open({ fileSizeLimitBytes: 2000 })
    await fixture.snapshot()
    await fixture.appendAll(1, 100)
    expect(fixture.fileNames().length).toBeGreaterThan(4)
    await fixture.log.close()
    expect((await fixture.recover()).lastZxid).toBe(100)
  })

  it('begins new files while appends never pause', async () => {
    const fixture = await new LogFixture().open({ fileSizeLimitBytes: 2000 })
    await fixture.snapshot()
    for (let zxid = 1; zxid <= 300; zxid++) {
      fixture.append(zxid)
      await Promise.resolve()
      fixture.clock.advance(0)
    }
    await fixture.log.close()
    const logs = fixture.fileNames().filter((name) => name.startsWith('log.'))
    expect(logs.length).toBeGreaterThan(3)
    for (const name of logs) expect(await fixture.disk.size(`${FOLDER}/${name}`)).toBeGreaterThan(500)
    expect((await fixture.recover()).lastZxid).toBe(300)
  })

  it('adds entries appended in the turn after a write to the next one, unless a caller waits for a flush', async () => {
    const fixture = await new LogFixture().open()
    const writing = async (first: number): Promise<void> => {
      fixture.append(first)
      fixture.clock.advance(0)
      fixture.append(first + 1)
      while (fixture.durable < first) await Promise.resolve()
    }
    await writing(1)
    fixture.append(3)
    await fixture.clock.untilIdle()
    expect([fixture.durable, fixture.flushes]).toEqual([3, 2])
    await writing(4)
    await fixture.log.flush()
    expect([fixture.durable, fixture.flushes]).toEqual([5, 4])
    await writing(6)
    fixture.append(8)
    await fixture.clock.untilIdle()
    expect([fixture.durable, fixture.flushes]).toEqual([8, 6])
    await writing(9)
    await fixture.log.close()
    expect(fixture.durable).toBe(10)
  })

  it('delays a write by flushDelayMs, until maxBatchSize entries are pending', async () => {
    const fixture = await new LogFixture().open({ flushDelayMs: 50, maxBatchSize: 3 })
    fixture.append(1)
    await fixture.clock.untilIdle()
    expect(fixture.durable).toBe(0)
    fixture.clock.advance(50)
    await fixture.clock.untilIdle()
    expect(fixture.durable).toBe(1)
    for (const zxid of [2, 3, 4]) fixture.append(zxid)
    await fixture.clock.untilIdle()
    expect(fixture.durable).toBe(4)
  })
})

describe('the appends of TxnLog', () => {
  it.each([
    [5, 5],
    [5, 4],
    [5, 7],
    [EPOCH_1 + 2, 9],
    [EPOCH_1 + 2, EPOCH_1 + 2],
    [EPOCH_1 + 2, EPOCH_1 + 4],
  ])('after %i reject %i', (lastZxid, zxid) => {
    const { append, log, names } = given({ lastZxid })
    expect(() => append(zxid)).toThrow(
      `Expected the zxid 0x${(lastZxid + 1).toString(16)} or one of a later epoch, got 0x${zxid.toString(16)}`,
    )
    expect([log.lastZxid, log.pendingBytes, names()]).toEqual([lastZxid, 0, []])
  })

  it.each([
    [5, 6],
    [5, EPOCH_1 + 1],
    [5, EPOCH_1 + 4],
    [EPOCH_1 + 2, EPOCH_1 + 3],
  ])('after %i accept %i', async (lastZxid, zxid) => {
    const { write, log, names } = given({ lastZxid })
    expect([log.lastZxid, log.durableZxid]).toEqual([lastZxid, lastZxid])
    await write(zxid)
    expect([log.lastZxid, log.durableZxid, names()]).toEqual([zxid, zxid, [`log.${zxid.toString(16)}`]])
  })

  it('reject an epoch that the member has not accepted', () => {
    const { append, log } = given({ acceptedEpoch: () => 1 })
    expect(() => append(2 * EPOCH_1 + 1)).toThrow('A member logs only transactions of epochs')
    append(EPOCH_1 + 1)
    expect(log.lastZxid).toBe(EPOCH_1 + 1)
  })

  it('reject a payload of another transaction, and one without a header', () => {
    const { log } = given()
    expect(() => log.appendPayload(1, payloadOf(createTxn(2)))).toThrow(
      'Expected the transaction 0x1, got 0x2',
    )
    expect(() => log.appendPayload(1, new Uint8Array(31))).toThrow(
      'Expected the transaction 0x1, got 31 bytes',
    )
    expect(log.lastZxid).toBe(0)
  })

  it('write the checksum that is given', async () => {
    const { log, disk } = given()
    log.appendPayload(1, payloadOf(createTxn(1)), 0x01020304)
    await log.flush()
    const bytes = await disk.readFile(`${FOLDER}/log.1`)
    expect([...bytes.subarray(16, 24)]).toEqual([0, 0, 0, 0, 1, 2, 3, 4])
    expect(bytes.subarray(LOG_HEADER_BYTES + ENTRY_HEAD_BYTES, -1)).toEqual(payloadOf(createTxn(1)))
  })

  it('of 2 MiB and more are not copied, and their checksum is computed over several turns', async () => {
    const clock = new ManualClock()
    let turns = 0
    const immediate = (action: () => void): void => {
      turns++
      queueMicrotask(action)
    }
    const { log, disk } = given({ clock: Object.assign(clock, { immediate }) })
    const large = (zxid: number): Uint8Array => {
      const payload = new Uint8Array(2 << 20).fill(zxid)
      payload.set(payloadOf(createTxn(zxid)).subarray(0, 32))
      return payload
    }
    const payloads = [payloadOf(createTxn(1)), large(2), large(3), payloadOf(createTxn(4))]
    payloads.forEach((payload, i) =>
      log.appendPayload(1 + i, payload, i === 2 ? adler32(payload, 0, payload.length) : undefined),
    )
    // It would be seen in a copy no more.
    payloads[1]![100] = 77
    await log.flush()
    const expected = new Writer()
    for (const payload of payloads) writeEncodedEntry(expected, payload)
    const bytes = await disk.readFile(`${FOLDER}/log.1`)
    expect(Buffer.compare(bytes.subarray(LOG_HEADER_BYTES), expected.take())).toBe(0)
    expect(turns).toBeGreaterThan(30)
  })

  it('of 2 MiB and more are written with the checksum that is given', async () => {
    const { log, disk } = given()
    const payload = new Uint8Array(2 << 20)
    payload.set(payloadOf(createTxn(1)).subarray(0, 32))
    log.appendPayload(1, payload, 0x01020304)
    await log.flush()
    const bytes = await disk.readFile(`${FOLDER}/log.1`)
    expect([...bytes.subarray(16, 24)]).toEqual([0, 0, 0, 0, 1, 2, 3, 4])
  })

  it('leave nothing of a transaction that cannot be encoded', async () => {
    const { log, append, disk, events, names } = given()
    expect(() => log.append(unencodable(1))).toThrow()
    expect([log.lastZxid, log.pendingBytes]).toEqual([0, 0])
    await log.flush()
    expect(names()).toEqual([])
    append(1)
    expect(() => log.append(unencodable(2))).toThrow()
    append(2)
    await log.flush()
    log.roll()
    expect(() => log.append(unencodable(3))).toThrow()
    append(3)
    await log.flush()
    expect(() => log.append(unencodable(4))).toThrow()
    append(4)
    await log.close()
    expect(names()).toEqual(['log.1', 'log.3'])
    expect(events).toEqual(['durable 2: 2 in 0 ms', 'durable 3: 1 in 0 ms', 'durable 4: 1 in 0 ms'])
    expect(await recoverFrom(disk)).toMatchObject({ lastZxid: 4, replayed: 4 })
  })

  it('above 4 MiB begin another write', async () => {
    const { log, events, disk } = given()
    for (let zxid = 1; zxid <= 9; zxid++) log.append(createTxn(zxid, 1 << 20))
    await log.close()
    expect(events).toEqual(['durable 4: 4 in 0 ms', 'durable 8: 4 in 0 ms', 'durable 9: 1 in 0 ms'])
    expect(disk.paths()).toEqual([`${FOLDER}/log.1`])
    expect((await recoverFrom(disk)).lastZxid).toBe(9)
  })

  it('begin another write at 4 MiB', async () => {
    for (const [missing, expected] of [
      [0, ['durable 1: 1 in 0 ms', 'durable 2: 1 in 0 ms']],
      [1, ['durable 2: 2 in 0 ms']],
    ] as const) {
      const { log, events } = given()
      const head = LOG_HEADER_BYTES + ENTRY - 50
      log.append(createTxn(1, (4 << 20) - head - missing))
      log.append(createTxn(2))
      await log.close()
      expect(events).toEqual(expected)
    }
  })

  it('name the transaction that a role must not append', () => {
    const { log } = given({ acceptedEpoch: () => 1 })
    expect(() => log.append(createTxn(2 * EPOCH_1 + 1))).toThrow('{"zxid":8589934593}')
    log.revoke()
    expect(() => log.append(createTxn(1))).toThrow('{"zxid":1}')
  })

  it('count as pending until they are durable, and grow the range', async () => {
    const { log, append, disk, clock, range } = given()
    append(1, 2)
    expect([log.pendingBytes, range.upTo, range.bytesAfter(0)]).toEqual([2 * ENTRY, 2, 2 * ENTRY])
    const release = holdWrites(disk)
    clock.advance(0)
    append(3)
    expect(log.pendingBytes).toBe(3 * ENTRY)
    release()
    await clock.untilIdle()
    expect([log.durableZxid, log.pendingBytes]).toEqual([3, 0])
    const hold = holdWrites(disk)
    append(4)
    clock.advance(0)
    append(5, 6)
    hold()
    while (log.durableZxid < 4) await Promise.resolve()
    expect(log.pendingBytes).toBe(2 * ENTRY)
    await log.close()
  })

  it('are refused after the role, which makes durable what was appended before', async () => {
    const { log, append, disk, events } = given()
    append(1)
    expect(log.state).toBe('open')
    log.revoke()
    expect(log.state).toBe('closed')
    expect(() => append(2)).toThrow('A role that has ended appends nothing to the log')
    await log.close()
    await log.close()
    expect([events, log.state, disk.writes]).toEqual([['durable 1: 1 in 0 ms'], 'closed', 1])
    await expect(log.flush()).rejects.toThrow('Expected a log that is open, got one that is closed')
  })
})

describe('the writes of TxnLog', () => {
  it('are one for each batch, and warn when the disk is slow', async () => {
    const { log, append, disk, clock, events, lines } = given({ syncWarningMs: () => 100 })
    for (const [zxid, ms] of [
      [1, 100],
      [2, 101],
    ] as const) {
      disk.beforeWrite = async () => clock.advance(ms)
      append(zxid)
      await log.flush()
    }
    expect(events).toEqual(['durable 1: 1 in 100 ms', 'durable 2: 1 in 101 ms'])
    expect(lines).toEqual([
      [
        { id: 'log.slow-sync', ms: 101, file: `${FOLDER}/log.1`, bytes: ENTRY, entries: 1 },
        expect.stringContaining('Making 1 transactions durable took 101 ms') as string,
      ],
    ])
  })

  it('say since when one is in flight', async () => {
    const { log, append, disk, clock } = given()
    expect(log.writingSince).toBe(undefined)
    clock.advance(50)
    const release = holdWrites(disk)
    append(1)
    clock.advance(0)
    clock.advance(7)
    expect(log.writingSince).toBe(1050)
    release()
    await clock.untilIdle()
    expect(log.writingSince).toBe(undefined)
    disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    append(2)
    await clock.untilIdle()
    expect([log.state, log.writingSince]).toEqual(['failed', undefined])
  })

  it('that are delayed begin anew once a batch was full', async () => {
    const { log, append, clock } = given({ flushDelayMs: 50, maxBatchSize: 3 })
    append(1)
    expect(clock.pendingTimers()).toEqual([{ name: 'log flush delay', at: 1050 }])
    clock.advance(20)
    append(2)
    expect(clock.pendingTimers()).toHaveLength(1)
    append(3)
    await clock.untilIdle()
    expect([log.durableZxid, clock.pendingTimers()]).toEqual([3, []])
    append(4)
    clock.advance(49)
    await clock.untilIdle()
    expect(log.durableZxid).toBe(3)
    clock.advance(1)
    await clock.untilIdle()
    expect(log.durableZxid).toBe(4)
  })

  it('that are delayed wait as long right after a write that left nothing behind', async () => {
    const { log, append, clock } = given({ flushDelayMs: 50 })
    append(1)
    clock.advance(50)
    while (log.durableZxid < 1) await Promise.resolve()
    append(2)
    await clock.untilIdle()
    expect([log.durableZxid, clock.pendingTimers()]).toEqual([1, [{ name: 'log flush delay', at: 1100 }]])
    await log.close()
  })

  it('take one turn of the event loop for all that is appended in it, and one after a write', async () => {
    const { log, append, clock, disk } = given()
    let turns = 0
    const immediate = clock.immediate.bind(clock)
    clock.immediate = (action) => {
      turns++
      immediate(action)
    }
    append(1, 2, 3)
    expect(turns).toBe(1)
    const release = holdWrites(disk)
    clock.advance(0)
    append(4, 5)
    expect(turns).toBe(1)
    release()
    await clock.untilIdle()
    expect([log.durableZxid, turns]).toEqual([5, 2])
  })

  it('reuse at most two buffers', async () => {
    const { log, append, disk } = given()
    const buffers = buffersOf(disk)
    const writeThree = async (first: number): Promise<Set<ArrayBufferLike>> => {
      for (const zxid of [first, first + 1, first + 2]) {
        log.roll()
        append(zxid)
      }
      await log.flush()
      return new Set(buffers.splice(0))
    }
    const [before, after] = [await writeThree(1), await writeThree(4)]
    const reused = [...before].filter((buffer) => after.has(buffer))
    expect([before.size, after.size, reused.length]).toEqual([3, 3, 2])
  })

  it('reuse no buffer of more than 1 MiB', async () => {
    const { log, disk } = given()
    const buffers = buffersOf(disk)
    const others = ENTRY - 50
    for (const [i, bytes] of [ENTRY, 1 << 20, ENTRY, (1 << 20) + 1, ENTRY].entries()) {
      log.append(createTxn(i + 1, bytes - others))
      await log.flush()
    }
    expect([buffers[2] === buffers[1], buffers[4] === buffers[3]]).toEqual([true, false])
  })

  it('are scheduled once in a turn, and by a flush at once', async () => {
    const { log, append, clock, disk } = given()
    append(1, 2)
    expect(disk.writes).toBe(0)
    await clock.untilIdle()
    expect([log.durableZxid, disk.writes]).toEqual([2, 1])
    append(3)
    await log.flush()
    append(4)
    await clock.untilIdle()
    expect([log.durableZxid, disk.writes]).toEqual([4, 3])
  })
})

describe('the files of TxnLog', () => {
  const draw = (value: number): Pick<TxnLogOptions, 'random'> => ({
    random: { below: () => value, bytes: (n) => new Uint8Array(n) },
  })

  it.each([
    [10, 0, 6],
    [10, 0xffff_ffff, 10],
    [11, 0xffff_ffff, 10],
    [1, 0, 2],
    [0, 0, 2],
  ])(
    'with snapCount %i make a snapshot due (random number %i) at transaction %i',
    async (count, value, due) => {
      const { write, events, log, names } = given({ snapCount: () => count, ...draw(value) })
      for (let zxid = 1; zxid < due; zxid++) await write(zxid)
      expect([log.txnsSinceRoll, events.includes('snapshot due')]).toEqual([due - 1, false])
      await write(due)
      expect([log.txnsSinceRoll, events.filter((event) => event === 'snapshot due')]).toEqual([
        0,
        ['snapshot due'],
      ])
      expect(names()).toEqual(['log.1'])
      await write(due + 1)
      expect(names()).toEqual(['log.1', `log.${(due + 1).toString(16)}`])
    },
  )

  it('read snapCount anew after each snapshot', async () => {
    const counts = [2, 8]
    const { write, names } = given({ snapCount: () => counts.shift() ?? 1000 })
    await write(...Array.from({ length: 12 }, (_, i) => i + 1))
    expect(names()).toEqual(['log.1', 'log.3', 'log.8'])
  })

  it('make a snapshot due by their bytes, unless the limit is 0 or less', async () => {
    for (const [limit, due] of [
      // The last entry of a file is written after it was decided that it is the last: its bytes count for the next one.
      [8 * ENTRY, [1, 7, 12]],
      [0, [1]],
      [-5, [1]],
    ] as const) {
      const { write, names } = given({ snapSizeLimitBytes: limit })
      await write(...Array.from({ length: 12 }, (_, i) => i + 1))
      expect(names()).toEqual(due.map((zxid) => `log.${zxid.toString(16)}`))
    }
  })

  it('end once they are larger than their limit', async () => {
    for (const [limit, first] of [
      [LOG_HEADER_BYTES + 2 * ENTRY, ['log.1', 'log.4']],
      [LOG_HEADER_BYTES + 2 * ENTRY - 1, ['log.1', 'log.3', 'log.5']],
      [-1, ['log.1']],
    ] as const) {
      const { write, names, events } = given({ fileSizeLimitBytes: limit })
      await write(1, 2, 3, 4, 5)
      expect(names()).toEqual(first)
      expect(events).toHaveLength(5)
    }
  })

  it('that end at their limit while another has begun are followed by that one', async () => {
    const { log, append, disk, clock, names } = given({ fileSizeLimitBytes: 1 })
    const release = holdWrites(disk)
    append(1)
    clock.advance(0)
    log.roll()
    append(2)
    release()
    while (log.durableZxid < 1) await Promise.resolve()
    append(3)
    await clock.untilIdle()
    expect([log.durableZxid, names()]).toEqual([3, ['log.1', 'log.2']])
  })

  it('begin anew with `roll`, which resets the count of transactions', async () => {
    const { log, write, names } = given({ sinceSnapshot: 7 })
    await write(1, 2)
    expect(log.txnsSinceRoll).toBe(9)
    log.roll()
    expect(log.txnsSinceRoll).toBe(0)
    await write(3, 4)
    expect([names(), log.txnsSinceRoll]).toEqual([['log.1', 'log.3'], 2])
  })
})

describe('TxnLog on a disk that fails', () => {
  const fail = (disk: MemoryDisk, code: string): void => {
    disk.injectFault = (call) => (call === 'write' ? { code, writtenBytes: 3 } : undefined)
  }

  it.each(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE'])('goes on after %s once there is space', async (code) => {
    const { log, disk, clock, write, append, events, lines, range, names } = given()
    await write(1)
    expect(log.hasLostAppends).toBe(false)
    const release = holdWrites(disk)
    append(2)
    clock.advance(0)
    append(3)
    fail(disk, code)
    release()
    await clock.untilIdle()
    expect([log.state, log.hasLostAppends, log.failure, log.writingSince]).toEqual([
      'full',
      true,
      undefined,
      undefined,
    ])
    expect([log.lastZxid, log.durableZxid, log.pendingBytes, range.upTo]).toEqual([1, 1, 0, 1])
    expect(events).toEqual(['durable 1: 1 in 0 ms', `full after 1: ${code}`])
    expect(lines).toEqual([
      [{ id: 'log.disk-full', folder: FOLDER, code }, expect.stringMatching('^No .* is left') as string],
    ])
    expect(() => append(2)).toThrow('is left for the transaction log')
    await expect(log.flush()).rejects.toMatchObject({ name: 'LogFullError', code, cause: { code } })
    disk.injectFault = undefined
    clock.advance(1000)
    await clock.untilIdle()
    expect([log.state, events.at(-1), lines[1]]).toEqual([
      'open',
      'space',
      [{ folder: FOLDER }, 'There is space for the transaction log again; writes are accepted'],
    ])
    await write(2, 3)
    expect(names()).toEqual(['log.1', 'log.2'])
    await log.close()
    expect(await recoverFrom(disk)).toMatchObject({ lastZxid: 3, tornWrites: [] })
  })

  it('looks for space no more after its role', async () => {
    const { log, disk, clock, append, events } = given()
    fail(disk, 'ENOSPC')
    append(1)
    await clock.untilIdle()
    await log.close()
    expect(log.state).toBe('closed')
    disk.injectFault = undefined
    const before = disk.writes
    clock.advance(1000)
    await clock.untilIdle()
    expect([disk.writes - before, events]).toEqual([0, ['full after 0: ENOSPC']])
  })

  it('stops, and keeps the file, when the system refuses to keep what was written as it is closed', async () => {
    const { log, disk, clock, write, append, events } = given()
    disk.openWrite = async (path, options) => {
      const writer = await MemoryDisk.prototype.openWrite.call(disk, path, options)
      // As NFS without forceSync: the error of earlier writes.
      return { ...writer, close: () => Promise.reject(new DiskError('EDQUOT', 'EDQUOT', path)) }
    }
    await write(1)
    log.roll()
    append(2)
    await clock.untilIdle()
    expect(await disk.exists(`${FOLDER}/log.1`)).toBe(true)
    expect([log.state, events.at(-1)]).toEqual([
      'failed',
      expect.stringContaining('cannot be written') as string,
    ])
  })

  it('stops when what was written in part cannot be taken back', async () => {
    const { log, disk, clock, write, append, events } = given()
    await write(1)
    disk.injectFault = (call) =>
      call === 'write' ? { code: 'ENOSPC' } : call === 'truncate' ? { code: 'EROFS' } : undefined
    append(2)
    await clock.untilIdle()
    expect([log.state, events.at(-1)]).toEqual([
      'failed',
      `The transaction log cannot be written: EROFS on ${FOLDER}/log.1. The server stops; check the disk`,
    ])
    expect(log.failure?.cause).toMatchObject({ code: 'EROFS' })
    const failed = { name: 'Error', message: 'Expected a log that is open, got one that is failed' }
    await expect(log.flush()).rejects.toMatchObject(failed)
    expect(() => append(2)).toThrow(failed.message)
  })

  it('stops after any other error, and writes nothing of what was appended meanwhile', async () => {
    const { log, disk, clock, append, events, names } = given()
    const release = holdWrites(disk)
    append(1)
    clock.advance(0)
    append(2)
    fail(disk, 'EIO')
    release()
    await clock.untilIdle()
    disk.injectFault = undefined
    expect([log.state, log.pendingBytes, events]).toEqual([
      'failed',
      0,
      [`The transaction log cannot be written: EIO on ${FOLDER}/log.1. The server stops; check the disk`],
    ])
    const failed = 'Expected a log that is open, got one that is failed'
    expect(() => append(3)).toThrow(failed)
    await expect(log.flush()).rejects.toMatchObject({ message: failed })
    await log.close()
    expect([names(), disk.writes, log.durableZxid]).toEqual([['log.1'], 1, 0])
  })

  it('stops after an error that is none of the disk', async () => {
    const { log, disk, clock, append, events } = given()
    disk.beforeWrite = () => Promise.reject(new TypeError('broken'))
    append(1)
    await clock.untilIdle()
    expect(events).toEqual([
      'The transaction log cannot be written: broken. The server stops; check the disk',
    ])
    expect(log.failure?.message).toBe(events[0])
  })
})
