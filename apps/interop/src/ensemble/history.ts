/** A write that was acknowledged. Times on one clock, in milliseconds. */
export interface AcknowledgedWrite {
  readonly by: string
  readonly began: number
  readonly ended: number
  readonly zxid: bigint
}

/** What clients of an ensemble saw, and the judgement over it. */
export class History {
  readonly #writes: AcknowledgedWrite[] = []
  #waiting: { readonly until: number; readonly told: () => void }[] = []
  readonly violations: string[] = []
  unknown = 0

  get acknowledged(): number {
    return this.#writes.length
  }

  addWrite(one: AcknowledgedWrite): void {
    this.#writes.push(one)
    const [due, others] = [this.#waiting.filter(({ until }) => until <= this.acknowledged), this.#waiting]
    if (due.length === 0) return
    this.#waiting = others.filter(({ until }) => until > this.acknowledged)
    for (const { told } of due) told()
  }

  /** Resolves when so many more writes are acknowledged. */
  waitForWrites(count: number): Promise<void> {
    return new Promise((told) => this.#waiting.push({ until: this.acknowledged + count, told }))
  }

  addViolation(sentence: string): void {
    this.violations.push(sentence)
  }

  /** The longest time in which nothing was acknowledged to anybody: how long in milliseconds, and when it began. */
  longestOutage(): { readonly ms: number; readonly since: number } {
    const ends = this.#writes.map(({ ended }) => ended).sort((x, y) => x - y)
    let longest = { ms: 0, since: 0 }
    for (const [index, end] of ends.entries()) {
      const since = ends[index - 1] ?? end
      if (end - since > longest.ms) longest = { ms: end - since, since }
    }
    return longest
  }

  /** A write that began after another one was acknowledged comes after it in the order of all. */
  checkOrder(): void {
    const byBegin = this.#writes.toSorted((a, b) => a.began - b.began)
    const byEnd = this.#writes.toSorted((a, b) => a.ended - b.ended)
    let newest: AcknowledgedWrite | undefined
    let at = 0
    for (const write of byBegin) {
      for (; byEnd[at] !== undefined && byEnd[at]!.ended < write.began; at++)
        if (newest === undefined || byEnd[at]!.zxid > newest.zxid) newest = byEnd[at]
      if (newest !== undefined && newest.zxid >= write.zxid)
        this.addViolation(
          `${write.by} wrote 0x${write.zxid.toString(16)} after 0x${newest.zxid.toString(16)} of ${newest.by} was acknowledged`,
        )
    }
    const seen = new Map<bigint, AcknowledgedWrite>()
    for (const write of this.#writes) {
      const other = seen.get(write.zxid)
      if (other !== undefined) this.addViolation(`${write.by} and ${other.by} share 0x${write.zxid.toString(16)}`)
      seen.set(write.zxid, write)
    }
  }
}
