import { nameOf, epochOf, OPEN_ACL_UNSAFE, OpCode, Reader, Writer } from '@zabra/protocol'
import {
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  SeededRandom,
  silentLogger,
  type Logger,
  type Platform,
} from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { childPaths } from '../../core/testing/child-paths.ts'
import { Tree } from '../../core/tree/index.ts'
import type { LoggedTxn, Txn, Zxid } from '../../core/types.ts'
import { decodeLoggedTxn, encodeLoggedTxn, type RawTxn, type TxnLogEvents } from '../../persistence/index.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import type { Database } from '../database.ts'
import type { LogWriter } from '../log-writer.ts'
import { openDatabase } from '../open-database.ts'
import { SnapshotStream } from '../snapshot-stream.ts'

export const FOLDER = '/data/version-2'

/** The zxid of a counter in an epoch. */
export const zxidOf = (epoch: number, counter: number): Zxid => epoch * 2 ** 32 + counter

/** Turns come at once, so that nobody has to drive them. */
class EagerClock extends ManualClock {
  turns = 0
  override immediate(action: () => void): void {
    this.turns++
    queueMicrotask(action)
  }
}

/** A leader of which only the history counts: its transactions, with the digests of its tree. */
export class LeaderHistory {
  readonly tree: Tree
  readonly txns: RawTxn[] = []
  readonly sessions = new Map<bigint, number>()

  constructor(tree = new Tree({ digest: true, extendedTypes: false })) {
    this.tree = tree
  }

  write(zxid: Zxid, txn: Txn, sessionId = 7n): RawTxn {
    const header = { sessionId, cxid: 1, zxid, time: 1000 + (zxid % 1000) }
    this.tree.apply(header, txn)
    if (txn.type === OpCode.createSession) this.sessions.set(sessionId, txn.timeOut)
    if (txn.type === OpCode.closeSession) this.sessions.delete(sessionId)
    const entry = { zxid, payload: encodeTxn({ header, txn, digest: this.tree.digest }) }
    this.txns.push(entry)
    return entry
  }

  /** What another leader wrote. */
  replay(zxid: Zxid, payload: Uint8Array): void {
    const { header, txn } = decodeLoggedTxn(new Reader(payload))
    this.tree.apply(header, txn)
    this.txns.push({ zxid, payload })
  }

  /** A node named after its transaction. */
  create(zxid: Zxid, path = `/n${zxid.toString(16)}`): RawTxn {
    const parentCVersion = this.tree.nodeInfo('/')!.cversion + 1
    const data = new Uint8Array(40).fill(zxid % 251)
    return this.write(zxid, {
      type: OpCode.create,
      path,
      data,
      acl: OPEN_ACL_UNSAFE,
      ephemeral: false,
      parentCVersion,
    })
  }

  creates(epoch: number, from: number, to: number): this {
    for (let counter = from; counter <= to; counter++) this.create(zxidOf(epoch, counter))
    return this
  }
}

export function encodeTxn(logged: LoggedTxn): Uint8Array {
  const writer = new Writer(256)
  encodeLoggedTxn(writer, logged)
  return writer.take()
}

/** A member whose disk a test controls. */
export class DatabaseFixture {
  readonly disk: MemoryDisk
  readonly clock = new EagerClock()
  readonly lines: string[] = []
  readonly settings: ServerSettings
  fatal: Error | undefined
  durable: Zxid = 0
  full = 0
  vault!: Database

  constructor(disk = new MemoryDisk(), settings: Partial<ServerSettings> = {}) {
    this.disk = disk
    this.settings = defaults({ dataDir: '/data', preAllocSizeBytes: 512, ...settings })
  }

  static async open(
    disk = new MemoryDisk(),
    settings: Partial<ServerSettings> = {},
  ): Promise<DatabaseFixture> {
    const rig = new DatabaseFixture(disk, settings)
    await rig.open()
    return rig
  }

  async open(member = true): Promise<Database> {
    this.vault = await openDatabase(this.settings, this.ports(), { member })
    if (this.vault.wasEmpty && this.vault.isEligibleToVote) await this.vault.takeSnapshot([])
    return this.vault
  }

