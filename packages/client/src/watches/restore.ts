import { OpCode, textLength, writeSetWatches, writeSetWatches2, Xid, type Writer } from '@zabra/protocol'
import { watchKinds, type WatchKind, type WatchRegistry } from './registry.ts'

/** Bytes of paths in one request, well below what a server accepts (ZOOKEEPER-706). */
const CHUNK_BYTES = 128 * 1024

type Lists = Record<WatchKind, string[]>

const noPaths = (): Lists => ({ data: [], exists: [], children: [], persistent: [], recursive: [] })

/** All watches, cut into requests that a server can take. */
export function* restoreChunks(watches: WatchRegistry, chunkBytes = CHUNK_BYTES): Generator<Lists> {
  let lists = noPaths()
  let bytes = 0
  for (const kind of watchKinds) {
    for (const path of watches.paths(kind)) {
      const size = 4 + textLength(path)
      if (bytes > 0 && bytes + size > chunkBytes) {
        yield lists
        lists = noPaths()
        bytes = 0
      }
      lists[kind].push(path)
      bytes += size
    }
  }
  if (bytes > 0) yield lists
}

/** Writes one request that sets watches again. The old op code is used wherever it is enough, for servers before 3.6. */
export function writeRestore(w: Writer, lists: Lists, relativeZxid: bigint): void {
  const request = {
    relativeZxid,
    dataWatches: lists.data,
    existWatches: lists.exists,
    childWatches: lists.children,
  }
  const lasting = lists.persistent.length > 0 || lists.recursive.length > 0
  const mark = w.beginFrame()
  w.int(Xid.setWatches)
  w.int(lasting ? OpCode.setWatches2 : OpCode.setWatches)
  if (lasting) {
    writeSetWatches2(w, {
      ...request,
      persistentWatches: lists.persistent,
      persistentRecursiveWatches: lists.recursive,
    })
  } else writeSetWatches(w, request)
  w.endFrame(mark)
}
