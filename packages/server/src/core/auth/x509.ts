import type { PeerIdentity } from '@zabra/runtime'
import type { Identity } from '../types.ts'
import { isEqualId, type AclScheme } from './schemes.ts'
import { isDistinguishedName } from './distinguished-name.ts'

/** The scheme of identities from certificates. */
export const x509Scheme: AclScheme = {
  isValid: isDistinguishedName,
  matches: isEqualId,
  isAuthenticated: true,
}

/** Selects the identity in a certificate: the subject (`SDN`), or a subject alternative name (`SAN`). */
export interface X509Rules {
  readonly superUser: string | undefined
  readonly idType: 'SDN' | 'SAN'
  readonly sanType: number
  readonly sanMatch: string
  readonly sanExtract: string
  readonly sanGroup: number
}

/** Returns the identities of the owner of a certificate, which must be trusted. */
export function identitiesOfCertificate(certificate: PeerIdentity, rules: X509Rules): readonly Identity[] {
  const id = (rules.idType === 'SAN' ? alternativeId(certificate, rules) : undefined) ?? certificate.subject
  const identity = { scheme: 'x509', id }
  return id === rules.superUser ? [{ scheme: 'super', id }, identity] : [identity]
}

/** Returns the identity in the alternative names, or undefined unless exactly one name matches. */
function alternativeId(
  { alternativeNames }: PeerIdentity,
  { sanType, sanMatch, sanExtract, sanGroup }: X509Rules,
): string | undefined {
  const pattern = new RegExp(sanMatch)
  const matching = alternativeNames.filter(({ type, value }) => type === sanType && pattern.test(value))
  const found =
    matching.length === 1 ? new RegExp(sanExtract).exec(matching[0]!.value)?.[sanGroup] : undefined
  return found === '' ? undefined : found
}
