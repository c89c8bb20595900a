// Imports sources of the server: the built program does not export its election.
import { Election, electionDefaults, type Vote } from '../../../../packages/server/src/core/election/index.ts'
import { parseConfiguration } from '../../../../packages/server/src/core/quorum/index.ts'
import { ElectionDriver } from '../../../../packages/server/src/ensemble/election-driver.ts'
import {
  ElectionConnections,
  electionConnectionDefaults,
} from '../../../../packages/server/src/ensemble/election-connections.ts'
import { silentLogger } from '../../../../packages/runtime/src/index.ts'
import { nodeClock, nodeNetwork } from '../../../../packages/runtime/src/node/index.ts'

/** The outcome of an election for one server. */
export interface Decision {
  readonly state: 'leading' | 'following' | 'observing'
  readonly vote: Vote
}

/** A server that takes part only in the elections of an ensemble, over TCP. */
export class ElectionParticipant {
  readonly #driver: ElectionDriver
  readonly #connections: ElectionConnections
  readonly #configuration: string
  #decided: (decision: Decision) => void = () => {}

  private constructor(id: number, configuration: string, electionPort: number) {
    this.#configuration = configuration
    const { members } = parseConfiguration(configuration)
    const listen = { host: '127.0.0.1', port: electionPort }
    this.#connections = new ElectionConnections({
      ...electionConnectionDefaults,
      self: id,
      network: nodeNetwork,
      clock: nodeClock,
      logger: silentLogger,
      acceptsUnknownServers: true,
      listenAddresses: () => [listen],
      announcedAddresses: () => [listen],
      addressesOf: (other) =>
        (members.get(other)?.addresses ?? []).map(({ host, electionPort: port }) => ({ host, port })),
      received: (from, payload, isAuthenticated) => this.#driver.receive(from, payload, isAuthenticated),
    })
    this.#driver = new ElectionDriver({
      election: new Election({ self: id, ...electionDefaults }),
      clock: nodeClock,
      logger: silentLogger,
      connections: this.#connections,
      elected: ({ state, vote }) => this.#decided({ state, vote }),
      configure: () => {},
      failed: (error) => {
        throw error
      },
    })
  }

  static async start(id: number, configuration: string, electionPort: number): Promise<ElectionParticipant> {
    const player = new ElectionParticipant(id, configuration, electionPort)
    await player.#connections.start()
    return player
  }

  /** Starts an election with this zxid and epoch. Resolves to its outcome. */
  elect(zxid: number, epoch: number): Promise<Decision> {
    return new Promise((resolve) => {
      this.#decided = resolve
      const active = parseConfiguration(this.#configuration)
      this.#driver.step({ type: 'look', state: { zxid, epoch, active } })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#driver.close()
    await this.#connections.close()
  }
}
