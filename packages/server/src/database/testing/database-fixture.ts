import { nameOf, epochOf, OpCode, Reader, Writer } from '@zabra/protocol'
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
import { SessionMap } from '../../core/session-map.ts'
import { createOf } from '../../core/testing/create-of.ts'
import { childPaths } from '../../core/testing/child-paths.ts'
import { Tree } from '../../core/tree/index.ts'
import type { LoggedTxn, Txn, Zxid } from '../../core/types.ts'
import {
  decodeLoggedTxn,
  encodeLoggedTxn,
  type RawTxn,
  type TxnLog,
  type TxnLogEvents,
} from '../../persistence/index.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'
import type { Database } from '../database.ts'
import { openDatabase } from '../open-database.ts'
import { SnapshotStream } from '../snapshot-stream.ts'

export const FOLDER = '/data/version-2'

/** Returns the zxid of a counter in an epoch. */
export const zxidOf = (epoch: number, counter: number): Zxid => epoch * 2 ** 32 + counter

/** A clock on which turns of the event loop follow each other without being advanced. */
class ImmediateClock extends ManualClock {
  turns = 0
  override immediate(action: () => void): void {
    this.turns++
    queueMicrotask(action)
  }
}

/** The history of a leader: its transactions, with the digests of its tree. */
export class LeaderHistory {
  readonly tree: Tree
  readonly txns: RawTxn[] = []
  readonly sessions = new SessionMap<number>()

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

  /** Adds a transaction of another leader. */
  replay(zxid: Zxid, payload: Uint8Array): void {
    const { header, txn } = decodeLoggedTxn(new Reader(payload))
    this.tree.apply(header, txn)
    this.txns.push({ zxid, payload })
  }

  /** Adds the creation of a node, by default named after its transaction. */
  create(zxid: Zxid, path = `/n${zxid.toString(16)}`): RawTxn {
    const parentCVersion = this.tree.statOf(this.tree.find('/')).cversion + 1
    const data = new Uint8Array(40).fill(zxid % 251)
    return this.write(zxid, createOf(path, { data, parentCVersion }))
  }

  createRange(epoch: number, from: number, to: number): this {
    for (let counter = from; counter <= to; counter++) this.create(zxidOf(epoch, counter))
    return this
  }
}

export function encodeTxn(logged: LoggedTxn): Uint8Array {
  const writer = new Writer(256)
  encodeLoggedTxn(writer, logged)
  return writer.take()
}

/** The database of a member, on a disk that the test controls. */
export class DatabaseFixture {
  readonly disk: MemoryDisk
  readonly clock = new ImmediateClock()
  readonly logLines: string[] = []
  readonly settings: ServerSettings
  fatal: Error | undefined
  durableZxid: Zxid = 0
  diskFullCount = 0
  database!: Database

  constructor(disk = new MemoryDisk(), settings: Partial<ServerSettings> = {}) {
    this.disk = disk
    this.settings = defaults({ dataDir: '/data', preAllocSizeBytes: 512, ...settings })
  }

  static async open(
    disk = new MemoryDisk(),
    settings: Partial<ServerSettings> = {},
  ): Promise<DatabaseFixture> {
    const fixture = new DatabaseFixture(disk, settings)
    await fixture.open()
    return fixture
  }

  /** Opens a database that has accepted an epoch. */
  static async accepting(
    epoch: number,
    ...given: Parameters<typeof DatabaseFixture.open>
  ): Promise<DatabaseFixture> {
    const fixture = await DatabaseFixture.open(...given)
    await fixture.database.acceptEpoch(epoch)
    return fixture
  }

  /** Closes the database and opens it again. */
  async reopen(): Promise<Database> {
    await this.database.close()
    return await this.open()
  }

  async open(member = true): Promise<Database> {
    this.database = await openDatabase(this.settings, this.platform(), { isMember: member })
    if (this.database.lackedSnapshot && this.database.isEligibleToVote) await this.database.takeSnapshot([])
    return this.database
  }

