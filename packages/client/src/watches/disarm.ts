import { WatcherType } from '@zabra/protocol'
import { removeWatches } from '../kinds.ts'
import type { Session } from '../session/session.ts'
import { watchKinds, type WatchKind } from './registry.ts'

/** One try, now: a watch that outlives it does no harm, and a connection that breaks takes it along. */
const ONCE = { retry: false } as const

/**
 * Removes a watch from the server, unless somebody else of this client needs it. A server knows one watch for each
 * connection and path, so what one request removes may be more than what is meant: in doubt the watch stays, and what it
 * tells finds nobody.
 */
export async function disarm(session: Session, kind: WatchKind, path: string): Promise<void> {
  const type = removable(session, kind, path)
  if (type === undefined || session.wire === undefined) return
  const slot = session.requests.take(removeWatches)
  slot.path = path
  slot.number = type
  slot.options = ONCE
  try {
    await session.requests.submit(slot)
  } catch {
    // It has fired meanwhile, or its connection is gone, and the watch with it.
  }
}

function removable({ watches }: Session, kind: WatchKind, path: string): number | undefined {
  const wanted = watchKinds.filter((other) => watches.wants(other, path))
  const isLasting = kind === 'persistent' || kind === 'recursive'
  if (wanted.length === 0) {
    if (watches.takeLeft(path) || isLasting) return WatcherType.Any
    return kind === 'children' ? WatcherType.Children : WatcherType.Data
  }
  if (isLasting) watches.leave(path)
  // Servers before 3.9 take a lasting watch for a one-shot one here.
  if (isLasting || wanted.includes('persistent') || wanted.includes('recursive')) return undefined
  if (kind === 'children') return wanted.includes('children') ? undefined : WatcherType.Children
  return wanted.includes('data') || wanted.includes('exists') ? undefined : WatcherType.Data
}
