import type { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { DurableLog } from './durable-log.ts'
import { ORACLE_FILE } from './settings.ts'

/** How long a server takes to read that it may not lead alone any more, also with a slow clock, in milliseconds. */
export const READ_WITHIN_MS = 2000

/** What the oracle of two voters says to the survivor, the one that may lead alone. The other one may never. */
export class OracleFile {
  readonly survivor: SimulatedServer
  readonly #world: SimulatedWorld
  readonly #log: DurableLog
  /** Number of the last answer. */
  #answers = 0
  #mayLeadAlone = false
  /** The last transaction on the survivor's disk when it had last been allowed to lead alone. */
  #lastAlone = 0

  constructor(world: SimulatedWorld, survivor: SimulatedServer) {
    this.#world = world
    this.survivor = survivor
    this.#log = new DurableLog(survivor.host.disk)
  }

  /** Lets the survivor lead alone. */
  allow(): void {
    this.#answer('1')
    this.#mayLeadAlone = true
  }

  /** Lets the survivor lead alone no more. It counts as alone until it must have read this. */
  forbid(): void {
    if (!this.#mayLeadAlone) return
    this.#answer('0')
    this.#settle(this.#answers)
  }

  /** Returns whether the survivor alone decides about a transaction. */
  decides(zxid: number): boolean {
    return this.#mayLeadAlone || zxid <= this.#lastAlone
  }

  #answer(text: string): void {
    this.#answers++
    this.survivor.host.disk.install(ORACLE_FILE, new TextEncoder().encode(text))
  }

  #settle(answer: number): void {
    this.#world.schedule(READ_WITHIN_MS, undefined, 'oracle', () => {
      if (answer !== this.#answers) return
      // A paused server reads nothing.
      if (this.survivor.host.isPaused) return this.#settle(answer)
      this.#mayLeadAlone = false
      for (const zxid of this.#log.zxids()) this.#lastAlone = Math.max(this.#lastAlone, zxid)
    })
  }
}
