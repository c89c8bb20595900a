import { OPEN_ACL_UNSAFE, Perms, type ACL } from '@zabra/protocol'
import type { Identity } from '../types.ts'
import { ipMatches, isIpExpression } from './ip.ts'

/** A scheme, as ACL lists see it. */
export interface AclScheme {
  /** Whether an id can stand in a list. */
  isValid(id: string): boolean
  /** Whether a proved identity is meant by the id of an entry. */
  matches(proved: string, id: string): boolean
  /** Whether an identity of this scheme says who the client is, so that `auth` entries stand for it. */
  readonly isAuthenticated: boolean
}

const equal = (proved: string, id: string): boolean => proved === id

/** Exactly two parts once trailing empty ones are dropped: `user:hash`. */
function isDigestId(id: string): boolean {
  const parts = id.split(':')
  while (parts.length > 0 && parts.at(-1) === '') parts.pop()
  return parts.length === 2
}

export const digestScheme: AclScheme = { isValid: isDigestId, matches: equal, isAuthenticated: true }
export const ipScheme: AclScheme = { isValid: isIpExpression, matches: ipMatches, isAuthenticated: false }

/** As ZooKeeper has it, names may look like those of Kerberos, and whoever is called `super` passes for everyone. */
export const saslScheme: AclScheme = {
  isValid: (id) => !id.includes('@') || /^[^/@]*(\/[^/@]*)?@[^/@]*$/.test(id),
  matches: (proved, id) => proved === id || proved === 'super',
  isAuthenticated: true,
}

/** A list that cannot be stored: INVALIDACL, or MARSHALLINGERROR where the reference stumbles over a null id. */
export type AclError = 'invalid' | 'null id'

/** Who may do what, by the schemes that a server knows. */
export class AclRules {
  readonly #schemes: ReadonlyMap<string, AclScheme>
  readonly #skip: boolean

  constructor(options: { readonly skipACL: boolean; readonly schemes?: ReadonlyMap<string, AclScheme> }) {
    this.#skip = options.skipACL
    this.#schemes = new Map([['digest', digestScheme], ['ip', ipScheme], ...(options.schemes ?? [])])
  }

  /** Whether some identity has one of the wanted permissions (`ZooKeeperServer.checkACL`). */
  allows(acl: readonly ACL[], wanted: number, identities: readonly Identity[]): boolean {
    // Most nodes have the first.
    if (acl === OPEN_ACL_UNSAFE || this.#skip || acl.length === 0) return true
    for (const { perms, id } of acl) {
      if ((perms & wanted) !== 0 && id.scheme === 'world' && id.id === 'anyone') return true
    }
    for (const { scheme } of identities) if (scheme === 'super') return true
    for (const { perms, id } of acl) {
      if ((perms & wanted) === 0) continue
      const scheme = this.#schemes.get(id.scheme ?? '')
      if (scheme === undefined) continue
      for (const identity of identities) {
        if (identity.scheme === id.scheme && scheme.matches(identity.id, id.id ?? '')) return true
      }
    }
    return false
  }

  /**
   * The list as it is stored: without duplicates, `auth` entries replaced by the identities that they stand for
   * (`PrepRequestProcessor.fixupACL`).
   */
  accept(acl: readonly ACL[] | null, identities: readonly Identity[]): readonly ACL[] | AclError {
    if (acl === null || acl.length === 0) return 'invalid'
    if (acl === OPEN_ACL_UNSAFE) return acl
    const accepted: ACL[] = []
    for (const entry of withoutDuplicates(acl)) {
      const { scheme, id } = entry.id
      if (scheme === null) return 'invalid'
      if (scheme === 'auth') {
        const proved = this.#authenticated(identities)
        if (proved.length === 0) return 'invalid'
        for (const identity of proved) accepted.push({ perms: entry.perms, id: identity })
        continue
      }
      const known = this.#schemes.get(scheme)
      if (scheme !== 'world' && known === undefined) return 'invalid'
      if (id === null) return 'null id'
      if (scheme === 'world' ? id !== 'anyone' : !known!.isValid(id)) return 'invalid'
      accepted.push(entry)
    }
    return accepted
  }

  #authenticated(identities: readonly Identity[]): Identity[] {
    return identities.filter(({ scheme }) => this.#schemes.get(scheme)?.isAuthenticated === true)
  }
}

function withoutDuplicates(acl: readonly ACL[]): readonly ACL[] {
  if (acl.length < 2) return acl
  const seen = new Set<string>()
  return acl.filter(({ perms, id }) => {
    const key = JSON.stringify([perms, id.scheme, id.id])
    return seen.has(key) ? false : seen.add(key)
  })
}

/** The list as one may see it who can read the node but not administer it: hashes of passwords are hidden. */
export function maskDigests(acl: readonly ACL[]): readonly ACL[] {
  return acl.map((entry) => {
    const { scheme, id } = entry.id
    const colon = scheme === 'digest' ? (id ?? '').indexOf(':') : -1
    return colon === -1 ? entry : { perms: entry.perms, id: { scheme, id: `${id!.slice(0, colon)}:x` } }
  })
}

/** Whether getACL may show a list at all, and whether in full. */
export function aclVisibility(
  rules: AclRules,
  acl: readonly ACL[],
  identities: readonly Identity[],
): 'none' | 'masked' | 'full' {
  if (!rules.allows(acl, Perms.READ | Perms.ADMIN, identities)) return 'none'
  return rules.allows(acl, Perms.ADMIN, identities) ? 'full' : 'masked'
}
