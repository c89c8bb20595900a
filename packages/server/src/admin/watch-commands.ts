import type { Watcher } from '../core/watches/index.ts'
import type { ClientService } from '../connections/client-service.ts'
import type { ClientConnection } from '../connections/client-connection.ts'
import { formatSessionId } from '../connections/format-session-id.ts'

/** `wchs`, as pieces; an empty one stands for work that shows nothing yet. */
export function* watchSummary({ watches: { data } }: ClientService): Generator<string> {
  const watchers = new Set<Watcher>()
  for (const [, list] of data.entries()) {
    for (const watcher of list) watchers.add(watcher)
    yield ''
  }
  yield `${watchers.size} connections watching ${data.pathCount} paths\nTotal watches:${data.size}\n`
}

/** `wchp`, as pieces. */
export function* watchesByPath({ watches: { data } }: ClientService): Generator<string> {
  for (const [path, list] of data.entries()) {
    yield `${path}\n`
    for (const { sessionId } of list) yield `\t${formatSessionId(sessionId)}\n`
  }
  yield '\n'
}

/** `wchc`, as pieces. */
export function* watchesBySession({ watches: { data } }: ClientService): Generator<string> {
  const paths = new Map<ClientConnection, string[]>()
  for (const [path, list] of data.entries()) {
    for (const watcher of list) {
      const held = paths.get(watcher)
      if (held === undefined) paths.set(watcher, [path])
      else held.push(path)
    }
    yield ''
  }
  for (const [{ sessionId }, held] of paths) {
    yield `${formatSessionId(sessionId)}\n`
    for (const path of held) yield `\t${path}\n`
  }
  yield '\n'
}
