import type { ServerId } from '../quorum/index.ts'

/** Which servers of a simulated network can reach each other. */
export class Partitions {
  #groupOf = new Map<ServerId, number>()

  /** Splits the network into these groups; all other servers form a group together. */
  split(...groups: readonly (readonly ServerId[])[]): void {
    this.#groupOf = new Map(
      groups.flatMap((ids, index) => ids.map((id): [ServerId, number] => [id, index + 1])),
    )
  }

  heal(): void {
    this.#groupOf.clear()
  }

  areConnected(a: ServerId, b: ServerId): boolean {
    return this.#groupOf.get(a) === this.#groupOf.get(b)
  }
}
