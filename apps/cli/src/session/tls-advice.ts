import type { NetworkError, TlsFailure, TlsFault } from '@zabra/runtime'

const authority =
  'Name the authority that has signed its certificate with --ca or ZABRA_CA, or name another server.'
const issue = 'Issue another certificate for the server (zabra cert issue).'
const own = 'Name a valid certificate whose authority the server trusts with --cert or ZABRA_CERT.'

/** What to do about each fault of a TLS handshake. */
const advice: Readonly<Record<TlsFault, string>> = {
  expired: 'Renew it on the server (zabra cert renew), and check the clock of this machine.',
  notYetValid: 'Check the clocks of the server and of this machine.',
  untrusted: authority,
  wrongHost:
    'Connect by another name of the server, or issue a certificate for this name (zabra cert issue --hosts).',
  wrongPurpose: issue,
  revoked: issue,
  noRevocationList: 'Renew the revocation list.',
  damaged: issue,
  clientCertificate: own,
  handshakeFailure: own,
  noCommonVersion:
    'Set ssl.protocol and ssl.ciphersuites of the server to TLS 1.2 or 1.3 and a cipher suite of this machine.',
  plaintext:
    'This port does not use TLS: leave out --tls and tls://, or write http:// in --admin; or name the TLS port.',
  refused: 'Its log has the reason.',
}

/** Returns what to do about a failed TLS handshake. */
export const adviceForFault = ({ fault }: TlsFailure): string => advice[fault]

/** Returns what to do about the first failed TLS handshake; undefined when no error is one. */
export function tlsAdvice(errors: readonly Error[]): string | undefined {
  for (const error of errors) {
    const { tlsFailure } = error as Partial<NetworkError>
    if (tlsFailure !== undefined) return adviceForFault(tlsFailure)
  }
  return undefined
}
