import type { Zxid } from '../types.ts'

interface PendingCheck {
  readonly checkId: number
  readonly zxid: Zxid
  readonly round: number
}

/**
 * Who waits to hear that this leader still is the one (10.6, made stronger).
 *
 * C1 An answer counts for what was asked before its PING left: whoever comes while a round runs waits for the next one, and
 * one round serves all who wait.
 * C2 It is given once everything that was proposed before the question is committed, in the order of the questions.
 */
export class PendingChecks {
  #pending: PendingCheck[] = []
  /** Rounds begun, and done. One runs while they differ. */
  #begun = 0
  #done = 0

  get isRunning(): boolean {
    return this.#begun > this.#done
  }

  /** Whether somebody waits for a round that has not begun. */
  get needsRound(): boolean {
    return !this.isRunning && this.#pending.length > 0 && this.#pending.at(-1)!.round > this.#begun
  }

  add(ticket: number, lastProposed: Zxid): void {
    this.#pending.push({ checkId: ticket, zxid: lastProposed, round: this.#begun + 1 })
  }

  begin(): void {
    this.#begun++
  }

  finish(): void {
    this.#done = this.#begun
  }

  /** Hands out, in order, the tickets whose time has come. */
  release(lastCommitted: Zxid, confirmed: (ticket: number) => void): void {
    if (this.#pending.length === 0) return
    const ready = this.#pending.findIndex(({ zxid, round }) => zxid > lastCommitted || round > this.#done)
    const count = ready === -1 ? this.#pending.length : ready
    for (const { checkId: ticket } of this.#pending.splice(0, count)) confirmed(ticket)
  }
}
