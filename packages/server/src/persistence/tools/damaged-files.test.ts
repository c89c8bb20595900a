import { Writer } from '@zabra/protocol'
import { silentLogger, type MemoryDisk } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { countOpen, diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { createOf } from '../../core/testing/create-of.ts'
import type { Tree } from '../../core/tree/index.ts'
import { takeSnapshot } from '../index.ts'
import { ENTRY_END, LOG_HEADER_BYTES } from '../log-format.ts'
import { LOG, logOf } from '../testing/log-bytes.ts'
import { createTxn, FOLDER, newTree, payloadOf } from '../testing/log-fixture.ts'
import { writeEncodedEntry } from '../txn-codec.ts'
import { folderOf } from './copy-prefix.ts'
import { chopLog, DamageError, readDatabase, readLog, readSnapshot, repairLog } from './index.ts'

describe('chopLog', () => {
  it('needs the log to be sound up to the transaction, and not behind it', async () => {
    const { disk, bytes, offsets, put } = await logOf([1, 2, 3])
    bytes[offsets[1]! + 40]! ^= 0xff
    put()
    const open = countOpen(disk)
    expect(await chopLog(disk, LOG, 1, '/new')).toEqual({ kept: 1, last: 1 })
    expect(await readLog(disk, '/new')).toMatchObject({ state: 'sound', size: offsets[1] })
    const chopped = chopLog(disk, LOG, 3, '/other')
    await expect(chopped).rejects.toThrow(DamageError)
    await expect(chopped).rejects.toThrow(`in ${LOG} at byte ${offsets[1]!}.`)
    expect([disk.paths(), open()]).toEqual([[LOG, '/new'], 0])
  })

  it('says which transactions a log holds that lacks the one', async () => {
    const { disk, put } = await logOf([1, 2, 3])
    put()
    await expect(chopLog(disk, LOG, 9, '/new')).rejects.toThrow(
      `Expected a transaction of ${LOG}, which holds 0x1 to 0x3, got 0x9`,
    )
    const empty = await logOf([])
    empty.put()
    await expect(chopLog(empty.disk, LOG, 9, '/new')).rejects.toThrow('which holds none, got 0x9')
  })

  it('ends the copy with one end mark, whether the log has it or lacks it', async () => {
    for (const missing of [0, 1]) {
      const { disk, bytes, end } = await logOf([1, 2], 0)
      disk.putFile(LOG, bytes.subarray(0, end - missing))
      await chopLog(disk, LOG, 2, '/new')
      expect(await disk.readFile('/new')).toEqual(bytes)
    }
  })

  it('copies a long log to the byte', async () => {
    const { disk, bytes, offsets, put } = await logOf([1, 2, 3, 4], 100, 700_000)
    put()
    await chopLog(disk, LOG, 3, '/new')
    expect(Buffer.from(bytes.subarray(0, offsets[3])).equals(await disk.readFile('/new'))).toBe(true)
  })
})

it('the folder of a file is that of its path', () => {
  expect(['log.1', '/log.1', '/data/log.1', 'data/log.1'].map(folderOf)).toEqual(['.', '/', '/data', 'data'])
})

describe('the report of a log', () => {
  it('says what is torn, and what lacks its end mark', async () => {
    const { disk, bytes, offsets, end } = await logOf([1, 2], 0)
    disk.putFile(LOG, bytes.subarray(0, end - 9))
    const torn = (await readLog(disk, LOG)).problem
    const length = end - 9 - offsets[1]!
    expect(torn?.what).toBe(`A crash cut a write short: ${length} bytes that are no complete transaction`)
    disk.putFile(LOG, bytes.subarray(0, end - 1))
    expect((await readLog(disk, LOG)).problem).toMatchObject({
      offset: end - 1,
      what: 'The last transaction is complete but lacks its end mark',
    })
  })

  it('counts transactions that a leader has sent twice, and has no gap between epochs', async () => {
    const epoch = 2 ** 32
    const { disk, put } = await logOf([5, 6, 6, 7, 6, 7, 8, epoch + 1, epoch + 2, 3 * epoch + 1])
    put()
    expect(await readLog(disk, LOG)).toMatchObject({
      state: 'sound',
      transactions: 10,
      first: 5,
      last: 3 * epoch + 1,
    })
  })

  it('names a transaction that this version cannot read', async () => {
    const { disk, bytes, end } = await logOf([1], 0)
    const payload = payloadOf(createTxn(2))
    new DataView(payload.buffer, payload.byteOffset).setInt32(28, 99)
    const writer = new Writer()
    writer.raw(bytes)
    writeEncodedEntry(writer, payload)
    disk.putFile(LOG, writer.take())
    const { state, transactions, problem } = await readLog(disk, LOG)
    expect({ state, transactions, problem }).toMatchObject({
      state: 'damaged',
      transactions: 1,
      problem: { offset: end, what: expect.stringMatching(/^Expected a transaction \(/) },
    })
    expect(problem?.action).toContain('read it with that version')
  })

  it('is none where the disk cannot read the file', async () => {
    const { disk, put } = await logOf([1])
    put()
    disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    await expect(readLog(disk, LOG)).rejects.toThrow('EIO')
  })
})

describe('repairLog', () => {
  it('leaves a log of which no transaction is whole with its header', async () => {
    const { disk, bytes } = await logOf([1], 0)
    disk.putFile(LOG, bytes.subarray(0, LOG_HEADER_BYTES + 9))
    const open = countOpen(disk)
    expect(await repairLog(disk, await readLog(disk, LOG))).toMatchObject({
      written: LOG,
      kept: 0,
      bytesCut: 9,
    })
    expect(await disk.readFile(LOG)).toEqual(bytes.subarray(0, LOG_HEADER_BYTES))
    expect(open()).toBe(0)
  })

  it('writes nothing to another file for a log without a whole header', async () => {
    const disk = await diskWithFolder(FOLDER)
    disk.putFile(LOG, new Uint8Array([0x5a, 0x4b]))
    expect(await repairLog(disk, await readLog(disk, LOG), { output: '/new' })).toMatchObject({
      written: undefined,
      backup: undefined,
    })
    expect(disk.paths()).toEqual([LOG])
  })

  it('writes a missing end mark to another file, and leaves the log without it', async () => {
    const { disk, bytes, end } = await logOf([1, 2], 0)
    disk.putFile(LOG, bytes.subarray(0, end - 1))
    await repairLog(disk, await readLog(disk, LOG), { output: '/new' })
    expect(await disk.readFile('/new')).toEqual(bytes)
    expect(await disk.size(LOG)).toBe(end - 1)
    expect(bytes.at(-1)).toBe(ENTRY_END)
  })

  it('keeps a copy each time', async () => {
    const { disk, bytes, end } = await logOf([1, 2], 0)
    for (let time = 1; time <= 3; time++) {
      disk.putFile(LOG, bytes.subarray(0, end - time - 1))
      const { backup } = (await repairLog(disk, await readLog(disk, LOG)))!
      expect(backup).toBe(`${FOLDER}/backup.log.1.${time}`)
      expect(await disk.size(backup!)).toBe(end - time - 1)
    }
  })
})

describe('a snapshot', () => {
  const write = async (tree: Tree, disk: MemoryDisk, folder = FOLDER): Promise<string> => {
    const options = { disk, folder, compression: 'none', compressor: nodeCompression } as const
    return `${folder}/${(await takeSnapshot(tree, [], options)).file}`
  }
  const treeWith = (...paths: readonly string[]): Tree => {
    const tree = newTree()
    for (const [index, path] of paths.entries())
      tree.apply({ sessionId: 1n, cxid: 0, zxid: index + 1, time: 1 }, createOf(path))
    return tree
  }
  const digestOf = async (tree: Tree) => {
    const disk = await diskWithFolder(FOLDER)
    return (await readSnapshot(disk, await write(tree, disk), nodeCompression)).digest?.matches
  }

  it('has its digest, or another one, or says nothing where the digest is that of no whole tree', async () => {
    expect(await digestOf(treeWith('/a'))).toBe(true)
    const changed = (path: string): Tree => {
      const tree = treeWith(path)
      // A bit of the memory has changed since.
      tree.store.setData(tree.find(path), new Uint8Array(5))
      return tree
    }
    expect(await digestOf(changed('/a'))).toBe(false)
    // Apache ZooKeeper computes other digests of such paths.
    expect(await digestOf(changed('/ü'))).toBeUndefined()
    expect(await digestOf(newTree())).toBeUndefined()
    // Transactions came while it was written: its name says when that began.
    const disk = await diskWithFolder(FOLDER)
    const path = await write(treeWith('/a', '/b'), disk)
    disk.putFile(`${FOLDER}/snapshot.1`, await disk.readFile(path))
    const early = await readSnapshot(disk, `${FOLDER}/snapshot.1`, nodeCompression)
    expect([early.zxid, early.digest?.matches]).toEqual([1, undefined])
    expect(early.digest?.value).toMatch(/^[\da-f]{9,16}$/)
  })

  it('is read under any name, in any folder, with all of its nodes, parents before children', async () => {
    const disk = await diskWithFolder(FOLDER)
    const names = Array.from({ length: 2500 }, (_, index) => `/n${index}`)
    const path = await write(treeWith('/p', '/p/c', ...names), disk)
    for (const copy of ['/snapshot.9c6', '/copy']) {
      disk.putFile(copy, await disk.readFile(path))
      const { nodes, nodeCount, zxid } = await readSnapshot(disk, copy, nodeCompression)
      const paths = [...nodes()].map((node) => node.path)
      expect([paths.length, new Set(paths).size, zxid]).toEqual([
        nodeCount,
        nodeCount,
        copy === '/copy' ? 0 : 0x9c6,
      ])
      expect(paths.indexOf('/p')).toBeLessThan(paths.indexOf('/p/c'))
    }
  })

  it('that is damaged or cut anywhere is reported once, with the file and a byte', async () => {
    const disk = await diskWithFolder(FOLDER)
    const path = await write(treeWith('/a', '/b'), disk)
    const bytes = await disk.readFile(path)
    const seen = new Set<string>()
    for (let at = 0; at < bytes.length; at += 3)
      for (const spoiled of [bytes.slice(0, at), bytes.slice().fill(bytes[at]! ^ 0x81, at, at + 1)]) {
        disk.putFile(path, spoiled)
        const failure = await readSnapshot(disk, path, nodeCompression).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (failure === undefined) continue
        expect(failure, String(at)).toBeInstanceOf(DamageError)
        const { message } = failure as DamageError
        seen.add(message)
        expect(
          message.match(/ in \S+ at byte \d+\. Use an older snapshot or a copy of this one\.$/),
          message,
        ).not.toBeNull()
        expect(message.match(/at byte/g), message).toHaveLength(1)
      }
    expect(seen.size).toBeGreaterThan(10)
  })
})

describe('readDatabase', () => {
  const location = { dataDir: '/data', dataLogDir: '/data' }

  it('has the nodes of the snapshot and of the log after it', async () => {
    const { disk, put } = await logOf([1, 2])
    put()
    const options = { disk, folder: FOLDER, compression: 'none', compressor: nodeCompression } as const
    await takeSnapshot(newTree(), [], options)
    const { nodes, replayed } = await readDatabase(disk, location, nodeCompression, silentLogger)
    expect([...nodes()].map(({ path }) => path)).toEqual(expect.arrayContaining(['/', '/n1', '/n2']))
    expect(replayed).toBe(2)
  })

  it('rejects where a log is damaged, and not because a server writes to it', async () => {
    const { disk, bytes, offsets, put } = await logOf([1, 2, 3])
    bytes[offsets[1]! + 40]! ^= 0xff
    put()
    const options = { disk, folder: FOLDER, compression: 'none', compressor: nodeCompression } as const
    await takeSnapshot(newTree(), [], options)
    const read = readDatabase(disk, location, nodeCompression, silentLogger)
    await expect(read).rejects.toThrow(DamageError)
    await expect(read).rejects.toThrow(`at byte ${offsets[1]!}`)
  })
})
