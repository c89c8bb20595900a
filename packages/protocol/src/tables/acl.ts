import type { ACL, Id } from '../schema/records.ts'
import { sha1, toBase64 } from './sha1.ts'

/** Permission bits of an ACL entry. */
export const Perms = { READ: 1, WRITE: 2, CREATE: 4, DELETE: 8, ADMIN: 16, ALL: 31 } as const

/** Anybody. */
export const ANYONE: Id = { scheme: 'world', id: 'anyone' }
/** Whoever creates the node, under every identity that the connection has proved. */
export const AUTHENTICATED: Id = { scheme: 'auth', id: '' }
/** Everybody may do everything. */
export const OPEN_ACL_UNSAFE: readonly ACL[] = [{ perms: Perms.ALL, id: ANYONE }]
/** Everybody may read. */
export const READ_ACL_UNSAFE: readonly ACL[] = [{ perms: Perms.READ, id: ANYONE }]
/** The creator may do everything. */
export const CREATOR_ALL_ACL: readonly ACL[] = [{ perms: Perms.ALL, id: AUTHENTICATED }]

/**
 * The id of scheme `digest` for `user:password`: the user, a colon and the Base64 of the SHA-1 of the whole.
 * Without a colon the whole text is both user and input, as ZooKeeper's DigestAuthenticationProvider has it.
 */
export function digestId(credentials: string | Uint8Array): string {
  const bytes = typeof credentials === 'string' ? new TextEncoder().encode(credentials) : credentials
  const text =
    typeof credentials === 'string'
      ? credentials
      : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  return `${text.split(':', 1)[0]}:${toBase64(sha1(bytes))}`
}

/** Whether two lists have the same entries in the same order. */
export function aclEquals(a: readonly ACL[], b: readonly ACL[]): boolean {
  return (
    a.length === b.length &&
    a.every((entry, i) => {
      const other = b[i]!
      return entry.perms === other.perms && entry.id.scheme === other.id.scheme && entry.id.id === other.id.id
    })
  )
}

/** The bits as the shells write them: `cdrwa`. */
export function formatPerms(perms: number): string {
  const letters = [
    [Perms.CREATE, 'c'],
    [Perms.DELETE, 'd'],
    [Perms.READ, 'r'],
    [Perms.WRITE, 'w'],
    [Perms.ADMIN, 'a'],
  ] as const
  return letters.map(([bit, letter]) => ((perms & bit) === 0 ? '' : letter)).join('')
}
