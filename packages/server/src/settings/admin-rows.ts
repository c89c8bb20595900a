import { isIpExpression } from '../core/auth/index.ts'
import {
  bool,
  duration,
  integer,
  list,
  oneOf,
  optional,
  pattern,
  port,
  someOf,
  text,
  size,
} from './value-types.ts'
import { row } from './row.ts'
import { storeRows } from './store-rows.ts'

const group = 'Admin server'
const stores = storeRows(group, 'admin.ssl', { isOwn: true })
/** Two years, which is what lists of such hosts in browsers ask for. */
const MAX_HSTS_MS = 730 * 86_400_000
/** The provider of Apache ZooKeeper that opens a port for Prometheus. */
export const PROMETHEUS_PROVIDER = 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider'

/** Returns whether a caller can prove such an identity. Without one that can be proved, no caller has the role. */
const isIdentity = (member: string): boolean =>
  member === 'super' ||
  /^(?:sasl|x509|digest|token):./.test(member) ||
  (member.startsWith('ip:') && isIpExpression(member.slice(3)))

const roleMembers = list(
  'identities separated by commas: super, ip: with an address or network, or sasl:, x509:, digest: or token: with a name, such as sasl:ada, x509:CN=ops*, ip:10.0.0.0/8',
  isIdentity,
  // The hash of a password tells who guesses well what it is.
  (member) => member.replace(/^(digest:[^:]*:).*/s, '$1(not shown)'),
)

