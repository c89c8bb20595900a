/** How much a member is the one for an item: a number of 32 bits that looks drawn, and is the same for everybody. */
export function affinity(member: string, item: string): number {
  let hash = 0x811c9dc5
  for (const unit of `${member}\0${item}`) {
    hash = Math.imul(hash ^ unit.codePointAt(0)!, 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

/**
 * Whose an item is: the member of the highest affinity. So a member that leaves gives up its own items and no others, and
 * one that comes takes only those that become its own.
 */
export function ownerOf(item: string, members: Iterable<string>): string | undefined {
  let best: string | undefined
  for (const member of members) {
    if (best === undefined) best = member
    else {
      const more = affinity(member, item) - affinity(best, item)
      if (more > 0 || (more === 0 && member < best)) best = member
    }
  }
  return best
}

/** The items of one member. One that is not in has none. */
export const itemsOf = (
  member: string,
  members: ReadonlySet<string>,
  items: readonly string[],
): ReadonlySet<string> =>
  new Set(members.has(member) ? items.filter((item) => ownerOf(item, members) === member) : [])

/** How far a member is with an item: in its line, working on it, or about to hand it over. */
export type Phase = 'waiting' | 'owned' | 'leaving'

/** What a member does when the items that are to be its own have changed. */
export interface AssignmentChange {
  /** Stand in line for these. */
  readonly acquire: readonly string[]
  /** Ask for an end of the work on these, or leave their lines. */
  readonly release: readonly string[]
}

/** An item that is being handed over is handed over in any case, and taken again behind those who wait for it. */
export function assignmentChange(
  wanted: ReadonlySet<string>,
  phases: ReadonlyMap<string, Phase>,
): AssignmentChange {
  return {
    acquire: [...wanted].filter((item) => !phases.has(item)),
    release: [...phases].flatMap(([item, phase]) => (wanted.has(item) || phase === 'leaving' ? [] : [item])),
  }
}

/** How a member stands: it is about to give items up, waits for some, or has what it should. */
export type PartitionState = 'idle' | 'releasing' | 'allocating' | 'acquired'

export function stateOf(phases: Iterable<Phase>, settled: boolean): PartitionState {
  const all = new Set(phases)
  if (all.has('leaving')) return 'releasing'
  return all.has('waiting') || !settled ? 'allocating' : 'acquired'
}
