/** An acknowledged write. Times are in milliseconds of one clock. */
export interface AcknowledgedWrite {
  readonly by: string
  readonly began: number
  readonly ended: number
  readonly zxid: bigint
}

/** The acknowledged writes of all clients and the violations of guarantees. */
export class History {
  readonly #writes: AcknowledgedWrite[] = []
  #waiters: { readonly until: number; readonly resolve: () => void }[] = []
  readonly violations: string[] = []
  unknown = 0

  get acknowledged(): number {
    return this.#writes.length
  }

  addWrite(one: AcknowledgedWrite): void {
    this.#writes.push(one)
    const [due, others] = [this.#waiters.filter(({ until }) => until <= this.acknowledged), this.#waiters]
    if (due.length === 0) return
    this.#waiters = others.filter(({ until }) => until > this.acknowledged)
    for (const { resolve } of due) resolve()
  }

  /** Resolves when `count` more writes are acknowledged. Rejects after the timeout with the violations that there are. */
  waitForWrites(count: number, withinMs = 60_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const known = this.violations.length === 0 ? 'no violation' : this.violations.join('; ')
        reject(new Error(`Waited ${withinMs} ms for ${count} acknowledged writes; there is ${known}`))
      }, withinMs)
      const acknowledged = (): void => {
        clearTimeout(timer)
        resolve()
      }
      this.#waiters.push({ until: this.acknowledged + count, resolve: acknowledged })
    })
  }

  addViolation(sentence: string): void {
    this.violations.push(sentence)
  }

  /** Returns the longest time without an acknowledged write: its length in milliseconds, and its start. */
  longestOutage(): { readonly ms: number; readonly since: number } {
    const ends = this.#writes.map(({ ended }) => ended).sort((x, y) => x - y)
    let longest = { ms: 0, since: 0 }
    for (const [index, end] of ends.entries()) {
      const since = ends[index - 1] ?? end
      if (end - since > longest.ms) longest = { ms: end - since, since }
    }
    return longest
  }

  /** Checks real-time order: a write that began after another one was acknowledged has a larger zxid. Zxids are unique. */
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
      if (other !== undefined)
        this.addViolation(`${write.by} and ${other.by} share 0x${write.zxid.toString(16)}`)
      seen.set(write.zxid, write)
    }
  }
}
