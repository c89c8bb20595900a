const untrusted =
  'its certificate is not signed by an authority that this client trusts: set tls.trustStore of nodeTransport'
const plaintext = 'it answers without TLS: leave out tls:// and wss://, or name its port for TLS'
const needsCertificate =
  'it requires the certificate of a client, or refuses this one: set tls.keyStore of nodeTransport'
const noCommonVersion = 'it shares no TLS version or cipher suite with this client'

/** Meanings of the codes of OpenSSL and Node that do not change from one attempt to the next. */
const tlsReasons: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet: check the clocks',
  CERT_REVOKED: 'its certificate is revoked',
  CERT_UNTRUSTED: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  ERR_SSL_HTTP_REQUEST: plaintext,
  ERR_SSL_NO_PROTOCOLS_AVAILABLE: noCommonVersion,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: plaintext,
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: needsCertificate,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: noCommonVersion,
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: needsCertificate,
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: noCommonVersion,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: needsCertificate,
  ERR_SSL_UNSUPPORTED_PROTOCOL: noCommonVersion,
  ERR_SSL_WRONG_VERSION_NUMBER: plaintext,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for other names: connect by a name in it',
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
}

/** Returns what is wrong with a server or a certificate, by the code of a failed TLS handshake. */
export const explainTlsCode = (code: string): string | undefined =>
  Object.hasOwn(tlsReasons, code) ? `${tlsReasons[code]} (${code})` : undefined
