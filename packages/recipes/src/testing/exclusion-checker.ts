/** What the ledger needs to know of a right. */
interface Grant {
  readonly token: bigint
  readonly signal: AbortSignal
}

interface ActiveGrant {
  readonly who: string
  readonly held: Grant
  readonly weight: number
}

/** Who holds what, as each of them sees it; remembers every time when two did that must not. */
export class ExclusionChecker {
  readonly violations: string[] = []
  readonly history: string[] = []
  /** After each grant: the newest right of those that are held, and how much they weigh together. */
  readonly sums: { readonly token: bigint; readonly weight: number }[] = []
  readonly #limit: number
  #entries: ActiveGrant[] = []
  #highest = 0n

  readonly #isAsleep: (who: string) => boolean

  /**
   * `limit` is how much may be held at once. Who stands still cannot know what it has lost: it has what it takes its right
   * for, and only its token says what that is worth.
   */
  constructor(limit = 1, isAsleep: (who: string) => boolean = () => false) {
    this.#limit = limit
    this.#isAsleep = isAsleep
  }

  /** Somebody has been granted a right of this weight. One of weight `limit` has it alone, and a higher token than all before. */
  recordGrant(who: string, held: Grant, weight = this.#limit): void {
    this.history.push(`${who} enters with ${held.token}`)
    this.#entries = this.#entries.filter((entry) => !entry.held.signal.aborted && !this.#isAsleep(entry.who))
    if (held.signal.aborted || this.#isAsleep(who)) return
    const sum = this.#entries.reduce((total, entry) => total + entry.weight, weight)
    if (sum > this.#limit) {
      const others = this.#entries.map((entry) => `${entry.who} with ${entry.held.token}`).join(' and ')
      this.violations.push(`${who} with ${held.token} entered beside ${others}`)
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
