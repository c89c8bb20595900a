import type { WatchedEvent } from '@zabra/client'

/** Yields the events of a watcher, without failing when the session ends; `closed` of the client then has the reason. */
export async function* untilClosed(watcher: AsyncIterable<WatchedEvent>): AsyncGenerator<WatchedEvent> {
  try {
    for await (const event of watcher) yield event
  } catch (error) {
    const { scope } = error as { scope?: unknown }
    if (scope !== 'session' && scope !== 'client') throw error
  }
}
