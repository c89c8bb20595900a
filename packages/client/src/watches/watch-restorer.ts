import { OpCode, textByteLength, writeSetWatches, writeSetWatches2, Xid, type Writer } from '@zabra/protocol'
import { errorFromCode, type ZooKeeperError } from '../errors.ts'
import type { FramedConnection } from '../session/framed-connection.ts'
import type { WatchKind, WatchRegistry } from './watch-registry.ts'

/** Length of the paths in one request, well below the limit of servers (ZOOKEEPER-706). */
const CHUNK_BYTES = 128 * 1024

const oneShotKinds: readonly WatchKind[] = ['data', 'exists', 'children']
const persistentKinds: readonly WatchKind[] = ['persistent', 'recursive']

type Lists = Record<WatchKind, string[]>

/** One SetWatches request, of either one-shot or persistent watches. */
export interface SetWatchesChunk {
  readonly kinds: readonly WatchKind[]
  readonly lists: Lists
}

/** Splits all watches into requests that a server accepts. */
export function* restoreChunks(watches: WatchRegistry, chunkBytes = CHUNK_BYTES): Generator<SetWatchesChunk> {
  for (const kinds of [oneShotKinds, persistentKinds]) {
    let lists = noPaths()
    let bytes = 0
    for (const kind of kinds) {
      for (const path of watches.paths(kind)) {
        const size = 4 + textByteLength(path)
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

/** One-shot watches use the older op code, which servers before 3.6 support. */
function writeChunk(w: Writer, { kinds, lists }: SetWatchesChunk, relativeZxid: bigint): void {
  const request = {
    relativeZxid,
    dataWatches: lists.data,
    existWatches: lists.exists,
    childWatches: lists.children,
  }
  const frameStart = w.beginFrame()
  w.int(Xid.setWatches)
  if (kinds === oneShotKinds) {
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
  w.endFrame(frameStart)
}

/** Sets the watches of a client again on each new connection. */
export class WatchRestorer {
  readonly #watches: WatchRegistry
  readonly #nextOrder: () => number
  /** Sent on the current connection and not answered yet. */
  #sent: SetWatchesChunk[] = []
  #reason: 'reconnected' | 'newSession' = 'newSession'
  /**
   * The newest zxid before the first try. The reply to one request raises the last zxid, which would hide changes
   * from the requests behind it if the connection broke between them.
   */
  #relativeZxid: bigint | undefined

  constructor(watches: WatchRegistry, nextOrder: () => number) {
    this.#watches = watches
    this.#nextOrder = nextOrder
  }

  begin(connection: FramedConnection, lastZxid: bigint, reason: 'reconnected' | 'newSession'): void {
    this.#reason = reason
    if (reason === 'newSession') this.#relativeZxid = undefined
    this.#relativeZxid ??= lastZxid
    this.#sent = [...restoreChunks(this.#watches)]
    this.#watches.clearLeftovers()
    for (const chunk of this.#sent) writeChunk(connection.writer, chunk, this.#relativeZxid)
    if (this.#sent.length > 0) connection.schedule()
    else this.#relativeZxid = undefined
  }

  /**
   * Handles the reply to the oldest request. Returns the error that ends the connection: another connection or session
   * may restore the watches.
   */
  onReply(code: number): ZooKeeperError | undefined {
    const chunk = this.#sent.shift()
    if (chunk === undefined) return undefined
    if (code !== 0) {
      const error = errorFromCode(code, { operation: 'setWatches' })
      if (error.retryable || error.scope !== 'request') return error
      this.#watches.end(chunk.kinds, error)
    }
    if (this.#sent.length > 0) return undefined
    this.#relativeZxid = undefined
    this.#watches.resync(this.#reason, this.#nextOrder())
    return undefined
  }
}
