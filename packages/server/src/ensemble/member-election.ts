import { Election, electionDefaults, type ElectionInput, type ElectionWork } from '../core/election/index.ts'
import { encodeMemberExtension } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import { ElectionConnections, electionConnectionDefaults } from './election-connections.ts'
import { ElectionDriver } from './election-driver.ts'
import { Oracle } from './oracle.ts'

export type Elected = Extract<ElectionWork, { do: 'decide' }>
export type Configure = Extract<ElectionWork, { do: 'configure' }>

/** Receives the results of elections. */
export interface MemberElectionEvents {
  /** An election is decided. */
  readonly elected: (work: Elected) => void
  /** Another member has a newer configuration, which is to be activated durably. With `restart` the election begins again afterwards. */
  readonly configure: (work: Configure) => void
  /** The oracle has changed its answer. */
  readonly oracleChanged: (canLeadAlone: boolean) => void
}

/** Runs the elections of a member: the connections for votes, the election, and the oracle of an ensemble of two. */
export class MemberElection {
  readonly #connections: ElectionConnections
  readonly #driver: ElectionDriver
  readonly #oracle: Oracle | undefined

  constructor(
    context: Pick<
      MemberContext,
      | 'settings'
      | 'platform'
      | 'membership'
      | 'security'
      | 'peerAddresses'
      | 'cluster'
      | 'features'
      | 'failed'
    >,
    { elected, configure, oracleChanged }: MemberElectionEvents,
  ) {
    const { settings, platform, membership, cluster, features } = context
    this.#connections = this.#createConnections(context)
    this.#driver = new ElectionDriver({
      election: new Election({
        ...electionDefaults,
        self: membership.self,
        minNotificationIntervalMs: settings.minNotificationIntervalMs,
        maxNotificationIntervalMs: settings.maxNotificationIntervalMs,
        adoptsConfigurations: settings.reconfigEnabled,
        oracle: settings.oraclePath !== undefined,
      }),
      clock: platform.clock,
      logger: platform.logger,
      connections: this.#connections,
      cluster: {
        extension: () => cluster.extension(),
        refusalOf: (from, said, isAuthenticated) =>
          cluster.refusalOf(from, said, isAuthenticated || membership.member(from) !== undefined) ??
          features.refusalOf(from, said),
      },
      elected,
      configure,
      failed: context.failed,
    })
    if (settings.oraclePath !== undefined)
      this.#oracle = new Oracle(settings, platform, (canLeadAlone) => {
        this.#driver.step({ type: 'oracle', canLeadAlone })
        oracleChanged(canLeadAlone)
      })
  }

  /** Whether the oracle lets this member lead without the other one. */
  get canLeadAlone(): boolean {
    return this.#oracle?.canLeadAlone === true
  }

  /** Opens the election port. Rejects with a `NetworkError` when it cannot be bound. */
  listen(): Promise<void> {
    return this.#connections.start()
  }

  /** Reads the oracle for the first time, if there is one. */
  async startOracle(): Promise<void> {
    await this.#oracle?.start()
  }

  step(input: ElectionInput): void {
    this.#driver.step(input)
  }

  /** Closes connections to former members and moves the election port if its address has changed. */
  membersChanged(): void {
    this.#connections.membersChanged()
  }

  /** Stops the election and the oracle. Connections stay open until `close`. */
  stop(): void {
    this.#driver.close()
    this.#oracle?.close()
  }

  close(): Promise<void> {
    return this.#connections.close()
  }

  #createConnections(
    context: Pick<
      MemberContext,
      'settings' | 'platform' | 'membership' | 'security' | 'peerAddresses' | 'cluster'
    >,
  ): ElectionConnections {
    const { settings, platform, membership, security, peerAddresses, cluster } = context
    return new ElectionConnections({
      ...electionConnectionDefaults,
      self: membership.self,
      network: security.network,
      security,
      clock: platform.clock,
      logger: platform.logger,
      listenAddresses: () => membership.listenAddresses('electionPort', settings.quorumListenOnAllIPs),
      announcedAddresses: () => membership.addressesOf(membership.self, 'electionPort'),
      multiAddress: settings.multiAddress,
      addressesOf: (id) => membership.addressesOf(id, 'electionPort'),
      addressRefusal: (id, peer) => peerAddresses.refusal(id, peer),
      // A joining server votes before it is a member; without reconfiguration there are no joining servers.
      acceptsUnknownServers: settings.reconfigEnabled,
      connectTimeoutMs: settings.electionConnectTimeoutMs,
      helloTimeoutMs: settings.electionHelloTimeoutMs || settings.tickTimeMs * settings.syncLimit,
      bindAttempts: settings.electionPortBindRetry,
      noticeForUnknown: () => (cluster.wasRecovered ? encodeMemberExtension(cluster.extension()) : undefined),
      received: (from, payload, isAuthenticated) => this.#driver.receive(from, payload, isAuthenticated),
      reachabilityChanged: (to, reachable) =>
        this.#driver.step({ type: 'reachability', to, isReachable: reachable }),
    })
  }
}