  platform(): Platform {
    const note = (_: object, sentence: string): void => void this.logLines.push(sentence)
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
      durable: (zxid) => void (this.durableZxid = zxid),
      snapshotDue() {},
      diskFull: () => void this.diskFullCount++,
      spaceAvailable() {},
      fatal: (error) => void (this.fatal = error),
    }
  }

  writer(): TxnLog {
    return this.database.openWriter(this.events())
  }

  /** Runs a role that logs and applies transactions, each in a durable write of its own. */
  async runRole(txns: readonly RawTxn[]): Promise<void> {
    const { accepted } = this.database.epochs
    await this.database.acceptEpoch(Math.max(accepted, ...txns.map(({ zxid }) => epochOf(zxid))))
    const writer = this.writer()
    for (const { zxid, payload } of txns) {
      writer.appendPayload(zxid, payload)
      await writer.flush()
      this.database.apply(payload)
    }
    await this.database.endRole()
  }

  /** Receives a snapshot of everything that a leader has. */
  async receiveFrom(leader: LeaderHistory, chunkBytes = 1000): Promise<void> {
    const source = this.source(leader)
    const sink = this.database.receiveSnapshot(source.zxid)
    for (const chunk of await source.chunks) {
      for (let at = 0; at < chunk.length; at += chunkBytes)
        await sink.write(chunk.subarray(at, at + chunkBytes))
    }
  }

  source({ tree, sessions }: LeaderHistory): { zxid: Zxid; chunks: Promise<Uint8Array[]> } {
    const { zxid, chunks } = streamOf(tree, sessions, this.clock)
    return { zxid, chunks: collect(chunks) }
  }

  /** Ends the process without an orderly close, optionally with a power cut. */
  async crash(withPowerCut: boolean): Promise<void> {
    this.disk.injectFault = () => ({ code: 'EIO' })
    await this.database.close().catch(() => {})
    this.disk.injectFault = undefined
    if (withPowerCut) this.disk.powerCut()
  }

  /** Returns the names of the files in a folder, sorted. */
  fileNames(folder = FOLDER): string[] {
    const names = this.disk.paths().filter((path) => path.startsWith(`${folder}/`))
    return names.map((path) => path.slice(folder.length + 1)).toSorted()
  }

  /** Returns the names of the children of the root, without `zookeeper`. */
  nodeNames(): string[] {
    return childPaths(this.database.tree, this.database.tree.find('/'))
      .map(nameOf)
      .filter((name) => name !== 'zookeeper')
  }
}

export async function collect<T>(all: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of all) found.push(one)
  return found
}

const streamOf = (tree: Tree, sessions: SessionMap<number>, clock: ManualClock): SnapshotStream =>
  new SnapshotStream(tree, sessions, clock)

/** Returns whether two trees have the same nodes, data and stats. */
export function treesEqual(a: Tree, b: Tree): boolean {
  return a.nodeCount === b.nodeCount && a.digest !== undefined && b.matches(a.digest)
}

/**
 * Runs `act` again and again and crashes it at each of its calls that change the disk, once with a power cut and once without;
 * then reopens the database and passes it to `check`. Resolves to the number of calls.
 */
export async function crashAtEachStep(
  base: MemoryDisk,
  settings: Partial<ServerSettings>,
  act: (fixture: DatabaseFixture) => Promise<void>,
  check: (fixture: DatabaseFixture, what: string) => Promise<void>,
): Promise<number> {
  for (let step = 0; ; step++) {
    let calls = 0
    for (const withPowerCut of [true, false]) {
      const disk = base.clone()
      const fixture = await DatabaseFixture.open(disk, settings)
      calls = 0
      disk.injectFault = (call) =>
        call !== 'read' && calls++ >= step ? { code: 'EIO', writtenBytes: Math.min(step, 7) } : undefined
      await act(fixture).catch(() => {})
      await fixture.crash(withPowerCut)
      const after = await DatabaseFixture.open(disk, settings)
      await check(after, `step ${step} ${withPowerCut ? 'with' : 'without'} a power cut`)
      await after.database.close()
    }
    if (calls <= step) return step
  }
}
