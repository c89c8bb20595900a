/** Whether a member decides or is told. */
export type Role = 'participant' | 'observer'

/** Who decides, and what a quorum of them is. */
export interface VoterSet {
  readonly voters: ReadonlySet<number>
  /** Whether those for whom `has` holds are a quorum. */
  readonly isQuorum: (has: (id: number) => boolean) => boolean
}

/** Who belongs to an ensemble, as the text of a configuration has it; read anew here, so as not to share mistakes. */
export interface Members extends VoterSet {
  /** The zxid of the change that made it. */
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
  const voices = groups.length === 0 ? majorityOf(voters) : weighed(groups, weights)
  return { version, roles, ...voices }
}

/** More than half of those who vote. */
export const majorityOf = (voters: ReadonlySet<number>): VoterSet => ({
  voters,
  isQuorum: (has) => isMost(voters, () => 1, has),
})

/** Most of the weight in most of the groups; groups without weight are none. */
function weighed(groups: readonly (readonly number[])[], weights: ReadonlyMap<number, number>): VoterSet {
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

/** Whether those that have it weigh more than those that have it not. */
function isMost<T>(all: Iterable<T>, weightOf: (one: T) => number, has: (one: T) => boolean): boolean {
  let lead = 0
  for (const one of all) lead += has(one) ? weightOf(one) : -weightOf(one)
  return lead > 0
}

/** Every configuration that anybody wanted, by the zxid of its change, and which of them came into force. */
export class ConfigurationHistory {
  readonly #first: VoterSet
  readonly #proposed = new Map<number, VoterSet>()
  /** Zxids of changes that are committed, ascending. */
  readonly #committed: number[] = []

  constructor(first: VoterSet) {
    this.#first = first
  }

  /** Whether nobody had proposed it before. */
  propose(zxid: number, text: string): boolean {
    const isNew = !this.#proposed.has(zxid)
    this.#proposed.set(zxid, readMembers(text))
    return isNew
  }

  /** Something is committed; when it is a change of the ensemble it is in force from here on. */
  commit(zxid: number): void {
    if (!this.#proposed.has(zxid) || this.#committed.includes(zxid)) return
    this.#committed.push(zxid)
    this.#committed.sort((a, b) => a - b)
  }

  /** Whether it is wanted and not in force yet. */
  isPending(zxid: number): boolean {
    return this.#proposed.has(zxid) && !this.#committed.includes(zxid)
  }

  /** Those whose quorums decide about a transaction: with a change of the ensemble, the old voters and the new ones. */
  decidingVoters(zxid: number): readonly VoterSet[] {
    const before = this.#committed.findLast((change) => change < zxid)
    const old = before === undefined ? this.#first : this.#proposed.get(before)!
    const next = this.#proposed.get(zxid)
    return next === undefined ? [old] : [old, next]
  }
}
