import { MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import {
  createTxn,
  diskWithLog,
  FOLDER,
  LogFixture,
  openLog,
  recoverFrom,
  timers,
  appendTo,
} from './testing/log-fixture.ts'

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
    expect(fixture.durable).toBe(5)
    await writing(6)
    await fixture.log.close()
    expect(fixture.durable).toBe(7)
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
