import { Perms, type ACL } from '@zabra/protocol'

/** Whom clients say they are, with the digest of name and password that servers know them by. */
const DIGESTS: Readonly<Record<string, string>> = {
  ann: 'ann:RYbu6l5aZwqon8VWmkcGvezdzfc=',
  ben: 'ben:9CERRgyUxG6CCoSgZ/pbb0APlOE=',
}

/** What a client says to be one of them. */
export const credentialsOf = (user: string): string => `${user}:pw`

/** The user that a secret proves. */
export const userOf = (secret: string | undefined): string => secret?.split(':', 1)[0] ?? ''

/** An access list as clients of a run ask for it. */
export type AclKind = 'open' | 'mine' | 'readable' | 'ann' | 'nobody'

const entry = (perms: number, scheme: string, id: string): ACL => ({ perms, id: { scheme, id } })
const anyone = (perms: number): ACL => entry(perms, 'world', 'anyone')

const lists: Readonly<Record<AclKind, readonly ACL[]>> = {
  open: [anyone(Perms.ALL)],
  mine: [entry(Perms.ALL, 'auth', '')],
  readable: [anyone(Perms.READ), entry(Perms.ALL, 'auth', '')],
  ann: [entry(Perms.ALL, 'digest', DIGESTS['ann']!)],
  nobody: [entry(Perms.READ, 'digest', DIGESTS['ben']!), entry(Perms.CREATE | Perms.ADMIN, 'auth', '')],
}

/** The list that goes to the server. */
export const aclOf = (kind: AclKind): readonly ACL[] => lists[kind]

/** The list as a server must keep it for a user; undefined when it must refuse it, since nobody is who `auth` stands for. */
export function storedAcl(kind: AclKind, user: string): readonly string[] | undefined {
  const digest = DIGESTS[user]
  const kept: string[] = []
  for (const { perms, id } of lists[kind]) {
    if (id.scheme !== 'auth') kept.push(`${perms} ${id.scheme}:${id.id}`)
    else if (digest === undefined) return undefined
    else kept.push(`${perms} digest:${digest}`)
  }
  return kept
}

export const formatAcl = (acl: readonly ACL[] | null): string[] =>
  (acl ?? []).map(({ perms, id }) => `${perms} ${id.scheme}:${id.id}`)

/** Whether a list lets a user do one of some things. The super user may do everything. */
export function allows(acl: readonly string[], wanted: number, user: string): boolean {
  if (user === 'super') return true
  return acl.some((one) => {
    const space = one.indexOf(' ')
    if ((Number(one.slice(0, space)) & wanted) === 0) return false
    const id = one.slice(space + 1)
    return id === 'world:anyone' || (user in DIGESTS && id === `digest:${DIGESTS[user]}`)
  })
}

/** The list as it is shown to a user: who may not change it does not see the digests of passwords. */
export function redactedAcl(acl: readonly string[], user: string): readonly string[] {
  if (allows(acl, Perms.ADMIN, user)) return acl
  return acl.map((one) => one.replace(/( digest:[^:]*):.*$/, '$1:x'))
}
