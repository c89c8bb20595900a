/** What the ledger needs to know of a right. */
interface Right {
  readonly token: bigint
  readonly signal: AbortSignal
}

interface Entry {
  readonly who: string
  readonly held: Right
  readonly weight: number
}

/** Who holds what, as each of them sees it; remembers every time when two did that must not. */
export class Ledger {
  readonly wrong: string[] = []
  readonly history: string[] = []
  readonly #limit: number
  #entries: Entry[] = []
  #highest = 0n

  /** `limit` is how much may be held at once. */
  constructor(limit = 1) {
    this.#limit = limit
  }

  /** Somebody has been granted a right of this weight. One of weight `limit` has it alone, and a higher token than all before. */
  enter(who: string, held: Right, weight = this.#limit): void {
    this.history.push(`${who} enters with ${held.token}`)
    this.#entries = this.#entries.filter((entry) => !entry.held.signal.aborted)
    if (held.signal.aborted) return
    const sum = this.#entries.reduce((total, entry) => total + entry.weight, weight)
    if (sum > this.#limit) {
      const others = this.#entries.map((entry) => `${entry.who} with ${entry.held.token}`).join(' and ')
      this.wrong.push(`${who} with ${held.token} entered beside ${others}`)
    }
    if (weight === this.#limit && held.token < this.#highest) {
      this.wrong.push(`${who} entered with ${held.token} after ${this.#highest}`)
    }
    if (held.token > this.#highest) this.#highest = held.token
    this.#entries.push({ who, held, weight })
  }
}
