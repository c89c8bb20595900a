import { NoNodeError, SessionExpiredError, type Client, type OneShotWatch } from '@zabra/client/core'
import { Bell } from '../line/bell.ts'
import { inOrder } from '../line/contenders.ts'
import type { Line } from '../line/line.ts'
import { decodeLeader, type Leader } from './announcement.ts'

/** What was seen, and the watch that tells when to look again. */
interface Sight {
  readonly leader: Leader | undefined
  readonly watch: OneShotWatch
}

type Look = (signal: AbortSignal) => Promise<Sight>

/**
 * The leader whenever it changes, undefined while there is none, until the signal aborts or the client ends. A leader that
 * follows and goes quickly may never be seen.
 */
export async function* observing(
  client: Client,
  look: Look,
  signal: AbortSignal,
): AsyncGenerator<Leader | undefined> {
  const bell = new Bell(client, signal)
  let last: Leader | 'nothing' | undefined = 'nothing'
  try {
    while (!signal.aborted) {
      let sight: Sight
      try {
        sight = await look(signal)
      } catch (error) {
        if (signal.aborted) return
        // Under the next session all is looked at again.
        if (!(error instanceof SessionExpiredError) || client.state === 'expired') throw error
        continue
      }
      bell.heed(sight.watch)
      if (changed(last, sight.leader)) yield (last = sight.leader)
      await bell.wait()
      await bell.hush()
      if (bell.over) return
    }
  } finally {
    bell.close()
  }
}

const changed = (last: Leader | 'nothing' | undefined, now: Leader | undefined): boolean =>
  last === 'nothing' || last?.token !== now?.token || last?.id !== now?.id

/** Looks at what leaders announce. */
export function lookAtAnnouncement(client: Client, path: string): Look {
  return async (signal) => {
    for (;;) {
      try {
        const watch = await client.watchOnce(path, 'data', { signal })
        return { leader: decodeLeader(watch.data!), watch }
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
      }
      const watch = await client.watchOnce(path, 'exists', { signal })
      if (watch.stat === undefined) return { leader: undefined, watch }
      await watch.close()
    }
  }
}

/** Looks at the first in line, whose znode bears its name. */
export function lookAtLine(line: Line): Look {
  const { client } = line
  return async (signal) => {
    for (;;) {
      const listing = await line.list(signal)
      const [first] = inOrder(listing?.names ?? [], line.parse)
      try {
        if (first !== undefined) {
          const watch = await client.watchOnce(line.pathOf(first.name), 'data', { signal })
          return { leader: { id: new TextDecoder().decode(watch.data), token: watch.stat!.czxid }, watch }
        }
        const watch = await watchEmpty(line, listing !== undefined, signal)
        if (watch !== undefined) return { leader: undefined, watch }
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
      }
    }
  }
}

/** A watch on a line without contenders; undefined when somebody has come meanwhile. */
async function watchEmpty(
  line: Line,
  exists: boolean,
  signal: AbortSignal,
): Promise<OneShotWatch | undefined> {
  const watch = await line.client.watchOnce(line.directory, exists ? 'children' : 'exists', { signal })
  const come = exists ? inOrder(watch.children ?? [], line.parse).length > 0 : watch.stat !== undefined
  if (!come) return watch
  await watch.close()
  return undefined
}
