import type { Clock } from '@zabra/runtime'

/** The most bytes of a leader that are not on disk, before a learner stops reading from it. */
const MAX_PENDING_BYTES = 64 << 20
/**
 * The most committed transactions that are not applied. Applying has 2 ms of a turn while few of them wait, and no limit while many do;
 * one read of 64 KiB may have hundreds.
 */
const MAX_UNAPPLIED = 300

export interface LearnerFlowControlOptions {
  readonly clock: Pick<Clock, 'immediate'>
  /** The connection to the leader. */
  readonly connection: { readonly isOpen: boolean; pause(): void; resume(): void }
  /** Returns the bytes that are not on disk. */
  readonly pendingBytes: () => number
  /** Returns the committed transactions that are not applied. */
  readonly unapplied: () => number
  /** Resolves or rejects when the bytes are on disk. */
  readonly flush: () => Promise<unknown>
}

/** Stops reading from a leader while the disk, or the tree, is behind: what it sends waits in its socket then, not in memory. */
export class LearnerFlowControl {
  readonly #options: LearnerFlowControlOptions
  #isPaused = false

  constructor(options: LearnerFlowControlOptions) {
    this.#options = options
  }

  /** Pauses the connection if too much is not on disk or not applied. Called after bytes of the leader were processed. */
  check(): void {
    if (this.#isPaused) return
    const { pendingBytes, unapplied, flush } = this.#options
    if (pendingBytes() >= MAX_PENDING_BYTES) {
      this.#pause()
      void flush()
        .catch(() => {})
        .then(() => this.#resume())
    } else if (unapplied() >= MAX_UNAPPLIED) {
      this.#pause()
      this.#awaitApplied()
    }
  }

  #awaitApplied(): void {
    const { clock, connection, unapplied } = this.#options
    clock.immediate(() => {
      if (!connection.isOpen) return
      if (unapplied() >= MAX_UNAPPLIED) this.#awaitApplied()
      else this.#resume()
    })
  }

  #pause(): void {
    this.#isPaused = true
    this.#options.connection.pause()
  }

  #resume(): void {
    this.#isPaused = false
    this.#options.connection.resume()
  }
}
