import type { Client } from '@zabra/client/core'
import { inOrder } from '../line/contenders.ts'
import type { Line } from '../line/line.ts'
import { isFinished } from '../waiting/errors.ts'
import { watchEach, type Look } from '../waiting/watch-until.ts'
import { decodeLeader, type Leader } from './announcement.ts'

/** What was seen: who leads, or that nobody does. */
interface Sight {
  readonly leader: Leader | undefined
}

type LookForLeader = (look: Look) => Promise<Sight>

/**
 * The leader whenever it changes, undefined while there is none, until the signal aborts or the client ends. A leader that
 * follows and goes quickly may never be seen.
 */
export async function* observing(
  client: Client,
  look: LookForLeader,
  signal: AbortSignal,
): AsyncGenerator<Leader | undefined> {
  let last: Sight | undefined
  try {
    for await (const sight of watchEach(client, { signal, operation: 'election.observe' }, look)) {
      if (changed(last, sight)) yield (last = sight).leader
    }
  } catch (error) {
    // Who asks a client that is finished already hears of it.
    const isOver = signal.aborted || (last !== undefined && isFinished(client))
    if (!isOver) throw error
  }
}

const changed = (last: Sight | undefined, { leader }: Sight): boolean =>
  last === undefined || last.leader?.token !== leader?.token || last.leader?.id !== leader?.id

/** Looks at what leaders announce. */
export function lookAtAnnouncement(path: string): LookForLeader {
  return async (look) => {
    for (;;) {
      const found = await look.data(path)
      if (found !== undefined) return { leader: decodeLeader(found.data) }
      if ((await look.exists(path)) === undefined) return { leader: undefined }
    }
  }
}

/** Looks at the first in line, whose znode bears its name. */
export function lookAtLine(line: Line): LookForLeader {
  return async (look) => {
    for (;;) {
      const listing = await line.list(look.signal)
      const [first] = inOrder(listing?.names ?? [], line.parse)
      if (first !== undefined) {
        const found = await look.data(line.pathOf(first.name))
        if (found !== undefined)
          return { leader: { id: new TextDecoder().decode(found.data), token: found.stat.czxid } }
      } else if (await isEmpty(line, listing !== undefined, look)) return { leader: undefined }
    }
  }
}

/** Whether a line has no contenders still, with a watch that tells of the first one. */
async function isEmpty(line: Line, exists: boolean, look: Look): Promise<boolean> {
  if (!exists) return (await look.exists(line.directory)) === undefined
  const now = await look.children(line.directory)
  return now !== undefined && inOrder(now.children, line.parse).length === 0
}
