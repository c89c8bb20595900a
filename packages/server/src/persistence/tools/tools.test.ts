import { OPEN_ACL_UNSAFE, Reader } from '@zabra/protocol'
import { silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { Tree } from '../../core/tree/index.ts'
import type { LoggedTxn } from '../../core/types.ts'
import { decodeLoggedTxn, takeSnapshot } from '../index.ts'
import { LOG, logOf } from '../testing/log-bytes.ts'
import { createTxn, FOLDER } from '../testing/log-fixture.ts'
import {
  chopLog,
  DamageError,
  readDatabase,
  readLog,
  readSnapshot,
  repairLog,
  type LogRecord,
} from './index.ts'

const create = (zxid: number): LoggedTxn => createTxn(zxid, 20)

describe('readLog', () => {
  it('passes every transaction with its offset', async () => {
    const { disk, offsets, end, put, bytes } = await logOf([1, 2, 3])
    put()
    const met: LogRecord[] = []
    const report = await readLog(disk, LOG, (record) => void met.push(record))
    expect(met.map(({ offset }) => offset)).toEqual(offsets)
    expect(met.map(({ logged }) => logged.header.zxid)).toEqual([1, 2, 3])
    expect(met[1]!.offset + met[1]!.size).toBe(offsets[2])
    expect(report).toEqual({
      file: LOG,
      state: 'sound',
      size: bytes.length,
      transactions: 3,
      first: 1,
      last: 3,
      end,
      problem: undefined,
    })
    // Transactions are copies that stay valid after the call.
    const again = new Reader(bytes.subarray(offsets[0]! + 12, offsets[1]! - 1))
    expect(met[0]!.logged).toEqual(decodeLoggedTxn(again))
    const { data } = met[0]!.logged.txn as { data: Uint8Array }
    expect(data.buffer.byteLength).toBe(met[0]!.size - 13)
  })

  it('stops when the visitor returns false', async () => {
    const { disk, put } = await logOf([1, 2, 3])
    put()
    expect(await readLog(disk, LOG, ({ logged }) => logged.header.zxid < 2)).toMatchObject({
      transactions: 2,
      last: 2,
      state: 'sound',
    })
  })

  it('reports the first bad byte of corruption in the middle', async () => {
    const { disk, bytes, offsets, put } = await logOf([1, 2, 3])
    bytes[offsets[1]! + 40]! ^= 0xff
    put()
    const report = await readLog(disk, LOG)
    expect(report).toMatchObject({ state: 'damaged', transactions: 1, end: offsets[1] })
    expect(report.problem?.offset).toBe(offsets[1])
    expect(report.problem?.what).toMatch(/^Expected an entry, got bytes that are none, though a whole entry/)
  })

  it.each([
    { first: [1], second: [], transactions: 3 },
    { first: [1], second: [2], transactions: 2 },
  ])(
    'takes a log to which a server writes meanwhile as sound: %j',
    async ({ first, second, transactions }) => {
      const { disk, bytes, offsets } = await logOf([1, 2, 3])
      // A reading sees zeros where an entry is written after it, and what follows.
      const without = (holes: readonly number[]): Uint8Array => {
        const seen = bytes.slice()
        for (const index of holes) seen.fill(0, offsets[index], (offsets[index + 1] ?? bytes.length) - 1)
        return seen
      }
      const readings = [without(first), without(second)]
      const open = disk.openRead.bind(disk)
      disk.openRead = (path) => (disk.putFile(LOG, readings.shift()!), open(path))
      disk.putFile(LOG, bytes)
      const met: number[] = []
      const report = await readLog(disk, LOG, ({ logged }) => void met.push(logged.header.zxid))
      expect(report).toMatchObject({ state: 'sound', transactions, problem: undefined })
      expect(met).toEqual([1, 2, 3].slice(0, transactions))
    },
  )

  it('reports a gap between transactions', async () => {
    const { disk, offsets, put } = await logOf([1, 2, 4])
    put()
    expect(await readLog(disk, LOG)).toMatchObject({
      state: 'damaged',
      problem: { offset: offsets[2], what: 'Expected transaction 0x3, got 0x4: transactions are missing' },
    })
  })

  it('reports a torn write, and a missing end mark as no loss', async () => {
    const torn = await logOf([1, 2], 0)
    torn.disk.putFile(LOG, torn.bytes.subarray(0, torn.end - 9))
    expect(await readLog(torn.disk, LOG)).toMatchObject({
      state: 'torn',
      transactions: 1,
      problem: { offset: torn.offsets[1] },
    })
    const unmarked = await logOf([1, 2], 0)
    unmarked.disk.putFile(LOG, unmarked.bytes.subarray(0, unmarked.end - 1))
    expect(await readLog(unmarked.disk, LOG)).toMatchObject({ state: 'unmarked', transactions: 2 })
  })
})

describe('a copy of a log that cannot be written to its end', () => {
  it.each(['write', 'sync'])('is removed: %s', async (failing) => {
    const { disk, put } = await logOf([1, 2, 3])
    put()
    const fails = { code: 'ENOSPC', writtenBytes: 50 }
    disk.injectFault = (call, path) => (call === failing && path.startsWith('/new') ? fails : undefined)
    await expect(chopLog(disk, LOG, 2, '/new')).rejects.toMatchObject({ code: 'ENOSPC' })
    disk.injectFault = undefined
    expect(disk.paths()).toEqual([LOG])
    expect(await chopLog(disk, LOG, 2, '/new')).toEqual({ kept: 2, last: 2 })
  })

  it('has no name yet when the process is killed, and does not hinder the next attempt', async () => {
    const { disk, put } = await logOf([1, 2, 3])
    put()
    const copy = '/copies/log.1'
    const isWriting = new Promise<void>((resolve) => {
      disk.beforeWrite = () => (resolve(), new Promise(() => {}))
    })
    void chopLog(disk, LOG, 2, copy)
    await isWriting
    expect(await disk.exists(copy)).toBe(false)
    disk.beforeWrite = undefined
    const [, left] = disk.paths()
    await chopLog(disk, LOG, 2, copy)
    disk.powerCut()
    expect(disk.paths()).toEqual([LOG, left, copy])
    expect(await readLog(disk, copy)).toMatchObject({ state: 'sound', transactions: 2 })
  })
})

describe('a copy of a log', () => {
  it('replaces and removes no file of a user, also one that is made meanwhile', async () => {
    const { disk, put } = await logOf([1, 2, 3])
    put()
    const mine = new TextEncoder().encode('mine')
    const others = ['/new.tmp', '/new.1.tmp', '/new.2.tmp']
    for (const path of others) disk.putFile(path, mine)
    await chopLog(disk, LOG, 2, '/new')
    for (const path of others) expect(await disk.readFile(path)).toEqual(mine)
    disk.beforeWrite = async () => disk.putFile('/late', mine)
    await expect(chopLog(disk, LOG, 2, '/late')).rejects.toMatchObject({ code: 'EEXIST', path: '/late' })
    expect(await disk.readFile('/late')).toEqual(mine)
    expect(disk.paths()).toEqual([LOG, ...others, '/new', '/late'])
  })
})

describe('repairLog', () => {
  it('does not change a sound file', async () => {
    const { disk, put } = await logOf([1])
    put()
    expect(await repairLog(disk, await readLog(disk, LOG))).toBeUndefined()
    expect(disk.paths()).toEqual([LOG])
  })

  it('cuts a torn write and keeps a copy of the file as it was', async () => {
    const { disk, bytes, offsets, end } = await logOf([1, 2], 0)
    const before = bytes.slice(0, end - 9)
    disk.putFile(LOG, before)
    const repair = await repairLog(disk, await readLog(disk, LOG))
    expect(repair).toEqual({
      written: LOG,
      backup: `${FOLDER}/backup.log.1.1`,
      kept: 1,
      last: 1,
      bytesCut: end - 9 - offsets[1]!,
    })
    expect(await disk.readFile(`${FOLDER}/backup.log.1.1`)).toEqual(before)
    expect(await readLog(disk, LOG)).toMatchObject({ state: 'sound', transactions: 1 })
  })

  it('writes a missing end mark', async () => {
    const { disk, bytes, end } = await logOf([1, 2], 0)
    disk.putFile(LOG, bytes.subarray(0, end - 1))
    await repairLog(disk, await readLog(disk, LOG))
    expect(await readLog(disk, LOG)).toMatchObject({ state: 'sound', transactions: 2 })
  })

  it('writes the sound part to another file if one is named, and never over an existing one', async () => {
    const { disk, bytes, end } = await logOf([1, 2], 0)
    disk.putFile(LOG, bytes.subarray(0, end - 9))
    const report = await readLog(disk, LOG)
    expect(await repairLog(disk, report, { output: '/new' })).toMatchObject({
      written: '/new',
      backup: undefined,
    })
    expect(await readLog(disk, '/new')).toMatchObject({ state: 'sound', transactions: 1 })
    expect(await readLog(disk, LOG)).toMatchObject({ state: 'torn' })
    await expect(repairLog(disk, report, { output: '/new' })).rejects.toMatchObject({ code: 'EEXIST' })
  })

  it('drops acknowledged transactions only with force, and keeps a copy even then', async () => {
    const { disk, bytes, offsets, put } = await logOf([1, 2, 3])
    bytes[offsets[1]! + 40]! ^= 0xff
    put()
    const report = await readLog(disk, LOG)
    await expect(repairLog(disk, report)).rejects.toThrow(/--force; a copy of the file is kept/)
    expect(disk.paths()).toEqual([LOG])
    expect(await repairLog(disk, report, { force: true })).toMatchObject({ kept: 1, last: 1 })
    expect(await readLog(disk, LOG)).toMatchObject({ state: 'sound', transactions: 1 })
    expect(await disk.readFile(`${FOLDER}/backup.log.1.1`)).toEqual(bytes)
  })

  it('moves a file without a whole header away', async () => {
    const disk = await diskWithFolder(FOLDER)
    disk.putFile(LOG, new Uint8Array([0x5a, 0x4b]))
    expect(await repairLog(disk, await readLog(disk, LOG))).toMatchObject({ written: undefined, kept: 0 })
    expect(disk.paths()).toEqual([`${FOLDER}/backup.log.1.1`])
  })
})

describe('readSnapshot', () => {
  it.each(['none', 'gz', 'snappy'] as const)(
    'returns nodes, sessions and the digest (%s)',
    async (compression) => {
      const disk = await diskWithFolder(FOLDER)
      const tree = new Tree({ digest: true, extendedTypes: true })
      for (const zxid of [1, 2]) tree.apply(create(zxid).header, create(zxid).txn)
      const options = { disk, folder: FOLDER, compression, compressor: nodeCompression }
      const { file } = await takeSnapshot(tree, [[9n, 4000]], options)
      const snapshot = await readSnapshot(disk, `${FOLDER}/${file}`, nodeCompression)
      expect(snapshot).toMatchObject({ zxid: 2, lastZxid: 2, nodeCount: tree.nodeCount })
      expect([...snapshot.sessions]).toEqual([[9n, 4000]])
      expect(snapshot.digest?.matches).toBe(true)
      const nodes = [...snapshot.nodes()]
      expect(nodes).toHaveLength(tree.nodeCount)
      expect(nodes.find(({ path }) => path === '/n2')).toMatchObject({
        data: new Uint8Array(20).fill(2),
        acl: OPEN_ACL_UNSAFE,
        stat: { czxid: 2 },
        children: 0,
      })
      expect(nodes[0]).toMatchObject({ path: '/' })
    },
  )

  it('reports the first bad byte of a corrupt snapshot', async () => {
    const disk = await diskWithFolder(FOLDER)
    const tree = new Tree({ digest: true, extendedTypes: true })
    tree.apply(create(1).header, create(1).txn)
    const options = { disk, folder: FOLDER, compression: 'none', compressor: nodeCompression } as const
    const path = `${FOLDER}/${(await takeSnapshot(tree, [], options)).file}`
    const bytes = (await disk.readFile(path)).slice()
    bytes[200]! ^= 1
    disk.putFile(path, bytes)
    const failure = await readSnapshot(disk, path, nodeCompression).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(DamageError)
    expect((failure as DamageError).message).toMatch(
      /at byte \d+\. Use an older snapshot or a copy of this one\.$/,
    )
  })
})

describe('readDatabase', () => {
  it('reads a log to which a server keeps writing up to a whole transaction', async () => {
    const { disk, bytes, offsets } = await logOf([1, 2, 3, 4])
    disk.putFile(LOG, bytes)
    const options = { disk, folder: FOLDER, compression: 'none', compressor: nodeCompression } as const
    await takeSnapshot(new Tree({ digest: true, extendedTypes: true }), [], options)
    // Each reading of the whole file sees zeros where an entry is written after it, and what follows.
    const hole = (index: number): Uint8Array => bytes.slice().fill(0, offsets[index], offsets[index + 1])
    const readings = [hole(1), hole(1), hole(2)]
    const open = disk.openRead.bind(disk)
    disk.openRead = (path) => {
      if (path === LOG) disk.putFile(LOG, readings.shift() ?? hole(2))
      return open(path)
    }
    const location = { dataDir: '/data', dataLogDir: '/data' }
    const contents = await readDatabase(disk, location, nodeCompression, silentLogger)
    expect([contents.lastZxid, readings]).toEqual([2, []])
  })
})
