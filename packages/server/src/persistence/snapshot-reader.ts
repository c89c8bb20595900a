import { formatZxid, type ACL } from '@zabra/protocol'
import type { ByteTransform, Compression, Disk } from '@zabra/runtime'
import { SessionMap } from '../core/session-map.ts'
import { NODE_TAIL_BYTES, type Tree } from '../core/tree/index.ts'
import type { Digest, Zxid } from '../core/types.ts'
import {
  ByteStream,
  FileChunks,
  TRY_OLDER_SNAPSHOT,
  type ChunkSource,
  type PeekReader,
} from './byte-stream.ts'
import { DamageError } from './errors.ts'
import type { Pause } from './pause.ts'
import { snapshotKind, type NamedFile } from './file-names.ts'
import { SnappyDecompressor } from './snappy.ts'
import { SNAPSHOT_MAGIC, STREAM_SIGNATURE } from './snapshot-codec.ts'
import { readTxnAcl } from '../core/operations/index.ts'
import { TXN_DIGEST_VERSION } from './txn-codec.ts'

/** The string "/", which ends every seal (disk-format 7.2). */
const SEAL_END = [0, 0, 0, 1, 0x2f]
/** Limit for a path, a node's data or an access control list in a file. */
const MAX_PART = 0x4000_0000
/** Limit for a part that arrives over the network, where it is buffered until complete. The parts of a leader are far smaller, since the size
 * of requests is limited. */
const MAX_STREAMED_PART = 1 << 27

export interface LoadedSnapshot {
  /**
   * Nodes whose access control list was added while the snapshot was written, so that its table lacks it. A later transaction
   * sets it (disk-format 7.8); a tree in which one of these nodes is left without must not be served.
   */
  readonly nodesWithoutAcl: readonly string[]
  readonly zxid: Zxid
  readonly nodes: number
  readonly sessions: SessionMap<number>
  /** The digest of the tree after the transaction `zxid`, if the snapshot has one of a supported version. */
  readonly digest: { readonly zxid: Zxid; readonly value: Digest } | undefined
  /** The last transaction whose effects the contents may include; undefined if it is not recorded (disk-format 7.6). */
  readonly lastZxid: Zxid | undefined
}

/** Nodes, or sessions, that are loaded between two calls of `Pause`, less one: a power of two less one. */
const PAUSE_MASK = 63

/** Checks the beginning and the end of a snapshot, which is cheap enough for many candidates (disk-format 7.5). */
export async function looksComplete(disk: Disk, path: string): Promise<boolean> {
  const reader = await disk.openRead(path)
  try {
    const size = await reader.size()
    const kind = snapshotKind(path)
    if (size < 10) return false
    const bytes = new Uint8Array(8)
    await reader.read(bytes, 0)
    if (kind === 'gz') return bytes[0] === 0x1f && bytes[1] === 0x8b
    if (kind === 'snappy')
      return [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0].every((byte, i) => bytes[i] === byte)
    await reader.read(bytes.subarray(0, 5), size - 5)
    return SEAL_END.every((byte, i) => bytes[i] === byte)
  } finally {
    await reader.close()
  }
}

/** Resolves to whether a snapshot has its last seal; a compressed one is decompressed for that. Checks nothing before it. */
export async function hasFinalSeal(
  disk: Disk,
  folder: string,
  name: string,
  compressor: Compression,
): Promise<boolean> {
  const path = `${folder}/${name}`
  if (!(await looksComplete(disk, path))) return false
  const decompressor = decompressorOf(name, compressor)
  if (decompressor === undefined) return true
  const reader = await disk.openRead(path)
  const chunks = new FileChunks(reader, path, decompressor)
  try {
    let end = new Uint8Array(0)
    for (let chunk = await chunks.next(); chunk !== undefined; chunk = await chunks.next()) {
      const joined = new Uint8Array(end.length + Math.min(5, chunk.length))
      joined.set(end)
      joined.set(chunk.subarray(-5), end.length)
      end = joined.slice(-5)
    }
    return SEAL_END.every((byte, i) => byte === end[i])
  } catch (error) {
    if (error instanceof DamageError) return false
    throw error
  } finally {
    await chunks.drain()
    await reader.close()
  }
}

/**
 * Reads a snapshot into a new tree, a chunk at a time, and checks every seal and every parent. Rejects with a `DamageError` when
 * anything is wrong; the tree must not be used then.
 */
