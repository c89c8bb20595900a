import {
  ErrorCode,
  OpCode,
  Perms,
  ProtocolError,
  readMultiRequest,
  WatchMode,
  WatcherType,
  writeACLList,
  writeMultiHeader,
  type MultiOperation,
  type Reader,
  Writer,
} from '@zabra/protocol'
import { aclVisibility, maskDigests, userName, type AclRules } from '../auth/index.ts'
import {
  ChildPathsCursor,
  DescendantCounter,
  countDescendants,
  writeChildren,
  type Tree,
} from '../tree/index.ts'
import type { Identity, SessionId } from '../types.ts'
import type { WatchNotifier, NotifiedWatcher, WatchManager } from '../watches/index.ts'
import {
  CHUNK_THRESHOLD,
  chunkedCount,
  chunkedMultiRead,
  chunkedChildren,
  chunkedVector,
  WatchRestorer,
  type ChunkedReply,
  type ChildListInsertion,
} from './chunked-reply.ts'

/** What reads look at. One for a server. */
export interface ReadContext<L extends NotifiedWatcher> {
  readonly tree: Tree
  readonly acls: AclRules
  readonly watches: WatchManager<L>
  readonly watchNotifier: WatchNotifier<L>
}

/** Who reads. `identities` are those of the moment when the request came. */
export interface ReadCaller<L extends NotifiedWatcher> {
  readonly listener: L
  readonly sessionId: SessionId
  readonly identities: readonly Identity[]
}

/** Bytes that one multiRead may be answered with. */
const MULTI_READ_LIMIT = 64 * 2 ** 20
const END = { type: -1, done: true, err: -1 } as const

/**
 * Answers a read straight into the out-buffer: writes the body of the reply and returns the error number. With an error
 * other than 0 nothing is left in the buffer, but for what a multiRead has found so far. Watches are registered, and what
 * setWatches finds is told before the body.
 */
export class ReadHandlers<L extends NotifiedWatcher> {
  readonly #tree: Tree
  readonly #acls: AclRules
  readonly #watches: WatchManager<L>
  readonly #setter: WatchRestorer<L>

  constructor({ tree, acls, watches, watchNotifier: firing }: ReadContext<L>) {
    this.#tree = tree
    this.#acls = acls
    this.#watches = watches
    this.#setter = new WatchRestorer(tree, watches, firing)
  }

  /** Answers in this turn, however long that takes. */
  answer(op: number, body: Reader, writer: Writer, caller: ReadCaller<L>): number {
    return this.begin(op, body, writer, caller, false) as number
  }

  /** As `answer`; or gives an answer that is to be made in several turns, with nothing written yet. */
  begin(
    op: number,
    body: Reader,
    writer: Writer,
    caller: ReadCaller<L>,
    mayBeLong = true,
  ): number | ChunkedReply {
    const before = writer.length
    try {
      return this.#answer(op, body, writer, caller, mayBeLong)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      writer.truncate(before)
      return ErrorCode.MARSHALLINGERROR
    }
  }

