import { makeZxid } from '@zabra/protocol'
import { parseConfiguration, type ServerId } from '../../quorum/index.ts'
import { Leader } from '../leader.ts'
import type { LeaderInput, LeaderOptions, LeaderWork } from '../leader-types.ts'
import { packetName, PacketType, type QuorumPacket } from '../packets.ts'
import { encodeAckEpoch, encodeLearnerInfo, PROTOCOL_VERSION } from '../payloads.ts'
import { CommittedWindow } from '../committed-window.ts'
import { makeTxn } from './txn.ts'
import { sourcesOf } from './sync-sources.ts'

const hex = (zxid: number): string => (zxid < 0 ? String(zxid) : zxid.toString(16))

/** A leader whose every word is written down. Connection numbers are ids of servers plus 100 for each time that they came again. */
export class LeaderHarness {
  readonly #forced = { on: false }
  readonly leader: Leader
  readonly window: CommittedWindow
  /** What was done since `said` was asked. */
  #lines: string[] = []

  constructor(configuration: string, given: Partial<LeaderOptions> = {}) {
    const lastZxid = given.lastZxid ?? 0
    this.window = new CommittedWindow(lastZxid)
    const { window } = this
    const forced = this.#forced
    const options: LeaderOptions = {
      self: 3,
      active: parseConfiguration(configuration),
      acceptedEpoch: 0,
      currentEpoch: 0,
      lastZxid,
      initLimit: 10,
      syncLimit: 5,
      sources: {
        ...sourcesOf(window),
        get forceSnapshot() {
          return forced.on
        },
      },
      reconfigEnabled: false,
      ...given,
    }
    const list = (ids: readonly number[]): string => ids.join(',')
    this.leader = new Leader(options, {
      proposal: (zxid, _payload, to) => this.#lines.push(`propose ${hex(zxid)} to ${list(to)}`),
      commit: (zxid, _payload, followers, observers) =>
        this.#lines.push(
          `commit ${hex(zxid)} to ${list(followers)}${observers.length > 0 ? ` inform ${list(observers)}` : ''}`,
        ),
      activate: (zxid, _payload, followers, observers, configuration, designated) =>
        this.#lines.push(
          `activate ${hex(zxid)} to ${list(followers)}${observers.length > 0 ? ` inform ${list(observers)}` : ''}: ${[...configuration.members.keys()].join('')} led by ${designated}`,
        ),
      confirmed: (ticket) => this.#lines.push(`confirmed ${ticket}`),
    })
  }

  step(...inputs: LeaderInput[]): void {
    for (const input of inputs) for (const work of this.leader.step(input)) this.#lines.push(describe(work))
  }

  /** Whoever comes from now on is brought up to date with a snapshot. */
  forceSnapshots(): void {
    this.#forced.on = true
  }

  /** What was done since the last call. */
  takeLog(): string[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  packet(from: number, packet: Partial<QuorumPacket> & { type: number }): void {
    this.step({ type: 'packet', from, packet: { zxid: -1, data: null, auth: null, ...packet } })
  }

  /** A learner comes and says who it is. */
  identify(
    connection: number,
    acceptedEpoch = 0,
    given: { observer?: boolean; server?: ServerId; configVersion?: number; protocol?: number } = {},
  ): void {
    const {
      observer = false,
      server = connection % 100,
      configVersion = 0,
      protocol = PROTOCOL_VERSION,
    } = given
    this.step({ type: 'accepted', from: connection })
    this.packet(connection, {
      type: observer ? PacketType.observerInfo : PacketType.followerInfo,
      zxid: makeZxid(acceptedEpoch, 0),
      data: encodeLearnerInfo({ serverId: server, protocolVersion: protocol, configVersion }),
    })
  }

  ackEpoch(from: number, zxid = 0, epoch = 0): void {
    this.packet(from, { type: PacketType.ackEpoch, zxid, data: encodeAckEpoch(epoch) })
  }

  ack(from: number, zxid: number): void {
    this.packet(from, { type: PacketType.ack, zxid })
  }

  stored(what: 'acceptedEpoch' | 'currentEpoch', epoch: number): void {
    this.step({ type: 'stored', what, epoch })
  }

  pong(from: number): void {
    this.packet(from, { type: PacketType.ping, data: new Uint8Array(0) })
  }

  ticks(count: number): void {
    for (let i = 0; i < count * 2; i++) this.step({ type: 'halfTick' })
  }

  /** Leads in epoch 1 with these followers. */
  lead(...followers: number[]): void {
    this.step({ type: 'start' })
    for (const id of followers) this.identify(id)
    this.stored('acceptedEpoch', 1)
    for (const id of followers) this.ackEpoch(id)
    this.stored('currentEpoch', 1)
    for (const id of followers) this.ack(id, makeZxid(1, 0))
    this.takeLog()
  }

  /** A learner that comes while there is a leader. */
  join(connection: number, zxid = 0, given: { observer?: boolean } = {}): void {
    this.identify(connection, 1, given)
    this.ackEpoch(connection, zxid, 1)
    this.ack(connection, makeZxid(1, 0))
  }

  propose(counter: number): void {
    const zxid = makeZxid(1, counter)
    this.leader.propose(zxid, makeTxn(zxid, counter).payload)
  }
}

function describe(work: LeaderWork): string {
  switch (work.do) {
    case 'send':
      return `${packetName(work.packet.type)} ${hex(work.packet.zxid)} to ${work.to}`
    case 'sync': {
      const { plan } = work
      const entries = plan.entries.map(({ zxid }) => ` ${hex(zxid)}`).join('')
      return `${plan.how}${plan.how === 'snap' ? '' : ` ${hex(plan.zxid)}`}${entries} to ${work.to}`
    }
    case 'drop':
      return `drop ${work.connection}: ${work.reason}`
    case 'store':
      return `store ${work.what} ${work.epoch}`
    case 'lead':
      return `lead ${work.epoch} from ${hex(work.zxid)}`
    case 'stop': {
      const { reason, designated, successor } = work.because
      const next = designated ?? successor
      return `stop: ${reason}${next === undefined ? '' : ` (${next})`}`
    }
    case 'deliver':
      return `deliver ${packetName(work.packet.type)} of ${work.server}`
    case 'joined':
      return `joined ${work.server}`
    case 'left':
      return `left ${work.server}`
    case 'activate':
      return `activate ${hex(work.configuration.version)} led by ${work.designated}`
    case 'proposeConfiguration':
      return `last seen ${hex(work.configuration.version)}`
    case 'warn':
      return `warn: ${work.sentence}`
  }
}
