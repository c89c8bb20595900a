import { ErrorCode, nameOf, type Writer } from '@zabra/protocol'
import { NAME_BYTES_AT_ONCE, type ChildPathsCursor, type EphemeralPathsCursor } from '../tree/index.ts'

/** A reply with more entries than this is written in several turns of the event loop. */
export const CHUNK_THRESHOLD = 2000
/** Entries that are collected or written in one turn. */
const ENTRIES_PER_TURN = 2000
/** Nodes that a count visits in one turn. */
const NODES_PER_TURN = 20_000
/** Bytes reserved after a long list, so that the writer does not grow: names that are not ASCII take up to 3 bytes a character. */
const RESERVED_BYTES = 1 << 16

/** A reply that is written in several turns. Its client gets nothing else meanwhile; other clients are served. */
export interface ChunkedReply {
  /** Whether the reply delivers notifications, which precede its header. */
  readonly hasNotifications: boolean
  /**
   * Writes the body in steps, between which the tree may change, and returns the error number of the reply, none for success.
   * With `isInPlace`, the caller runs all steps at once, and none waits for the tree to become consistent.
   */
  readonly write: (writer: Writer, isInPlace?: boolean) => Generator<void, number | void>
  /** Releases what the reply holds. Called once, when the reply is written or abandoned, even if `write` was not called. */
  readonly dispose?: () => void
}

/** Returns a reply with the paths of ephemerals. */
export const chunkedEphemerals = (ephemerals: EphemeralPathsCursor): ChunkedReply => ({
  hasNotifications: false,
  *write(writer) {
    while (ephemerals.next(ENTRIES_PER_TURN)) yield
    yield* writeStrings(writer, ephemerals, (path) => path)
  },
  dispose: () => ephemerals.close(),
})

/** Returns a reply with the names of children, followed by the bytes of `tail`. */
export const chunkedChildren = (children: ChildPathsCursor, tail: Uint8Array): ChunkedReply => ({
  hasNotifications: false,
  *write(writer) {
    yield* writeNames(writer, children)
    writer.raw(tail)
  },
  dispose: () => children.close(),
})

function* writeNames(writer: Writer, children: ChildPathsCursor): Generator<void, void> {
  while (children.next(ENTRIES_PER_TURN)) yield
  children.countRead()
  yield* writeStrings(writer, children, nameOf)
}

/** Writes a vector of strings that are made of collected paths. */
function* writeStrings(
  writer: Writer,
  { lists, count, bytes }: ChildPathsCursor | EphemeralPathsCursor,
  textOf: (path: string) => string,
): Generator<void, void> {
  writer.reserve(bytes + RESERVED_BYTES)
  writer.int(count)
  for (const list of lists) {
    let end = writer.length + NAME_BYTES_AT_ONCE
    for (const path of list) {
      writer.string(textOf(path))
      if (writer.length <= end) continue
      end = writer.length + NAME_BYTES_AT_ONCE
      yield
    }
    yield
  }
}

/** A list of children to insert into a reply at the offset `at` of its bytes. */
export interface ChildListInsertion {
  readonly at: number
  /** The children at the time of the request, like everything else in the reply. */
  readonly children: ChildPathsCursor
}

/** Returns the reply to a multiRead: inserts the long lists into its other bytes. More than `limit` bytes are an error. */
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
        yield* writeNames(writer, children)
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

/** Returns a reply with the number of nodes that a counter finds. */
export function chunkedCount(counter: {
  next(limit: number): boolean
  close(): void
  readonly count: number
}): ChunkedReply {
  return {
    hasNotifications: false,
    *write(writer) {
      while (counter.next(NODES_PER_TURN)) yield
      writer.int(counter.count)
    },
    dispose: () => counter.close(),
  }
}
