import { formatZxid, makeZxid } from '@zabra/protocol'
import { DiskError, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import type { Zxid } from '../core/types.ts'
import { truncateTo } from './index.ts'
import { appendTo, createTxn, FOLDER, LogFixture } from './testing/log-fixture.ts'

const historyOf = (fixture: LogFixture): string[] =>
  fixture
    .fileNames()
    .filter((name) => !name.startsWith('set-aside/'))
    .toSorted()

/** Returns a fixture with 100 transactions in several logs, and snapshots after 0, 60 and 80 of them. */
async function create(): Promise<LogFixture> {
  const fixture = await new LogFixture().open({ fileSizeLimitBytes: 2000 })
  await fixture.snapshot()
  await fixture.appendAll(1, 60)
  await fixture.snapshot()
  await fixture.appendAll(61, 80)
  await fixture.snapshot()
  await fixture.appendAll(81, 100)
  await fixture.log.close()
  return fixture
}

describe('truncateTo', () => {
  it('ends the history at a transaction and removes later snapshots', async () => {
    const fixture = await create()
    expect(await truncateTo(fixture.recoveryOptions(), 43)).toMatchObject({ isExact: true })
    const { lastZxid, tree } = await fixture.recover()
    expect([lastZxid, tree.has('/n43'), tree.has('/n44')]).toEqual([43, true, false])
    expect(fixture.fileNames().filter((name) => name.startsWith('snapshot'))).toEqual(['snapshot.0'])
  })

  it('keeps the snapshot that ends there and those before', async () => {
    const fixture = await create()
    const truncated = await truncateTo(fixture.recoveryOptions(), 60)
    expect(truncated).toMatchObject({ isExact: true, recovery: { lastZxid: 60, snapshot: 'snapshot.3c' } })
    const snapshots = historyOf(fixture).filter((name) => name.startsWith('snapshot'))
    expect(snapshots).toEqual(['snapshot.0', 'snapshot.3c'])
  })

  it('leaves a history that begins with the wanted one, whenever power is cut, and completes the next time', async () => {
    for (let operations = 0; ; operations++) {
      const fixture = await create()
      let left = operations
      fixture.disk.injectFault = () => {
        if (left-- === 0) throw new Error('crash')
        return undefined
      }
      const isDone = await truncateTo(fixture.recoveryOptions(), 43).then(
        () => true,
        () => false,
      )
      fixture.disk.injectFault = undefined
      fixture.disk.powerCut()
      const { lastZxid, tree } = await fixture.recover()
      const message = `after ${operations} operations`
      expect([lastZxid >= 43, tree.has('/n43')], message).toEqual([true, true])
      expect(tree.has('/n100'), message).toBe(lastZxid === 100)
      if (isDone) return expect(lastZxid).toBe(43)
      expect(await truncateTo(fixture.recoveryOptions(), 43)).toMatchObject({ isExact: true })
      expect((await fixture.recover()).lastZxid, message).toBe(43)
    }
  })

  it('cuts a log between two transactions, closes it, and says where', async () => {
    const fixture = await create()
    const { disk } = fixture
    const lines: [object, string][] = []
    const logger = { ...silentLogger, warn: (context: object, text: string) => lines.push([context, text]) }
    const opened: unknown[] = []
    let isClosed = false
    const openWrite = disk.openWrite.bind(disk)
    disk.openWrite = async (path, options) => {
      opened.push(path, options)
      const writer = await openWrite(path, options)
      return { ...writer, close: async () => void (isClosed = true) }
    }
    await truncateTo({ ...fixture.recoveryOptions(), logger }, 43)
    const [path] = opened as [string]
    expect(opened.slice(1)).toEqual([{ create: false, durable: false }])
    expect(isClosed).toBe(true)
    const offset = (await disk.readFile(path)).length
    expect(lines.at(-1)).toEqual([
      { id: 'log.cut', file: path, offset },
      'Cut the log: the leader has nothing after 0x2b',
    ])
  })

  it('removes whole logs where one begins after the transaction, and changes nothing else', async () => {
    const fixture = await create()
    const [, second] = historyOf(fixture).filter((name) => name.startsWith('log.1') || /^log\.../.test(name))
    const last = Number.parseInt(second!.slice(4), 16) - 1
    fixture.disk.openWrite = () => Promise.reject(new Error('nothing is to be cut'))
    expect(await truncateTo(fixture.recoveryOptions(), last)).toMatchObject({ isExact: true })
    expect(historyOf(fixture).some((name) => name === second)).toBe(false)
  })

  it('keeps a log that begins with the transaction', async () => {
    const fixture = await create()
    const log = historyOf(fixture).find((name) => /^log\.../.test(name))!
    const zxid = Number.parseInt(log.slice(4), 16)
    expect(await truncateTo(fixture.recoveryOptions(), zxid)).toMatchObject({ isExact: true })
    expect((await fixture.recover()).lastZxid).toBe(zxid)
  })

  it('changes nothing where the history ends with the transaction', async () => {
    const fixture = await create()
    const before = fixture.fileNames()
    expect(await truncateTo(fixture.recoveryOptions(), 100)).toMatchObject({ isExact: true })
    expect(fixture.fileNames()).toEqual(before)
  })

  it('changes nothing where the history does not have the transaction', async () => {
    const fixture = await create()
    const before = fixture.fileNames()
    expect(await truncateTo(fixture.recoveryOptions(), 101)).toEqual({
      isExact: false,
      reason: 'the history up to it ends at 0x64',
    })
    expect(fixture.fileNames()).toEqual(before)
  })

  it('says why where the history cannot be read, and rejects when the disk fails', async () => {
    for (const [error, isReason] of [
      [new RangeError('out of range'), true],
      [new DiskError('EIO', 'EIO', 'log.1'), false],
    ] as const) {
      const fixture = await create()
      const openRead = fixture.disk.openRead.bind(fixture.disk)
      fixture.disk.openRead = (path) => (path.includes('/log.') ? Promise.reject(error) : openRead(path))
      const truncated = truncateTo(fixture.recoveryOptions(), 43)
      if (isReason) expect(await truncated).toEqual({ isExact: false, reason: 'out of range' })
      else await expect(truncated).rejects.toBe(error)
    }
    const withoutSnapshot = await create()
    for (const name of withoutSnapshot.fileNames())
      if (name.startsWith('snapshot')) await withoutSnapshot.disk.remove(`${FOLDER}/${name}`)
    const truncated = await truncateTo(withoutSnapshot.recoveryOptions(), 43)
    expect(truncated).toMatchObject({
      isExact: false,
      reason: expect.stringContaining('Expected a snapshot beside log entries') as string,
    })
    const damaged = await create()
    const bytes = await damaged.disk.readFile(`${FOLDER}/log.1`)
    bytes[60]! ^= 1
    damaged.disk.putFile(`${FOLDER}/log.1`, bytes)
    expect(await truncateTo(damaged.recoveryOptions(), 43)).toMatchObject({ isExact: false })
  })
})

describe('truncateTo the start of an epoch', () => {
  async function createEpochs(...zxids: readonly Zxid[]): Promise<LogFixture> {
    const fixture = await new LogFixture().open()
    await fixture.snapshot()
    fixture.appliesDurable = false
    for (const zxid of zxids) appendTo(fixture.log, createTxn(zxid))
    await fixture.log.close()
    return fixture
  }
  const history = [makeZxid(1, 1), makeZxid(1, 2), makeZxid(2, 1), makeZxid(2, 2)]

  it('ends there if the history has its first transaction', async () => {
    const fixture = await createEpochs(...history)
    const start = makeZxid(2, 0)
    const truncated = await truncateTo(fixture.recoveryOptions(), start)
    expect(truncated).toMatchObject({ isExact: true, recovery: { lastZxid: start } })
    expect(truncated.isExact && truncated.recovery.tree.lastZxid).toBe(start)
    expect((await fixture.recover()).lastZxid).toBe(makeZxid(1, 2))
  })

  it.each([makeZxid(3, 0), makeZxid(1, 3)])('is refused at %i, which nothing proves', async (zxid) => {
    const fixture = await createEpochs(...history)
    const end = formatZxid(zxid === makeZxid(3, 0) ? makeZxid(2, 2) : makeZxid(1, 2))
    const reason = `the history up to it ends at 0x${end}`
    expect(await truncateTo(fixture.recoveryOptions(), zxid)).toEqual({ isExact: false, reason })
  })

  it('is refused where the history goes on in a later epoch', async () => {
    const fixture = await createEpochs(makeZxid(1, 1), makeZxid(3, 1))
    expect(await truncateTo(fixture.recoveryOptions(), makeZxid(2, 0))).toMatchObject({ isExact: false })
  })

  it('is refused before the first transaction of a log that begins within an epoch', async () => {
    const fixture = await createEpochs(makeZxid(1, 5), makeZxid(1, 6))
    await fixture.disk.remove(`${FOLDER}/snapshot.0`)
    const options = { ...fixture.recoveryOptions(), trustEmptySnapshot: true }
    expect(await truncateTo(options, makeZxid(1, 4))).toMatchObject({ isExact: false })
  })
})
