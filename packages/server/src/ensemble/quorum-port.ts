import { ProtocolError } from '@zabra/protocol'
import { NetworkError, type Address, type Connection, type Listener } from '@zabra/runtime'
import {
  decodeLearnerInfo,
  decodeMemberExtension,
  LEARNER_INFO_BYTES,
  PacketSplitter,
  PacketType,
  type QuorumPacket,
} from '../core/zab/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import type { MemberContext } from './context.ts'
import { LoginFirstReader } from './login-readers.ts'
import type { LoginReader } from './member-login.ts'
import { MemberPort, type MemberPortOptions } from './member-port.ts'
import type { ListenAddress } from './membership.ts'
import type { IdentificationReader, Refusal } from './pending-connections.ts'

/** Options of a quorum port. Times are in milliseconds. */
export interface QuorumPortOptions extends Omit<MemberPortOptions<QuorumPacket>, 'port' | 'createReader'> {
  readonly listen: readonly ListenAddress[]
  /** Returns the reader of the login that comes first on a connection; undefined where none is asked for. */
  readonly acceptLogin?: (connection: Connection) => LoginReader | undefined
}

export const quorumPortDefaults = { bindAttempts: 3, maxUnidentified: 64, timeoutMs: 5000 } as const

/** The longest first packet that is read; a valid one has 44 bytes. */
const MAX_FIRST_PACKET_BYTES = 1024
/** The length of a packet without data and identities. */
const BARE_PACKET_BYTES = 20

/**
 * The port on which a leader, or a follower with `observerMasterPort`, accepts learners. A connection is pending until its first
 * packet is complete, which must be that of a learner.
 */
export class QuorumPort {
  readonly #options: QuorumPortOptions
  readonly #port: MemberPort<QuorumPacket>
  readonly #listeners: Listener[] = []
  #isClosed = false

  constructor(options: QuorumPortOptions) {
    this.#options = options
    this.#port = new MemberPort({
      ...options,
      port: 'quorum port',
      createReader: (connection) => {
        const login = options.acceptLogin?.(connection)
        const reader = new FirstPacketReader()
        return login === undefined ? reader : new LoginFirstReader(login, reader)
      },
    })
  }

  /** Listens on all addresses, or on none: rejects with a `NetworkError` when one cannot be bound after all attempts. */
  async open(): Promise<void> {
    try {
      for (const at of this.#options.listen) {
        const listener = await this.#port.bind(at)
        this.#listeners.push(listener)
        if (this.#isClosed) throw new NetworkError('The quorum port was closed while it opened', 'ABORT_ERR')
      }
    } catch (error) {
      await this.close()
      throw error
    }
  }

  get addresses(): Address[] {
    return this.#listeners.map(({ address }) => address)
  }

  /** The number of connections that have not identified themselves. */
  get unidentified(): number {
    return this.#port.unidentified
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#port.close()
    await Promise.all(this.#listeners.map((listener) => listener.close()))
  }
}

/** What depends on the owner of a quorum port: it keeps the learners, and takes each connection that is identified. */
export interface LearnerPortOptions extends Pick<QuorumPortOptions, 'identified'> {
  /** Returns the learners that are connected. */
  readonly learners: () => Iterable<{ readonly serverId: ServerId; readonly accepted: Connection }>
}

/** The most learners that no configuration names and that have not proved their ids, as on the election port. */
export const MAX_UNKNOWN_SERVERS = 16

/**
 * Creates the port on which a member accepts learners, from addresses of the members that they claim to be. Without reconfiguration a
 * server that no configuration names is refused, as on the election port, so such a server does not even learn which server leads.
 */
export function createQuorumPort(
  { settings, platform, membership, security, peerAddresses, cluster, features }: MemberContext,
  listen: readonly ListenAddress[],
  { identified, learners }: LearnerPortOptions,
): QuorumPort {
  const { clock, logger } = platform
  const isUnknown = (id: ServerId, connection: Connection): boolean =>
    membership.member(id) === undefined && !security.isAuthenticated(connection)
  const unknownBeside = (id: ServerId): number =>
    new Set(
      [...learners()]
        .filter(({ serverId, accepted }) => serverId !== id && isUnknown(serverId, accepted))
        .map(({ serverId }) => serverId),
    ).size
  return new QuorumPort({
    ...quorumPortDefaults,
    network: security.network,
    clock,
    logger,
    listen,
    acceptLogin: (connection) => security.acceptLogin(connection, 'quorum'),
    refusal: ({ data }, connection) => {
      const { serverId: peer } = decodeLearnerInfo(data)
      if (!settings.reconfigEnabled && membership.member(peer) === undefined)
        return { peer, reason: `server ${peer} is not in the configuration` }
      const reason = security.refusalOfAccepted(connection, peer)
      if (reason !== undefined) return { peer, reason }
      if (isUnknown(peer, connection) && unknownBeside(peer) >= MAX_UNKNOWN_SERVERS)
        return {
          peer,
          reason: `${MAX_UNKNOWN_SERVERS} servers outside of the configuration are connected already`,
        }
      const said = decodeMemberExtension(data, LEARNER_INFO_BYTES)
      const ofCluster = (isKnown: boolean): Refusal | undefined => {
        const foreign = cluster.refusalOf(peer, said, isKnown) ?? features.refusalOf(peer, said)
        return foreign === undefined ? undefined : { peer, reason: foreign }
      }
      if (security.isAuthenticated(connection)) return ofCluster(true)
      const isNamed = membership.member(peer) !== undefined
      const refusal = peerAddresses.refusal(peer, connection)
      if (refusal instanceof Promise) return refusal.then((other) => other ?? ofCluster(isNamed))
      return refusal ?? ofCluster(isNamed)
    },
    identified,
  })
}

/** Reads the first packet of a learner. The learner waits for a reply before it sends anything else, so no bytes follow. */
class FirstPacketReader implements IdentificationReader<QuorumPacket> {
  received = 0
  #packet: QuorumPacket | undefined
  readonly #splitter = new PacketSplitter({
    maxData: MAX_FIRST_PACKET_BYTES,
    packet: (type, zxid, data, auth) => {
      this.#packet ??= { type, zxid, data: data && new Uint8Array(data), auth }
    },
  })

  push(chunk: Uint8Array): QuorumPacket | undefined {
    this.received += chunk.length
    this.#splitter.push(chunk)
    if (this.#packet === undefined) return undefined
    const { type, data } = this.#packet
    if (type !== PacketType.followerInfo && type !== PacketType.observerInfo)
      throw new ProtocolError(
        `Expected the first packet of a learner, got a packet of type ${type}`,
        0,
        'the first packet',
      )
    decodeLearnerInfo(data)
    const surplus = this.received - BARE_PACKET_BYTES - (data?.length ?? 0)
    if (surplus > 0)
      throw new ProtocolError(
        `Expected nothing after the first packet, got ${surplus} bytes`,
        0,
        'the first packet',
      )
    return this.#packet
  }
}
