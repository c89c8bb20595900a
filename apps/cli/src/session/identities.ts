import { digestId, Perms, type ACL } from '@zabra/protocol'
import type { ZooKeeper } from './zookeeper.ts'

/** Who this client is to the server. */
export interface Identities {
  /** Nothing is forbidden to it. */
  readonly isSuper: boolean
  /** Its addresses, as access lists name them. */
  readonly addresses: readonly string[]
  /** `scheme:id` of each, as access lists name them. */
  readonly names: ReadonlySet<string>
}

/** Asks the server who this client is; what was proved by digest is told by name only, so it comes from `auth`. */
export async function readIdentities(
  zk: ZooKeeper,
  auth: readonly { readonly scheme: string; readonly credential: string }[],
): Promise<Identities> {
  const told = await zk.whoAmI()
  const digests = auth.filter(({ scheme }) => scheme === 'digest').map(({ credential }) => credential)
  return {
    isSuper: told.some(({ scheme }) => scheme === 'super'),
    addresses: told.filter(({ scheme }) => scheme === 'ip').map(({ user }) => user),
    names: new Set([
      'world:anyone',
      ...told.filter(({ scheme }) => scheme !== 'digest').map(({ scheme, user }) => `${scheme}:${user}`),
      ...digests.map((credential) => `digest:${digestId(credential)}`),
    ]),
  }
}

/** Whether an access list surely lets somebody create and delete children. */
export function canChangeChildren(acl: readonly ACL[], { isSuper, names }: Identities): boolean {
  if (isSuper) return true
  let granted = 0
  for (const { perms, id } of acl) if (names.has(`${id.scheme}:${id.id}`)) granted |= perms
  const needed = Perms.CREATE | Perms.DELETE
  return (granted & needed) === needed
}
