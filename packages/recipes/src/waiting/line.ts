import type { Client, Stat } from '@zabra/client/core'
import { inBackground, isNewSession, orMissing } from './errors.ts'
import { watchUntil } from './watch-until.ts'

/** After the hyphen that ends the prefix. Servers print a sign within the width of ten. */
const SEQUENCE = /-(-?\d{10}|-\d{9})$/

/** The number that a server gave to a sequential znode, or undefined for a name that has none. */
export function sequenceOf(name: string): number | undefined {
  const digits = SEQUENCE.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits) | 0
}

/** Orders by sequence; numbers wrap, so what counts is the way from one to the other. Foreign names are left out. */
export function bySequence(names: readonly string[]): string[] {
  return names
    .flatMap((name) => {
      const sequence = sequenceOf(name)
      return sequence === undefined ? [] : [{ name, sequence }]
    })
    .sort((a, b) => (a.sequence - b.sequence) | 0)
    .map(({ name }) => name)
}

/** A place in a line of waiters, at its head. */
export interface Place {
  readonly path: string
  /** The session that holds it. */
  readonly owner: bigint
  /** Lets the next one come. Also done by deleting `path` in a transaction. */
  leave(): void
}

export interface LineOptions {
  readonly signal?: AbortSignal | undefined
  /** What waits, for messages. */
  readonly operation: string
  /** Hears of the znode that was made, and when that was asked for. */
  readonly made?: (stat: Stat, sentAt: number) => void
}

/**
 * Stands in a line of ephemeral znodes until everybody before has left. Each waits for the one before it, so that one
 * that leaves wakes one. The line saves work and gives an order; it is no lock: who comes back from an outage may find
 * that it is no longer alone.
 */
export async function atHead(client: Client, line: string, options: LineOptions): Promise<Place> {
  for (;;) {
    const place = await join(client, line, options)
    if (place === undefined) continue
    try {
      if (await isFirst(client, line, place.path, options)) return place
    } catch (error) {
      place.leave()
      throw error
    }
  }
}

/** Undefined when the session ended meanwhile. */
async function join(client: Client, line: string, { signal, made }: LineOptions): Promise<Place | undefined> {
  try {
    const options = { mode: 'ephemeralSequential', parents: true, ...(signal && { signal }) } as const
    const sentAt = client.ports.clock.monotonic()
    const { path, stat } = await client.create(`${line}/at-`, undefined, options)
    made?.(stat, sentAt)
    const leave = (): void => inBackground(client.delete(path, { guaranteed: true, missingOk: true }))
    return { path, owner: stat.ephemeralOwner, leave }
  } catch (error) {
    if (isNewSession(client, error)) return undefined
    throw error
  }
}

/** Waits until nobody is before `own`; false when it is no longer there itself. */
function isFirst(client: Client, line: string, own: string, options: LineOptions): Promise<boolean> {
  const name = own.slice(line.length + 1)
  return watchUntil(client, options, async (look) => {
    for (;;) {
      const list = await orMissing(client.getChildren(line, look.signal ? { signal: look.signal } : {}))
      const names = bySequence(list?.children ?? [])
      const at = names.indexOf(name)
      if (at <= 0) return at === 0
      if ((await look.data(`${line}/${names[at - 1]}`)) !== undefined) return undefined
    }
  })
}
