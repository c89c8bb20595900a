/** What makes a TLS handshake fail. Each attempt fails in the same way until certificates, options or the address change. */
export type TlsFault =
  | 'expired'
  | 'notYetValid'
  | 'untrusted'
  | 'wrongHost'
  | 'wrongPurpose'
  | 'revoked'
  | 'noRevocationList'
  | 'damaged'
  | 'clientCertificate'
  | 'handshakeFailure'
  | 'noCommonVersion'
  | 'plaintext'
  | 'refused'

/** What a reset means that comes before the end of a handshake. */
export const CUT_OFF =
  'it closed the connection during the TLS handshake; it may not speak TLS on this port, or not accept the certificate of this client'

/** A failed TLS handshake. */
export interface TlsFailure {
  /** The code of OpenSSL and Node, such as CERT_HAS_EXPIRED. */
  readonly code: string
  readonly fault: TlsFault
  /** What is wrong, in words that continue "Cannot connect to the server:". */
  readonly reason: string
}

type Reason = readonly [fault: TlsFault, reason: string]

const untrusted: Reason = [
  'untrusted',
  'its certificate is not signed by an authority that this client trusts',
]
const selfSigned: Reason = ['untrusted', 'its certificate is self-signed, and this client does not trust it']
const plaintext: Reason = ['plaintext', 'it answers without TLS']
const damaged: Reason = ['damaged', 'the signature of its certificate is wrong']
const invalidAuthority: Reason = [
  'wrongPurpose',
  'its certificate is signed by a certificate that may not sign others',
]
const noCommonVersion: Reason = [
  'noCommonVersion',
  'it accepts no TLS version or cipher suite of this client',
]
const notAccepted: Reason = ['clientCertificate', 'it does not accept the certificate of this client']
const refused: Reason = ['refused', 'it refused the TLS handshake']

/** Reasons by the codes of OpenSSL, as Node reports them: of certificates, then of alerts and bytes of the peer. */
const reasons: Readonly<Record<string, Reason>> = {
  CERT_CHAIN_TOO_LONG: invalidAuthority,
  CERT_HAS_EXPIRED: ['expired', 'its certificate has expired'],
  CERT_NOT_YET_VALID: ['notYetValid', 'its certificate is not valid yet'],
  CERT_REJECTED: untrusted,
  CERT_REVOKED: ['revoked', 'its certificate is revoked'],
  CERT_SIGNATURE_FAILURE: damaged,
  CERT_UNTRUSTED: untrusted,
  CRL_HAS_EXPIRED: [
    'noRevocationList',
    'the revocation list of the authority of its certificate has expired',
  ],
  CRL_NOT_YET_VALID: [
    'noRevocationList',
    'the revocation list of the authority of its certificate is not valid yet',
  ],
  CRL_SIGNATURE_FAILURE: ['noRevocationList', 'the signature of the revocation list is wrong'],
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  ERR_TLS_CERT_ALTNAME_INVALID: ['wrongHost', 'its certificate is for other names'],
  HOSTNAME_MISMATCH: ['wrongHost', 'its certificate is for other names'],
  INVALID_CA: invalidAuthority,
  INVALID_PURPOSE: ['wrongPurpose', 'its certificate is not one for servers'],
  PATH_LENGTH_EXCEEDED: invalidAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_DECRYPT_CERT_SIGNATURE: damaged,
  UNABLE_TO_GET_CRL: ['noRevocationList', 'there is no revocation list of the authority of its certificate'],
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,

  ERR_SSL_HTTP_REQUEST: plaintext,
  ERR_SSL_NO_PROTOCOLS_AVAILABLE: noCommonVersion,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: plaintext,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: notAccepted,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: [
    'clientCertificate',
    'the certificate of this client has expired, or is not valid yet',
  ],
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_REVOKED: ['clientCertificate', 'the certificate of this client is revoked'],
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: notAccepted,
  // Servers with TLS 1.2 send it for a missing certificate too.
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: [
    'handshakeFailure',
    'it accepts no cipher suite of this client, or requires the certificate of a client',
  ],
  ERR_SSL_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE: notAccepted,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: [
    'clientCertificate',
    'it requires the certificate of a client, and this client has none',
  ],
  ERR_SSL_TLSV1_ALERT_ACCESS_DENIED: [
    'clientCertificate',
    'it does not admit the owner of the certificate of this client',
  ],
  ERR_SSL_TLSV1_ALERT_INSUFFICIENT_SECURITY: noCommonVersion,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: noCommonVersion,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: [
    'clientCertificate',
    'it does not trust the authority that has signed the certificate of this client',
  ],
  ERR_SSL_TLSV1_UNRECOGNIZED_NAME: ['wrongHost', 'it has no certificate for this host name'],
  ERR_SSL_UNSUPPORTED_PROTOCOL: noCommonVersion,
  ERR_SSL_WRONG_VERSION_NUMBER: plaintext,
}

/** An error of a TLS socket, with the names in a certificate if they are wrong. */
interface TlsSocketError extends Error {
  readonly code?: string | undefined
  readonly cert?: { readonly subjectaltname?: string } | undefined
}

/** The reason in a message of OpenSSL: `40E7…:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:…`. */
const OPENSSL_REASON = /\berror:[\dA-F]+:SSL routines:[^:]*:([\w ]+)/

/** Returns the code of a failed handshake; undefined for an error that is not of TLS. */
function tlsCodeOf({ code, message }: TlsSocketError): string | undefined {
  // The HTTP client of Node reports what fails while it writes as EPROTO, with the code in the text only.
  const reason = code === 'EPROTO' ? OPENSSL_REASON.exec(message)?.[1] : undefined
  if (reason !== undefined) return `ERR_SSL_${reason.trim().replaceAll(' ', '_').toUpperCase()}`
  return code !== undefined &&
    (Object.hasOwn(reasons, code) || /^(?:ERR_SSL_|ERR_OSSL_|UNSPECIFIED$)/.test(code))
    ? code
    : undefined
}

/**
 * Returns why a TLS handshake failed, in words, by the error of the socket; undefined for an error that is not of TLS. The words
 * have none of the text of OpenSSL, which names its own source files.
 */
export function tlsFailureOf(error: Error): TlsFailure | undefined {
  const code = tlsCodeOf(error)
  if (code === undefined) return undefined
  // Node has no code for the rarer faults of certificates, but a short text.
  if (code === 'UNSPECIFIED')
    return { code, fault: 'untrusted', reason: `its certificate is refused: ${error.message}` }
  const [fault, reason] = Object.hasOwn(reasons, code) ? reasons[code]! : refused
  const names = fault === 'wrongHost' ? (error as TlsSocketError).cert?.subjectaltname : undefined
  return { code, fault, reason: names === undefined ? reason : `${reason} (${names})` }
}
