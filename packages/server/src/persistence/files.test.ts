import { OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import { ManualClock, MemoryDisk, SeededRandom, silentLogger } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import type { LoggedTxn } from '../core/types.ts'
import {
  lockFolder,
  purge,
  recover,
  takeSnapshot,
  truncateTo,
  TxnLog,
  type LockOwner,
  type Recovery,
  type RecoveryOptions,
  type SnapshotKind,
  type TxnLogOptions,
} from './index.ts'

const FOLDER = '/data/version-2'
const FOLDERS = { snapshots: FOLDER, logs: FOLDER }

const create = (zxid: number): LoggedTxn => ({
  header: { sessionId: 7n, cxid: zxid, zxid, time: 1000 + zxid },
  txn: {
    type: OpCode.create,
    path: `/n${zxid}`,
    data: new Uint8Array(50).fill(zxid),
    acl: OPEN_ACL_UNSAFE,
    ephemeral: false,
    parentCVersion: zxid,
  },
  digest: undefined,
})

/** A tree with its log on a disk that can lose its power. */
class Store {
  disk = new MemoryDisk()
  readonly clock = new ManualClock()
  tree = new Tree({ digest: true, extendedTypes: true })
  log!: TxnLog
  durable = 0
  due = 0
  /** Off for a test that applies by itself. */
  applies = true
  failure: Error | undefined
  readonly warnings: string[] = []

  async open(options: Partial<TxnLogOptions> = {}): Promise<this> {
    await this.disk.makeFolder(FOLDER)
    this.log = new TxnLog(
      {
        disk: this.disk,
        clock: this.clock,
        logger: silentLogger,
        folder: FOLDER,
        lastZxid: this.tree.lastZxid,
        durable: true,
        random: new SeededRandom(3),
        preallocateBytes: 1024,
        snapCount: () => 1_000_000,
        snapSizeLimitBytes: 0,
        fileSizeLimitBytes: 0,
        syncWarningMs: 1000,
        ...options,
      },
      {
        // As the server does it: nothing is in the tree that is not durable.
        durable: (durable) => {
          if (!this.applies) return
          for (let zxid = this.durable + 1; zxid <= durable; zxid++)
            this.tree.apply(create(zxid).header, create(zxid).txn)
          this.durable = durable
        },
        snapshotDue: () => this.due++,
        diskFull() {},
        spaceAvailable() {},
        fatal: (error) => (this.failure = error),
      },
    )
    return this
  }

  append(zxid: number): void {
    this.log.append(create(zxid))
  }

  async appendAll(from: number, to: number): Promise<void> {
    for (let zxid = from; zxid <= to; zxid++) {
      this.append(zxid)
      if (zxid % 5 === 0) await this.log.flush()
    }
    await this.log.flush()
  }

  async snapshot(compression: SnapshotKind = 'none'): Promise<string> {
    const options = { disk: this.disk, folder: FOLDER, compression, compressor: nodeCompression }
    return (await takeSnapshot(this.tree, [[7n, 4000]], options)).file
  }

  recover(dataLogDir = '/data', digest = true): Promise<Recovery> {
    return recover(this.recovery(dataLogDir, digest))
  }

  recovery(dataLogDir = '/data', digest = true): RecoveryOptions {
    return {
      disk: this.disk,
      logger: { ...silentLogger, warn: (_, sentence) => void this.warnings.push(sentence) },
      compression: nodeCompression,
      dataDir: '/data',
      dataLogDir,
      autoCreate: true,
      trustEmptySnapshot: false,
      createTree: () => new Tree({ digest, extendedTypes: true }),
    }
  }

  names(): string[] {
    return this.disk.paths().map((path) => path.slice(FOLDER.length + 1))
  }
}

describe('the lock of a folder', () => {
  const owner = (pid: number, running: number[] = []): LockOwner => ({
    pid,
    processIdentity: (other) => (other === pid || running.includes(other) ? `${other}-now` : undefined),
  })

  it('keeps a second server out while the first one lives, and names it', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data')
    disk.putFile('/data/zabra.lock', new TextEncoder().encode('1 a1 1-now\n'))
    const second = lockFolder(disk, '/data', owner(2, [1]), 'b2')
    await expect(second).rejects.toMatchObject({ name: 'FolderLockedError', code: 'ELOCKED' })
    await expect(second).rejects.toThrow(/in use by process 1.*dataDir/)
    await (
      await lockFolder(disk, '/data', owner(2), 'b2')
    )()
    expect(disk.paths()).toEqual([])
  })

  it('keeps a second server of the same process out', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data')
    const unlock = await lockFolder(disk, '/data', owner(1), 'd4')
    await expect(lockFolder(disk, '/data', owner(1), 'e5')).rejects.toThrow('another server of this process')
    await unlock()
    await (
      await lockFolder(disk, '/data', owner(1), 'e5')
    )()
  })

  it('of a process that is gone, of our own id before a reboot, or that cannot be read is taken over', async () => {
    for (const text of ['99 f0 99-now\n', '2 f0 2-before\n', '1 f0 1-before\n', '99\n', 'half', '']) {
      const disk = new MemoryDisk()
      disk.putFile('/data/zabra.lock', new TextEncoder().encode(text))
      const unlock = await lockFolder(disk, '/data', owner(2, [1]), 'c3')
      expect(new TextDecoder().decode(await disk.readFile('/data/zabra.lock'))).toBe('2 c3 2-now\n')
      await unlock()
    }
  })
})

