import {
  bool,
  oneOf,
  someOf,
  regularExpression,
  list,
  optional,
  pattern,
  port,
  size,
  text,
  integer,
} from './value-types.ts'
import { row } from './row.ts'
import { storeRows } from './store-rows.ts'

const versions = someOf('TLSv1.2', 'TLSv1.3')

const group = 'TLS and WebSockets'

const stores = storeRows(group, 'ssl')

/** The ports with TLS and for WebSockets. */
export const transportRows = {
  secureClientPort: row({
    group,
    key: 'secureClientPort',
    type: optional(port()),
    defaultValue: undefined,
    defaultText: 'none',
    description: 'Port for clients with TLS. If only this port is set, there is no port without TLS.',
  }),
  secureClientPortAddress: row({
    group,
    key: 'secureClientPortAddress',
    type: optional(text('a host name or an address')),
    defaultValue: undefined,
    defaultText: 'all interfaces',
    description: 'Address of the TLS port.',
  }),
  sslKeyStoreLocation: stores.location(
    'keyStore',
    'none; needed for TLS',
    'File with the private key, its certificate and those of its issuers: PKCS #12, or one PEM file with all of them.',
  ),
  sslKeyStorePassword: stores.password('keyStore'),
  sslKeyStorePasswordPath: stores.passwordPath('keyStore'),
  sslKeyStoreType: stores.type(
    'keyStore',
    'Format of the file. JKS and BCFKS are rejected with the command that converts them.',
  ),
  sslTrustStoreLocation: stores.location(
    'trustStore',
    'none; needed unless `ssl.clientAuth=none`',
    'File with the certificates of the authorities that sign those of clients: PEM or PKCS #12.',
  ),
  sslTrustStorePassword: stores.password('trustStore'),
  sslTrustStorePasswordPath: stores.passwordPath('trustStore'),
  sslTrustStoreType: stores.type('trustStore', 'Format of the file.', 'as `ssl.keyStore.type`'),
  sslProtocol: row({
    group,
    key: 'ssl.protocol',
    property: 'zookeeper.ssl.protocol',
    type: oneOf('TLSv1.3', 'TLSv1.2'),
    defaultValue: 'TLSv1.3',
    description: 'Newest version of TLS.',
  }),
  sslEnabledProtocols: row({
    group,
    key: 'ssl.enabledProtocols',
    property: 'zookeeper.ssl.enabledProtocols',
    type: versions,
    defaultValue: (inputs) =>
      inputs.sslProtocol === 'TLSv1.2' ? (['TLSv1.2'] as const) : (['TLSv1.2', 'TLSv1.3'] as const),
    defaultText: '`ssl.protocol` and older versions from TLSv1.2 on',
    apacheDefault: '`ssl.protocol` alone',
    description: 'Enabled versions of TLS.',
  }),
  sslCipherSuites: row({
    group,
    key: 'ssl.ciphersuites',
    property: 'zookeeper.ssl.ciphersuites',
    type: list('names of cipher suites as Java has them, separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'those of the platform',
    description: 'Cipher suites, in order of preference.',
  }),
  sslClientAuth: row({
    group,
    key: 'ssl.clientAuth',
    property: 'zookeeper.ssl.clientAuth',
    type: oneOf('need', 'want', 'none'),
    defaultValue: 'need',
    description:
      'Whether clients must present a certificate; `want` also accepts clients without one. The subject of the certificate is their identity in the scheme x509.',
  }),
  portUnification: row({
    group,
    key: 'client.portUnification',
    property: 'zookeeper.client.portUnification',
    type: bool(),
    defaultValue: false,
    description:
      'Accepts clients with and without TLS on `clientPort`; the first byte of a connection decides.',
  }),
  sslCrl: row({
    group,
    key: 'ssl.crl',
    property: 'zookeeper.ssl.crl',
    type: bool(),
    defaultValue: false,
    description: 'Rejects certificates that `ssl.crl.location` lists as revoked.',
  }),
  sslCrlLocation: row({
    group,
    key: 'ssl.crl.location',
    type: optional(text('a file')),
    isPath: true,
    defaultValue: undefined,
    defaultText: 'none; needed for `ssl.crl=true`',
    apacheDefault: 'not supported: Java fetches the lists that certificates name',
    description:
      'File with the certificate revocation list of every authority in a chain, PEM or DER. It is reloaded like the other files; when a list has expired, no client certificate is accepted.',
  }),
  certReload: row({
    group,
    key: 'client.certReload',
    property: 'zookeeper.client.certReload',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'false',
    description:
      'Checks every 10 s whether the files have changed; new connections then use their new contents.',
  }),
  tlsHandshakeLimit: row({
    group,
    key: 'netty.server.outstandingHandshake.limit',
    property: 'zookeeper.netty.server.outstandingHandshake.limit',
    type: integer(-1),
    defaultValue: 250,
    apacheDefault: '-1',
    description:
      'Concurrent TLS handshakes. A further connection replaces one of an address that has more of them than its own, or one that has been silent for a second, and is rejected where there is none. -1 means no limit.',
  }),
  sslAuthProvider: row({
    group,
    key: 'ssl.authProvider',
    property: 'zookeeper.ssl.authProvider',
    type: oneOf('x509'),
    defaultValue: 'x509',
    description: 'Scheme of the identities in certificates.',
  }),
  x509SuperUser: row({
    group,
    key: 'X509AuthenticationProvider.superUser',
    property: 'zookeeper.X509AuthenticationProvider.superUser',
    type: optional(text('an identity of the scheme x509')),
    defaultValue: undefined,
    defaultText: 'unset: no superuser',
    description: 'Identity in the scheme x509 of the superuser, who may do everything.',
  }),
  x509IdType: row({
    group,
    key: 'ssl.x509.clientCertIdType',
    property: 'zookeeper.ssl.x509.clientCertIdType',
    type: oneOf('SDN', 'SAN'),
    defaultValue: 'SDN',
    description:
      'Where the certificate of a client contains its identity: in the subject (SDN), or in the alternative name (SAN) that the next keys select. If they do not select exactly one, the subject is used.',
  }),
  x509SanType: row({
    group,
    key: 'ssl.x509.clientCertIdSanMatchType',
    property: 'zookeeper.ssl.x509.clientCertIdSanMatchType',
    type: integer(0, 8),
    defaultValue: 6,
    description: 'Type of the alternative name, by its number in RFC 5280: 1 mail, 2 DNS, 6 URI, 7 address.',
  }),
  x509SanMatch: row({
    group,
    key: 'ssl.x509.clientCertIdSanMatchRegex',
    property: 'zookeeper.ssl.x509.clientCertIdSanMatchRegex',
    type: regularExpression(),
    defaultValue: '.*',
    description: 'Expression that the alternative name must match.',
  }),
  x509SanExtract: row({
    group,
    key: 'ssl.x509.clientCertIdSanExtractRegex',
    property: 'zookeeper.ssl.x509.clientCertIdSanExtractRegex',
    type: regularExpression(),
    defaultValue: '.*',
    description: 'Expression that selects the identity in the alternative name.',
  }),
  x509SanGroup: row({
    group,
    key: 'ssl.x509.clientCertIdSanExtractMatcherGroupIndex',
    property: 'zookeeper.ssl.x509.clientCertIdSanExtractMatcherGroupIndex',
    type: integer(0),
    defaultValue: 0,
    description: 'Group of that expression that is the identity; 0 means the whole match.',
  }),

  webSocketPort: row({
    group,
    key: 'webSocketPort',
    isOwn: true,
    type: optional(port()),
    defaultValue: undefined,
    defaultText: 'none',
    apacheDefault: 'not supported',
    description: 'Port for WebSocket clients: the same protocol, in binary messages.',
  }),
  webSocketPortAddress: row({
    group,
    key: 'webSocketPortAddress',
    isOwn: true,
    type: text('a host name or an address'),
    defaultValue: '127.0.0.1',
    description:
      'Address of the WebSocket port; `0.0.0.0` is every address of the machine. Behind a name, pages of that name may connect.',
  }),
  webSocketSecure: row({
    group,
    key: 'webSocketSecure',
    isOwn: true,
    type: bool(),
    defaultValue: false,
    description: 'Serves WebSockets over TLS (wss), configured by the `ssl.*` keys.',
  }),
  webSocketPath: row({
    group,
    key: 'webSocketPath',
    isOwn: true,
    type: optional(pattern(/^\/[^\s?#]*$/, 'a path such as /zabra')),
    defaultValue: undefined,
    defaultText: 'any',
    description: 'The only path that is served.',
  }),
  webSocketOrigins: row({
    group,
    key: 'webSocketOrigins',
    isOwn: true,
    type: list('origins separated by commas, such as https://app.example, or * for any'),
    defaultValue: [] as readonly string[],
    defaultText:
      'the host that the page connects to, on any port, if that is localhost, an address or `webSocketPortAddress`',
    description:
      'Origins of web pages that may connect. A program sends no origin and is accepted: this protects users of browsers and does not replace authentication. Other names are refused without this setting, since their owner can point them at this server.',
  }),
  webSocketMaxMessage: row({
    group,
    key: 'webSocketMaxMessage',
    isOwn: true,
    type: size('B', { min: 1, max: 2 ** 31 - 1 }),
    defaultValue: (inputs) => Math.min(2 ** 31 - 1, inputs.juteMaxBufferBytes + 4),
    defaultText: '`jute.maxbuffer` and 4 bytes: one whole request',
    description: 'Maximum size of a message. Message boundaries do not matter in the byte stream.',
  }),
} as const
