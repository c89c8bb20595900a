/** A member, and its hash so far, to which the item is added. */
interface Candidate {
  readonly member: string
  readonly hash: number
}

const unitsOf = (text: string): number[] => Array.from(text, (unit) => unit.codePointAt(0)!)

function add(hash: number, units: readonly number[]): number {
  for (const unit of units) hash = Math.imul(hash ^ unit, 0x01000193)
  return hash
}

function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}

const candidatesOf = (members: Iterable<string>): Candidate[] =>
  Array.from(members, (member) => ({ member, hash: add(0x811c9dc5, unitsOf(`${member}\0`)) }))

/**
 * Returns the member with the highest affinity: the rendezvous hash of a member and an item, 32 bits, the same on every client. The
 * hash of each member is taken once for all items, since a large group has millions of pairs.
 */
function bestOf(item: string, candidates: readonly Candidate[]): string | undefined {
  const units = unitsOf(item)
  let best: string | undefined
  let most = -1
  for (const { member, hash } of candidates) {
    const affinity = mix(add(hash, units))
    if (affinity > most || (affinity === most && member < best!)) {
      best = member
      most = affinity
    }
  }
  return best
}

/**
 * Returns the member that an item belongs to. A member that leaves gives up only its own items, and a new member
 * takes only the items that become its own.
 */
export const ownerOf = (item: string, members: Iterable<string>): string | undefined =>
  bestOf(item, candidatesOf(members))

/** Returns the items of one member; none if it is not in the group. */
export const itemsOf = (
  member: string,
  members: ReadonlySet<string>,
  items: readonly string[],
): ReadonlySet<string> => {
  if (!members.has(member)) return new Set()
  const candidates = candidatesOf(members)
  return new Set(items.filter((item) => bestOf(item, candidates) === member))
}

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
