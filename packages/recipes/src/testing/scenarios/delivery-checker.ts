import { AmbiguousResultError } from '../../support/ambiguous-result.ts'

/** Records what was put into a queue and what was delivered. */
export class DeliveryChecker {
  readonly put: string[] = []
  readonly maybePut: string[] = []
  readonly out: string[] = []
  readonly maybeOut: string[] = []
  /** Values whose acknowledgement succeeded. */
  readonly acknowledged: string[] = []

  async recordPut(value: string, put: Promise<unknown>): Promise<void> {
    try {
      await put
      this.put.push(value)
    } catch (error) {
      if (!(error instanceof AmbiguousResultError)) throw error
      this.maybePut.push(value)
    }
  }

  async recordTake(take: Promise<string>): Promise<void> {
    try {
      this.out.push(await take)
    } catch (error) {
      if (!(error instanceof AmbiguousResultError)) throw error
      this.maybeOut.push(error.value as string)
    }
  }

  checkExactlyOnce(): void {
    // An item of an ambiguous take may have been delivered to another consumer.
    const out = [...this.out, ...this.maybeOut]
    if (new Set(this.out).size !== this.out.length) throw new Error(`delivered twice: ${out.join()}`)
    const lost = this.put.filter((value) => !out.includes(value))
    if (lost.length > 0) throw new Error(`lost: ${lost.join()}`)
    const known = new Set([...this.put, ...this.maybePut])
    if (!out.every((value) => known.has(value))) throw new Error(`delivered but never put: ${out.join()}`)
  }

  checkAtLeastOnce(): void {
    const lost = this.put.filter((value) => !this.out.includes(value))
    if (lost.length > 0) throw new Error(`never delivered: ${lost.join()}`)
    const twice = this.acknowledged.filter((value, at, all) => all.indexOf(value) !== at)
    if (twice.length > 0) throw new Error(`acknowledged twice: ${twice.join()}`)
  }
}
