import type { Clock } from '@zabra/runtime'
import type { PacketQueueFigures } from '../connections/ensemble-stats.ts'

/**
 * Measures the packets that wait for a learner: how many do at each flush, and how long the first of them has waited when the socket has
 * taken them all. `figures` returns what gets the values; undefined where they are not kept.
 */
export class PacketQueueStats {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #figures: () => PacketQueueFigures | undefined
  #packets = 0
  /** Those that were added since the last flush. */
  #added = 0
  #since = 0

  constructor(clock: Pick<Clock, 'monotonic'>, figures: () => PacketQueueFigures | undefined) {
    this.#clock = clock
    this.#figures = figures
  }

  added(): void {
    this.#added++
    if (this.#packets++ === 0) this.#since = this.#clock.monotonic()
  }

  /** Called after a flush; `isTaken` says whether the socket would take more. */
  flushed(isTaken: boolean): void {
    this.#added = 0
    if (this.#packets === 0) return
    this.#figures()?.size.add(this.#packets)
    if (isTaken) this.taken()
  }

  /** Called when the socket has taken all that was flushed. */
  taken(): void {
    if (this.#packets > this.#added) this.#figures()?.time.add(this.#clock.monotonic() - this.#since)
    this.#packets = this.#added
  }
}