describe('snapshots', () => {
  it.each<[SnapshotKind]>([['none'], ['gz'], ['snappy']])(
    'of the kind %s bring the tree and its sessions back',
    async (kind) => {
      const store = await new Store().open()
      await store.appendAll(1, 300)
      const file = await store.snapshot(kind)
      expect(file).toBe(kind === 'none' ? 'snapshot.12c' : `snapshot.12c.${kind}`)
      await store.appendAll(301, 310)
      await store.log.close()
      const { tree, sessions, lastZxid } = await store.recover()
      expect([tree.nodeCount, tree.digest, lastZxid]).toEqual([314, store.tree.digest, 310])
      expect([...sessions]).toEqual([[7n, 4000]])
    },
  )

  it('have nodes whose list came to be meanwhile, which the log behind them gives', async () => {
    const store = await new Store().open()
    await store.appendAll(1, 900)
    const openWrite = store.disk.openWrite.bind(store.disk)
    let changed = false
    store.disk.openWrite = async (path, options) => {
      const writer = await openWrite(path, options)
      if (!path.includes('writing.')) return writer
      const write = writer.write.bind(writer)
      writer.write = async (bytes, position) => {
        if (!changed) {
          changed = true
          const { header, txn } = create(901)
          const late = {
            header,
            txn: { ...txn, acl: [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }] } as LoggedTxn['txn'],
            digest: undefined,
          }
          store.log.append(late)
          await store.log.flush()
          store.tree.apply(late.header, late.txn)
        }
        return write(bytes, position)
      }
      return writer
    }
    store.applies = false
    const file = await store.snapshot()
    await store.log.close()
    const { tree, snapshot } = await store.recover()
    expect([snapshot, tree.aclOf(tree.find('/n901'))]).toEqual([
      file,
      [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }],
    ])
    await store.disk.remove(`${FOLDER}/log.1`)
    await expect(store.recover()).rejects.toThrow(/RecoveryError|Expected/)
  })

  it('that a crash cut short are swept away', async () => {
    const store = await new Store().open()
    await store.snapshot()
    await store.log.close()
    store.disk.putFile(`${FOLDER}/writing.snapshot.5.tmp`, new Uint8Array(1000))
    await store.recover()
    expect(store.names()).toEqual(['snapshot.0'])
  })

  it('come after so many transactions, those before a restart included', async () => {
    const store = await new Store().open({ snapCount: () => 100, sinceSnapshot: 99 })
    store.append(1)
    expect(store.due).toBe(1)
  })

  it('that were given up leave nothing behind', async () => {
    const store = await new Store().open()
    await store.appendAll(1, 50)
    const stop = new AbortController()
    stop.abort(new Error('stopping'))
    const options = {
      disk: store.disk,
      folder: FOLDER,
      compression: 'none' as const,
      compressor: nodeCompression,
      signal: stop.signal,
    }
    await expect(takeSnapshot(store.tree, [], options)).rejects.toThrow('stopping')
    expect(store.names().filter((name) => !name.startsWith('log.'))).toEqual([])
  })
})

