import { AlternativeNameType, type PeerIdentity } from '@zabra/runtime'
import { canonicalIp, isIpExpression } from '../core/auth/index.ts'

/**
 * Returns whether a certificate names one of these hosts, which are names or addresses. Only alternative names count: a common name
 * is no host name (RFC 9525), also where Apache ZooKeeper takes it for one.
 */
export const namesHost = (certificate: PeerIdentity, hosts: readonly string[]): boolean =>
  hosts.some((host) =>
    certificate.alternativeNames.some(({ type, value }) =>
      isIpExpression(host)
        ? type === AlternativeNameType.ip && canonicalIp(value) === canonicalIp(host)
        : type === AlternativeNameType.dns && matchesName(value, host),
    ),
  )

/** Returns the hosts and URIs that a certificate names, for log lines. */
export const namesOf = ({ alternativeNames }: PeerIdentity): readonly string[] =>
  alternativeNames
    .filter(({ type }) => Object.values<number>(shownTypes).includes(type))
    .map(({ value }) => value.slice(0, MAX_SHOWN_CHARACTERS))
    .slice(0, MAX_SHOWN_NAMES)

const shownTypes = { dns: AlternativeNameType.dns, ip: AlternativeNameType.ip, uri: AlternativeNameType.uri }
const MAX_SHOWN_NAMES = 8
const MAX_SHOWN_CHARACTERS = 100

/** Compares without case. `*` stands for the first label alone. */
function matchesName(pattern: string, host: string): boolean {
  const [wanted, name] = [pattern, host].map((text) => text.toLowerCase().replace(/\.$/, '')) as [
    string,
    string,
  ]
  if (!wanted.startsWith('*.')) return wanted === name
  const dot = name.indexOf('.')
  return dot > 0 && wanted.slice(1) === name.slice(dot)
}
