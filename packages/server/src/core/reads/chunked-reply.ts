import { ErrorCode, EventType, nameOf, OpCode, Reader, type Writer } from '@zabra/protocol'
import type { ChildPathsCursor, Tree } from '../tree/index.ts'
import type { WatchNotifier, NotifiedWatcher, WatchManager } from '../watches/index.ts'

/** From so many entries on an answer is made in several turns of the event loop. */
export const CHUNK_THRESHOLD = 2000
/** Entries of an answer that are taken or written in one turn. */
const STEP = 2000
/** Watches that are set again in one turn. */
const SET = 500
/** Bytes of a request to set watches from which on that takes several turns. */
const LONG_BYTES = 1 << 16
/** Nodes that are looked at in one turn. */
const COUNTED = 20_000
/** Room behind a long list that nobody needs to get anew: before its length is known, text may take three bytes a character. */
const SLACK = 1 << 16

/** An answer that is made in several turns. Its client gets nothing else meanwhile, and others are served. */
export interface ChunkedReply {
  /** Whether what it tells its client comes before the header of the reply. */
  readonly hasNotifications: boolean
  /** Writes the body in steps, and returns the error number of the reply, none for success. The tree may change between two. */
  readonly write: (writer: Writer) => Generator<void, number | void>
  /** Called when it is made or given up, begun or not. */
  readonly dispose?: () => void
}

/** A vector of strings that are at hand, without those for which there is no text. */
export function chunkedVector(
  texts: readonly string[],
  textOf: (text: string) => string | undefined,
): ChunkedReply {
  return {
    hasNotifications: false,
    *write(writer) {
      const mark = writer.length
      writer.int(0)
      let count = 0
      for (let i = 0; i < texts.length; i++) {
        if (i > 0 && i % STEP === 0) yield
        const text = textOf(texts[i]!)
        if (text === undefined) continue
        writer.string(text)
        count++
      }
      writer.intAt(mark, count)
    },
  }
}

/** The names of children. `end` is what follows them. */
export const chunkedChildren = (children: ChildPathsCursor, end: Uint8Array): ChunkedReply => ({
  hasNotifications: false,
  *write(writer) {
    yield* names(writer, children)
    writer.raw(end)
  },
  dispose: () => children.close(),
})

function* names(writer: Writer, children: ChildPathsCursor): Generator<void, void> {
  while (children.next(STEP)) yield
  writer.reserve(children.bytes + SLACK)
  writer.int(children.count)
  for (const list of children.lists) {
    for (const path of list) writer.string(nameOf(path))
    yield
  }
}

/** A list of children that is missing in an answer, at an offset of its bytes. */
export interface ChildListInsertion {
  readonly at: number
  /** Those of the moment of the request, as everything else in the answer. */
  readonly children: ChildPathsCursor
}

/** The answer to a multiRead: all of it but for its long lists, which are put in. More than `limit` bytes are an error. */
export function chunkedMultiRead(
  bytes: Uint8Array,
  lists: readonly ChildListInsertion[],
  { err, limit }: { readonly err: number; readonly limit: number },
): ChunkedReply {
  return {
    hasNotifications: false,
    *write(writer) {
      const start = writer.length
      let from = 0
      for (const { at, children } of lists) {
        writer.raw(bytes.subarray(from, at))
        from = at
        yield* names(writer, children)
        if (writer.length - start + bytes.length - from <= limit) continue
        writer.truncate(start)
        return ErrorCode.MARSHALLINGERROR
      }
      writer.raw(bytes.subarray(from))
      return err
    },
    dispose: () => lists.forEach(({ children }) => children.close()),
  }
}

/** What counts below a path, for as long as it takes. */
export function chunkedCount(count: {
  next(limit: number): boolean
  close(): void
  readonly count: number
}): ChunkedReply {
  return {
    hasNotifications: false,
    *write(writer) {
      while (count.next(COUNTED)) yield
      writer.int(count.count)
    },
    dispose: () => count.close(),
  }
}

