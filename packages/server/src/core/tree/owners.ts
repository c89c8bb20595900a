import { ownerKind, type OwnerRules } from '@zabra/protocol'
import type { SessionId } from '../types.ts'

const NO_NODES: ReadonlySet<number> = new Set()

/** Holds the owner fields of nodes: ephemerals by session, containers, nodes with a TTL. Most nodes have no entry. */
export class OwnerIndex {
  readonly #rules: OwnerRules
  readonly #owners = new Map<number, bigint>()
  readonly #sessions = new Map<SessionId, Set<number>>()
  readonly containers = new Set<number>()
  readonly ttl = new Set<number>()

  constructor(rules: OwnerRules) {
    this.#rules = rules
  }

  get ephemeralCount(): number {
    return this.#owners.size - this.containers.size - this.ttl.size
  }

  /** Returns the raw owner field of a node. */
  of(node: number): bigint {
    return this.#owners.size === 0 ? 0n : (this.#owners.get(node) ?? 0n)
  }

  set(node: number, owner: bigint): void {
    this.#owners.set(node, owner)
    switch (ownerKind(owner, this.#rules)) {
      case 'container':
        this.containers.add(node)
        return
      case 'ttl':
        this.ttl.add(node)
        return
      case 'ephemeral': {
        let own = this.#sessions.get(owner)
        if (own === undefined) this.#sessions.set(owner, (own = new Set()))
        own.add(node)
        return
      }
      case 'persistent':
    }
  }

  delete(node: number): void {
    const owner = this.#owners.get(node)
    if (owner === undefined) return
    this.#owners.delete(node)
    if (this.containers.delete(node) || this.ttl.delete(node)) return
    const own = this.#sessions.get(owner)
    own?.delete(node)
    if (own?.size === 0) this.#sessions.delete(owner)
  }

  /** Returns the ephemeral nodes of a session, in the order of their creation. */
  ofSession(session: SessionId): ReadonlySet<number> {
    return this.#sessions.get(session) ?? NO_NODES
  }

  /** The number of sessions with ephemeral nodes. */
  get sessionCount(): number {
    return this.#sessions.size
  }

  sessions(): IterableIterator<SessionId> {
    return this.#sessions.keys()
  }
}
