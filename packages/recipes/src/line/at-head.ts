import type { Client } from '@zabra/client/core'
import { LostError } from '../held/lost.ts'
import { parserOf } from './contenders.ts'
import { Line, type LineOptions, type Place } from './line.ts'
import { takeTurn } from './turn.ts'

const word = 'at-'
const parse = parserOf([word])

export interface HeadOptions extends Pick<LineOptions, 'made'> {
  readonly signal?: AbortSignal | undefined
  /** What waits, for messages. */
  readonly operation: string
}

/** A place at the head of a line that saves work. */
export interface HeadPlace extends Place {
  /** Lets the next one come. Also done by deleting `path` in a transaction. */
  leave(): void
}

/**
 * Stands in a line until everybody before has left. It saves work and gives an order, and is no lock: who comes back from an
 * outage may find that it is no longer alone. One that is sent away by hand, or whose session ends, stands in line again.
 */
export async function atHead(client: Client, directory: string, options: HeadOptions): Promise<HeadPlace> {
  const { signal, operation, made } = options
  const line = new Line(client, directory, parse, { naming: 'curator', ...(made && { made }) })
  const grant = (place: Place): HeadPlace => ({ ...place, leave: () => line.leaveBehind(place) })
  for (;;) {
    try {
      return await takeTurn(line, { word, policy: 'session', operation, grant, ...(signal && { signal }) })
    } catch (error) {
      if (!(error instanceof LostError && error.reason === 'nodeDeleted')) throw error
    }
  }
}
