import type { ACL, Id } from '../schema/records.ts'
import { sha1, toBase64 } from './sha1.ts'

// Separate constants: a bundler keeps an unused list that reads a property of `Perms`.
const READ = 1
const ALL = 31
/** Permission bits of an ACL entry. */
export const Perms = { READ, WRITE: 2, CREATE: 4, DELETE: 8, ADMIN: 16, ALL } as const

/** Any client. */
export const ANYONE: Id = { scheme: 'world', id: 'anyone' }
/** The creator of the node, with every authenticated identity of its connection. */
export const AUTHENTICATED: Id = { scheme: 'auth', id: '' }
/** Anyone may do everything. */
export const OPEN_ACL_UNSAFE: readonly ACL[] = [{ perms: ALL, id: ANYONE }]
/** Anyone may read. */
export const READ_ACL_UNSAFE: readonly ACL[] = [{ perms: READ, id: ANYONE }]
/** The creator may do everything. */
export const CREATOR_ALL_ACL: readonly ACL[] = [{ perms: ALL, id: AUTHENTICATED }]

/**
 * Returns the id of scheme `digest` for `user:password`: the user, a colon and the Base64 of the SHA-1 of the credentials. Without
 * a colon, the whole text is the user, as in ZooKeeper's DigestAuthenticationProvider.
 */
export function digestId(credentials: string | Uint8Array): string {
  const bytes = typeof credentials === 'string' ? new TextEncoder().encode(credentials) : credentials
  const text =
    typeof credentials === 'string'
      ? credentials
      : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  return `${text.split(':', 1)[0]}:${toBase64(sha1(bytes))}`
}

/** Returns whether two lists have the same entries in the same order. */
export function aclEquals(a: readonly ACL[], b: readonly ACL[]): boolean {
  return (
    a.length === b.length &&
    a.every((entry, i) => {
      const other = b[i]!
      return entry.perms === other.perms && entry.id.scheme === other.id.scheme && entry.id.id === other.id.id
    })
  )
}

/** Returns the permissions as the shell writes them: `cdrwa`. */
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
