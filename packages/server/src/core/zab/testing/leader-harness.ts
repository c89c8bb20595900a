import { makeZxid } from '@zabra/protocol'
import { parseConfiguration, type ServerId } from '../../quorum/index.ts'
import { Leader } from '../leader.ts'
import type { LeaderInput, LeaderOptions, LeaderWork } from '../leader-types.ts'
import { packetName, PacketType, type QuorumPacket } from '../packets.ts'
import { encodeAckEpoch, encodeLearnerInfo, PROTOCOL_VERSION } from '../payloads.ts'
import { CommittedWindow } from '../committed-window.ts'
import { sourcesOf } from './sync-sources.ts'
import { makeTxn } from './txn.ts'

const hex = (zxid: number): string => (zxid < 0 ? String(zxid) : zxid.toString(16))

/** Steps a leader and describes its work as text. Connection numbers are server ids, plus 100 for each reconnect. */
export class LeaderHarness {
  readonly leader: Leader
  readonly window: CommittedWindow
  readonly #sources = { forceSnapshot: false }

  constructor(configuration: string, options: Partial<LeaderOptions> = {}) {
    const lastZxid = options.lastZxid ?? 0
    this.window = new CommittedWindow(lastZxid)
    const forced = this.#sources
    this.leader = new Leader({
      self: 3,
      active: parseConfiguration(configuration),
      acceptedEpoch: 0,
      currentEpoch: 0,
      lastZxid,
      initLimit: 10,
      syncLimit: 5,
      sources: {
        ...sourcesOf(this.window),
        get forceSnapshot() {
          return forced.forceSnapshot
        },
      },
      reconfigEnabled: false,
      ...options,
    })
  }

  /** Returns the work since the last call, or its lines that begin with `start`. */
  takeLog(start = ''): string[] {
    const { leader } = this
    const log: string[] = []
    for (let work = leader.nextWork(); work !== undefined; work = leader.nextWork())
      log.push(...describeWork(work))
    return log.filter((line) => line.startsWith(start))
  }

  step(...inputs: LeaderInput[]): this {
    for (const input of inputs) this.leader.step(input)
    return this
  }

  /** Makes the leader synchronise all further learners with a snapshot. */
  forceSnapshots(): this {
    this.#sources.forceSnapshot = true
    return this
  }

  packet(from: number, packet: Partial<QuorumPacket> & { type: number }): this {
    return this.step({ type: 'packet', from, packet: { zxid: -1, data: null, auth: null, ...packet } })
  }

  /** Opens a connection and sends FOLLOWERINFO or OBSERVERINFO. */
  identify(
    connection: number,
    acceptedEpoch = 0,
    info: {
      observer?: boolean
      server?: ServerId
      configVersion?: number
      protocol?: number
      isAuthenticated?: boolean
    } = {},
  ): this {
    const { observer = false, server = connection % 100, isAuthenticated = false } = info
    const { configVersion = 0, protocol: protocolVersion = PROTOCOL_VERSION } = info
    this.step({ type: 'accepted', from: connection, isAuthenticated })
    this.packet(connection, {
      type: observer ? PacketType.observerInfo : PacketType.followerInfo,
      zxid: makeZxid(acceptedEpoch, 0),
      data: encodeLearnerInfo({ serverId: server, protocolVersion, configVersion }),
    })
    return this
  }

  ackEpoch(from: number, zxid = 0, epoch = 0): this {
    return this.packet(from, { type: PacketType.ackEpoch, zxid, data: encodeAckEpoch(epoch) })
  }

  ack(from: number, zxid: number): this {
    this.leader.ack(from, zxid)
    return this
  }

  markDurable(zxid: number): this {
    this.leader.markDurable(zxid)
    return this
  }

  stored(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): this {
    return this.step({ type: 'stored', what, epoch })
  }

  /** Sends the answer to a PING. */
  pong(from: number): this {
    return this.packet(from, { type: PacketType.ping, data: new Uint8Array(0) })
  }

  ticks(count: number): this {
    for (let i = 0; i < count * 2; i++) this.step({ type: 'halfTick' })
    return this
  }

  /** Establishes the leader in epoch 1 with these followers. */
  establish(...followers: number[]): this {
    this.step({ type: 'start' })
    for (const id of followers) this.identify(id)
    this.stored('acceptedEpoch', 1)
    for (const id of followers) this.ackEpoch(id)
    this.stored('currentEpoch', 1)
    for (const id of followers) this.ack(id, makeZxid(1, 0))
    this.takeLog()
    return this
  }

  /** Makes a learner join the established leader. */
  join(connection: number, zxid = 0, info: { observer?: boolean } = {}): this {
    this.identify(connection, 1, info)
    this.ackEpoch(connection, zxid, 1)
    this.ack(connection, makeZxid(1, 0))
    return this
  }

  /** Proposes the transaction with this counter in epoch 1. */
  propose(counter: number): this {
    const zxid = makeZxid(1, counter)
    this.leader.propose(zxid, makeTxn(zxid, counter).payload)
    return this
  }
}

/** Returns a leader that is established in epoch 1 with these followers. */
export function establishedLeader(
  configuration: string,
  followers: readonly number[] = [1],
  options?: Partial<LeaderOptions>,
): LeaderHarness {
  return new LeaderHarness(configuration, options).establish(...followers)
}

function describeWork(work: LeaderWork): string[] {
  if (work.do !== 'commit') return [describeOne(work)]
  const { first, payloads, followers, observers } = work
  return payloads.map((_, i) => `commit ${hex(first + i)} ${receivers(followers, observers)}`)
}

const receivers = (followers: readonly number[], observers: readonly number[] = []): string =>
  `to ${followers.join(',')}${observers.length > 0 ? ` inform ${observers.join(',')}` : ''}`

function describeOne(work: Exclude<LeaderWork, { do: 'commit' }>): string {
  switch (work.do) {
    case 'send':
      return `${packetName(work.packet.type)} ${hex(work.packet.zxid)} to ${work.to}`
    case 'propose':
      return `propose ${hex(work.zxid)} ${receivers(work.followers)}`
    case 'commitReconfig': {
      const { zxid, followers, observers, configuration, designated } = work
      const members = [...configuration.members.keys()].join('')
      return `activate ${hex(zxid)} ${receivers(followers, observers)}: ${members} led by ${designated}`
    }
    case 'confirmLeadership':
      return `confirmed ${work.id}`
    case 'sync': {
      const { plan } = work
      const entries = plan.entries.map(({ zxid }) => ` ${hex(zxid)}`).join('')
      return `${plan.kind}${plan.kind === 'snap' ? '' : ` ${hex(plan.zxid)}`}${entries} to ${work.to}`
    }
    case 'drop':
      return `drop ${work.connection}: ${work.reason}`
    case 'store':
      return `store ${work.what} ${work.epoch}`
    case 'lead':
      return `lead ${work.epoch} from ${hex(work.zxid)}`
    case 'stepDown': {
      const { message, designated, successor } = work.reason
      const next = designated ?? successor
      return `step down: ${message}${next === undefined ? '' : ` (${next})`}`
    }
    case 'deliver':
      return `deliver ${packetName(work.packet.type)} of ${work.server}`
    case 'learnerJoined':
      return `joined ${work.server}`
    case 'learnerLeft':
      return `left ${work.server}`
    case 'activate':
      return `activate ${hex(work.configuration.version)} led by ${work.designated}`
    case 'proposeConfiguration':
      return `last seen ${hex(work.configuration.version)}`
    case 'warn':
      return `warn: ${work.message}`
  }
}
