import type { Clock } from '@zabra/runtime'
import type { Tree } from '../core/tree/index.ts'
import type { ClientChannel } from './client-channel.ts'
import { ITEMS_PER_TURN, SLICE_MS } from '../core/in-slices.ts'

export interface DeferredReadsOptions {
  readonly tree: Pick<Tree, 'isApplying' | 'whenConsistent'>
  readonly clock: Pick<Clock, 'monotonic'>
  /** Runs a function in a later turn. */
  readonly runLater: (action: () => void) => void
}

/**
 * Holds the connections whose reads wait for the end of an incremental apply, during which the tree is inconsistent. Then processes
 * some of them in each turn. No transaction may be applied meanwhile: a read must not see a later write of its session.
 */
export class DeferredReads {
  readonly #options: DeferredReadsOptions
  readonly #channels = new Set<Pick<ClientChannel, 'requests'>>()
  #isScheduled = false

  constructor(options: DeferredReadsOptions) {
    this.#options = options
  }

  /** Connections that wait. */
  get size(): number {
    return this.#channels.size
  }

  /** Processes the requests of a connection again once the tree is consistent. */
  add(channel: Pick<ClientChannel, 'requests'>): void {
    this.#channels.add(channel)
    this.#schedule()
  }

  remove(channel: Pick<ClientChannel, 'requests'>): void {
    this.#channels.delete(channel)
  }

  #schedule(): void {
    if (this.#isScheduled || this.#channels.size === 0) return
    const { tree, runLater } = this.#options
    this.#isScheduled = true
    tree.whenConsistent(() => runLater(() => this.#process()))
  }

  #process(): void {
    const { tree, clock } = this.#options
    this.#isScheduled = false
    const until = clock.monotonic() + SLICE_MS
    let left = ITEMS_PER_TURN
    for (const channel of this.#channels) {
      if (tree.isApplying || left-- === 0 || clock.monotonic() >= until) break
      this.#channels.delete(channel)
      channel.requests.process()
    }
    this.#schedule()
  }
}
