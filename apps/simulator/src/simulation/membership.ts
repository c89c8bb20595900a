/** Whether a member votes. */
export type Role = 'participant' | 'observer'

/** Voters, and which of their subsets are quorums. */
export interface VoterSet {
  readonly voters: ReadonlySet<number>
  /** Returns whether the voters for which `has` returns true are a quorum. */
  readonly isQuorum: (has: (id: number) => boolean) => boolean
}

/**
 * The membership in the text of a configuration. Parsed independently of the server, so as not to share its defects.
 */
export interface Members extends VoterSet {
  /** The zxid of the reconfiguration. */
  readonly version: number
  readonly roles: ReadonlyMap<number, Role>
}

export function readMembers(text: string): Members {
  const roles = new Map<number, Role>()
  const groups: number[][] = []
  const weights = new Map<number, number>()
  let version = 0
  for (const line of text.split('\n')) {
    const [, id, role] = /^server\.(\d+)=[^;]*:(participant|observer)(?:;|$)/.exec(line) ?? []
    if (id !== undefined) roles.set(Number(id), role as Role)
    const [, group] = /^group\.\d+=([\d:]+)$/.exec(line) ?? []
    if (group !== undefined) groups.push(group.split(':').map(Number))
    const [, weighed, weight] = /^weight\.(\d+)=(\d+)$/.exec(line) ?? []
    if (weighed !== undefined) weights.set(Number(weighed), Number(weight))
    const [, zxid] = /^version=([0-9a-f]+)$/.exec(line) ?? []
    if (zxid !== undefined) version = Number.parseInt(zxid, 16)
  }
  const voters = new Set([...roles].filter(([, role]) => role === 'participant').map(([id]) => id))
  const voterSet = groups.length === 0 ? majorityOf(voters) : hierarchical(groups, weights)
  return { version, roles, ...voterSet }
}

/** Returns a majority quorum. */
export const majorityOf = (voters: ReadonlySet<number>): VoterSet => ({
  voters,
  isQuorum: (has) => isMost(voters, () => 1, has),
})

/** Returns a hierarchical quorum: a majority of the weight in a majority of the groups with weight. */
function hierarchical(
  groups: readonly (readonly number[])[],
  weights: ReadonlyMap<number, number>,
): VoterSet {
  const weightOf = (id: number): number => weights.get(id) ?? 1
  const counted = groups.filter((group) => group.some((id) => weightOf(id) > 0))
  return {
    voters: new Set(groups.flat()),
    isQuorum: (has) =>
      isMost(
        counted,
        () => 1,
        (group) => isMost(group, weightOf, has),
      ),
  }
}

/** Returns whether the weight of the items with `has` exceeds that of the others. */
function isMost<T>(all: Iterable<T>, weightOf: (one: T) => number, has: (one: T) => boolean): boolean {
  let lead = 0
  for (const one of all) lead += has(one) ? weightOf(one) : -weightOf(one)
  return lead > 0
}

/** All proposed configurations by zxid, and which of them were committed. */
export class ConfigurationHistory {
  readonly #first: VoterSet
  readonly #proposed = new Map<number, VoterSet>()
  /** Zxids of committed reconfigurations, ascending. */
  readonly #committed: number[] = []

  constructor(first: VoterSet) {
    this.#first = first
  }

  /** Records a proposal. Returns whether it is new. */
  propose(zxid: number, text: string): boolean {
    const isNew = !this.#proposed.has(zxid)
    this.#proposed.set(zxid, readMembers(text))
    return isNew
  }

  /** Records a commit; a committed reconfiguration is in force from its zxid on. */
  commit(zxid: number): void {
    if (!this.#proposed.has(zxid) || this.#committed.includes(zxid)) return
    this.#committed.push(zxid)
    this.#committed.sort((a, b) => a - b)
  }

  /** Returns whether a reconfiguration is proposed and not committed. */
  isPending(zxid: number): boolean {
    return this.#proposed.has(zxid) && !this.#committed.includes(zxid)
  }

  /** Returns the voters whose quorums decide about a transaction: for a reconfiguration the old and the new ones. */
  decidingVoters(zxid: number): readonly VoterSet[] {
    const before = this.#committed.findLast((change) => change < zxid)
    const old = before === undefined ? this.#first : this.#proposed.get(before)!
    const next = this.#proposed.get(zxid)
    return next === undefined ? [old] : [old, next]
  }
}
