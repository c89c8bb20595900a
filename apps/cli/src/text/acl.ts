import { formatPerms, Perms, type ACL } from '@zabra/protocol'
import { UsageError } from '../exit-codes.ts'

const bits: ReadonlyMap<string, number> = new Map([
  ['c', Perms.CREATE],
  ['d', Perms.DELETE],
  ['r', Perms.READ],
  ['w', Perms.WRITE],
  ['a', Perms.ADMIN],
])

/** The bits of letters such as `cdrwa`; undefined when one of them is none. */
export function parsePerms(letters: string): number | undefined {
  let perms = 0
  for (const letter of letters) {
    const bit = bits.get(letter)
    if (bit === undefined) return undefined
    perms |= bit
  }
  return perms
}

/** An access list in one line: `world:anyone:r,digest:ada:…:cdrwa`. `parseAcl` reads it. */
export const formatAcl = (acl: readonly ACL[]): string => acl.map(formatEntry).join(',')

/** One entry of an access list. */
export const formatEntry = ({ perms, id }: ACL): string =>
  `${id.scheme ?? ''}:${id.id ?? ''}:${formatPerms(perms)}`

/** The two lines an entry that ZooKeeper's shell prints. */
export const aclLines = (acl: readonly ACL[]): string[] =>
  acl.flatMap(({ perms, id }) => [`'${id.scheme},'${id.id}`, `: ${formatPerms(perms)}`])

/** Reads `scheme:id:perms,…`. An id may hold colons and commas, as addresses and certificate names do. */
export function parseAcl(text: string): ACL[] {
  const entry = /(\w+):(.*?):([cdrwa]+)(?:,(?=\w+:)|$)/y
  const acl: ACL[] = []
  while (entry.lastIndex < text.length) {
    const at = entry.lastIndex
    const match = entry.exec(text)
    if (match === null)
      throw new UsageError(
        `Expected an access list as scheme:id:perms,… with perms of the letters c, d, r, w and a, got "${text.slice(at)}". Everybody may read is world:anyone:r.`,
      )
    acl.push({ perms: parsePerms(match[3]!)!, id: { scheme: match[1]!, id: match[2]! } })
  }
  if (acl.length === 0)
    throw new UsageError(
      'Expected an access list as scheme:id:perms,…, got nothing. Give at least one entry.',
    )
  return acl
}
