/** Whether a member decides or is told. */
export type Role = 'participant' | 'observer'

/** Who belongs to an ensemble, as the text of a configuration has it; read anew here, so as not to share mistakes. */
export interface Members {
  /** The zxid of the change that made it. */
  readonly version: number
  readonly roles: ReadonlyMap<number, Role>
  /** Those of them that vote. */
  readonly voters: ReadonlySet<number>
}

export function readMembers(text: string): Members {
  const roles = new Map<number, Role>()
  let version = 0
  for (const line of text.split('\n')) {
    const [, id, role] = /^server\.(\d+)=[^;]*:(participant|observer)(?:;|$)/.exec(line) ?? []
    if (id !== undefined) roles.set(Number(id), role as Role)
    const [, zxid] = /^version=([0-9a-f]+)$/.exec(line) ?? []
    if (zxid !== undefined) version = Number.parseInt(zxid, 16)
  }
  const voters = new Set([...roles].filter(([, role]) => role === 'participant').map(([id]) => id))
  return { version, roles, voters }
}

export const isMajority = (voters: ReadonlySet<number>, has: (id: number) => boolean): boolean =>
  [...voters].filter((id) => has(id)).length * 2 > voters.size

/** Every configuration that anybody wanted, by the zxid of its change, and which of them came into force. */
export class Configurations {
  readonly #first: ReadonlySet<number>
  readonly #proposed = new Map<number, ReadonlySet<number>>()
  /** Zxids of changes that are committed, ascending. */
  readonly #committed: number[] = []

  constructor(first: ReadonlySet<number>) {
    this.#first = first
  }

  /** Whether nobody had proposed it before. */
  propose(zxid: number, text: string): boolean {
    const isNew = !this.#proposed.has(zxid)
    this.#proposed.set(zxid, readMembers(text).voters)
    return isNew
  }

  /** Something is committed; when it is a change of the ensemble it is in force from here on. */
  commit(zxid: number): void {
    if (!this.#proposed.has(zxid) || this.#committed.includes(zxid)) return
    this.#committed.push(zxid)
    this.#committed.sort((a, b) => a - b)
  }

  /** Those whose quorums decide about a transaction: with a change of the ensemble, the old voters and the new ones. */
  decidersOf(zxid: number): readonly ReadonlySet<number>[] {
    const before = this.#committed.findLast((change) => change < zxid)
    const old = before === undefined ? this.#first : this.#proposed.get(before)!
    const next = this.#proposed.get(zxid)
    return next === undefined ? [old] : [old, next]
  }
}
