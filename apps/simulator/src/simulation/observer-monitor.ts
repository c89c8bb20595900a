import { formatZxid } from '../history/records.ts'
import type { HostState } from '@zabra/testing'
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
  readonly #options: ObserverMonitorOptions
  readonly #master: HostState
  readonly #learner: HostState
  #lastInform = 0

  constructor(options: ObserverMonitorOptions, master: HostState, learner: HostState) {
    this.#options = options
    this.#master = master
    this.#learner = learner
  }

  receive({ type, zxid }: QuorumPacket): void {
    const { count } = this.#options
    switch (type) {
      case PacketType.COMMIT:
        return this.#checkCommitted(zxid)
      case PacketType.INFORM:
      case PacketType.INFORMANDACTIVATE:
        if (zxid <= this.#lastInform)
          this.#report(`informed of ${formatZxid(zxid)} after ${formatZxid(this.#lastInform)}`)
        this.#lastInform = zxid
        count(type === PacketType.INFORM ? 'informs by followers' : 'reconfigurations by followers')
        return this.#checkCommitted(zxid)
      case PacketType.UPTODATE:
        return count('observers synced by followers')
      default:
    }
  }

  #checkCommitted(zxid: number): void {
    if (!this.#options.committed.has(zxid))
      this.#report(`committed ${formatZxid(zxid)}, which no leader had committed`)
  }

  #report(what: string): void {
    this.#options.report(`${this.#master.name} to its observer ${this.#learner.name}: ${what}`)
  }
}
