import { makeZxid } from '@zabra/protocol'
import { Learner } from '../learner.ts'
import type { LearnerInput, LearnerOptions, LearnerWork } from '../learner-types.ts'
import { packetName, PacketType } from '../packets.ts'
import { encodeLeaderInfo } from '../payloads.ts'
import { makeTxn } from './txn.ts'
import { test } from 'vitest'

const hex = (zxid: number): string => (zxid < 0 ? String(zxid) : zxid.toString(16))

/** Steps a learner and describes its work as text. */
export class LearnerHarness {
  readonly learner: Learner

  constructor(options: Partial<LearnerOptions> = {}) {
    this.learner = new Learner({
      self: 2,
      observer: false,
      acceptedEpoch: 0,
      currentEpoch: 0,
      lastZxid: 0,
      configVersion: 0,
      initLimit: 10,
      syncLimit: 5,
      ...options,
    })
  }

  /** Returns the work since the last call, or its lines that begin with `start`. */
  takeLog(start = ''): string[] {
    const { learner } = this
    const log: string[] = []
    for (let work = learner.nextWork(); work !== undefined; work = learner.nextWork())
      log.push(...describeWork(work))
    return log.filter((line) => line.startsWith(start))
  }

  step(...inputs: LearnerInput[]): this {
    for (const input of inputs) this.learner.step(input)
    return this
  }

  receive(type: keyof typeof PacketType, zxid = -1, data: Uint8Array | null = null): this {
    this.learner.receive(PacketType[type], zxid, data)
    return this
  }

  markDurable(zxid: number): this {
    this.learner.markDurable(zxid)
    return this
  }

  propose(...zxids: number[]): this {
    for (const zxid of zxids) this.receive('proposal', zxid, makeTxn(zxid, 1).payload)
    return this
  }

  commit(...zxids: number[]): this {
    for (const zxid of zxids) this.receive('commit', zxid)
    return this
  }

  inform(...zxids: number[]): this {
    for (const zxid of zxids) this.receive('inform', zxid, makeTxn(zxid, 1).payload)
    return this
  }

  /** Connects, and accepts this epoch. */
  acceptEpoch(epoch: number): this {
    this.step({ type: 'connected' })
    this.receive('leaderInfo', makeZxid(epoch, 0), encodeLeaderInfo())
    this.step({ type: 'stored', what: 'acceptedEpoch', epoch })
    this.takeLog()
    return this
  }

  /** Receives NEWLEADER, and acknowledges it. */
  ackNewLeader(epoch: number): this {
    this.receive('newLeader', makeZxid(epoch, 0))
    this.step({ type: 'flushed' }, { type: 'stored', what: 'currentEpoch', epoch })
    return this
  }

  /** Gets synced by an empty DIFF. */
  follow(epoch: number): this {
    this.acceptEpoch(epoch)
    this.receive('diff')
    this.ackNewLeader(epoch)
    this.receive('upToDate')
    this.takeLog()
    return this
  }

  ticks(count: number): this {
    for (let i = 0; i < count * 2; i++) this.step({ type: 'halfTick' })
    return this
  }
}

function describeWork(work: LearnerWork): string[] {
  switch (work.do) {
    case 'send': {
      const { type, zxid, data } = work.packet
      const epoch =
        type === PacketType.ackEpoch ? ` ${new DataView(data!.buffer, data!.byteOffset).getInt32(0)}` : ''
      return [`${packetName(type)} ${hex(zxid)}${epoch}`]
    }
    case 'store':
      return [`store ${work.what} ${work.epoch}`]
    case 'truncate':
      return [`truncate ${hex(work.to)}`]
    case 'installSnapshot':
      return [`install ${hex(work.zxid)}`]
    case 'append':
      return work.payloads.map((_, i) => `log ${hex(work.first + i)}`)
    case 'commit':
      return work.payloads.map((_, i) => `apply ${hex(work.first + i)}`)
    case 'ack':
      return Array.from({ length: work.last - work.first + 1 }, (_, i) => `ACK ${hex(work.first + i)}`)
    case 'proposeConfiguration':
      return [`last seen ${hex(work.configuration.version)}`]
    case 'activate': {
      const { configuration, designated } = work
      return [
        `activate ${hex(configuration.version)}${designated === undefined ? '' : ` led by ${designated}`}`,
      ]
    }
    case 'serve':
      return [`serve ${work.epoch}`]
    case 'answerPing':
      return [`pong ${hex(work.zxid)}`]
    case 'deliver':
      return [`deliver ${packetName(work.packet.type)}`]
    case 'flush':
      return ['flush']
    case 'requestFullSync':
      return [`request full sync: ${work.reason}`]
    case 'leave':
      return [`leave: ${work.reason}`]
    case 'warn':
      return [`warn: ${work.message}`]
  }
}

/** A test with a learner of its own. */
export const it = test.extend('harness', () => new LearnerHarness())