describe('the log', () => {
  it('begins a new file after so many transactions, a little earlier by chance, and asks for a snapshot', async () => {
    const store = await new Store().open({ snapCount: () => 100 })
    await store.appendAll(1, 400)
    expect(store.due).toBeGreaterThanOrEqual(4)
    expect(store.due).toBeLessThanOrEqual(8)
    const starts = store.names().map((name) => Number.parseInt(name.slice(4), 16))
    const lengths = starts.slice(1).map((start, i) => start - starts[i]!)
    expect(new Set(lengths).size).toBeGreaterThan(1)
    for (const length of lengths) expect(length).toBeLessThanOrEqual(106)
  })

  it('begins a new file when one has reached its size', async () => {
    const store = await new Store().open({ fileSizeLimitBytes: 2000 })
    await store.snapshot()
    await store.appendAll(1, 100)
    expect(store.names().length).toBeGreaterThan(4)
    await store.log.close()
    expect((await store.recover()).lastZxid).toBe(100)
  })

  it('begins new files in the midst of writes that never pause', async () => {
    const store = await new Store().open({ fileSizeLimitBytes: 2000 })
    await store.snapshot()
    for (let zxid = 1; zxid <= 300; zxid++) {
      store.append(zxid)
      await Promise.resolve()
      store.clock.advance(0)
    }
    await store.log.close()
    const logs = store.names().filter((name) => name.startsWith('log.'))
    expect(logs.length).toBeGreaterThan(3)
    for (const name of logs) expect(await store.disk.size(`${FOLDER}/${name}`)).toBeGreaterThan(500)
    expect((await store.recover()).lastZxid).toBe(300)
  })

  it('takes along what is read in the turn in which a write ends, unless somebody waits for all of it', async () => {
    const store = await new Store().open()
    const writing = async (first: number): Promise<void> => {
      store.append(first)
      store.clock.advance(0)
      store.append(first + 1)
      while (store.durable < first) await Promise.resolve()
    }
    await writing(1)
    store.append(3)
    await store.clock.untilIdle()
    expect([store.durable, store.log.stats.flushes]).toEqual([3, 2])
    await writing(4)
    await store.log.flush()
    expect(store.durable).toBe(5)
    await writing(6)
    await store.log.close()
    expect(store.durable).toBe(7)
  })

  it('waits a little for more when it is told to, and not once enough has come', async () => {
    const store = await new Store().open({ flushDelayMs: 50, maxBatchSize: 3 })
    store.append(1)
    await store.clock.untilIdle()
    expect(store.durable).toBe(0)
    store.clock.advance(50)
    await store.clock.untilIdle()
    expect(store.durable).toBe(1)
    for (const zxid of [2, 3, 4]) store.append(zxid)
    await store.clock.untilIdle()
    expect(store.durable).toBe(4)
  })

  it('cut above a transaction ends there, and snapshots above it are gone', async () => {
    const store = await new Store().open({ fileSizeLimitBytes: 2000 })
    await store.snapshot()
    await store.appendAll(1, 60)
    await store.snapshot()
    await store.appendAll(61, 100)
    await store.log.close()
    expect(await truncateTo(store.recovery(), 45)).toMatchObject({ exact: true })
    const { lastZxid, tree } = await store.recover()
    expect([lastZxid, tree.has('/n45'), tree.has('/n46')]).toEqual([45, true, false])
    expect(store.names().filter((name) => name.startsWith('snapshot'))).toEqual(['snapshot.0'])
  })
})

describe('two folders', () => {
  it('that hold files of the other are refused, for what is in the wrong one would be lost', async () => {
    const store = await new Store().open()
    await store.snapshot()
    await store.appendAll(1, 10)
    await store.log.close()
    await store.disk.makeFolder('/logs/version-2')
    await expect(store.recover('/logs')).rejects.toThrow(
      /Expected logs in \/logs\/version-2 only.*got log\.1 in \/data\/version-2\. Move all log/,
    )
    await store.disk.rename(`${FOLDER}/log.1`, '/logs/version-2/log.1')
    expect((await store.recover('/logs')).lastZxid).toBe(10)
    store.disk.putFile('/logs/version-2/snapshot.5', new Uint8Array(10))
    await expect(store.recover('/logs')).rejects.toThrow(/Expected snapshots in \/data\/version-2 only/)
  })
})

describe('a server without digests', () => {
  it('starts again from a snapshot that was taken while it worked', async () => {
    const store = await new Store().open()
    store.tree = new Tree({ digest: false, extendedTypes: true })
    await store.appendAll(1, 20)
    await store.snapshot()
    await store.appendAll(21, 40)
    await store.log.close()
    for (const digest of [false, true]) expect((await store.recover('/data', digest)).lastZxid).toBe(40)
  })
})

