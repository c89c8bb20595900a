import type { ElectionLinksOptions } from '../election/links.ts'
import { ElectionLinks, linkDefaults } from '../election/links.ts'
import { listenOn } from './addresses.ts'
import type { MemberKit } from './member-kit.ts'

/** The connections for votes of a member, by its settings. */
export function electionLinks(
  kit: Pick<MemberKit, 'settings' | 'ports' | 'membership'>,
  { heard, reach }: Required<Pick<ElectionLinksOptions, 'heard' | 'reach'>>,
): ElectionLinks {
  const { settings, ports, membership } = kit
  return new ElectionLinks({
    ...linkDefaults,
    self: membership.self,
    network: ports.network,
    clock: ports.clock,
    logger: ports.logger,
    listen: () => listenOn(kit, 'electionPort'),
    announce: () => membership.addressesOf(membership.self, 'electionPort'),
    multiAddress: settings.multiAddress,
    addressesOf: (id) => membership.addressesOf(id, 'electionPort'),
    // Joiners ask before they are members; without changes at run time there are none.
    admitsStrangers: settings.reconfigEnabled,
    connectTimeoutMs: settings.electionConnectTimeoutMs,
    helloTimeoutMs: settings.electionHelloTimeoutMs || settings.tickTimeMs * settings.syncLimit,
    bindAttempts: settings.electionPortBindRetry,
    heard,
    reach,
  })
}
