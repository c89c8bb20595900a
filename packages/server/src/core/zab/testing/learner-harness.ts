import { makeZxid } from '@zabra/protocol'
import { Learner } from '../learner.ts'
import type { LearnerInput, LearnerOptions, LearnerWork } from '../learner-types.ts'
import { packetName, PacketType } from '../packets.ts'
import { encodeLeaderInfo } from '../payloads.ts'
import { makeTxn } from './txn.ts'

const hex = (zxid: number): string => (zxid < 0 ? String(zxid) : zxid.toString(16))

/** A learner whose every word is written down. */
export class LearnerHarness {
  readonly learner: Learner
  #lines: string[] = []

  constructor(given: Partial<LearnerOptions> = {}) {
    const options: LearnerOptions = {
      self: 2,
      observer: false,
      acceptedEpoch: 0,
      currentEpoch: 0,
      lastZxid: 0,
      configVersion: 0,
      initLimit: 10,
      syncLimit: 5,
      ...given,
    }
    this.learner = new Learner(options, {
      append: (zxid) => this.#lines.push(`log ${hex(zxid)}`),
      commit: (zxid) => this.#lines.push(`apply ${hex(zxid)}`),
      ack: (zxid) => this.#lines.push(`ACK ${hex(zxid)}`),
    })
  }

  takeLog(): string[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  step(...inputs: LearnerInput[]): void {
    for (const input of inputs) this.#note(this.learner.step(input))
  }

  receive(type: keyof typeof PacketType, zxid = -1, data: Uint8Array | null = null): void {
    this.#note(this.learner.receive(PacketType[type], zxid, data))
  }

  propose(...zxids: number[]): void {
    for (const zxid of zxids) this.receive('proposal', zxid, makeTxn(zxid, 1).payload)
  }

  commit(...zxids: number[]): void {
    for (const zxid of zxids) this.receive('commit', zxid)
  }

  inform(...zxids: number[]): void {
    for (const zxid of zxids) this.receive('inform', zxid, makeTxn(zxid, 1).payload)
  }

  /** Knows the leader of this epoch and waits for history. */
  acceptEpoch(epoch: number): void {
    this.step({ type: 'connected' })
    this.receive('leaderInfo', makeZxid(epoch, 0), encodeLeaderInfo())
    this.step({ type: 'stored', what: 'acceptedEpoch', epoch })
    this.takeLog()
  }

  /** Has all of history on disk and has said so. */
  ackNewLeader(epoch: number): void {
    this.receive('newLeader', makeZxid(epoch, 0))
    this.step({ type: 'hardened' }, { type: 'stored', what: 'currentEpoch', epoch })
  }

  /** Is in step, with nothing to bring up to date. */
  follow(epoch: number): void {
    this.acceptEpoch(epoch)
    this.receive('diff')
    this.ackNewLeader(epoch)
    this.receive('upToDate')
    this.takeLog()
  }

  ticks(count: number): void {
    for (let i = 0; i < count * 2; i++) this.step({ type: 'halfTick' })
  }

  #note(works: readonly LearnerWork[]): void {
    for (const work of works) this.#lines.push(describe(work))
  }
}

function describe(work: LearnerWork): string {
  switch (work.do) {
    case 'send': {
      const { type, zxid, data } = work.packet
      const epoch =
        type === PacketType.ackEpoch ? ` ${new DataView(data!.buffer, data!.byteOffset).getInt32(0)}` : ''
      return `${packetName(type)} ${hex(zxid)}${epoch}`
    }
    case 'store':
      return `store ${work.what} ${work.epoch}`
    case 'truncate':
      return `truncate ${hex(work.to)}`
    case 'install':
      return `install ${hex(work.zxid)}`
    case 'append':
      return `log ${hex(work.zxid)}`
    case 'commit':
      return `apply ${hex(work.zxid)}`
    case 'proposeConfiguration':
      return `last seen ${hex(work.configuration.version)}`
    case 'activate':
      return `activate ${hex(work.configuration.version)}${work.designated === undefined ? '' : ` led by ${work.designated}`}`
    case 'serve':
      return `serve ${work.epoch}`
    case 'pong':
      return `pong ${hex(work.zxid)}`
    case 'deliver':
      return `deliver ${packetName(work.packet.type)}`
    case 'harden':
      return 'harden'
    case 'discard':
    case 'leave':
      return `${work.do}: ${work.reason}`
    case 'warn':
      return `warn: ${work.sentence}`
  }
}
