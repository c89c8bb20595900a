import { digestId } from '@zabra/protocol'
import type { Identity } from '../types.ts'

/**
 * Checks the credentials of an auth packet and returns the identities that they prove, or undefined when they are
 * refused. Schemes that cannot be used here (`world`, `auth`, `super`, unknown ones) are refused.
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

/** The identities of a connection with some more, each once. */
export function addIdentities(held: readonly Identity[], more: readonly Identity[]): readonly Identity[] {
  const fresh = more.filter(
    ({ scheme, id }) => !held.some((other) => other.scheme === scheme && other.id === id),
  )
  return fresh.length === 0 ? held : [...held, ...fresh]
}

/** What whoAmI shows for an identity: for `digest` the user without the hash, for marks such as `super` nothing. */
export function userName({ scheme, id }: Identity): string {
  if (scheme === 'digest') return id.split(':', 1)[0]!
  return scheme === 'super' ? '' : id
}
