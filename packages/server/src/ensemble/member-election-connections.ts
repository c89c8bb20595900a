import type { ElectionConnectionsOptions } from './election-connections.ts'
import { ElectionConnections, electionConnectionDefaults } from './election-connections.ts'
import { listenAddresses } from './addresses.ts'
import type { MemberContext } from './context.ts'

/** The connections for votes of a member, by its settings. */
export function memberElectionConnections(
  kit: Pick<MemberContext, 'settings' | 'ports' | 'membership'>,
  {
    received: heard,
    reachabilityChanged: reach,
  }: Required<Pick<ElectionConnectionsOptions, 'received' | 'reachabilityChanged'>>,
): ElectionConnections {
  const { settings, ports, membership } = kit
  return new ElectionConnections({
    ...electionConnectionDefaults,
    self: membership.self,
    network: ports.network,
    clock: ports.clock,
    logger: ports.logger,
    listenAddresses: () => listenAddresses(kit, 'electionPort'),
    announcedAddresses: () => membership.addressesOf(membership.self, 'electionPort'),
    multiAddress: settings.multiAddress,
    addressesOf: (id) => membership.addressesOf(id, 'electionPort'),
    // Joiners ask before they are members; without changes at run time there are none.
    acceptsUnknownServers: settings.reconfigEnabled,
    connectTimeoutMs: settings.electionConnectTimeoutMs,
    helloTimeoutMs: settings.electionHelloTimeoutMs || settings.tickTimeMs * settings.syncLimit,
    bindAttempts: settings.electionPortBindRetry,
    received: heard,
    reachabilityChanged: reach,
  })
}
