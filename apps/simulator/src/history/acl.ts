import { Perms, type ACL } from '@zabra/protocol'

/** The identities of users, as servers store them: those with digests authenticate, others log in by SASL or have certificates. */
const IDENTITIES: Readonly<Record<string, string>> = {
  ann: 'digest:ann:RYbu6l5aZwqon8VWmkcGvezdzfc=',
  ben: 'digest:ben:9CERRgyUxG6CCoSgZ/pbb0APlOE=',
  sam: 'sasl:sam',
  sue: 'sasl:sue',
  tom: 'x509:CN=tom',
  tia: 'x509:CN=tia',
}

/** Users that log in by SASL. */
export const SASL_USERS: readonly string[] = ['sam', 'sue']
export const isSaslUser = (user: string): boolean => SASL_USERS.includes(user)
/** Users whose clients have certificates. */
export const CERTIFIED_USERS: readonly string[] = ['tom', 'tia']
export const isCertifiedUser = (user: string): boolean => CERTIFIED_USERS.includes(user)

/** Returns what whoAmI shows of a user. */
export function nameOf(user: string): string {
  if (user === '') return ''
  return isCertifiedUser(user) ? `x509:CN=${user}` : `${isSaslUser(user) ? 'sasl' : 'digest'}:${user}`
}

/** The passwords of the users that log in by SASL. */
export const PASSWORDS: Readonly<Record<string, string>> = { sam: 'pw', sue: 'pw', eve: 'pw' }

/** Returns the credentials that authenticate a user: name and password. */
export const credentialsOf = (user: string): string => `${user}:pw`

/** Returns the user that credentials belong to; the empty string without credentials. */
export const userOf = (secret: string | undefined): string => secret?.split(':', 1)[0] ?? ''

/** The kinds of access lists that clients of a run set. */
export type AclKind = 'open' | 'mine' | 'readable' | 'ann' | 'benReads'

const entry = (perms: number, scheme: string, id: string): ACL => ({ perms, id: { scheme, id } })
const anyone = (perms: number): ACL => entry(perms, 'world', 'anyone')

const digestOf = (user: string): string => IDENTITIES[user]!.slice('digest:'.length)

const lists: Readonly<Record<AclKind, readonly ACL[]>> = {
  open: [anyone(Perms.ALL)],
  mine: [entry(Perms.ALL, 'auth', '')],
  readable: [anyone(Perms.READ), entry(Perms.ALL, 'auth', '')],
  ann: [entry(Perms.ALL, 'digest', digestOf('ann'))],
  benReads: [entry(Perms.READ, 'digest', digestOf('ben')), entry(Perms.CREATE | Perms.ADMIN, 'auth', '')],
}

/** Returns the list as a client sends it. */
export const aclOf = (kind: AclKind): readonly ACL[] => lists[kind]

/**
 * Returns the list as a server must store it for a user; undefined when the server must refuse it, because `auth`
 * stands for no identity of an unauthenticated client.
 */
export function storedAcl(kind: AclKind, user: string): readonly string[] | undefined {
  const identity = IDENTITIES[user]
  const kept: string[] = []
  for (const { perms, id } of lists[kind]) {
    if (id.scheme !== 'auth') kept.push(`${perms} ${id.scheme}:${id.id}`)
    else if (identity === undefined) return undefined
    else kept.push(`${perms} ${identity}`)
  }
  return kept
}

export const formatAcl = (acl: readonly ACL[] | null): string[] =>
  (acl ?? []).map(({ perms, id }) => `${perms} ${id.scheme}:${id.id}`)

/** Returns whether a list grants a user any of the permissions. The super user has all permissions. */
export function allows(acl: readonly string[], wanted: number, user: string): boolean {
  if (user === 'super') return true
  return acl.some((one) => {
    const space = one.indexOf(' ')
    if ((Number(one.slice(0, space)) & wanted) === 0) return false
    const id = one.slice(space + 1)
    return id === 'world:anyone' || (user in IDENTITIES && id === IDENTITIES[user])
  })
}

/** Returns the list as a server shows it to a user: without ADMIN permission the password digests are masked. */
export function redactedAcl(acl: readonly string[], user: string): readonly string[] {
  if (allows(acl, Perms.ADMIN, user)) return acl
  return acl.map((one) => one.replace(/( digest:[^:]*):.*$/, '$1:x'))
}
