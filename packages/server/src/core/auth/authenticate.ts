import { digestId } from '@zabra/protocol'
import type { Identity } from '../types.ts'

/**
 * Checks the credentials of an auth packet. Returns the authenticated identities, or undefined when the credentials are refused.
 * The schemes `world`, `auth`, `super` and unknown ones are always refused.
 */
export function authenticate(
  scheme: string | null,
  credentials: Uint8Array | null,
  options: { readonly remoteIp: string; readonly superDigest: string | undefined },
): readonly Identity[] | undefined {
  if (scheme === 'ip') return [{ scheme: 'ip', id: options.remoteIp }]
  if (scheme !== 'digest' || credentials === null) return undefined
  const id = digestId(credentials)
  const identity: Identity = { scheme: 'digest', id }
  return id === options.superDigest ? [identity, { scheme: 'super', id: '' }] : [identity]
}

/** Returns the identities of a connection with additional ones, each once. */
export function addIdentities(held: readonly Identity[], more: readonly Identity[]): readonly Identity[] {
  const fresh = more.filter(
    ({ scheme, id }) => !held.some((other) => other.scheme === scheme && other.id === id),
  )
  return fresh.length === 0 ? held : [...held, ...fresh]
}

/** Returns the user name that whoAmI shows: for `digest` without the hash, for `super` an empty text. */
export function userName({ scheme, id }: Identity): string {
  if (scheme === 'digest') return id.split(':', 1)[0]!
  return scheme === 'super' ? '' : id
}
