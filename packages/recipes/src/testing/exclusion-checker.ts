/** The part of a lock handle that the checker needs. */
interface Grant {
  readonly token: bigint
  readonly signal: AbortSignal
}

interface ActiveGrant {
  readonly name: string
  readonly grant: Grant
  readonly weight: number
}

/** Records grants as the participants see them, and every violation of mutual exclusion. */
export class ExclusionChecker {
  readonly violations: string[] = []
  readonly history: string[] = []
  /** After each grant: the newest token of those that are held, and the sum of their weights. */
  readonly sums: { readonly token: bigint; readonly weight: number }[] = []
  readonly #limit: number
  #entries: ActiveGrant[] = []
  #highest = 0n

  readonly #isPaused: (name: string) => boolean

  /**
   * `limit` is the weight that may be held at once. A paused participant cannot know that it lost its lock, so
   * only its token is checked.
   */
  constructor(limit = 1, isPaused: (name: string) => boolean = () => false) {
    this.#limit = limit
    this.#isPaused = isPaused
  }

  /**
   * Records a grant with a weight. A grant of weight `limit` is exclusive and must have a higher token than all
   * before.
   */
  recordGrant(name: string, grant: Grant, weight = this.#limit): void {
    this.history.push(`${name} enters with ${grant.token}`)
    this.#entries = this.#entries.filter(
      (entry) => !entry.grant.signal.aborted && !this.#isPaused(entry.name),
    )
    if (grant.signal.aborted || this.#isPaused(name)) return
    const sum = this.#entries.reduce((total, entry) => total + entry.weight, weight)
    if (sum > this.#limit) {
      const others = this.#entries.map((entry) => `${entry.name} with ${entry.grant.token}`).join(' and ')
      this.violations.push(`${name} with ${grant.token} entered while held by ${others}`)
    }
    if (weight === this.#limit && grant.token < this.#highest) {
      this.violations.push(`${name} entered with ${grant.token} after ${this.#highest}`)
    }
    if (grant.token > this.#highest) this.#highest = grant.token
    this.#entries.push({ name, grant, weight })
    const tokens = this.#entries.map((entry) => entry.grant.token)
    this.sums.push({ token: tokens.reduce((a, b) => (a > b ? a : b)), weight: sum })
  }
}
