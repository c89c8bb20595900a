import { WatcherType } from '@zabra/protocol'
import { removeWatches } from '../operations.ts'
import type { Session } from '../session/session.ts'
import { watchKinds, type WatchKind } from './watch-registry.ts'

/** One try, now: a watch that outlives it does no harm, and a connection that breaks takes it along. */
const WITHOUT_RETRY = { retry: false } as const

/**
 * Removes a watch from the server, unless somebody else of this client needs it. A server knows one watch for each
 * connection and path, so what one request removes may be more than what is meant: in doubt the watch stays, and what it
 * tells finds nobody.
 */
export async function removeWatch(session: Session, kind: WatchKind, path: string): Promise<void> {
  const type = removableType(session, kind, path)
  if (type === undefined || session.connection === undefined) return
  const slot = session.dispatcher.acquire(removeWatches)
  slot.path = path
  slot.intArgument = type
  slot.options = WITHOUT_RETRY
  try {
    await session.dispatcher.submit(slot)
  } catch {
    // It has fired meanwhile, or its connection is gone, and the watch with it.
  }
}

function removableType({ watches }: Session, kind: WatchKind, path: string): number | undefined {
  const wanted = watchKinds.filter((other) => watches.isWanted(other, path))
  const isLasting = kind === 'persistent' || kind === 'recursive'
  if (wanted.length === 0) {
    if (watches.takeLeftover(path) || isLasting) return WatcherType.Any
    return kind === 'children' ? WatcherType.Children : WatcherType.Data
  }
  if (isLasting) watches.markLeftover(path)
  // Servers before 3.9 take a lasting watch for a one-shot one here.
  if (isLasting || wanted.includes('persistent') || wanted.includes('recursive')) return undefined
  if (kind === 'children') return wanted.includes('children') ? undefined : WatcherType.Children
  return wanted.includes('data') || wanted.includes('exists') ? undefined : WatcherType.Data
}
