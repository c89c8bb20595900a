import type { Connection, Listener, Network, TlsFault, TlsOptions } from '@zabra/runtime'
import { nodeNetwork } from '@zabra/runtime/node/dial'
import { tlsNetwork } from '@zabra/runtime/node'

/** Returns the path of a certificate for tests. */
export const testCertificate = (name: string): string =>
  new URL(`../../runtime/src/testdata/tls/${name}`, import.meta.url).pathname

const store = (name: string): { readonly path: string } => ({ path: testCertificate(name) })
const server = { keyStore: store('server.pem') }
const alice = { keyStore: store('alice.pem') }
const trusting = { trustStore: store('authority.pem') }
const trustingFaulty = { trustStore: store('faulty-authority.pem') }

/** A server to which a TLS client cannot connect. */
export interface TlsFaultCase {
  readonly name: string
  /** TLS options of the client. */
  readonly client: TlsOptions
  readonly network: Network
  /** What the server does with a connection: nothing by default. */
  readonly accepted?: ((connection: Connection) => void) | undefined
  /** What the messages say, and the kind of fault; undefined for a failure that may pass. */
  readonly reason: string
  readonly fault: TlsFault | undefined
}

type Outcome = readonly [reason: string, fault?: TlsFault]

const overTls = (
  name: string,
  server: TlsOptions,
  client: TlsOptions,
  [reason, fault]: Outcome,
): TlsFaultCase => ({ name, client, network: tlsNetwork(server), reason, fault })

/** A server that answers any bytes with these, and closes the connection. */
const answering = (
  name: string,
  bytes: Uint8Array,
  client: TlsOptions,
  [reason, fault]: Outcome,
): TlsFaultCase => ({
  name,
  client,
  network: nodeNetwork,
  reason,
  fault,
  accepted: (connection) =>
    connection.setHandler({
      data() {
        connection.write(bytes)
        connection.end()
      },
      drain() {},
      closed() {},
    }),
})

/** A server that refuses a handshake with an alert (RFC 8446, section 6). */
const alerting = (name: string, alert: number, ...outcome: Outcome): TlsFaultCase =>
  answering(
    `the alert ${name}`,
    Uint8Array.of(0x15, 3, 3, 0, 2, 2, alert),
    { ...trusting, ...alice },
    outcome,
  )

const needing: TlsOptions = { ...server, ...trusting, clientAuth: 'need' }
const untrusted: Outcome = ['is not signed by an authority that this client trusts', 'untrusted']
const noCommonVersion: Outcome = ['accepts no TLS version or cipher suite of this client', 'noCommonVersion']
const handshakeFailure: Outcome = [
  'accepts no cipher suite of this client, or requires the certificate of a client',
  'handshakeFailure',
]
const notAccepted: Outcome = ['does not accept the certificate of this client', 'clientCertificate']
const plaintext: Outcome = ['it answers without TLS', 'plaintext']
const utf8 = new TextEncoder()

