import type { ClientChannel } from '../connections/client-channel.ts'
import { formatSessionId } from '../connections/log-context.ts'
import type { ServerReport } from './server-report.ts'

// Each generator yields the answer in pieces. An empty piece stands for work without output yet.

/** Yields the answer to `wchs`: the numbers of watchers, watched paths and watches. */
export function* watchSummary({ watches: { data } }: ServerReport): Generator<string> {
  const watchers = new Set<ClientChannel>()
  for (const [, pathWatchers] of data.entries()) {
    for (const watcher of pathWatchers) watchers.add(watcher)
    yield ''
  }
  yield `${watchers.size} connections watching ${data.pathCount} paths\nTotal watches:${data.size}\n`
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
export function* watchesBySession({ watches: { data } }: ServerReport): Generator<string> {
  const pathsByWatcher = new Map<ClientChannel, string[]>()
  for (const [path, watchers] of data.entries()) {
    for (const watcher of watchers) {
      const paths = pathsByWatcher.get(watcher)
      if (paths === undefined) pathsByWatcher.set(watcher, [path])
      else paths.push(path)
    }
    yield ''
  }
  for (const [{ sessionId }, paths] of pathsByWatcher) {
    yield `${formatSessionId(sessionId)}\n`
    for (const path of paths) yield `\t${path}\n`
  }
  yield '\n'
}
