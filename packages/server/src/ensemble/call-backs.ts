import type { Address, Clock } from '@zabra/runtime'
import { TokenBucket } from '../connections/token-bucket.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { formatAddress } from './election-hello.ts'
import { isSameHost } from './peer-addresses.ts'

/** Most addresses of a hello that are dialed. */
const MAX_ADDRESSES = 4
/** Hellos of a server that are answered by a connection at once, and one more in each interval of so many milliseconds. */
const BURST = 16
const INTERVAL_MS = 100
/** Stands for all servers that no configuration names: a program may claim any number of ids. */
const UNNAMED = -1

/**
 * Returns the addresses to dial for a server that has announced addresses in its hello (quorum-protocol 3.3): those at hosts that a
 * configuration gives it, or at the host that the hello came from. An address at any other host counts as its port at the latter: a
 * program must not make this server connect to a host of its choice.
 */
export function callBackAddresses(
  announced: readonly Address[],
  from: Pick<Address, 'host'>,
  configured: readonly Address[],
): readonly Address[] {
  const hosts = [from, ...configured].map(({ host }) => host)
  const allowed = announced.map(({ host, port }) =>
    hosts.some((each) => isSameHost(each, host)) ? { host, port } : { host: from.host, port },
  )
  return [...new Map(allowed.map((address) => [formatAddress(address), address])).values()].slice(
    0,
    MAX_ADDRESSES,
  )
}

/** Limits how often servers are called back: a program at an address of a member could have its ports tried one after the other. */
export class CallBacks {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #buckets = new Map<ServerId, TokenBucket>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** Counts a hello. Returns whether its server may be called back now. */
  take(id: ServerId, isMember: boolean): boolean {
    const key = isMember ? id : UNNAMED
    let bucket = this.#buckets.get(key)
    if (bucket === undefined) this.#buckets.set(key, (bucket = new TokenBucket(BURST, INTERVAL_MS, 1)))
    return bucket.take(this.#clock.monotonic())
  }
}
