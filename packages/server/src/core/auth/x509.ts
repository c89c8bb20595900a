import type { PeerIdentity } from '@zabra/runtime'
import type { Identity } from '../types.ts'
import type { AclScheme } from './acl.ts'
import { isDistinguishedName } from './distinguished-name.ts'

/** Identities that certificates prove. */
export const x509Scheme: AclScheme = {
  isValid: isDistinguishedName,
  matches: (proved, id) => proved === id,
  isAuthenticated: true,
}

/** Where in a certificate the identity of its owner stands. */
export interface X509Rules {
  readonly superUser: string | undefined
  readonly idType: 'SDN' | 'SAN'
  readonly sanType: number
  readonly sanMatch: string
  readonly sanExtract: string
  readonly sanGroup: number
}

/** The identities that a certificate proves, which the platform has found to be trusted. */
export function identitiesOfCertificate(certificate: PeerIdentity, rules: X509Rules): readonly Identity[] {
  const id = (rules.idType === 'SAN' ? alternativeId(certificate, rules) : undefined) ?? certificate.subject
  const identity = { scheme: 'x509', id }
  return id === rules.superUser ? [{ scheme: 'super', id }, identity] : [identity]
}

/** What the rules find in the alternative names; nothing unless exactly one of them is meant. */
function alternativeId(
  { alternativeNames }: PeerIdentity,
  { sanType, sanMatch, sanExtract, sanGroup }: X509Rules,
): string | undefined {
  const pattern = new RegExp(sanMatch)
  const meant = alternativeNames.filter(({ type, value }) => type === sanType && pattern.test(value))
  const found = meant.length === 1 ? new RegExp(sanExtract).exec(meant[0]!.value)?.[sanGroup] : undefined
  return found === '' ? undefined : found
}