describe('digests in the log', () => {
  async function written(path: string): Promise<Store> {
    const store = await new Store().open()
    await store.snapshot()
    const { header, txn } = create(1)
    store.log.append({ header, txn: { ...txn, path } as LoggedTxn['txn'], digest: { hi: 1, lo: 2 } })
    await store.log.close()
    return store
  }

  it('that are not those of the tree are refused', async () => {
    await expect((await written('/a')).recover()).rejects.toThrow(
      /after transaction 0x1 to have the digest that its log gives/,
    )
  })

  it('over names beyond ASCII may come from another encoding: that is said, and the tree is taken', async () => {
    const store = await written('/ä')
    const { tree } = await store.recover()
    expect(tree.has('/ä')).toBe(true)
    expect(store.warnings).toEqual([expect.stringContaining('Digests are not checked')])
  })
})

describe('an entry that cannot be encoded', () => {
  it('leaves nothing behind, and the next ones are as if it had never come', async () => {
    const store = await new Store().open()
    await store.snapshot()
    const { header, txn } = create(1)
    const broken = {
      header,
      txn: { ...txn, acl: undefined } as unknown as LoggedTxn['txn'],
      digest: undefined,
    }
    expect(() => store.log.append(broken)).toThrow(TypeError)
    await store.appendAll(1, 3)
    expect(() => store.log.append({ ...broken, header: { ...header, zxid: 4 } })).toThrow(TypeError)
    store.append(4)
    await store.log.close()
    expect((await store.recover()).lastZxid).toBe(4)
  })
})

describe('purging', () => {
  it('keeps at least three sound snapshots and every log that recovery from them needs', async () => {
    const store = await new Store().open({ fileSizeLimitBytes: 1500 })
    for (let i = 0; i < 7; i++) {
      await store.snapshot()
      await store.appendAll(i * 30 + 1, i * 30 + 30)
    }
    await store.log.close()
    const newest = store
      .names()
      .filter((name) => name.startsWith('snapshot'))
      .at(-1)!
    store.disk.putFile(`${FOLDER}/${newest}`, new Uint8Array(100))
    const removed = await purge(store.disk, FOLDERS, 1, { compression: nodeCompression })
    expect(removed).toContain('snapshot.0')
    expect(store.names().filter((name) => name.startsWith('snapshot'))).toEqual([
      'snapshot.5a',
      'snapshot.78',
      'snapshot.96',
      newest,
    ])
    expect((await store.recover()).lastZxid).toBe(210)
    store.disk.putFile(`${FOLDER}/snapshot.96`, new Uint8Array(100))
    store.disk.putFile(`${FOLDER}/snapshot.78`, new Uint8Array(100))
    expect((await store.recover()).tree.digest).toEqual(store.tree.digest)
    expect(
      await purge(new MemoryDisk().clone(), FOLDERS, 3, { compression: nodeCompression }).catch(
        (error: unknown) => error,
      ),
    ).toMatchObject({
      code: 'ENOENT',
    })
  })
})

describe('a power cut', () => {
  type Step = { readonly do: 'append' | 'flush' | 'snapshot' | 'turn' }
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.constant({ do: 'append' as const }) },
    { weight: 2, arbitrary: fc.constant({ do: 'flush' as const }) },
    { weight: 1, arbitrary: fc.constant({ do: 'snapshot' as const }) },
    { weight: 2, arbitrary: fc.constant({ do: 'turn' as const }) },
  )

  it('at any moment loses nothing that was reported durable, in 1,000 histories of three lives each', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { maxLength: 25 }), { minLength: 3, maxLength: 3 }),
        fc.integer({ min: 300, max: 3000 }),
        async (lives, fileSizeLimitBytes) => {
          let store = await new Store().open({ fileSizeLimitBytes })
          await store.snapshot()
          for (const life of lives) {
            for (const one of life) {
              if (one.do === 'append') store.append(store.log.lastZxid + 1)
              else if (one.do === 'flush') await store.log.flush()
              else if (one.do === 'snapshot') await store.snapshot()
              else await store.clock.untilIdle()
            }
            // No farewell: what is not durable now is lost, though a snapshot may have gone ahead of the log.
            const { durable } = store
            store.disk.powerCut()
            const recovered = await store.recover()
            expect(recovered.lastZxid).toBeGreaterThanOrEqual(durable)
            const expected = new Tree({ digest: true, extendedTypes: true })
            for (let zxid = 1; zxid <= recovered.lastZxid; zxid++)
              expected.apply(create(zxid).header, create(zxid).txn)
            expect(recovered.tree.digest).toEqual(expected.digest)
            const next = new Store()
            next.disk = store.disk
            next.tree = recovered.tree
            next.durable = recovered.lastZxid
            store = await next.open({ fileSizeLimitBytes })
          }
        },
      ),
      { numRuns: 1000 },
    )
  })
})
