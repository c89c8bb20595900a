import { ownerKind, type OwnerRules } from '@zabra/protocol'
import { NumberMap, NumberSet } from '../number-map.ts'
import { SessionMap } from '../session-map.ts'
import type { SessionId } from '../types.ts'

/** Nodes of one kind or owner. */
export type NodeSet = Pick<NumberSet, 'size' | 'has'> & Iterable<number>

const NO_NODES: NodeSet = new NumberSet()

/** Holds the owner fields of nodes: ephemerals by session, containers, nodes with a TTL. Most nodes have no entry. */
export class OwnerIndex {
  readonly #rules: OwnerRules
  readonly #owners = new NumberMap<bigint>()
  readonly #sessions = new SessionMap<NumberSet>()
  readonly #containers = new NumberSet()
  readonly #ttl = new NumberSet()
  readonly containers: NodeSet = this.#containers
  readonly ttl: NodeSet = this.#ttl

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
        this.#containers.add(node)
        return
      case 'ttl':
        this.#ttl.add(node)
        return
      case 'ephemeral': {
        let own = this.#sessions.get(owner)
        if (own === undefined) this.#sessions.set(owner, (own = new NumberSet()))
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
    if (this.#containers.delete(node) || this.#ttl.delete(node)) return
    const own = this.#sessions.get(owner)
    own?.delete(node)
    if (own?.size === 0) this.#sessions.delete(owner)
  }

  /** Returns the ephemeral nodes of a session. */
  ofSession(session: SessionId): NodeSet {
    return this.#sessions.get(session) ?? NO_NODES
  }

  /** The number of sessions with ephemeral nodes. */
  get sessionCount(): number {
    return this.#sessions.size
  }

  sessions(): Generator<SessionId, void> {
    return this.#sessions.keys()
  }
}
