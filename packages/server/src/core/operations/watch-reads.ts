import { ErrorCode, OpCode, WatcherType, WatchMode, type Reader, type Writer } from '@zabra/protocol'
import type { ChunkedReply } from '../reads/chunked-reply.ts'
import type { ReadCaller, ReadContext } from '../reads/types.ts'
import { restoreWatches } from '../reads/watch-restorer.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import { defineOperation } from './types.ts'

type Context = ReadContext<NotifiedWatcher>
type Caller = ReadCaller<NotifiedWatcher>

function addWatch({ tree, watches }: Context, body: Reader, writer: Writer, { listener }: Caller): number {
  const node = tree.store.findFromReader(body)
  // The tree has the path of a znode already, so that the watch takes no memory for another copy of it.
  const path = node === -1 ? body.string() : tree.pathOf(node)
  const mode = body.int()
  if (mode === WatchMode.PERSISTENT) {
    if (path !== null) watches.watchPersistently(listener, path)
  } else if (mode === WatchMode.PERSISTENT_RECURSIVE) {
    if (path !== null) watches.watchRecursively(listener, path)
  } else {
    return ErrorCode.MARSHALLINGERROR
  }
  writer.int(0)
  return ErrorCode.OK
}

const isWatcherType = (type: number): boolean =>
  type >= WatcherType.Children && type <= WatcherType.PersistentRecursive

function checkWatches({ watches }: Context, body: Reader, _writer: Writer, { listener }: Caller): number {
  const path = body.string()
  const type = body.int()
  if (!isWatcherType(type)) return ErrorCode.MARSHALLINGERROR
  return path !== null && watches.has(listener, path, type) ? ErrorCode.OK : ErrorCode.NOWATCHER
}

function removeWatches({ watches }: Context, body: Reader, _writer: Writer, { listener }: Caller): number {
  const path = body.string()
  const type = body.int()
  if (!isWatcherType(type)) return ErrorCode.MARSHALLINGERROR
  return path !== null && watches.remove(listener, path, type) ? ErrorCode.OK : ErrorCode.NOWATCHER
}

const setWatches = (context: Context, body: Reader, _writer: Writer, caller: Caller): number | ChunkedReply =>
  restoreWatches(context, OpCode.setWatches, body, caller.listener)

const setWatches2 = (
  context: Context,
  body: Reader,
  _writer: Writer,
  caller: Caller,
): number | ChunkedReply => restoreWatches(context, OpCode.setWatches2, body, caller.listener)

export const WATCH_READS = [
  defineOperation({ code: OpCode.addWatch, name: 'ADDW', kind: 'read', read: addWatch }),
  defineOperation({ code: OpCode.checkWatches, name: 'CHKW', kind: 'read', read: checkWatches }),
  defineOperation({ code: OpCode.removeWatches, name: 'REMW', kind: 'read', read: removeWatches }),
  defineOperation({ code: OpCode.setWatches, name: 'SETW', kind: 'read', read: setWatches }),
  defineOperation({ code: OpCode.setWatches2, name: 'STW2', kind: 'read', read: setWatches2 }),
]
