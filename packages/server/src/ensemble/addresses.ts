import type { MemberContext } from './context.ts'

/** Where this member listens for others: on its own addresses, or on all interfaces. */
export function listenAddresses(
  { settings, membership }: Pick<MemberContext, 'settings' | 'membership'>,
  port: 'quorumPort' | 'electionPort',
): { readonly host?: string; readonly port: number }[] {
  const own = membership.addressesOf(membership.self, port)
  if (!settings.quorumListenOnAllIPs) return [...own]
  const ports = new Set(own.map((address) => address.port))
  return [...ports].map((each) => ({ port: each }))
}
