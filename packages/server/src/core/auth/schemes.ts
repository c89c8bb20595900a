import { ipMatcherOf, ipMatches, isIpExpression } from './ip.ts'

/** An authentication scheme in access control lists. */
export interface AclScheme {
  /** Returns whether an ACL entry may have this id. */
  isValid(id: string): boolean
  /** Returns whether the id of an entry matches an authenticated identity. */
  readonly matches: (proved: string, id: string) => boolean
  /** Returns `matches` for one id, which it has parsed. Absent where parsing saves nothing. */
  readonly matcherOf?: (id: string) => (proved: string) => boolean
  /** Whether `auth` entries include identities of this scheme. Not so for `ip`, which does not authenticate a user. */
  readonly isAuthenticated: boolean
}

/** `matches` of a scheme whose ids match only themselves. */
export const isEqualId = (proved: string, id: string): boolean => proved === id

/** Returns whether an id is `user:hash`: exactly two parts, trailing empty ones dropped. */
function isDigestId(id: string): boolean {
  const parts = id.split(':')
  while (parts.at(-1) === '') parts.pop()
  return parts.length === 2
}

export const digestScheme: AclScheme = { isValid: isDigestId, matches: isEqualId, isAuthenticated: true }
export const ipScheme: AclScheme = {
  isValid: isIpExpression,
  matches: ipMatches,
  matcherOf: ipMatcherOf,
  isAuthenticated: false,
}

/** As in ZooKeeper: names may have the form of Kerberos principals, and the user `super` matches every id. */
export const saslScheme: AclScheme = {
  isValid: (id) => !id.includes('@') || /^[^/@]*(\/[^/@]*)?@[^/@]*$/.test(id),
  matches: (proved, id) => proved === id || proved === 'super',
  isAuthenticated: true,
}