  ports(): Platform {
    const note = (_: object, sentence: string): void => void this.lines.push(sentence)
    const logger: Logger = { ...silentLogger, info: note, warn: note, error: note }
    return {
      clock: this.clock,
      random: new SeededRandom(5),
      network: new MemoryNetwork(this.clock),
      disk: this.disk,
      compression: nodeCompression,
      logger,
      system: { pid: 1, processIdentity: () => undefined } as unknown as Platform['system'],
    }
  }

  events(): TxnLogEvents {
    return {
      durable: (zxid) => void (this.durable = zxid),
      snapshotDue() {},
      diskFull: () => void this.full++,
      spaceAvailable() {},
      fatal: (error) => void (this.fatal = error),
    }
  }

  writer(): LogWriter {
    return this.vault.openWriter(this.events())
  }

  /** A role that logs and applies what comes, one durable write for each. */
  async follow(txns: readonly RawTxn[]): Promise<void> {
    const { accepted } = this.vault.epochs
    await this.vault.acceptEpoch(Math.max(accepted, ...txns.map(({ zxid }) => epochOf(zxid))))
    const writer = this.writer()
    for (const { zxid, payload } of txns) {
      writer.appendPayload(zxid, payload)
      await writer.flush()
      this.vault.apply(payload)
    }
    await this.vault.endRole()
  }

  /** Brings everything of a leader as its SNAP and what follows it would. */
  async receive(leader: LeaderHistory, chunkBytes = 1000): Promise<void> {
    const source = this.source(leader)
    const sink = this.vault.receiveSnapshot(source.zxid)
    for (const chunk of await source.chunks) {
      for (let at = 0; at < chunk.length; at += chunkBytes)
        await sink.write(chunk.subarray(at, at + chunkBytes))
    }
  }

  source({ tree, sessions }: LeaderHistory): { zxid: Zxid; chunks: Promise<Uint8Array[]> } {
    const { zxid, chunks } = streamOf(tree, sessions, this.clock)
    return { zxid, chunks: collect(chunks) }
  }

  /** Ends the process in the middle of things, with or without the power. */
  async crash(power: boolean): Promise<void> {
    this.disk.injectFault = () => ({ code: 'EIO' })
    await this.vault.close().catch(() => {})
    this.disk.injectFault = undefined
    if (power) this.disk.powerCut()
  }

  names(folder = FOLDER): string[] {
    const names = this.disk.paths().filter((path) => path.startsWith(`${folder}/`))
    return names.map((path) => path.slice(folder.length + 1)).toSorted()
  }

  nodes(): string[] {
    return childPaths(this.vault.tree, this.vault.tree.find('/'))
      .map(nameOf)
      .filter((name) => name !== 'zookeeper')
  }
}

export async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of all) found.push(one)
  return found
}

const streamOf = (tree: Tree, sessions: Map<bigint, number>, clock: ManualClock): SnapshotStream =>
  new SnapshotStream(tree, sessions, clock)

/** Whether two trees have the same nodes, data and statistics. */
export function same(a: Tree, b: Tree): boolean {
  return a.nodeCount === b.nodeCount && a.digest !== undefined && b.matches(a.digest)
}

/**
 * Ends `act` at each of its calls that change the disk, once with the power and once without, and hands what is left to `check`.
 * Resolves to how many calls there are.
 */
export async function atEachStep(
  base: MemoryDisk,
  settings: Partial<ServerSettings>,
  act: (rig: DatabaseFixture) => Promise<void>,
  check: (rig: DatabaseFixture, what: string) => Promise<void>,
): Promise<number> {
  for (let step = 0; ; step++) {
    let calls = 0
    for (const power of [true, false]) {
      const disk = base.clone()
      const rig = await DatabaseFixture.open(disk, settings)
      calls = 0
      disk.injectFault = (call) =>
        call !== 'read' && calls++ >= step ? { code: 'EIO', writtenBytes: Math.min(step, 7) } : undefined
      await act(rig).catch(() => {})
      await rig.crash(power)
      const after = await DatabaseFixture.open(disk, settings)
      await check(after, `step ${step} ${power ? 'with' : 'without'} a power cut`)
      await after.vault.close()
    }
    if (calls <= step) return step
  }
}
