import { OpCode, textLength, writeSetWatches, writeSetWatches2, Xid, type Writer } from '@zabra/protocol'
import { errorOf } from '../errors.ts'
import type { Wire } from '../session/wire.ts'
import type { WatchKind, WatchRegistry } from './registry.ts'

/** Bytes of paths in one request, well below what a server accepts (ZOOKEEPER-706). */
const CHUNK_BYTES = 128 * 1024

const oneShot: readonly WatchKind[] = ['data', 'exists', 'children']
const lasting: readonly WatchKind[] = ['persistent', 'recursive']

type Lists = Record<WatchKind, string[]>

/** One request that sets watches again: either those that fire once, or those that last. */
export interface Chunk {
  readonly kinds: readonly WatchKind[]
  readonly lists: Lists
}

/** All watches, cut into requests that a server can take. */
export function* restoreChunks(watches: WatchRegistry, chunkBytes = CHUNK_BYTES): Generator<Chunk> {
  for (const kinds of [oneShot, lasting]) {
    let lists = noPaths()
    let bytes = 0
    for (const kind of kinds) {
      for (const path of watches.paths(kind)) {
        const size = 4 + textLength(path)
        if (bytes > 0 && bytes + size > chunkBytes) {
          yield { kinds, lists }
          lists = noPaths()
          bytes = 0
        }
        lists[kind].push(path)
        bytes += size
      }
    }
    if (bytes > 0) yield { kinds, lists }
  }
}

const noPaths = (): Lists => ({ data: [], exists: [], children: [], persistent: [], recursive: [] })

/** The old op code is used for watches that fire once, so that servers before 3.6 take them. */
function writeChunk(w: Writer, { kinds, lists }: Chunk, relativeZxid: bigint): void {
  const request = {
    relativeZxid,
    dataWatches: lists.data,
    existWatches: lists.exists,
    childWatches: lists.children,
  }
  const mark = w.beginFrame()
  w.int(Xid.setWatches)
  if (kinds === oneShot) {
    w.int(OpCode.setWatches)
    writeSetWatches(w, request)
  } else {
    w.int(OpCode.setWatches2)
    writeSetWatches2(w, {
      ...request,
      persistentWatches: lists.persistent,
      persistentRecursiveWatches: lists.recursive,
    })
  }
  w.endFrame(mark)
}

/** Sets the watches of a client again on each of its connections. */
export class Restoration {
  readonly #watches: WatchRegistry
  readonly #nextOrder: () => number
  /** Sent on the connection that stands, and not answered yet. */
  #sent: Chunk[] = []
  #reason: 'reconnected' | 'newSession' = 'newSession'
  /**
   * The newest transaction that was seen before the first try. The answer to one chunk tells of newer ones, which must
   * not hide changes from the chunks behind it when the connection breaks between them.
   */
  #since: bigint | undefined

  constructor(watches: WatchRegistry, nextOrder: () => number) {
    this.#watches = watches
    this.#nextOrder = nextOrder
  }

  begin(wire: Wire, lastZxid: bigint, reason: 'reconnected' | 'newSession'): void {
    this.#reason = reason
    if (reason === 'newSession') this.#since = undefined
    this.#since ??= lastZxid
    this.#sent = [...restoreChunks(this.#watches)]
    this.#watches.forgetLeft()
    for (const chunk of this.#sent) writeChunk(wire.writer, chunk, this.#since)
    if (this.#sent.length > 0) wire.schedule()
    else this.#since = undefined
  }

  /** The answer to the oldest request. True says that the connection is of no use: another may do better. */
  answered(code: number): boolean {
    const chunk = this.#sent.shift()
    if (chunk === undefined) return false
    if (code !== 0) {
      const error = errorOf(code, { operation: 'setWatches' })
      if (error.category === 'recoverable') return true
      this.#watches.end(chunk.kinds, error)
    }
    if (this.#sent.length > 0) return false
    this.#since = undefined
    this.#watches.resync(this.#reason, this.#nextOrder())
    return false
  }
}