type Kind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive'
const KINDS: readonly Kind[] = ['data', 'exist', 'child', 'persistent', 'recursive']

/** Puts watches back after a reconnection, or tells at once what happened meanwhile. */
export class WatchRestorer<L extends NotifiedWatcher> {
  readonly #tree: Tree
  readonly #watches: WatchManager<L>
  readonly #firing: WatchNotifier<L>

  constructor(tree: Tree, watches: WatchManager<L>, firing: WatchNotifier<L>) {
    this.#tree = tree
    this.#watches = watches
    this.#firing = firing
  }

  /** Gives the error number, or the answer when there are many. Throws a `ProtocolError` for what is no such request. */
  restore(op: number, body: Reader, listener: L, mayBeLong: boolean): number | ChunkedReply {
    const kinds = op === OpCode.setWatches ? KINDS.slice(0, 3) : KINDS
    const { offset, remaining } = body
    if (!isSound(body, kinds)) return ErrorCode.MARSHALLINGERROR
    body.offset = offset
    if (!mayBeLong || remaining < LONG_BYTES) {
      const steps = this.#steps(body, kinds, listener)
      while (steps.next().done !== true);
      return ErrorCode.OK
    }
    // Between two turns nobody keeps the bytes.
    const own = new Reader(body.raw(remaining).slice())
    const write = (): Generator<void> => this.#inTurns(own, kinds, listener)
    return { hasNotifications: true, write }
  }

  *#inTurns(body: Reader, kinds: readonly Kind[], listener: L): Generator<void> {
    const steps = this.#steps(body, kinds, listener)
    while (steps.next().done !== true) {
      yield
      while (this.#tree.isApplying) yield
    }
  }

  *#steps(body: Reader, kinds: readonly Kind[], listener: L): Generator<void> {
    const since = Number(body.long())
    let done = 0
    for (const kind of kinds) {
      for (let left = body.int(); left > 0; left--) {
        const path = body.string()
        if (path !== null) this.#set(kind, path, since, listener)
        if (++done % SET === 0) yield
      }
    }
  }

  #set(kind: Kind, path: string, since: number, listener: L): void {
    switch (kind) {
      case 'data':
      case 'child':
        return this.#setOnNode(kind, path, since, listener)
      case 'exist':
        if (this.#tree.has(path)) this.#firing.notify(listener, EventType.NodeCreated, path)
        else this.#watches.watchData(listener, path)
        return
      case 'persistent':
        return this.#watches.watchPersistently(listener, path)
      case 'recursive':
        return this.#watches.watchRecursively(listener, path)
    }
  }

  #setOnNode(kind: 'data' | 'child', path: string, since: number, listener: L): void {
    const node = this.#tree.find(path)
    if (node === -1) return this.#firing.notify(listener, EventType.NodeDeleted, path)
    const { mzxid, pzxid } = this.#tree.statOf(node)
    if (kind === 'data') {
      if (mzxid > since) this.#firing.notify(listener, EventType.NodeDataChanged, path)
      else this.#watches.watchData(listener, path)
    } else if (pzxid > since) this.#firing.notify(listener, EventType.NodeChildrenChanged, path)
    else this.#watches.watchChildren(listener, path)
  }
}

/**
 * Whether a request has all its lists, and no null path where one is looked up; a persistent watch on one is accepted and never
 * fires, as with addWatch. Nothing may be set before that is known.
 */
function isSound(body: Reader, kinds: readonly Kind[]): boolean {
  let sound = true
  body.raw(8)
  for (const kind of kinds) {
    const count = body.vectorLength()
    if (count < 0) sound = false
    for (let i = 0; i < count; i++) {
      const isNull = body.skipBuffer() === -1
      if (isNull && kind !== 'persistent' && kind !== 'recursive') sound = false
    }
  }
  return sound
}
