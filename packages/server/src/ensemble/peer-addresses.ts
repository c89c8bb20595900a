import type { Address, Clock, Network, PeerIdentity } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'
import type { Refusal } from './pending-connections.ts'

export interface PeerAddressesOptions {
  readonly network: Pick<Network, 'resolve'>
  readonly clock: Clock
  /** Whether connections are checked (`quorumAddressCheck`). */
  readonly isEnabled: boolean
  /** Returns the hosts of a member by the known configurations; none for a server that no configuration names. */
  readonly hostsOf: (id: ServerId) => readonly string[]
  /** Returns the hosts from which servers may connect that no configuration names. */
  readonly joinerHosts: () => readonly string[]
}

/** The other side of a connection that claims an id. */
export interface ClaimingPeer {
  readonly remote: Pick<Address, 'host'>
  /** Its certificate, where it has shown one that the members trust. */
  readonly peer?: PeerIdentity | undefined
}

/** The shortest time between two resolutions of the names of one member, in milliseconds. */
const RESOLVE_INTERVAL_MS = 10_000
/** Stands for all servers that no configuration names: they share the names of the members. */
const UNNAMED = -1

/** The resolved names of one member. */
interface ResolvedNames {
  readonly names: string
  readonly at: number
  readonly addresses: ReadonlySet<string>
}

/**
 * Checks that a connection which claims the id of a member comes from an address of that member: without TLS and SASL anyone who
 * reaches a port could claim any id. A server that no configuration names has to come from an address of some member, whose place a
 * program there could take anyway, or from one that the operator has listed. Names are resolved when an address does not match, at most once in 10 s for each member.
 */
export class PeerAddresses {
  readonly #options: PeerAddressesOptions
  readonly #resolved = new Map<ServerId, ResolvedNames>()
  readonly #resolving = new Map<ServerId, Promise<void>>()

  constructor(options: PeerAddressesOptions) {
    this.#options = options
  }

  /**
   * Returns why the other side of a connection cannot be the server that it claims to be, or undefined if it can; as a promise while
   * names are resolved.
   */
  refusal(id: ServerId, { remote, peer }: ClaimingPeer): Refusal | undefined | Promise<Refusal | undefined> {
    const { isEnabled, hostsOf, joinerHosts } = this.#options
    if (!isEnabled) return undefined
    const own = hostsOf(id)
    const isNamed = own.length > 0
    if (!isNamed && peer !== undefined) return undefined
    const hosts = isNamed ? own : joinerHosts()
    const key = isNamed ? id : UNNAMED
    const from = canonical(remote.host)
    const names = hosts.filter((each) => !isIpAddress(each))
    if (hosts.some((each) => canonical(each) === from) || this.#isResolved(key, names, from)) return undefined
    const resolving = this.#resolve(key, names)
    const refusal = (): Refusal => ({
      peer: id,
      reason: isNamed ? reasonText(id, hosts, remote.host) : unnamedText(id, remote.host),
    })
    return resolving === undefined
      ? refusal()
      : resolving.then(() => (this.#isResolved(key, names, from) ? undefined : refusal()))
  }

  #isResolved(id: ServerId, names: readonly string[], from: string): boolean {
    const resolved = this.#resolved.get(id)
    return resolved?.names === names.join() && resolved.addresses.has(from)
  }

  /** Resolves the names of a member; returns undefined when it has none, or when they were resolved a short time ago. */
  #resolve(id: ServerId, names: readonly string[]): Promise<void> | undefined {
    const { network, clock } = this.#options
    if (names.length === 0 || network.resolve === undefined) return undefined
    const before = this.#resolved.get(id)
    const isFresh = before?.names === names.join() && clock.monotonic() - before.at < RESOLVE_INTERVAL_MS
    if (isFresh) return undefined
    const running = this.#resolving.get(id)
    if (running !== undefined) return running
    const resolving = this.#lookUp(id, names).finally(() => this.#resolving.delete(id))
    this.#resolving.set(id, resolving)
    return resolving
  }

  async #lookUp(id: ServerId, names: readonly string[]): Promise<void> {
    const { network, clock } = this.#options
    const found = await Promise.all(names.map((name) => network.resolve!(name).catch(() => [])))
    const addresses = new Set(found.flat().map(canonical))
    const before = this.#resolved.get(id)
    // The addresses that were found before stay while a name cannot be resolved.
    if (before?.names === names.join() && found.some((each) => each.length === 0))
      for (const address of before.addresses) addresses.add(address)
    this.#resolved.set(id, { names: names.join(), at: clock.monotonic(), addresses })
  }
}

const reasonText = (id: ServerId, hosts: readonly string[], from: string): string =>
  `it claims to be server ${id}, whose addresses are those of ${hosts.join(', ')}, and comes from ${from}. ` +
  'If network addresses are translated between the members, set quorumAddressCheck=false'

const unnamedText = (id: ServerId, from: string): string =>
  `no configuration names server ${id}, and ${from} is not an address of a member. Add it with reconfig, and it joins then, ` +
  'or list its host in quorumJoinerHosts'

const isIpAddress = (host: string): boolean => host.includes(':') || /^\d+\.\d+\.\d+\.\d+$/.test(host)

/** Whether two hosts are one address, or have the same name. */
export const isSameHost = (a: string, b: string): boolean => canonical(a) === canonical(b)

/** Returns an address in one spelling. All loopback addresses are one: the system chooses which of them a connection comes from. */
function canonical(host: string): string {
  const bare = host.replace(/%.*$/, '').toLowerCase()
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare)?.[1] ?? bare
  if (mapped === 'localhost' || mapped.startsWith('127.')) return 'loopback'
  if (!mapped.includes(':')) return mapped
  const compressed = compress(mapped)
  return compressed === '::1' ? 'loopback' : compressed
}

/** Returns an IPv6 address in its shortest form. */
function compress(address: string): string {
  try {
    return new URL(`http://[${address}]`).hostname.slice(1, -1)
  } catch {
    return address
  }
}