  #answer(
    op: number,
    body: Reader,
    writer: Writer,
    caller: ReadCaller<L>,
    mayBeLong: boolean,
  ): number | ChunkedReply {
    switch (op) {
      case OpCode.ping:
        return ErrorCode.OK
      case OpCode.sync:
        // A server that stands alone has nothing to wait for: what is applied is all there is.
        writer.string(body.string())
        return ErrorCode.OK
      case OpCode.getData: {
        const node = this.#tree.store.findFromReader(body)
        if (node === -1) return this.#getData(body.string(), body.bool(), writer, caller)
        return this.#getDataOf(node, this.#tree.pathOf(node), body.bool(), writer, caller)
      }
      case OpCode.exists: {
        const node = this.#tree.store.findFromReader(body)
        if (node === -1) return this.#exists(body.string(), body.bool(), writer, caller)
        return this.#existsAs(node, this.#tree.pathOf(node), body.bool(), writer, caller)
      }
      case OpCode.getChildren:
        return this.#getChildren(body.string(), body.bool(), writer, caller, false, mayBeLong)
      case OpCode.getChildren2:
        return this.#getChildren(body.string(), body.bool(), writer, caller, true, mayBeLong)
      case OpCode.getACL:
        return this.#getACL(body.string(), writer, caller)
      case OpCode.getAllChildrenNumber:
        return this.#getAllChildrenNumber(body.string(), writer, caller, mayBeLong)
      case OpCode.getEphemerals:
        return this.#getEphemerals(body.string(), writer, caller, mayBeLong)
      case OpCode.multiRead:
        return this.#multiRead(body, writer, caller, mayBeLong)
      case OpCode.addWatch:
        return this.#addWatch(body.string(), body.int(), writer, caller)
      case OpCode.checkWatches:
        return this.#checkWatches(body.string(), body.int(), caller)
      case OpCode.removeWatches:
        return this.#removeWatches(body.string(), body.int(), caller)
      case OpCode.setWatches:
      case OpCode.setWatches2:
        return this.#setter.restore(op, body, caller.listener, mayBeLong)
      case OpCode.whoAmI:
        return this.#whoAmI(writer, caller)
      default:
        return ErrorCode.UNIMPLEMENTED
    }
  }

  #getData(path: string | null, watch: boolean, writer: Writer, caller: ReadCaller<L>): number {
    if (path === null) return ErrorCode.MARSHALLINGERROR
    const node = this.#tree.find(path)
    return node === -1 ? ErrorCode.NONODE : this.#getDataOf(node, path, watch, writer, caller)
  }

  #getDataOf(node: number, path: string, watch: boolean, writer: Writer, caller: ReadCaller<L>): number {
    if (!this.#mayRead(node, caller)) return ErrorCode.NOAUTH
    if (watch) this.#watches.watchData(caller.listener, path)
    this.#tree.writeData(node, writer)
    this.#tree.writeStat(node, writer)
    return ErrorCode.OK
  }

  #exists(path: string | null, watch: boolean, writer: Writer, caller: ReadCaller<L>): number {
    if (path === null) return ErrorCode.MARSHALLINGERROR
    if (path.includes('\0')) return ErrorCode.BADARGUMENTS
    return this.#existsAs(this.#tree.find(path), path, watch, writer, caller)
  }

  #existsAs(node: number, path: string, watch: boolean, writer: Writer, caller: ReadCaller<L>): number {
    if (node !== -1 && !this.#mayRead(node, caller)) return ErrorCode.NOAUTH
    if (watch) this.#watches.watchData(caller.listener, path)
    if (node === -1) return ErrorCode.NONODE
    this.#tree.writeStat(node, writer)
    return ErrorCode.OK
  }

  #getChildren(
    path: string | null,
    watch: boolean,
    writer: Writer,
    caller: ReadCaller<L>,
    withStat: boolean,
    mayBeLong: boolean,
  ): number | ChunkedReply {
    if (path === null) return ErrorCode.MARSHALLINGERROR
    const node = this.#tree.find(path)
    if (node === -1) return ErrorCode.NONODE
    if (!this.#mayRead(node, caller)) return ErrorCode.NOAUTH
    if (watch) this.#watches.watchChildren(caller.listener, path)
    if (mayBeLong && this.#tree.childCount(node) > CHUNK_THRESHOLD) {
      const stat = new Writer(80)
      if (withStat) this.#tree.writeStat(node, stat)
      return chunkedChildren(new ChildPathsCursor(this.#tree, node), stat.take())
    }
    writeChildren(this.#tree, node, writer)
    if (withStat) this.#tree.writeStat(node, writer)
    return ErrorCode.OK
  }

  #getACL(path: string | null, writer: Writer, caller: ReadCaller<L>): number {
    if (path === null) return ErrorCode.MARSHALLINGERROR
    const node = this.#tree.find(path)
    if (node === -1) return ErrorCode.NONODE
    const acl = this.#tree.aclOf(node)
    const visible = aclVisibility(this.#acls, acl, caller.identities)
    if (visible === 'none') return ErrorCode.NOAUTH
    writeACLList(writer, visible === 'full' ? acl : maskDigests(acl))
    this.#tree.writeStat(node, writer)
    return ErrorCode.OK
  }

  #getAllChildrenNumber(
    path: string | null,
    writer: Writer,
    caller: ReadCaller<L>,
    mayBeLong: boolean,
  ): number | ChunkedReply {
    if (path === null) return ErrorCode.MARSHALLINGERROR
    const node = this.#tree.find(path)
    if (node === -1) return ErrorCode.NONODE
    if (!this.#mayRead(node, caller)) return ErrorCode.NOAUTH
    // The reference counts one more for the empty path, since no path starts with it twice.
    if (path === '' || path === '/') {
      writer.int(path === '' ? this.#tree.nodeCount : this.#tree.nodeCount - 1)
      return ErrorCode.OK
    }
    const count = countDescendants(this.#tree, node, mayBeLong ? CHUNK_THRESHOLD : Infinity)
    if (count === undefined) return chunkedCount(new DescendantCounter(this.#tree, path))
    writer.int(count)
    return ErrorCode.OK
  }

  #getEphemerals(
    prefix: string | null,
    writer: Writer,
    caller: ReadCaller<L>,
    mayBeLong: boolean,
  ): number | ChunkedReply {
    const start = prefix === null || ['', '/'].includes(trim(prefix)) ? '' : prefix
    const nodes = this.#tree.owners.ofSession(caller.sessionId)
    if (mayBeLong && nodes.size > CHUNK_THRESHOLD) {
      const paths: string[] = []
      for (const node of nodes) paths.push(this.#tree.pathOf(node))
      return chunkedVector(paths, (path) => (path.startsWith(start) ? path : undefined))
    }
    const mark = writer.length
    writer.int(0)
    let count = 0
    for (const node of nodes) {
      const path = this.#tree.pathOf(node)
      if (!path.startsWith(start)) continue
      writer.string(path)
      count++
    }
    writer.intAt(mark, count)
    return ErrorCode.OK
  }

  /** All parts are of one moment. Long lists of children are only begun now, and written in steps. */
  #multiRead(body: Reader, writer: Writer, caller: ReadCaller<L>, mayBeLong: boolean): number | ChunkedReply {
    const begun = new Map<number, ChildPathsCursor>()
    try {
      return this.#multiReadWith(begun, body, writer, caller, mayBeLong)
    } catch (error) {
      for (const list of begun.values()) list.close()
      throw error
    }
  }

  #multiReadWith(
    begun: Map<number, ChildPathsCursor>,
    body: Reader,
    writer: Writer,
    caller: ReadCaller<L>,
    mayBeLong: boolean,
  ): number | ChunkedReply {
    const operations = readMultiRequest(body)
    const isRead = ({ type }: MultiOperation): boolean =>
      type === OpCode.getData || type === OpCode.getChildren
    if (operations.some(isRead) && !operations.every(isRead))
      body.fail('Expected reads only or writes only', 'a multi')
    const start = writer.length
    const lists: ChildListInsertion[] = []
    let failure: number = ErrorCode.OK
    for (const { type, path } of operations) {
      if (path === null || (type !== OpCode.getData && type !== OpCode.getChildren)) {
        failure = ErrorCode.MARSHALLINGERROR
        break
      }
      const mark = writer.length
      writeMultiHeader(writer, { type, done: false, err: 0 })
      const long = mayBeLong && type === OpCode.getChildren ? this.#longList(path, caller, begun) : undefined
      if (long !== undefined) {
        lists.push({ at: writer.length - start, children: long })
        continue
      }
      const err =
        type === OpCode.getData
          ? this.#getData(path, false, writer, caller)
          : (this.#getChildren(path, false, writer, caller, false, false) as number)
      // A small request must not be able to ask for more than memory holds.
      if (writer.length - start > MULTI_READ_LIMIT)
        body.fail('Expected reads of 64 MiB at most together', 'a multi')
      if (err === 0) continue
      writer.truncate(mark)
      writeMultiHeader(writer, { type: OpCode.error, done: false, err })
      writer.int(err)
    }
    writeMultiHeader(writer, END)
    if (lists.length === 0) return failure
    const bytes = writer.bytes().slice(start)
    writer.truncate(start)
    return chunkedMultiRead(bytes, lists, { err: failure, limit: MULTI_READ_LIMIT })
  }

  /** The children of a node that has many, and that the caller may read. A node is gone through once. */
  #longList(
    path: string,
    caller: ReadCaller<L>,
    begun: Map<number, ChildPathsCursor>,
  ): ChildPathsCursor | undefined {
    const node = this.#tree.find(path)
    if (node === -1 || this.#tree.childCount(node) <= CHUNK_THRESHOLD || !this.#mayRead(node, caller))
      return undefined
    const list = begun.get(node) ?? new ChildPathsCursor(this.#tree, node)
    begun.set(node, list)
    return list
  }

  #addWatch(path: string | null, mode: number, writer: Writer, caller: ReadCaller<L>): number {
    if (mode === WatchMode.PERSISTENT) {
      if (path !== null) this.#watches.watchPersistently(caller.listener, path)
    } else if (mode === WatchMode.PERSISTENT_RECURSIVE) {
      if (path !== null) this.#watches.watchRecursively(caller.listener, path)
    } else {
      return ErrorCode.MARSHALLINGERROR
    }
    writer.int(0)
    return ErrorCode.OK
  }

  #checkWatches(path: string | null, type: number, caller: ReadCaller<L>): number {
    if (type < WatcherType.Children || type > WatcherType.PersistentRecursive)
      return ErrorCode.MARSHALLINGERROR
    return path !== null && this.#watches.has(caller.listener, path, type)
      ? ErrorCode.OK
      : ErrorCode.NOWATCHER
  }

  #removeWatches(path: string | null, type: number, caller: ReadCaller<L>): number {
    if (type < WatcherType.Children || type > WatcherType.PersistentRecursive)
      return ErrorCode.MARSHALLINGERROR
    return path !== null && this.#watches.remove(caller.listener, path, type)
      ? ErrorCode.OK
      : ErrorCode.NOWATCHER
  }

  #whoAmI(writer: Writer, caller: ReadCaller<L>): number {
    writer.int(caller.identities.length)
    for (const identity of caller.identities) {
      writer.string(identity.scheme)
      writer.string(userName(identity))
    }
    return ErrorCode.OK
  }

  #mayRead(node: number, caller: ReadCaller<L>): boolean {
    return this.#acls.allows(this.#tree.aclOf(node), Perms.READ, caller.identities)
  }
}

/** Without what Java takes for blank at the ends: everything up to the space, and no other white space of Unicode. */
function trim(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && text.charCodeAt(start) <= 0x20) start++
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--
  return text.slice(start, end)
}
