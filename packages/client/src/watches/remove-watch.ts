import { WatcherType } from '@zabra/protocol'
import { removeWatches } from '../operations.ts'
import type { Session } from '../session/session.ts'
import { watchKinds, type WatchKind } from './watch-registry.ts'

/** A single try: a watch that remains does no harm, and a broken connection removes it anyway. */
const WITHOUT_RETRY = { retry: false } as const

/**
 * Removes a watch from the server, unless another watcher of this client needs it. A server keeps one watch for each
 * connection and path, so a request may remove more than intended: in doubt the watch stays, and its events are
 * ignored.
 */
export async function removeWatch(session: Session, kind: WatchKind, path: string): Promise<void> {
  const type = removableType(session, kind, path)
  if (type === undefined || session.connection === undefined) return
  const request = session.dispatcher.acquire(removeWatches)
  request.path = path
  request.intArgument = type
  request.options = WITHOUT_RETRY
  try {
    await session.dispatcher.submit(request)
  } catch {
    // The watch has fired meanwhile, or was removed with its connection.
  }
}

function removableType({ watches }: Session, kind: WatchKind, path: string): number | undefined {
  const wanted = watchKinds.filter((other) => watches.isWanted(other, path))
  const isPersistent = kind === 'persistent' || kind === 'recursive'
  const isOfChildren = kind === 'children'
  const type = isOfChildren ? WatcherType.Children : WatcherType.Data
  if (wanted.length === 0) return watches.takeLeftover(path) || isPersistent ? WatcherType.Any : type
  if (isPersistent) watches.markLeftover(path)
  // Servers before 3.9 confuse persistent and one-shot watches here.
  if (isPersistent || wanted.includes('persistent') || wanted.includes('recursive')) return undefined
  return wanted.some((other) => (other === 'children') === isOfChildren) ? undefined : type
}