/** Each fault of certificates, versions and ports that a TLS client can meet. */
export const tlsFaultCases: readonly TlsFaultCase[] = [
  overTls('an expired certificate', { keyStore: store('expired.pem') }, trustingFaulty, [
    'its certificate has expired',
    'expired',
  ]),
  overTls('a certificate that is not valid yet', { keyStore: store('early.pem') }, trustingFaulty, [
    'its certificate is not valid yet',
    'notYetValid',
  ]),
  overTls('a self-signed certificate', { keyStore: store('self-signed.pem') }, trusting, [
    'is self-signed, and this client does not trust it',
    'untrusted',
  ]),
  overTls('an unknown authority', server, { trustStore: store('stranger-authority.pem') }, untrusted),
  overTls('an authority that it does not show', { keyStore: store('unchained.pem') }, trusting, untrusted),
  overTls('a certificate, for a client without a trust store', server, {}, untrusted),
  overTls('another host name', { keyStore: store('elsewhere.pem') }, trusting, [
    'its certificate is for other names (DNS:elsewhere.example)',
    'wrongHost',
  ]),
  overTls('a certificate for clients', { keyStore: store('client-only.pem') }, trustingFaulty, [
    'its certificate is not one for servers',
    'wrongPurpose',
  ]),
  overTls(
    'a revoked certificate',
    { keyStore: store('revoked.pem') },
    { trustStore: store('revoking-authority.pem'), revocationList: testCertificate('revoking.crl') },
    ['its certificate is revoked', 'revoked'],
  ),
  overTls(
    'a certificate, for a client with an old revocation list',
    { keyStore: store('kept.pem') },
    { trustStore: store('revoking-authority.pem'), revocationList: testCertificate('over.crl') },
    ['the revocation list of the authority of its certificate has expired', 'noRevocationList'],
  ),
  overTls(
    'a certificate, for a client with the revocation list of another authority',
    server,
    { ...trusting, revocationList: testCertificate('empty.crl') },
    ['there is no revocation list of the authority of its certificate', 'noRevocationList'],
  ),
  overTls('the demand for a client certificate', needing, trusting, [
    'requires the certificate of a client, and this client has none',
    'clientCertificate',
  ]),
  overTls(
    'the demand for a client certificate and TLS 1.2',
    { ...needing, versions: ['TLSv1.2'] },
    trusting,
    handshakeFailure,
  ),
  overTls('no trust in the client', needing, { ...trusting, keyStore: store('stranger.pem') }, [
    'not accept the certificate of this client',
  ]),
  overTls(
    'TLS 1.2, for a client of TLS 1.3',
    { ...server, versions: ['TLSv1.2'] },
    { ...trusting, versions: ['TLSv1.3'] },
    noCommonVersion,
  ),
  overTls(
    'TLS 1.3, for a client of TLS 1.2',
    { ...server, versions: ['TLSv1.3'] },
    { ...trusting, versions: ['TLSv1.2'] },
    noCommonVersion,
  ),
  alerting('handshake_failure', 40, ...handshakeFailure),
  alerting('bad_certificate', 42, ...notAccepted),
  alerting('unsupported_certificate', 43, ...notAccepted),
  alerting('certificate_revoked', 44, 'the certificate of this client is revoked', 'clientCertificate'),
  alerting('certificate_expired', 45, 'the certificate of this client has expired', 'clientCertificate'),
  alerting('certificate_unknown', 46, ...notAccepted),
  alerting('unknown_ca', 48, 'does not trust the authority that has signed', 'clientCertificate'),
  alerting('access_denied', 49, 'does not admit the owner of the certificate', 'clientCertificate'),
  alerting('protocol_version', 70, ...noCommonVersion),
  alerting('insufficient_security', 71, ...noCommonVersion),
  alerting('internal_error', 80, 'it refused the TLS handshake'),
  alerting('unrecognized_name', 112, 'it has no certificate for this host name', 'wrongHost'),
  answering('HTTP', utf8.encode('HTTP/1.1 400 Bad Request\r\n\r\n'), trusting, plaintext),
  answering('the protocol of a ZooKeeper server', utf8.encode('ruok is not executed'), trusting, plaintext),
]

/** Starts the server of a case. Resolves to its port and what closes it. */
export async function startTlsFault({ network, accepted }: TlsFaultCase): Promise<{
  readonly port: number
  close(): Promise<void>
}> {
  const connections = new Set<Connection>()
  const hold = (connection: Connection): void => {
    connections.add(connection)
    if (accepted === undefined) connection.setHandler({ data() {}, drain() {}, closed() {} })
    else accepted(connection)
  }
  const listener: Listener = await network.listen({ host: '127.0.0.1', port: 0 }, hold, () => {})
  return {
    port: listener.address.port,
    async close() {
      for (const connection of connections) connection.destroy()
      await listener.close()
    },
  }
}
