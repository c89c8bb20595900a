import { addressBlockOf } from '../address-block.ts'

/** Groups what comes from other hosts by its address, or network of IPv6, each group in the order of its members. */
export class ByAddress<T> {
  readonly #groups = new Map<string, Set<T>>()

  /** Adds a member as the last one of its group. */
  add(host: string, member: T): void {
    const block = addressBlockOf(host)
    const group = this.#groups.get(block)
    if (group === undefined) this.#groups.set(block, new Set([member]))
    else {
      group.delete(member)
      group.add(member)
    }
  }

  delete(host: string, member: T): void {
    const block = addressBlockOf(host)
    const group = this.#groups.get(block)
    group?.delete(member)
    if (group?.size === 0) this.#groups.delete(block)
  }

  /** Returns the largest group: what exceeds a common limit costs the host that has most. Of equal ones it is the one that was there first. */
  largest(): ReadonlySet<T> {
    let largest: ReadonlySet<T> = new Set()
    for (const group of this.#groups.values()) if (group.size > largest.size) largest = group
    return largest
  }

  /** Returns the number of members from a host. */
  countOf(host: string): number {
    return this.#groups.get(addressBlockOf(host))?.size ?? 0
  }
}
