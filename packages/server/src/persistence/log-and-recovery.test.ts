import { OPEN_ACL_UNSAFE, OpCode, Reader, Writer } from '@zabra/protocol'
import { MemoryDisk, silentLogger, type Clock, type Compression } from '@zabra/runtime'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import type { LoggedTxn, Txn } from '../core/types.ts'
import {
  decodeLoggedTxn,
  encodeLoggedTxn,
  recover,
  takeSnapshot,
  TxnLog,
  type Recovery,
  type TxnLogEvents,
} from './index.ts'
import { compressSnappy, decompressSnappy } from './snappy.ts'
import { zxidOfPayload } from './entries.ts'

const FOLDER = '/data/version-2'
const timers: (() => void)[] = []
const clock: Clock = {
  wall: () => 1,
  monotonic: () => 1,
  after: (_, __, action) => (timers.push(action), () => {}),
  immediate: (action) => queueMicrotask(action),
  afterMicrotasks: (action) => queueMicrotask(action),
}
const compression: Compression = {
  gzip: () => {
    throw new Error('not used here')
  },
  gunzip: () => {
    throw new Error('not used here')
  },
}
const newTree = (): Tree => new Tree({ digest: true, extendedTypes: true })

const create = (zxid: number, size = 5): LoggedTxn => ({
  header: { sessionId: 7n, cxid: zxid, zxid, time: 1000 + zxid },
  txn: {
    type: OpCode.create,
    path: `/n${zxid}`,
    data: new Uint8Array(size).fill(zxid),
    acl: OPEN_ACL_UNSAFE,
    ephemeral: false,
    parentCVersion: zxid,
  },
  digest: undefined,
})

function open(disk: MemoryDisk, lastZxid = 0, events: Partial<TxnLogEvents> = {}): TxnLog {
  return new TxnLog(
    {
      disk,
      clock,
      logger: silentLogger,
      folder: FOLDER,
      lastZxid,
      durable: true,
      random: { below: () => 0, bytes: (n) => new Uint8Array(n) },
      preallocateBytes: 8192,
      snapCount: () => 1000,
      snapSizeLimitBytes: 0,
      fileSizeLimitBytes: 0,
      syncWarningMs: 1000,
    },
    { durable() {}, snapshotDue() {}, diskFull() {}, spaceAvailable() {}, fatal() {}, ...events },
  )
}

const load = (disk: MemoryDisk, trust = true): Promise<Recovery> =>
  recover({
    disk,
    logger: silentLogger,
    compression,
    dataDir: '/data',
    dataLogDir: '/data',
    autoCreate: true,
    trustEmptySnapshot: trust,
    createTree: newTree,
  })

async function written(count: number): Promise<MemoryDisk> {
  const disk = new MemoryDisk()
  await disk.makeFolder(FOLDER)
  const log = open(disk)
  for (let z = 1; z <= count; z++) log.append(create(z))
  await log.close()
  return disk
}

const hexBytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'))