/** The HTTP port for health, metrics and commands. */
export const adminRows = {
  adminEnabled: row({
    group,
    key: 'admin.enableServer',
    property: 'zookeeper.admin.enableServer',
    type: bool(),
    defaultValue: true,
    description: 'Opens the HTTP port.',
  }),
  adminAddress: row({
    group,
    key: 'admin.serverAddress',
    property: 'zookeeper.admin.serverAddress',
    type: text('a host name or an address'),
    defaultValue: '127.0.0.1',
    apacheDefault: '0.0.0.0',
    description: 'Address on which the HTTP port listens.',
  }),
  adminPort: row({
    group,
    key: 'admin.serverPort',
    property: 'zookeeper.admin.serverPort',
    type: optional(port()),
    defaultValue: undefined,
    defaultText: '8080 if it is free; the server runs without it otherwise',
    description: 'The HTTP port. A port that is set and cannot be opened ends the start with exit code 4.',
  }),
  adminCommandUrl: row({
    group,
    key: 'admin.commandURL',
    property: 'zookeeper.admin.commandURL',
    type: pattern(/^\/[\w/-]*[\w-]$/, 'a path such as /commands'),
    defaultValue: '/commands',
    description: 'Path of the commands of Apache ZooKeeper.',
  }),
  adminIdleTimeoutMs: row({
    group,
    key: 'admin.idleTimeout',
    property: 'zookeeper.admin.idleTimeout',
    type: duration('ms', { min: 1 }),
    defaultValue: 30_000,
    description:
      'Time without traffic after which an HTTP connection closes. The time in which the server makes an answer, or does not read what it is sent, does not count.',
  }),
  adminMaxConnections: row({
    group,
    key: 'admin.maxConnections',
    isOwn: true,
    type: integer(1, 65_535),
    defaultValue: 256,
    description:
      'Most HTTP connections. At the limit a new one replaces the one that has been idle for longest, of those of the address with most of them.',
  }),
  adminTrustedProxies: row({
    group,
    key: 'admin.trustedProxies',
    isOwn: true,
    type: list('addresses and networks separated by commas, such as 10.0.0.5, fd00::/8', isIpExpression),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description:
      'Proxies whose header `X-Forwarded-For` is believed: its last address that is not one of these is that of the caller, for roles, waits after failed logins and the audit log. A request of a proxy that names no caller so has no role by its address, and neither has one that names an address of loopback. From others the header is ignored.',
  }),
  adminHosts: row({
    group,
    key: 'admin.hosts',
    isOwn: true,
    type: list('host names separated by commas'),
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description:
      'Names beside localhost, addresses and the hosts of members under which callers without credentials reach the HTTP port. Requests that name another host are refused: a web page could have rebound its name.',
  }),
  adminAnonymous: row({
    group,
    key: 'admin.anonymous',
    isOwn: true,
    type: someOf('health', 'metrics', 'view', 'local-view'),
    defaultValue: ['health', 'metrics', 'local-view'] as const,
    apacheDefault: 'everything but snapshots',
    description:
      'What callers without credentials may do; `local-view` is `view` for callers on this machine, proxies on it included unless `admin.trustedProxies` names them.',
  }),
  adminRoleMetrics: role('metrics', 'may read metrics'),
  adminRoleView: role('view', 'may read everything that shows no data'),
  adminRoleOperate: role(
    'operate',
    'may also reset statistics, end sessions and connections, and drain the server',
  ),
  adminRoleBackup: role('backup', 'may also read the whole database as a snapshot'),
  adminRoleAdmin: role('admin', 'may do everything'),
  adminTokensFile: row({
    group,
    key: 'admin.tokensFile',
    isOwn: true,
    type: optional(text('a file')),
    isPath: true,
    isSecretFile: true,
    defaultValue: undefined,
    defaultText: 'none',
    description:
      'File of the tokens for `Authorization: Bearer`, with lines `name:role,role:sha256:not-after`: the hash of a token, and optionally a date after which it is refused. SIGHUP reads it again.',
  }),
  adminSnapshotEnabled: row({
    group,
    key: 'admin.snapshot.enabled',
    property: 'zookeeper.admin.snapshot.enabled',
    type: bool(),
    defaultValue: true,
    description: 'Enables the command `snapshot`.',
  }),
  adminRestoreEnabled: row({
    group,
    key: 'admin.restore.enabled',
    property: 'zookeeper.admin.restore.enabled',
    type: bool(),
    defaultValue: false,
    apacheDefault: 'true',
    description:
      'Enables the command `restore`, which replaces the data of a server without an ensemble by a snapshot.',
  }),
  adminRestoreMaxBytes: row({
    group,
    key: 'admin.restore.maxBytes',
    property: 'zookeeper.admin.restore.maxBytes',
    type: size('B', { min: 1 }),
    defaultValue: 64 * 2 ** 30,
    defaultText: '64 GiB',
    apacheDefault: 'no such limit',
    description:
      'The largest snapshot that is received to replace the data of a server or of an ensemble. A smaller one is refused too where the disk would have less than 1 GiB, or 5 % of its size, left.',
  }),
  adminRateLimitMs: row({
    group,
    key: 'admin.rateLimiterIntervalInMS',
    isChangeable: true,
    property: 'zookeeper.admin.rateLimiterIntervalInMS',
    type: duration('ms', { min: 0 }),
    defaultValue: 300_000,
    description:
      'Shortest time between two snapshots by the command `snapshot`, and between two restores by `restore`.',
  }),
  adminLivezStallMs: row({
    group,
    key: 'admin.livez.stallMs',
    isOwn: true,
    type: duration('ms', { min: 0 }),
    defaultValue: 0,
    defaultText: 'off',
    description:
      'How long a write of the log may be in flight before `/livez` fails. A restart mends a disk that hangs only where it brings another one.',
  }),
  adminForceHttps: row({
    group,
    key: 'admin.forceHttps',
    property: 'zookeeper.admin.forceHttps',
    type: bool(),
    defaultValue: false,
    description: 'Accepts TLS only on the HTTP port.',
  }),
  adminHstsMs: row({
    group,
    key: 'admin.hsts',
    isOwn: true,
    type: duration('s', { min: 0, max: MAX_HSTS_MS }),
    defaultValue: 0,
    defaultText: 'off',
    apacheDefault: '1 d, also for all names below that of the host',
    description:
      'For how long browsers that have reached this host by HTTPS use nothing else for it, on any of its ports (`Strict-Transport-Security`). Sent with answers over HTTPS alone, and never for names below that of the host.',
  }),
  adminPortUnification: row({
    group,
    key: 'admin.portUnification',
    property: 'zookeeper.admin.portUnification',
    type: bool(),
    defaultValue: false,
    description:
      'Accepts HTTP and HTTPS on the HTTP port; the first byte of a connection decides. `admin.forceHttps` takes precedence.',
  }),
  adminNeedClientAuth: row({
    group,
    key: 'admin.needClientAuth',
    property: 'zookeeper.admin.needClientAuth',
    type: bool(),
    defaultValue: false,
    apacheDefault: 'true',
    description:
      'Refuses TLS connections to the HTTP port without a trusted certificate, those of probes included.',
  }),
  adminClientAuth: row({
    group,
    key: 'admin.clientAuth',
    isOwn: true,
    type: oneOf('none', 'want', 'need'),
    defaultValue: 'none',
    description:
      'Whether callers of the HTTP port are asked for a certificate: `want` refuses one that is not trusted, `need` also a missing one. Roles such as `x509:CN=ops*` need `want` or `need`.',
  }),
  adminKeyStoreLocation: stores.location(
    'keyStore',
    '`ssl.quorum.keyStore.location`, else `ssl.keyStore.location`',
    'File with the private key and the certificate of the HTTP port: PKCS #12 or PEM.',
  ),
  adminKeyStorePassword: stores.password('keyStore'),
  adminKeyStorePasswordPath: stores.passwordPath('keyStore'),
  adminKeyStoreType: stores.type('keyStore', 'Format of the file.'),
  adminTrustStoreLocation: stores.location(
    'trustStore',
    '`ssl.quorum.trustStore.location`, else `ssl.trustStore.location`',
    'File with the authorities that sign the certificates of callers: PKCS #12 or PEM.',
  ),
  adminTrustStorePassword: stores.password('trustStore'),
  adminTrustStorePasswordPath: stores.passwordPath('trustStore'),
  adminTrustStoreType: stores.type('trustStore', 'Format of the file.'),
  metricsProvider: row({
    group,
    key: 'metricsProvider.className',
    type: oneOf(
      PROMETHEUS_PROVIDER,
      'org.apache.zookeeper.metrics.impl.DefaultMetricsProvider',
      'org.apache.zookeeper.metrics.impl.NullMetricsProvider',
    ),
    defaultValue: 'org.apache.zookeeper.metrics.impl.DefaultMetricsProvider',
    description:
      'With the Prometheus provider, the metrics of `/metrics` are also served on a port of their own, `metricsProvider.httpPort`.',
  }),
  metricsHost: row({
    group,
    key: 'metricsProvider.httpHost',
    type: text('a host name or an address'),
    defaultValue: '0.0.0.0',
    description: 'Address on which the port of the Prometheus provider listens.',
  }),
  metricsPort: row({
    group,
    key: 'metricsProvider.httpPort',
    type: port(),
    defaultValue: 7000,
    description:
      'Port of the Prometheus provider. It answers `/metrics` only, without credentials. If it cannot be opened, the start ends with exit code 4.',
  }),
  metricsExportRuntime: row({
    group,
    key: 'metricsProvider.exportJvmInfo',
    type: bool(),
    defaultValue: true,
    description: 'Exports metrics of the process: memory, garbage collection, delay of the event loop.',
  }),
  metricsNames: row({
    group,
    key: 'metrics.names',
    isOwn: true,
    type: oneOf('3.9', '3.10'),
    defaultValue: '3.9',
    description:
      'The release of Apache ZooKeeper whose names `/metrics` uses: counters of 3.10 end in `_total`, and its summaries have the quantile 0.95 instead of 0.9. `/metrics?format=openmetrics` has the names of 3.10 always.',
  }),
  stopDrainMs: row({
    group: 'Connections and requests',
    key: 'stop.drainMs',
    isChangeable: true,
    isOwn: true,
    type: duration('ms', { min: 0, max: 3_600_000 }),
    defaultValue: 0,
    apacheDefault: 'none',
    description:
      'Time between a signal to stop and the stop. The server is not ready meanwhile, accepts no sessions, and closes connections at an even rate.',
  }),
  stopPermitMs: row({
    group: 'Connections and requests',
    key: 'stop.permitMs',
    isChangeable: true,
    isOwn: true,
    type: duration('ms', { min: 0, max: 3_600_000 }),
    defaultValue: 0,
    apacheDefault: 'none',
    description:
      'How long a signal to stop waits for the permit of the leader, which it gives to as many voters as the quorum can spare; then the server stops without one. 0 asks for none.',
  }),
} as const

function role(name: string, mayDo: string) {
  return row({
    group,
    key: `admin.role.${name}`,
    isOwn: true,
    type: roleMembers,
    defaultValue: [] as readonly string[],
    defaultText: 'none',
    description: `Callers who ${mayDo}.`,
  })
}
