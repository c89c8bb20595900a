import type { ClientChannel } from '../connections/client-channel.ts'
import { formatSessionId } from '../connections/log-context.ts'
import type { ConnectionReport, ServerReport } from './server-report.ts'
import { presentIn } from './sliced-answers.ts'

// Each generator yields the answer in pieces. An empty piece stands for work without output yet.

/** Counts the connections that watch data. Yields an empty piece for each path. */
export function* countWatchers({ watches: { data } }: ServerReport): Generator<string, number> {
  const watchers = new Set<ClientChannel>()
  for (const [, pathWatchers] of data.entries()) {
    for (const watcher of pathWatchers) watchers.add(watcher)
    yield ''
  }
  return watchers.size
}

/** Yields the answer to `wchs`: the numbers of watchers, watched paths and watches. */
export function* watchSummary(server: ServerReport): Generator<string> {
  const watchers = yield* countWatchers(server)
  const { pathCount, size } = server.watches.data
  yield `${watchers} connections watching ${pathCount} paths\nTotal watches:${size}\n`
}

/** Yields the answer to `wchp`: the sessions that watch each path. */
export function* watchesByPath({ watches: { data } }: ServerReport): Generator<string> {
  for (const [path, watchers] of data.entries()) {
    yield `${path}\n`
    for (const { sessionId } of watchers) yield `\t${formatSessionId(sessionId)}\n`
  }
  yield '\n'
}

/** Yields the answer to `wchc`: the paths that each session watches. */
export function* watchesBySession(server: ServerReport): Generator<string> {
  for (const connection of presentIn(server.connections)) {
    let isFirst = true
    for (const path of watchedPathsOf(server, connection)) {
      if (path === undefined) yield ''
      else if (isFirst) yield `${formatSessionId(connection.sessionId)}\n\t${path}\n`
      else yield `\t${path}\n`
      if (path !== undefined) isFirst = false
    }
  }
  yield '\n'
}

/**
 * Yields the paths of which a connection watches the data, as many as it watches now. Yields undefined for paths of which it watches
 * the children only, which Apache ZooKeeper does not list.
 */
export function* watchedPathsOf(
  { watches: { data } }: ServerReport,
  connection: ConnectionReport,
): Generator<string | undefined> {
  for (const path of presentIn(connection.watchedPaths))
    yield data.modes(path, connection as ClientChannel) === 0 ? undefined : path
}
