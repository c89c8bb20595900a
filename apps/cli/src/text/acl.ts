import type { ACL } from '@zabra/client'
import { formatPerms, Perms, type ACL as StoredACL } from '@zabra/protocol'
import { UsageError } from '../exit-codes.ts'

const bits: ReadonlyMap<string, number> = new Map([
  ['c', Perms.CREATE],
  ['d', Perms.DELETE],
  ['r', Perms.READ],
  ['w', Perms.WRITE],
  ['a', Perms.ADMIN],
])

/** Parses permission letters such as `cdrwa`; returns undefined for an unknown letter. */
export function parsePerms(letters: string): number | undefined {
  let perms = 0
  for (const letter of letters) {
    const bit = bits.get(letter)
    if (bit === undefined) return undefined
    perms |= bit
  }
  return perms
}

/** Formats an access list on one line for `parseAcl`: `world:anyone:r,digest:ada:…:cdrwa`. */
export const formatAcl = (acl: readonly ACL[]): string => acl.map(formatEntry).join(',')

/** Formats one entry of an access list. */
export const formatEntry = ({ perms, scheme, id }: ACL): string => `${scheme}:${id}:${formatPerms(perms)}`

/** Returns an access list of a snapshot or a log in the form of the client. */
export const fromStoredAcl = (acl: readonly StoredACL[]): ACL[] =>
  acl.map(({ perms, id }) => ({ perms, scheme: id.scheme ?? '', id: id.id ?? '' }))

/** Whether two access lists have the same entries in the same order. */
export const aclEquals = (a: readonly ACL[], b: readonly ACL[]): boolean =>
  a.length === b.length &&
  a.every(({ perms, scheme, id }, i) => {
    const other = b[i]!
    return perms === other.perms && scheme === other.scheme && id === other.id
  })

/** Formats an access list as ZooKeeper's shell does, two lines per entry. */
export const aclLines = (acl: readonly ACL[]): string[] =>
  acl.flatMap(({ perms, scheme, id }) => [`'${scheme},'${id}`, `: ${formatPerms(perms)}`])

/** Throws for an id without the hash of a password: no password would ever match it. Does not show a password given in its place. */
function checkDigestId(id: string): void {
  const colon = id.indexOf(':')
  if (/^[A-Za-z\d+/]{26,}={0,2}$/.test(id.slice(colon + 1)) && colon > 0) return
  const user = colon < 0 ? id : id.slice(0, colon)
  throw new UsageError(
    `Expected the hash of a password, as in digest:${user || 'USER'}:HASH:cdrwa, got ${colon < 0 ? 'none' : 'something else'}. zabra digest ${user || 'USER'} prints ${user || 'USER'}:HASH.`,
  )
}

/** Parses `scheme:id:perms,…`. An id may contain colons and commas, as IP addresses and certificate names do. */
export function parseAcl(text: string): ACL[] {
  const entry = /(\w+):(.*?):([cdrwa]+)(?:,(?=\w+:)|$)/y
  const acl: ACL[] = []
  while (entry.lastIndex < text.length) {
    const at = entry.lastIndex
    const match = entry.exec(text)
    if (match === null)
      throw new UsageError(
        `Expected an access list as scheme:id:perms,… with perms of the letters c, d, r, w and a, got "${text.slice(at)}". For example, world:anyone:r lets every client read.`,
      )
    const [, scheme = '', id = '', perms = ''] = match
    if (scheme === 'digest') checkDigestId(id)
    acl.push({ perms: parsePerms(perms)!, scheme, id })
  }
  if (acl.length === 0)
    throw new UsageError(
      'Expected an access list as scheme:id:perms,…, got nothing. Give at least one entry.',
    )
  return acl
}
