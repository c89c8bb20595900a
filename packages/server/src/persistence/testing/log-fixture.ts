import { Writer } from '@zabra/protocol'
import { ManualClock, MemoryDisk, SeededRandom, silentLogger, type Clock } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { createOf } from '../../core/testing/create-of.ts'
import { Tree } from '../../core/tree/index.ts'
import type { LoggedTxn } from '../../core/types.ts'
import {
  encodeLoggedTxn,
  LogRange,
  recover,
  takeSnapshot,
  TxnLog,
  type Recovery,
  type RecoveryOptions,
  type SnapshotKind,
  type TxnLogEvents,
  type TxnLogOptions,
} from '../index.ts'
import { writeEncodedEntry } from '../txn-codec.ts'

export const FOLDER = '/data/version-2'

export const newTree = (): Tree => new Tree({ digest: true, extendedTypes: true })

/** Returns the payload of a log entry. */
export function payloadOf(logged: LoggedTxn): Uint8Array {
  const writer = new Writer()
  encodeLoggedTxn(writer, logged)
  return writer.take()
}

export const writeEntry = (writer: Writer, logged: LoggedTxn): void =>
  writeEncodedEntry(writer, payloadOf(logged))

export const appendTo = (log: TxnLog, logged: LoggedTxn): void =>
  log.appendPayload(logged.header.zxid, payloadOf(logged))

/** Returns the transaction that creates the node `/n<zxid>` with `size` bytes of data. */
export const createTxn = (zxid: number, size = 50): LoggedTxn => ({
  header: { sessionId: 7n, cxid: zxid, zxid, time: 1000 + zxid },
  txn: createOf(`/n${zxid}`, { data: new Uint8Array(size).fill(zxid), parentCVersion: zxid }),
  digest: undefined,
})

/** A tree with its log on a disk whose power can be cut. */
export class LogFixture {
  disk = new MemoryDisk()
  readonly clock = new ManualClock()
  tree = new Tree({ digest: true, extendedTypes: true })
  log!: TxnLog
  durable = 0
  /** How many writes were durable. */
  flushes = 0
  /** How often a snapshot was due. */
  snapshotsDue = 0
  /** False for a test that applies transactions itself. */
  appliesDurable = true
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
        range: new LogRange(this.tree.lastZxid),
        isDurable: true,
        random: new SeededRandom(3),
        preallocateBytes: 1024,
        snapCount: () => 1_000_000,
        snapSizeLimitBytes: 0,
        fileSizeLimitBytes: 0,
        syncWarningMs: () => 1000,
        ...options,
      },
      {
        // As the server does: the tree has only transactions that are durable.
        durable: (durable) => {
          this.flushes++
          if (!this.appliesDurable) return
          for (let zxid = this.durable + 1; zxid <= durable; zxid++)
            this.tree.apply(createTxn(zxid).header, createTxn(zxid).txn)
          this.durable = durable
        },
        snapshotDue: () => this.snapshotsDue++,
        diskFull() {},
        spaceAvailable() {},
        fatal: (error) => (this.failure = error),
      },
    )
    return this
  }

  append(zxid: number): void {
    appendTo(this.log, createTxn(zxid))
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
    return recover(this.recoveryOptions(dataLogDir, digest))
  }

  recoveryOptions(dataLogDir = '/data', digest = true): RecoveryOptions {
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

  /** The names of all files in the folder. */
  fileNames(): string[] {
    return this.disk.paths().map((path) => path.slice(FOLDER.length + 1))
  }
}

/** Timers that logs of `openLog` have started and that did not fire. */
export const timers: (() => void)[] = []

const clock: Clock = {
  wall: () => 1,
  monotonic: () => 1,
  after: (_, __, action) => (timers.push(action), () => {}),
  immediate: (action) => queueMicrotask(action),
  afterMicrotasks: (action) => queueMicrotask(action),
}

/** Opens a log whose turns of the event loop follow each other at once. */
export function openLog(disk: MemoryDisk, lastZxid = 0, events: Partial<TxnLogEvents> = {}): TxnLog {
  return new TxnLog(
    {
      disk,
      clock,
      logger: silentLogger,
      folder: FOLDER,
      lastZxid,
      range: new LogRange(lastZxid),
      isDurable: true,
      random: { below: () => 0, bytes: (n) => new Uint8Array(n) },
      preallocateBytes: 8192,
      snapCount: () => 1000,
      snapSizeLimitBytes: 0,
      fileSizeLimitBytes: 0,
      syncWarningMs: () => 1000,
    },
    { durable() {}, snapshotDue() {}, diskFull() {}, spaceAvailable() {}, fatal() {}, ...events },
  )
}

/** Recovers from the disk, by default also without any snapshot. */
export const recoverFrom = (disk: MemoryDisk, trustEmptySnapshot = true): Promise<Recovery> =>
  recover({
    disk,
    logger: silentLogger,
    compression: nodeCompression,
    dataDir: '/data',
    dataLogDir: '/data',
    autoCreate: true,
    trustEmptySnapshot,
    createTree: newTree,
  })

/** Returns a disk with a log of the transactions from 1 to `count`. */
export async function diskWithLog(count: number): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  const log = openLog(disk)
  for (let zxid = 1; zxid <= count; zxid++) appendTo(log, createTxn(zxid, 5))
  await log.close()
  return disk
}

export const hexBytes = (text: string): Uint8Array =>
  new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'))