export async function loadSnapshot(
  disk: Pick<Disk, 'openRead'>,
  folder: string,
  file: NamedFile,
  tree: Tree,
  compressor: Compression,
  pause?: Pause,
): Promise<LoadedSnapshot> {
  const path = `${folder}/${file.name}`
  const reader = await disk.openRead(path)
  // The pause looks at the memory, also before a node is complete: a gzip of a megabyte may hold one of a gigabyte.
  const chunks = new FileChunks(reader, path, decompressorOf(file.name, compressor), pause)
  try {
    const stream = new ByteStream(chunks, path, TRY_OLDER_SNAPSHOT)
    return await new SnapshotLoad(stream, tree, MAX_PART, pause).file(file.zxid)
  } finally {
    await chunks.drain()
    await reader.close()
  }
}

/** Returns the decompressor for a snapshot of this name; undefined for one that is not compressed. */
function decompressorOf(name: string, compressor: Compression): ByteTransform | undefined {
  const kind = snapshotKind(name)
  return kind === 'gz' ? compressor.gunzip() : kind === 'snappy' ? new SnappyDecompressor() : undefined
}

export interface LoadedSnapshotStream {
  readonly nodesWithoutAcl: readonly string[]
  readonly nodes: number
  readonly sessions: SessionMap<number>
  /** The bytes after the signature. */
  readonly rest: Uint8Array
}

/**
 * Reads a snapshot as a leader streams it, without header and seals and with a signature at its end (disk-format 7.10), into a new
 * tree. Rejects with a `DamageError` when anything is wrong; the tree must not be used then.
 */
export async function loadSnapshotStream(
  source: ChunkSource,
  from: string,
  tree: Tree,
  zxid: Zxid,
  pause?: Pause,
): Promise<LoadedSnapshotStream> {
  const stream = new ByteStream(source, from, 'Connect again; the data on disk are as before')
  return new SnapshotLoad(stream, tree, MAX_STREAMED_PART, pause).stream(zxid)
}

/** Parses one snapshot into a tree. */
class SnapshotLoad {
  readonly #in: ByteStream
  readonly #tree: Tree
  readonly #acls = new Set<number>([-1])
  readonly #nodesWithoutAcl: string[] = []

  readonly #maxPart: number
  readonly #pause: Pause | undefined

  constructor(stream: ByteStream, tree: Tree, maxPart: number, pause?: Pause) {
    this.#pause = pause
    this.#in = stream
    this.#tree = tree
    this.#maxPart = maxPart
  }

