import { OPEN_ACL_UNSAFE, Perms, type ACL } from '@zabra/protocol'
import type { Identity } from '../types.ts'
import { CompiledAcls } from './compiled-acl.ts'
import { digestScheme, ipScheme, type AclScheme } from './schemes.ts'

/** A list with more entries is refused, as are `auth` entries that stand for more; lists in logs and snapshots are loaded. */
export const MAX_ACL_ENTRIES = 1000
/** A list is compiled where more pairs of an entry and an identity would be compared. */
const MAX_COMPARISONS = 16

/** The reason for refusing an ACL: INVALIDACL, or MARSHALLINGERROR for a null id, as in Apache ZooKeeper. */
export type AclError = 'invalid' | 'null id'

export interface AclRulesOptions {
  readonly skipACL: boolean
  /** Beside `digest` and `ip`. */
  readonly schemes?: ReadonlyMap<string, AclScheme>
  /** Called when a check has compiled a long list. */
  readonly onLongList?: () => void
}

/** Checks permissions, with the schemes that a server supports. */
export class AclRules {
  readonly #schemes: ReadonlyMap<string, AclScheme>
  readonly #isSkipped: boolean
  readonly #compiled: CompiledAcls

  constructor(options: AclRulesOptions) {
    this.#isSkipped = options.skipACL
    this.#schemes = new Map([['digest', digestScheme], ['ip', ipScheme], ...(options.schemes ?? [])])
    this.#compiled = new CompiledAcls(this.#schemes, options.onLongList ?? (() => {}))
  }

  /** Entries of long lists that were looked at, ever: two thousand take a millisecond. */
  get entriesVisited(): number {
    return this.#compiled.entriesVisited
  }

  /** Returns whether some identity has one of the wanted permissions (`ZooKeeperServer.checkACL`). */
  allows(acl: readonly ACL[], wanted: number, identities: readonly Identity[]): boolean {
    // Most nodes have the open list.
    if (acl === OPEN_ACL_UNSAFE || this.#isSkipped || acl.length === 0) return true
    if (acl.length * (1 + identities.length) > MAX_COMPARISONS)
      return (this.#compiled.grantedTo(acl, identities) & wanted) !== 0
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
   * Returns the list to store: without duplicates, with `auth` entries replaced by the authenticated identities
   * (`PrepRequestProcessor.fixupACL`). Returns an error when the list is invalid.
   */
  accept(acl: readonly ACL[] | null, identities: readonly Identity[]): readonly ACL[] | AclError {
    if (acl === null || acl.length === 0 || acl.length > MAX_ACL_ENTRIES) return 'invalid'
    if (acl === OPEN_ACL_UNSAFE) return acl
    const accepted: ACL[] = []
    for (const entry of withoutDuplicates(acl)) {
      const { scheme, id } = entry.id
      if (scheme === 'auth') {
        const proved = this.#authenticated(identities)
        if (proved.length === 0) return 'invalid'
        for (const identity of proved) accepted.push({ perms: entry.perms, id: identity })
        if (accepted.length > MAX_ACL_ENTRIES) return 'invalid'
        continue
      }
      const known = this.#schemes.get(scheme ?? '')
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
  return acl.filter(({ perms, id: { scheme, id } }) => {
    const key = `${perms} ${scheme?.length ?? -1} ${scheme} ${id === null ? 0 : 1} ${id}`
    return seen.has(key) ? false : seen.add(key)
  })
}

/** Returns a list with the password hashes hidden, for clients that may read but not administer the node. */
export function maskDigests(acl: readonly ACL[]): readonly ACL[] {
  return acl.map((entry) => {
    const { scheme, id } = entry.id
    const colon = scheme === 'digest' ? (id ?? '').indexOf(':') : -1
    return colon === -1 ? entry : { perms: entry.perms, id: { scheme, id: `${id!.slice(0, colon)}:x` } }
  })
}

/** Returns how getACL may show a list: not at all, without password hashes, or in full. */
export function aclVisibility(
  rules: AclRules,
  acl: readonly ACL[],
  identities: readonly Identity[],
): 'none' | 'masked' | 'full' {
  if (!rules.allows(acl, Perms.READ | Perms.ADMIN, identities)) return 'none'
  return rules.allows(acl, Perms.ADMIN, identities) ? 'full' : 'masked'
}
