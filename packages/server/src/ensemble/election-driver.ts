import { ProtocolError } from '@zabra/protocol'
import type { Cancel, Clock, Logger } from '@zabra/runtime'
import {
  decodeNotification,
  encodeNotification,
  notificationBytes,
  type Election,
  type ElectionInput,
  type ElectionTimer,
  type ElectionWork,
} from '../core/election/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import {
  decodeMemberExtension,
  encodeMemberExtension,
  withExtension,
  type MemberExtension,
} from '../core/zab/index.ts'
import { LimitedLog } from './limited-log.ts'
import { Mailbox } from './mailbox.ts'

/** Keeps votes of another ensemble out. */
export interface ElectionCluster {
  extension(): MemberExtension
  /** Returns why the votes of a member do not count, by what it says of itself; undefined when they do. */
  refusalOf(from: ServerId, said: MemberExtension | undefined, isAuthenticated: boolean): string | undefined
}

export interface ElectionDriverOptions {
  readonly election: Election
  readonly clock: Clock
  readonly logger: Logger
  /** The connections to the other servers, whose messages go to `receive`. */
  readonly connections: { send(to: ServerId, payload: Uint8Array): void; connect(to: ServerId): void }
  /** What this member says of itself, and which others it listens to; absent where it listens to all. */
  readonly cluster?: ElectionCluster
  /** Called when an election is decided. */
  readonly elected: (work: Extract<ElectionWork, { do: 'decide' }>) => void
  /** Called with a newer configuration, which is to be activated durably. With `restart` the caller then starts the election again. */
  readonly configure: (work: Extract<ElectionWork, { do: 'configure' }>) => void
  /** Called with an error that no other server has caused. */
  readonly failed: (error: unknown) => void
}

/** Performs the work of an election: messages over the connections, timers on the clock. */
export class ElectionDriver {
  readonly #options: ElectionDriverOptions
  readonly #timers = new Map<ElectionTimer, Cancel>()
  readonly #mailbox: Mailbox<ElectionInput, ElectionWork>
  readonly #log: LimitedLog

  constructor(options: ElectionDriverOptions) {
    this.#options = options
    this.#log = new LimitedLog(options.clock, options.logger)
    this.#mailbox = new Mailbox({
      machine: options.election,
      perform: (work) => this.#perform(work),
      failed: options.failed,
    })
  }

  /** Queues an input for the election. */
  step(input: ElectionInput): void {
    this.#mailbox.post(input)
  }

  /**
   * Takes a message of a server, which has proved its id if `isAuthenticated` is set. One that cannot be decoded is logged and
   * dropped.
   */
  receive(from: ServerId, payload: Uint8Array, isAuthenticated: boolean): void {
    try {
      const notice = decodeMemberExtension(payload)
      const said = notice ?? decodeMemberExtension(payload, notificationBytes(payload))
      const { cluster } = this.#options
      const reason = cluster?.refusalOf(from, said, isAuthenticated)
      if (reason !== undefined) {
        const message = 'The votes of another server do not count'
        if (notice === undefined)
          this.#options.connections.send(from, encodeMemberExtension(cluster!.extension()))
        return this.#log.log('warn', `${message} ${from}`, { peer: from, reason }, message)
      }
      if (notice !== undefined) return
      const notification = decodeNotification(payload)
      const isForeign = said === undefined
      this.step({ type: 'notification', from, notification, isAuthenticated, isForeign })
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const facts = { peer: from, bytes: payload.length, reason: error.message }
      const message = 'A message of another server cannot be read and was dropped'
      this.#log.log('warn', `${message} ${from}`, facts, message)
    }
  }

  /** Stops the election and its timers. */
  close(): void {
    this.#mailbox.stop()
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  #perform(work: ElectionWork): void {
    const { connections, elected, configure } = this.#options
    switch (work.do) {
      case 'send':
        return this.#send(work)
      case 'connect':
        for (const id of work.to) connections.connect(id)
        return
      case 'start':
        return this.#startTimer(work.timer, work.afterMs)
      case 'stop':
        this.#timers.get(work.timer)?.()
        this.#timers.delete(work.timer)
        return
      case 'decide':
        return elected(work)
      case 'configure':
        return configure(work)
      case 'warn':
        return this.#log.log(
          'warn',
          `${work.message} ${JSON.stringify(work.context)}`,
          work.context,
          work.message,
        )
    }
  }

  #send({ to, state, vote, configuration }: Extract<ElectionWork, { do: 'send' }>): void {
    const { connections, cluster } = this.#options
    const payload = encodeNotification(state, vote, configuration)
    connections.send(to, cluster === undefined ? payload : withExtension(payload, cluster.extension()))
  }

  #startTimer(timer: ElectionTimer, afterMs: number): void {
    this.#timers.get(timer)?.()
    const cancel = this.#options.clock.after(afterMs, `election ${timer}`, () => {
      this.#timers.delete(timer)
      this.step({ type: 'timeout', timer })
    })
    this.#timers.set(timer, cancel)
  }
}