  async stream(zxid: Zxid): Promise<LoadedSnapshotStream> {
    const sessions = await this.#sessions()
    this.#tree.clear()
    await this.#aclTable()
    const nodes = await this.#nodes()
    const length = (await this.#in.require(4)).peekInt()
    if (length !== STREAM_SIGNATURE.length)
      throw this.#damage(`Expected the signature ${STREAM_SIGNATURE}, got a string of ${length} bytes`)
    const signature = (await this.#in.require(4 + length)).string()
    if (signature !== STREAM_SIGNATURE)
      throw this.#damage(`Expected the signature ${STREAM_SIGNATURE}, got ${JSON.stringify(signature)}`)
    this.#tree.endLoad(zxid)
    return { nodesWithoutAcl: this.#nodesWithoutAcl, nodes, sessions, rest: this.#in.unread() }
  }

  async file(zxid: Zxid): Promise<LoadedSnapshot> {
    const r = await this.#in.require(16)
    if (r.int() !== SNAPSHOT_MAGIC || r.int() !== 2)
      throw this.#damage('Expected the header of a snapshot ("ZKSN", version 2)')
    r.raw(8)
    const sessions = await this.#sessions()
    this.#tree.clear()
    await this.#aclTable()
    const nodes = await this.#nodes()
    await this.#seal('nodes')
    this.#tree.endLoad(zxid)
    const digest = await this.#digest()
    const lastZxid = digest === undefined || (await this.#in.isAtEnd()) ? undefined : await this.#lastZxid()
    const known = digest !== undefined && digest.version === TXN_DIGEST_VERSION ? digest : undefined
    return {
      zxid,
      nodes,
      sessions,
      digest: known && { zxid: known.zxid, value: known.value },
      lastZxid,
      nodesWithoutAcl: this.#nodesWithoutAcl,
    }
  }

  async #sessions(): Promise<SessionMap<number>> {
    const count = await this.#count('sessions')
    const sessions = new SessionMap<number>()
    for (let i = 0; i < count; i++) {
      const r = this.#in.readerIfAvailable(12) ?? (await this.#in.require(12))
      sessions.set(r.long(), r.int())
      if (this.#pause !== undefined && (i & PAUSE_MASK) === PAUSE_MASK) await this.#pause()
    }
    return sessions
  }

  async #aclTable(): Promise<void> {
    const count = await this.#count('access control lists')
    for (let i = 0; i < count; i++) {
      const r = await this.#in.require(12)
      const id = r.longNumber()
      this.#tree.acls.load(id, await this.#acl())
      this.#acls.add(id)
    }
  }

  async #acl(): Promise<readonly ACL[]> {
    // The length of a list is known only after decoding it; when the window is too short, load more and decode again.
    for (let wanted = 4; ; wanted = Math.min(wanted * 4, this.#maxPart)) {
      const available = await this.#in.fillUpTo(wanted)
      const r = this.#in.reader
      const start = r.offset
      try {
        return readTxnAcl(r)
      } catch (error) {
        r.offset = start
        if (available < wanted || wanted === this.#maxPart)
          throw this.#damage('Expected an access control list', error)
      }
    }
  }

  async #nodes(): Promise<number> {
    const stream = this.#in
    const bulk = this.#tree.bulkLoader()
    for (let nodes = 0; ; nodes++) {
      if (this.#pause !== undefined && (nodes & PAUSE_MASK) === 0) await this.#pause()
      const pathLength = (stream.readerIfAvailable(4) ?? (await stream.require(4))).peekInt()
      this.#bound(pathLength, 0)
      let r = stream.readerIfAvailable(pathLength + 8) ?? (await stream.require(pathLength + 4))
      const path = r.string()!
      if (path === '/') {
        bulk.flushAclUses()
        return nodes
      }
      const dataLength = (stream.readerIfAvailable(4) ?? (await stream.require(4))).peekInt()
      this.#bound(dataLength, -1)
      const needed = 4 + Math.max(0, dataLength) + NODE_TAIL_BYTES
      r = stream.readerIfAvailable(needed) ?? (await stream.require(needed))
      if (bulk.tryLoad(path, stream.bytes, stream.view, r.offset + 4, dataLength)) r.offset += needed
      else {
        bulk.flushAclUses()
        this.#node(path, r)
      }
    }
  }

  #node(path: string, r: PeekReader): void {
    const data = r.buffer()
    const aclId = r.longNumber()
    const czxid = r.longNumber()
    const mzxid = r.longNumber()
    const ctime = r.longNumber()
    const mtime = r.longNumber()
    const version = r.int()
    const cversion = r.int()
    const aversion = r.int()
    const owner = r.long()
    const pzxid = r.longNumber()
    if (!this.#acls.has(aclId)) this.#nodesWithoutAcl.push(path)
    const stat = { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, owner }
    if (!this.#tree.loadNode(path, data, aclId, stat))
      throw this.#damage(`Expected the parent of ${path} before it`)
  }

  async #digest(): Promise<{ zxid: Zxid; version: number; value: Digest } | undefined> {
    if (await this.#in.isAtEnd()) return undefined
    const r = await this.#in.require(12)
    const zxid = r.longNumber()
    const version = r.int()
    let value: Digest = { hi: 0, lo: 0 }
    if (version < 2) {
      const length = (await this.#in.require(4)).peekInt()
      this.#bound(length, -1)
      ;(await this.#in.require(4 + Math.max(0, length))).string()
    } else {
      const sum = await this.#in.require(8)
      value = { hi: sum.int() >>> 0, lo: sum.int() >>> 0 }
    }
    await this.#seal('digest')
    return { zxid, version, value }
  }

  async #lastZxid(): Promise<Zxid> {
    const zxid = (await this.#in.require(8)).longNumber()
    await this.#seal('last zxid')
    return zxid
  }

  async #seal(of: string): Promise<void> {
    const actual = this.#in.checksum()
    const r = await this.#in.require(13)
    const high = r.int()
    const low = r.int() >>> 0
    if (high !== 0 || low !== actual || r.int() !== 1 || r.byte() !== 0x2f) {
      throw this.#damage(
        `Expected the seal of the ${of} with checksum ${formatZxid(actual)}, got ${formatZxid(low)}`,
      )
    }
  }

  async #count(what: string): Promise<number> {
    const count = (await this.#in.require(4)).int()
    if (count < 0) throw this.#damage(`Expected the number of ${what}, got ${count}`)
    return count
  }

  #bound(length: number, least: number): void {
    if (length < least || length > this.#maxPart) throw this.#damage(`Expected a length, got ${length}`)
  }

  #damage(what: string, cause?: unknown): DamageError {
    return this.#in.damage(what, cause)
  }
}
