import { formatZxid } from '../history/records.ts'
import type { Host } from '@zabra/testing'
import { PacketType, type QuorumPacket } from './quorum-packet-parser.ts'

/** The port on which followers serve observers. */
export const OBSERVER_PORT = 2191

export interface ObserverMonitorOptions {
  /** Zxids that an established leader has announced as committed. */
  readonly committed: ReadonlySet<number>
  readonly count: (name: string) => void
  readonly report: (what: string) => void
}

/** Checks what a follower sends an observer against what its leader has committed by then. */
export class ObserverMonitor {
  readonly #parts: ObserverMonitorOptions
  readonly #master: Host
  readonly #learner: Host
  #lastInform = 0

  constructor(parts: ObserverMonitorOptions, master: Host, learner: Host) {
    this.#parts = parts
    this.#master = master
    this.#learner = learner
  }

  receive({ type, zxid }: QuorumPacket): void {
    const { count } = this.#parts
    switch (type) {
      case PacketType.COMMIT:
        return this.#decided(zxid)
      case PacketType.INFORM:
      case PacketType.INFORMANDACTIVATE:
        if (zxid <= this.#lastInform)
          this.#complain(`informed of ${formatZxid(zxid)} after ${formatZxid(this.#lastInform)}`)
        this.#lastInform = zxid
        count(type === PacketType.INFORM ? 'told by followers' : 'changes told by followers')
        return this.#decided(zxid)
      case PacketType.UPTODATE:
        return count('observers brought up to date by followers')
      default:
    }
  }

  #decided(zxid: number): void {
    if (!this.#parts.committed.has(zxid))
      this.#complain(`told of ${formatZxid(zxid)}, which no leader had committed`)
  }

  #complain(what: string): void {
    this.#parts.report(`${this.#master.name} told its observer ${this.#learner.name}: it ${what}`)
  }
}