describe('the codec of transactions', () => {
  it('tells the zxid of an encoded one, whatever bits it has', () => {
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
  ])('gives back the bytes that Apache ZooKeeper logged: %s', (text) => {
    const bytes = hexBytes(text)
    const writer = new Writer()
    encodeLoggedTxn(writer, decodeLoggedTxn(new Reader(bytes)))
    expect(Buffer.from(writer.bytes()).toString('hex')).toBe(Buffer.from(bytes).toString('hex'))
  })

  it('reads a closeSession without its record and a failed part with foreign bytes', () => {
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

  it('writes a creation inside of a multi so that servers before 3.8.2 carry the multi out', () => {
    const { header, txn } = create(1)
    const part = { ...txn, type: OpCode.create2 } as const
    const writer = new Writer()
    encodeLoggedTxn(writer, { header, txn: { type: OpCode.multi, txns: [part as never] }, digest: undefined })
    const { txn: read } = decodeLoggedTxn(new Reader(writer.bytes()))
    expect(read).toMatchObject({ type: OpCode.multi, txns: [{ type: OpCode.create, path: '/n1' }] })
  })

  it('gives back every kind of transaction', () => {
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
        // Whether the nodes are there or not, and whether their paths are ASCII.
        expect(decodeLoggedTxn(new Reader().resetToView(bytes), newTree().store)).toEqual(logged)
      }
    }
  })

  it('have the texts that the tree has for paths of nodes that are there, and their own for others', () => {
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

describe('the log', () => {
  it('makes everything that came during a write durable in one more write', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder(FOLDER)
    const durable: number[] = []
    const log = open(disk, 0, { durable: (zxid) => durable.push(zxid) })
    let release = (): void => {}
    disk.beforeWrite = () => new Promise((resolve) => (release = resolve))
    log.append(create(1))
    const flushed = log.flush()
    while (disk.writes === 0) await Promise.resolve()
    for (let z = 2; z <= 100; z++) log.append(create(z))
    disk.beforeWrite = undefined
    release()
    await flushed
    await log.flush()
    expect({ writes: disk.writes, durable }).toEqual({ writes: 2, durable: [1, 100] })
    disk.powerCut()
    expect((await load(disk)).lastZxid).toBe(100)
  })

  it('refuses a zxid that is not above the last one', async () => {
    expect(() => open(new MemoryDisk(), 5).append(create(5))).toThrow(RangeError)
  })

  it.each([0, 7, 60])(
    'takes back what a full disk cut after %d bytes, refuses, and goes on when space returns',
    async (keep) => {
      const disk = await written(3)
      const full: number[] = []
      let space = 0
      const log = open(disk, 3, { diskFull: (zxid) => full.push(zxid), spaceAvailable: () => space++ })
      log.append(create(4))
      await log.flush()
      disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC', writtenBytes: keep } : undefined)
      log.append(create(5))
      await expect(log.flush()).rejects.toThrow('No space is left')
      expect(full).toEqual([4])
      expect(() => log.append(create(5))).toThrow('No space is left')
      disk.injectFault = undefined
      timers.splice(0).forEach((run) => run())
      while (space === 0) await new Promise((resolve) => setImmediate(resolve))
      log.append(create(5))
      await log.close()
      disk.powerCut()
      expect(await load(disk)).toMatchObject({ lastZxid: 5, replayed: 5, tornWrites: [] })
    },
  )

  it('reports any other failure as fatal and writes nothing any more', async () => {
    const disk = await written(1)
    const failures: Error[] = []
    const log = open(disk, 1, { fatal: (error) => failures.push(error) })
    disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
    log.append(create(2))
    await expect(log.flush()).rejects.toThrow('failed')
    expect(failures).toHaveLength(1)
    expect(() => log.append(create(2))).toThrow('failed')
  })
})

describe('recovery', () => {
  it('refuses logs without a snapshot unless told to trust them', async () => {
    await expect(load(await written(2), false)).rejects.toThrow('snapshot.trust.empty')
  })

  it('takes away a new log that was cut anywhere in its header', async () => {
    const header = hexBytes('5a4b4c47 00000002 0000000000000000')
    for (let cut = 0; cut < header.length; cut++) {
      for (const padded of [false, true]) {
        const disk = await written(2)
        const path = `${FOLDER}/log.3`
        disk.putFile(path, padded ? header.slice().fill(0, Math.min(cut, 7)) : header.slice(0, cut))
        expect((await load(disk)).lastZxid, `${cut} bytes`).toBe(2)
        expect(await disk.exists(path)).toBe(false)
      }
    }
  })

  it('recovers a prefix from a log that was cut anywhere in its last entries', async () => {
    const disk = await written(5)
    const file = await disk.readFile(`${FOLDER}/log.1`)
    const used = file.findLastIndex((byte) => byte !== 0) + 1
    for (let cut = used - 180; cut <= used; cut++) {
      for (const padded of [false, true]) {
        const damaged = disk.clone()
        const bytes = padded ? file.slice().fill(0, cut) : file.slice(0, cut)
        damaged.putFile(`${FOLDER}/log.1`, bytes)
        const { lastZxid, tree } = await load(damaged)
        expect(lastZxid).toBe(cut >= used - 1 ? 5 : tree.nodeCount - 4)
        expect(await load(damaged)).toMatchObject({ lastZxid, tornWrites: [] })
      }
    }
  })

  it('refuses or survives every flipped byte of the last entry and 1,000 others, and never loses a transaction', async () => {
    const disk = await written(20)
    const file = await disk.readFile(`${FOLDER}/log.1`)
    const used = file.findLastIndex((byte) => byte !== 0) + 1
    const check = async (offset: number, mask: number): Promise<void> => {
      const damaged = disk.clone()
      const bytes = file.slice()
      bytes[offset]! ^= mask
      damaged.putFile(`${FOLDER}/log.1`, bytes)
      const result = await load(damaged).catch((error: Error) => error)
      if (result instanceof Error) expect(result.name).toBe('DamageError')
      else expect({ offset, mask, last: result.lastZxid }).toEqual({ offset, mask, last: 20 })
    }
    for (let offset = used - 90; offset < used + 4; offset++)
      for (const mask of [1, 0x42, 0x80, 0xff]) await check(offset, mask)
    const places = fc.sample(fc.tuple(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 })), {
      numRuns: 1000,
      seed: 11,
    })
    for (const [offset, mask] of places) await check(offset, mask)
  }, 20_000)

  it.each(['none', 'snappy'] as const)(
    'loads a snapshot (%s) and the log behind it, and falls back when it is damaged',
    async (kind) => {
      const disk = await written(0)
      const tree = newTree()
      const log = open(disk)
      await takeSnapshot(tree, [], { disk, folder: FOLDER, compression: kind, compressor: compression })
      for (let z = 1; z <= 30; z++) {
        tree.apply(create(z).header, create(z).txn)
        log.append({ ...create(z), digest: tree.digest })
        if (z === 20)
          await takeSnapshot(tree, [[9n, 4000]], {
            disk,
            folder: FOLDER,
            compression: kind,
            compressor: compression,
          })
      }
      await log.close()
      const loaded = await load(disk, false)
      expect(loaded).toMatchObject({ lastZxid: 30, replayed: 10, skipped: [] })
      expect(loaded.sessions).toEqual(new Map([[9n, 4000]]))
      expect(loaded.tree.digest).toEqual(tree.digest)
      const path = `${FOLDER}/${loaded.snapshot}`
      const bytes = await disk.readFile(path)
      bytes[200]! ^= 1
      disk.putFile(path, bytes)
      expect(await load(disk, false)).toMatchObject({ lastZxid: 30, replayed: 30, skipped: [{}] })
    },
  )

  it('packs and unpacks Snappy blocks of any contents', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000, max: 5 }), (bytes) => {
        expect(decompressSnappy(compressSnappy(bytes))).toEqual(bytes)
      }),
      { seed: 3 },
    )
  })
})
