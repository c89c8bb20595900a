/** The part of a lock handle that the checker needs. */
interface Grant {
  readonly token: bigint
  readonly signal: AbortSignal
}

interface ActiveGrant {
  readonly who: string
  readonly held: Grant
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

  readonly #isAsleep: (who: string) => boolean

  /**
   * `limit` is the weight that may be held at once. A paused participant cannot know that it lost its lock, so
   * only its token is checked.
   */
  constructor(limit = 1, isAsleep: (who: string) => boolean = () => false) {
    this.#limit = limit
    this.#isAsleep = isAsleep
  }

  /**
   * Records a grant with a weight. A grant of weight `limit` is exclusive and must have a higher token than all
   * before.
   */
  recordGrant(who: string, held: Grant, weight = this.#limit): void {
    this.history.push(`${who} enters with ${held.token}`)
    this.#entries = this.#entries.filter((entry) => !entry.held.signal.aborted && !this.#isAsleep(entry.who))
    if (held.signal.aborted || this.#isAsleep(who)) return
    const sum = this.#entries.reduce((total, entry) => total + entry.weight, weight)
    if (sum > this.#limit) {
      const others = this.#entries.map((entry) => `${entry.who} with ${entry.held.token}`).join(' and ')
      this.violations.push(`${who} with ${held.token} entered while held by ${others}`)
    }
    if (weight === this.#limit && held.token < this.#highest) {
      this.violations.push(`${who} entered with ${held.token} after ${this.#highest}`)
    }
    if (held.token > this.#highest) this.#highest = held.token
    this.#entries.push({ who, held, weight })
    const tokens = this.#entries.map((entry) => entry.held.token)
    this.sums.push({ token: tokens.reduce((a, b) => (a > b ? a : b)), weight: sum })
  }
}
