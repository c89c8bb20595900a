import {
  bool,
  duration,
  list,
  oneOf,
  optional,
  pattern,
  regularExpression,
  someOf,
  text,
  uriPattern,
  userOfId,
  users,
} from './value-types.ts'
import { row } from './row.ts'
import { storeRows } from './store-rows.ts'

const group = 'Security between members'

const location = (what: string) =>
  ({ type: optional(text('a file')), isPath: true, defaultValue: undefined, defaultText: what }) as const

const stores = storeRows(group, 'ssl.quorum')

/** TLS and logins on the ports for elections, for followers and for observers. */
export const memberSecurityRows = {
  sslQuorum: row({
    group,
    key: 'sslQuorum',
    property: 'zookeeper.sslQuorum',
    type: bool(),
    defaultValue: false,
    description:
      'Connects to other members with TLS, and accepts their connections with TLS only unless `portUnification` is on. To change a running ensemble, restart its members one after the other, three times: with `portUnification=true`, then also with `sslQuorum=true`, then without `portUnification`.',
  }),
  quorumPortUnification: row({
    group,
    key: 'portUnification',
    property: 'zookeeper.portUnification',
    type: bool(),
    defaultValue: false,
    description:
      'Accepts connections of other members with and without TLS; the first byte of a connection decides. For the time of the change to TLS: it leaves the ports open.',
  }),
  quorumKeyStoreLocation: stores.location(
    'keyStore',
    'none; needed for `sslQuorum` and `portUnification`',
    'File with the private key of this member, its certificate and those of its issuers: PKCS #12, or one PEM file with all of them.',
  ),
  quorumKeyStorePassword: stores.password('keyStore'),
  quorumKeyStorePasswordPath: stores.passwordPath('keyStore'),
  quorumKeyStoreType: stores.type(
    'keyStore',
    'Format of the file. JKS and BCFKS are rejected with the command that converts them.',
  ),
  quorumTrustStoreLocation: stores.location(
    'trustStore',
    'none; needed for `sslQuorum` and `portUnification`',
    'File with the certificates of the authorities that sign those of members: PEM or PKCS #12.',
  ),
  quorumTrustStorePassword: stores.password('trustStore'),
  quorumTrustStorePasswordPath: stores.passwordPath('trustStore'),
  quorumTrustStoreType: stores.type('trustStore', 'Format of the file.'),
  quorumTlsProtocol: row({
    group,
    key: 'ssl.quorum.protocol',
    property: 'zookeeper.ssl.quorum.protocol',
    type: oneOf('TLSv1.3', 'TLSv1.2'),
    defaultValue: 'TLSv1.3',
    description: 'Newest version of TLS between members.',
  }),
  quorumEnabledProtocols: row({
    group,
    key: 'ssl.quorum.enabledProtocols',
    property: 'zookeeper.ssl.quorum.enabledProtocols',
    type: someOf('TLSv1.2', 'TLSv1.3'),
    defaultValue: (inputs) =>
      inputs.quorumTlsProtocol === 'TLSv1.2' ? (['TLSv1.2'] as const) : (['TLSv1.2', 'TLSv1.3'] as const),
    defaultText: '`ssl.quorum.protocol` and older versions from TLSv1.2 on',
    apacheDefault: '`ssl.quorum.protocol` alone',
    description: 'Enabled versions of TLS between members.',
  }),
  quorumCipherSuites: row({
    group,
    key: 'ssl.quorum.ciphersuites',
    property: 'zookeeper.ssl.quorum.ciphersuites',
    type: list('names of cipher suites as Java has them, separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'those of the platform',
    description: 'Cipher suites, in order of preference.',
  }),
  quorumClientAuth: row({
    group,
    key: 'ssl.quorum.clientAuth',
    property: 'zookeeper.ssl.quorum.clientAuth',
    type: oneOf('need', 'want', 'none'),
    defaultValue: 'need',
    description:
      'Whether a member that connects must present a certificate. With `want` or `none`, any program may connect as any member.',
  }),
  quorumVerifiesHostNames: row({
    group,
    key: 'ssl.quorum.hostnameVerification',
    property: 'zookeeper.ssl.quorum.hostnameVerification',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'true, without effect while `fips-mode` is on',
    description:
      'Whether the certificate of a member must name one of its hosts in `server.N`, in both directions. A certificate then belongs to one member, and no other member can use it.',
  }),
  quorumVerifiesClientHostNames: row({
    group,
    key: 'ssl.quorum.clientHostnameVerification',
    property: 'zookeeper.ssl.quorum.clientHostnameVerification',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'true, without effect while `fips-mode` is on',
    description:
      'The same for members that connect to this one. Off, every certificate of the authorities may connect as any member.',
  }),
  quorumAllowedSubjects: row({
    group,
    key: 'ssl.quorum.allowedSubjects',
    isOwn: true,
    type: optional(regularExpression()),
    defaultValue: undefined,
    defaultText: 'none: certificates name hosts',
    apacheDefault: 'not supported',
    description:
      'Regular expression for the whole subject of the certificate of a member, such as `CN=zk-{id},O=Example`, where `{id}` is the id that the member claims. It replaces the check of host names.',
  }),
  quorumCertificateUri: row({
    group,
    key: 'ssl.quorum.id',
    isOwn: true,
    type: optional(uriPattern('{id}')),
    defaultValue: undefined,
    defaultText: 'none: certificates name hosts',
    apacheDefault: 'not supported',
    description:
      'URI that the certificate of a member must name, such as `spiffe://zabra/member/{id}`, where `{id}` is the id of the member. It replaces the check of host names. `zabra cert issue` writes this example into certificates.',
  }),
  quorumCrl: row({
    group,
    key: 'ssl.quorum.crl',
    property: 'zookeeper.ssl.quorum.crl',
    type: bool(),
    defaultValue: false,
    description: 'Rejects certificates that `ssl.quorum.crl.location` lists as revoked.',
  }),
  quorumCrlLocation: row({
    group,
    key: 'ssl.quorum.crl.location',
    ...location('none; needed for `ssl.quorum.crl=true`'),
    apacheDefault: 'not supported: Java fetches the lists that certificates name',
    description:
      'File with the certificate revocation list of every authority in a chain, PEM or DER. When a list has expired, members cannot connect any more.',
  }),
  quorumHandshakeTimeoutMs: row({
    group,
    key: 'ssl.quorum.handshakeDetectionTimeoutMillis',
    property: 'zookeeper.ssl.quorum.handshakeDetectionTimeoutMillis',
    type: duration('ms', { min: 1 }),
    defaultValue: 5000,
    description:
      'How long a connection may take to send its first byte, and for its TLS handshake. It is closed afterwards.',
  }),
  quorumCertReload: row({
    group,
    key: 'sslQuorumReloadCertFiles',
    property: 'zookeeper.sslQuorumReloadCertFiles',
    type: bool(),
    defaultValue: true,
    apacheDefault: 'false',
    description:
      'Checks every 10 s whether the files of `ssl.quorum` have changed; new connections then use their new contents.',
  }),
  quorumSaslEnabled: row({
    group,
    key: 'quorum.auth.enableSasl',
    type: bool(),
    defaultValue: false,
    description:
      'Lets members log in at each other with DIGEST-MD5. Alone it changes nothing: `quorum.auth.learnerRequireSasl` logs in, and `quorum.auth.serverRequireSasl` refuses members that do not. Switch them on in this order, one after the other on all members.',
  }),
  quorumLearnerRequiresSasl: row({
    group,
    key: 'quorum.auth.learnerRequireSasl',
    type: bool(),
    defaultValue: false,
    description: 'Whether this member logs in when it connects to another one.',
  }),
  quorumServerRequiresSasl: row({
    group,
    key: 'quorum.auth.serverRequireSasl',
    type: bool(),
    defaultValue: false,
    description: 'Whether other members must log in. A login that fails is refused in any case.',
  }),
  quorumLearnerSection: row({
    group,
    key: 'quorum.auth.learner.saslLoginContext',
    type: text('the name of a section'),
    defaultValue: 'QuorumLearner',
    description:
      'Section of the file in `jaas.config` with the options `username` and `password`, with which this member logs in.',
  }),
  quorumServerSection: row({
    group,
    key: 'quorum.auth.server.saslLoginContext',
    type: text('the name of a section'),
    defaultValue: 'QuorumServer',
    description:
      'Section of the file in `jaas.config` with the options `user_name="password"` of those who may log in.',
  }),
  quorumSaslUsers: row({
    group,
    key: 'quorum.auth.digest.users',
    isOwn: true,
    type: users(),
    defaultValue: {} as Readonly<Record<string, string>>,
    defaultText: 'those of the section',
    apacheDefault: 'in a JAAS file only',
    isSecret: true,
    description: 'Names and passwords of those who may log in, in place of that section.',
  }),
  quorumSaslUser: row({
    group,
    key: 'quorum.auth.digest.user',
    isOwn: true,
    type: optional(text('the name of a user')),
    defaultValue: undefined,
    defaultText: 'that of the section',
    apacheDefault: 'in a JAAS file only',
    description: 'Name with which this member logs in.',
  }),
  quorumSaslPassword: row({
    group,
    key: 'quorum.auth.digest.password',
    isOwn: true,
    type: optional(text('a password')),
    defaultValue: undefined,
    defaultText: 'that of the section',
    apacheDefault: 'in a JAAS file only',
    isSecret: true,
    description: 'Password with which this member logs in.',
  }),
  quorumUserOf: row({
    group,
    key: 'quorum.auth.users',
    isOwn: true,
    type: userOfId(),
    defaultValue: {} as Readonly<Record<string, string>>,
    defaultText: 'any user may be any member',
    apacheDefault: 'not supported',
    description:
      'The user of each member, such as `1:alice,2:bob`. A login as another user is refused, and so is one of a member that is not in the list.',
  }),
  quorumSecretFile: row({
    group,
    key: 'quorumSecretFile',
    ...location('none'),
    isSecretFile: true,
    apacheDefault: 'not supported',
    description:
      'File with a secret of at least 32 characters that all members share, such as the output of `openssl rand -base64 32`. Each member proves to the others that it knows the secret. The same on all members, and not together with members that run Apache ZooKeeper; it does not encrypt.',
  }),
  quorumSecret: row({
    group,
    key: 'quorumSecret',
    type: optional(pattern(/^[^]{32,4096}$/, 'a secret of at least 32 characters')),
    defaultValue: undefined,
    defaultText: 'the contents of `quorumSecretFile`',
    apacheDefault: 'not supported',
    isSecret: true,
    description: 'The secret itself, for servers in a program.',
  }),
} as const
