import type { NetworkError, TlsFault } from '@zabra/runtime'

/** What to do about each fault that does not pass. A server that refuses a handshake may accept the next one. */
const advice: Readonly<Record<Exclude<TlsFault, 'refused'>, string>> = {
  expired: 'renew it on the server, and check the clock of this machine',
  notYetValid: 'check the clocks of the server and of this machine',
  untrusted: 'set tls.trustStore of nodeTransport to a file with the authority that has signed it',
  wrongHost: 'connect by another name of the server, or issue a certificate for this name',
  wrongPurpose: 'issue one for servers, whose extended key usage has serverAuth',
  revoked: 'issue another one for the server',
  noRevocationList: 'renew the file of tls.revocationList of nodeTransport, with a list of each authority',
  damaged: 'issue another one for the server',
  clientCertificate:
    'set tls.keyStore of nodeTransport to a valid certificate whose authority the server trusts',
  handshakeFailure:
    'set tls.keyStore of nodeTransport to a certificate that the server trusts, and tls.versions and tls.ciphers to what it has',
  noCommonVersion: 'set tls.versions and tls.ciphers of nodeTransport to what the server has',
  plaintext: 'leave out tls:// and wss://, or name its port for TLS',
}

/** Returns why a TLS handshake fails at each attempt and what to do; undefined for other errors. */
export function explainTls(error: Error): string | undefined {
  const { tlsFailure } = error as Partial<NetworkError>
  if (tlsFailure === undefined || tlsFailure.fault === 'refused') return undefined
  const { code, fault, reason } = tlsFailure
  return `${reason} (${code}): ${advice[fault]}`
}
