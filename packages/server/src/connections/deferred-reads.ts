import type { Tree } from '../core/tree/index.ts'
import type { ClientChannel } from './client-channel.ts'

/** Holds the connections whose reads wait for the end of an incremental apply, during which the tree is inconsistent. */
export class DeferredReads {
  readonly #tree: Tree
  readonly #runLater: (action: () => void) => void
  readonly #channels = new Set<ClientChannel>()

  /** `runLater` runs a function in a later turn. */
  constructor(tree: Tree, runLater: (action: () => void) => void) {
    this.#tree = tree
    this.#runLater = runLater
  }

  /** Processes the requests of a connection again once the tree is consistent. */
  add(channel: ClientChannel): void {
    if (this.#channels.size === 0) this.#tree.whenConsistent(() => this.#runLater(() => this.#process()))
    this.#channels.add(channel)
  }

  remove(channel: ClientChannel): void {
    this.#channels.delete(channel)
  }

  #process(): void {
    const channels = [...this.#channels]
    this.#channels.clear()
    for (const { requests } of channels) requests.process()
  }
}
