import { ErrorCode, EventType, OpCode, Perms, ProtocolError, Reader } from '@zabra/protocol'
import { runToEnd } from '../steps.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import type { ChunkedReply } from './chunked-reply.ts'
import type { ReadContext } from './types.ts'

/** Watches that are restored in one step, and bytes of a request after which a step ends. */
const WATCHES_PER_STEP = 500
const BYTES_PER_STEP = 1 << 16
/** Where a list has had so many entries, a small request may take several turns too: it names hundreds of nodes. */
const LONG_LIST = 100
/** Entries of long access control lists that are looked at in one step. */
const ACL_ENTRIES_PER_STEP = 1000
/** Paths that are checked in one step. */
const CHECKED_PER_STEP = 5000
/** Bytes of a request from which on its watches are restored in several turns. */
const CHUNKED_BYTES = 1 << 14

type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive'
/** In the order of their lists in a request; `setWatches` has the first three. */
const KINDS: readonly WatchKind[] = ['data', 'exist', 'child', 'persistent', 'recursive']

/**
 * Executes `setWatches` and `setWatches2` of a client that has reconnected: restores its watches, or notifies it of what changed
 * since the zxid of the request. Returns the error number, or a chunked reply for many watches. Throws a `ProtocolError` for a
 * body that is no such request.
 */
export function restoreWatches(
  context: ReadContext<NotifiedWatcher>,
  op: number,
  body: Reader,
  listener: NotifiedWatcher,
): number | ChunkedReply {
  const kinds = op === OpCode.setWatches ? KINDS.slice(0, 3) : KINDS
  const { offset, remaining } = body
  if (remaining < CHUNKED_BYTES && context.tree.acls.longest < LONG_LIST) {
    if (!runToEnd(check(body, kinds))) return ErrorCode.MARSHALLINGERROR
    body.offset = offset
    runToEnd(restoreInSteps(context, body, kinds, listener, true))
    return ErrorCode.OK
  }
  // The connection reuses the bytes of the request after this turn.
  const ownBody = new Reader(body.raw(remaining).slice())
  return {
    hasNotifications: true,
    *write(_writer, isInPlace = false) {
      if (!(yield* check(ownBody, kinds))) return ErrorCode.MARSHALLINGERROR
      ownBody.offset = 0
      yield* restoreInSteps(context, ownBody, kinds, listener, isInPlace)
      return ErrorCode.OK
    },
  }
}

function* restoreInSteps(
  context: ReadContext<NotifiedWatcher>,
  body: Reader,
  kinds: readonly WatchKind[],
  listener: NotifiedWatcher,
  isInPlace: boolean,
): Generator<void> {
  const since = Number(body.long())
  let restored = 0
  let from = body.offset
  let visited = context.acls.entriesVisited
  for (const kind of kinds) {
    for (let left = body.int(); left > 0; left--) {
      const known = context.tree.store.findFromReader(body)
      // The tree has the path of a znode already, so that the watch takes no memory for another copy of it.
      const path = known === -1 ? body.string() : context.tree.pathOf(known)
      if (path !== null) restore(context, kind, { path, known }, since, listener)
      const isStep = ++restored % WATCHES_PER_STEP === 0 || body.offset - from >= BYTES_PER_STEP
      if (!isStep && context.acls.entriesVisited - visited < ACL_ENTRIES_PER_STEP) continue
      from = body.offset
      yield
      visited = context.acls.entriesVisited
      while (!isInPlace && context.tree.isApplying) yield
    }
  }
}

function restore(
  { tree, acls, watches, watchNotifier }: ReadContext<NotifiedWatcher>,
  kind: WatchKind,
  { path, known }: { readonly path: string; readonly known: number },
  since: number,
  listener: NotifiedWatcher,
): void {
  if (kind === 'persistent') return watches.watchPersistently(listener, path)
  if (kind === 'recursive') return watches.watchRecursively(listener, path)
  const found = known === -1 ? tree.find(path) : known
  // Where the listener may not read a node, the result is that of an absent one: it must not learn that the node exists.
  const isVisible = found !== -1 && acls.allows(tree.aclOf(found), Perms.READ, listener.identities)
  const node = isVisible ? found : -1
  if (kind === 'exist') {
    if (node === -1) watches.watchMissing(listener, path)
    else watchNotifier.notify(listener, EventType.NodeCreated, path)
    return
  }
  if (node === -1) return watchNotifier.notify(listener, EventType.NodeDeleted, path)
  const { mzxid, pzxid } = tree.statOf(node)
  if (kind === 'data') {
    if (mzxid > since) watchNotifier.notify(listener, EventType.NodeDataChanged, path)
    else watches.watchData(listener, path)
  } else if (pzxid > since) watchNotifier.notify(listener, EventType.NodeChildrenChanged, path)
  else watches.watchChildren(listener, path)
}

/**
 * Returns in steps whether a request has all its lists, without a null path in those whose paths are looked up. A persistent watch on a
 * null path is accepted and never fires, as with addWatch. The whole request is checked before any watch is set.
 */
function* check(body: Reader, kinds: readonly WatchKind[]): Generator<void, boolean> {
  let checked = 0
  try {
    body.raw(8)
    for (const kind of kinds) {
      const mayBeNull = kind === 'persistent' || kind === 'recursive'
      const count = body.vectorLength()
      if (count < 0) return false
      for (let i = 0; i < count; i++) {
        if (body.skipBuffer() === -1 && !mayBeNull) return false
        if (++checked % CHECKED_PER_STEP === 0) yield
      }
    }
    return true
  } catch (error) {
    if (error instanceof ProtocolError) return false
    throw error
  }
}
