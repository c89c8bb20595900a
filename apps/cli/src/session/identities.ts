import { digestId, Perms, type ACL, type Client } from '@zabra/client'

/** The identities of this client. */
export interface Identities {
  /** Whether the client is the superuser, who bypasses access lists. */
  readonly isSuper: boolean
  /** IP addresses, in the format of access lists. */
  readonly addresses: readonly string[]
  /** Every identity as `scheme:id`, in the format of access lists. */
  readonly names: ReadonlySet<string>
}

/** Asks the server for the identities. For digests it returns only the user name, so their ids are computed from `auth`. */
export async function readIdentities(
  zk: Client,
  auth: readonly { readonly scheme: string; readonly credential: string }[],
): Promise<Identities> {
  const identities = await zk.whoAmI()
  const digests = auth.filter(({ scheme }) => scheme === 'digest').map(({ credential }) => credential)
  return {
    isSuper: identities.some(({ scheme }) => scheme === 'super'),
    addresses: identities.filter(({ scheme }) => scheme === 'ip').map(({ id }) => id),
    names: new Set([
      'world:anyone',
      ...identities.filter(({ scheme }) => scheme !== 'digest').map(({ scheme, id }) => `${scheme}:${id}`),
      ...digests.map((credential) => `digest:${digestId(credential)}`),
    ]),
  }
}

/** Whether an access list is known to let these identities create and delete children. */
export function canChangeChildren(acl: readonly ACL[], { isSuper, names }: Identities): boolean {
  if (isSuper) return true
  let granted = 0
  for (const { perms, scheme, id } of acl) if (names.has(`${scheme}:${id}`)) granted |= perms
  const needed = Perms.CREATE | Perms.DELETE
  return (granted & needed) === needed
}
