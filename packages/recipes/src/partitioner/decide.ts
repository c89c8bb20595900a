/** Returns the rendezvous hash of a member and an item: 32 bits, the same on every client. */
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
 * Returns the member with the highest affinity. A member that leaves gives up only its own items, and a new member
 * takes only the items that become its own.
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

/** Returns the items of one member; none if it is not in the group. */
export const itemsOf = (
  member: string,
  members: ReadonlySet<string>,
  items: readonly string[],
): ReadonlySet<string> =>
  new Set(members.has(member) ? items.filter((item) => ownerOf(item, members) === member) : [])

/** State of an item at a member: waiting for its lock, owned, or about to be handed over. */
export type Phase = 'waiting' | 'owned' | 'leaving'

/** What a member does when its assigned items have changed. */
export interface AssignmentChange {
  /** Items whose locks to queue for. */
  readonly acquire: readonly string[]
  /** Items to stop working on, or whose queues to leave. */
  readonly release: readonly string[]
}

/** An item that is being handed over stays so, and is queued for again behind the clients that wait for it. */
export function assignmentChange(
  wanted: ReadonlySet<string>,
  phases: ReadonlyMap<string, Phase>,
): AssignmentChange {
  return {
    acquire: [...wanted].filter((item) => !phases.has(item)),
    release: [...phases].flatMap(([item, phase]) => (wanted.has(item) || phase === 'leaving' ? [] : [item])),
  }
}

/** State of a member: handing items over, waiting for items, or holding all that it should. */
export type PartitionState = 'idle' | 'releasing' | 'allocating' | 'acquired'

export function stateOf(phases: Iterable<Phase>, settled: boolean): PartitionState {
  const all = new Set(phases)
  if (all.has('leaving')) return 'releasing'
  return all.has('waiting') || !settled ? 'allocating' : 'acquired'
}
