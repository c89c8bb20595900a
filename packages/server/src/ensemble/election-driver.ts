import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Clock, Logger } from '@zabra/runtime'
import {
  decodeNotification,
  encodeNotification,
  type Election,
  type ElectionInput,
  type ElectionTimer,
  type ElectionWork,
} from '../core/election/index.ts'
import type { ServerId } from '../core/quorum/index.ts'

type Decided = Extract<ElectionWork, { do: 'decide' }>
type Configure = Extract<ElectionWork, { do: 'configure' }>

/** What an election needs to happen in the world. */
export interface ElectionDriverOptions {
  readonly election: Election
  readonly clock: Clock
  readonly logger: Logger
  /** The connections to the other servers; messages that come over them go to `heard`. */
  readonly connections: { send(to: ServerId, payload: Uint8Array): void; connect(to: ServerId): void }
  /** The election is over. */
  readonly elected: (work: Decided) => void
  /** A newer configuration is to be brought into force, durably; with `restart`, then look again. */
  readonly configure: (work: Configure) => void
}

/** Does what an election asks for: messages over the links, timers on the clock. */
export class ElectionDriver {
  readonly #options: ElectionDriverOptions
  readonly #timers = new Map<ElectionTimer, Cancel>()
  /** Inputs that came while another one was being worked on, the host's answers to a decision among them. */
  readonly #inputs: ElectionInput[] = []
  #busy = false
  #closed = false

  constructor(options: ElectionDriverOptions) {
    this.#options = options
  }

  /** Tells the election what happened. One input is done with before the next one begins. */
  step(input: ElectionInput): void {
    this.#inputs.push(input)
    if (this.#busy) return
    this.#busy = true
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift())
        for (const work of this.#closed ? [] : this.#options.election.step(next)) this.#do(work)
    } finally {
      this.#busy = false
    }
  }

  /** A message came from a server. One that cannot be read changes nothing. */
  receive(from: ServerId, payload: Uint8Array): void {
    try {
      this.step({ type: 'notification', from, notification: decodeNotification(payload) })
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const facts = { peer: from, bytes: payload.length, reason: error.message }
      this.#options.logger.warn(facts, 'A message of another server cannot be read and was dropped')
    }
  }

  /** Stops all timers; nothing happens any more. */
  close(): void {
    this.#closed = true
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  #do(work: ElectionWork): void {
    const { connections: links, logger } = this.#options
    switch (work.do) {
      case 'send':
        return links.send(work.to, encodeNotification(work.state, work.vote, work.configuration))
      case 'connect':
        for (const id of work.to) links.connect(id)
        return
      case 'start':
        return this.#start(work.timer, work.afterMs)
      case 'stop':
        this.#timers.get(work.timer)?.()
        this.#timers.delete(work.timer)
        return
      case 'decide':
        return this.#options.elected(work)
      case 'configure':
        return this.#options.configure(work)
      case 'warn':
        return logger.warn(work.context, work.message)
    }
  }

  #start(timer: ElectionTimer, afterMs: number): void {
    this.#timers.get(timer)?.()
    const cancel = this.#options.clock.after(afterMs, `election ${timer}`, () => {
      this.#timers.delete(timer)
      this.step({ type: 'timeout', timer })
    })
    this.#timers.set(timer, cancel)
  }
}
