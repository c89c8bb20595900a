/**
 * How a key of Apache ZooKeeper without a setting in this server is handled.
 * `ignored`: a warning; it tunes Java, or a behaviour that is fixed here.
 * `unsupported`: a warning; the feature does not exist yet.
 * `rejectedIfEnabled`: an error while it is enabled, because ignoring it would leave the server less secure than its operator believes.
 * `rejected`: an error, whatever its value.
 */
export type KeyStatus = 'ignored' | 'unsupported' | 'rejectedIfEnabled' | 'rejected'

export interface KnownKey {
  /** Name in zoo.cfg; a `*` at the end stands for any suffix. */
  readonly key: string
  readonly status: KeyStatus
  /** Completes the sentence "has no effect here: …" or "is refused: …". */
  readonly reason: string
}

const known = (status: KeyStatus, why: string, ...keys: readonly string[]): readonly KnownKey[] =>
  keys.map((key) => ({ key, status, reason: why }))

const javaThreads = 'it tunes the threads and buffers of the Java server'
const watchTable = 'it tunes the watch tables of the Java server'
const kerberos = 'Kerberos is not supported; SASL users log in with DIGEST-MD5'
const adminServer = 'this setting of the HTTP port is not supported yet'
const metrics = 'metrics are computed when they are read, without threads, queues or TLS of their own'
const letsEveryoneIn = 'and ignoring it would let everyone in'

/** Keys of Apache ZooKeeper 3.4 to 3.10 that are recognised and have no setting. */
export const knownKeys: readonly KnownKey[] = [
  ...known(
    'ignored',
    javaThreads,
    'nio.numSelectorThreads',
    'nio.numWorkerThreads',
    'nio.directBufferBytes',
    'nio.shutdownTimeout',
    'commitProcessor.numWorkerThreads',
    'commitProcessor.maxReadBatchSize',
    'commitProcessor.maxCommitBatchSize',
    'commitProcessor.shutdownTimeout',
    'commitProcessor.commitBatchSize',
    'intBufferStartingSizeBytes',
    'netty.advancedFlowControl.enabled',
    'netty.*',
    'serverCnxnFactory',
    'quorum.cnxn.threads.size',
  ),
  ...known(
    'ignored',
    'there is no Java virtual machine to monitor or manage',
    'jvm.pause.*',
    'jmx.*',
    'disableJMX',
    'log4j.*',
    'root.logger',
    'console.threshold',
    'log.*',
    'tracelog.*',
    'jdk.*',
  ),
  ...known(
    'ignored',
    watchTable,
    'watchManagerName',
    'watcherCleanThreadsNum',
    'watcherCleanThreshold',
    'watcherCleanIntervalInSeconds',
    'maxInProcessingDeadWatchers',
    'bitHashCacheSize',
  ),
  ...known(
    'ignored',
    'replies are encoded directly into the output buffer, so there is no response cache',
    'maxResponseCacheSize',
    'maxGetChildrenResponseCacheSize',
  ),
  ...known(
    'unsupported',
    'new connections are throttled by their number only, not by probability or weight',
    'connection_throttle_freeze_time',
    'connection_throttle_drop_increase',
    'connection_throttle_drop_decrease',
    'connection_throttle_decrease_ratio',
    'connection_throttle_weight_enabled',
    'connection_throttle_global_session_weight',
    'connection_throttle_renew_session_weight',
    'connection_throttle_local_session_weight',
  ),
  ...known(
    'unsupported',
    'outstanding requests are limited by globalOutstandingLimit only',
    'request_throttle_*',
    'request_stale_*',
    'throttled_op_wait_time',
  ),
  ...known(
    'ignored',
    'a second signal stops a server that takes too long to shut down',
    'request_throttler.shutdownTimeout',
  ),
  ...known('ignored', 'writes that are pending are always logged in one batch', 'maxWriteQueuePollTime'),
  ...known(
    'ignored',
    'a closeSession transaction always lists the ephemeral nodes of the session',
    'closeSessionTxn.enabled',
  ),
  ...known(
    'rejectedIfEnabled',
    `the scheme ensemble is not supported yet, ${letsEveryoneIn}`,
    'ensembleAuthName',
  ),
  ...known(
    'rejected',
    'the digest scheme supports SHA1 only, and with another hash no client could authenticate',
    'DigestAuthenticationProvider.digestAlg',
  ),
  ...known('ignored', 'a snapshot always records its last transaction', 'serializeLastProcessedZxid.enabled'),
  ...known(
    'ignored',
    'it concerns clients, not servers',
    'client.secure',
    'clientCnxnSocket',
    'sasl.client',
    'sasl.client.*',
    'sasl.clientconfig',
    'server.principal',
    'server.realm',
    'request.timeout',
    'disableAutoWatchReset',
    'shuffleDnsResponse',
    'hostProvider.*',
  ),
  ...known(
    'ignored',
    'members are notified at once, and closing a connection never blocks',
    'leader.nodelay',
    'follower.nodelay',
    'leader.closeSocketAsync',
    'learner.closeSocketAsync',
    'learner.asyncSending',
    'leader.ackLoggingFrequency',
    'leader.maxTimeToWaitForEpoch',
    'maxTimeToWaitForEpoch',
    'leader.maxConcurrentDiffSyncs',
    'follower.skipLearnerRequestToNextProcessor',
    'forward_learner_requests_to_commit_processor_disabled',
    'messageTracker.*',
    'skipTxnEnabled',
    'tcpKeepAlive',
  ),
  ...known('ignored', 'all addresses of a member are tried concurrently', 'multiAddress.*'),
  ...known('ignored', 'an observer always keeps its log', 'syncEnabled', 'observer.syncEnabled'),
  ...known(
    'ignored',
    'a connection that sends nothing is closed after nio.sessionlessCnxnTimeout',
    'ssl.handshakeDetectionTimeoutMillis',
  ),
  ...known(
    'ignored',
    'the certificate of a member is compared with server.N, without a reverse look-up of addresses',
    'ssl.quorum.allowReverseDnsLookup',
  ),
  ...known(
    'ignored',
    'it concerns clients, which decide whether to verify the host name of the server',
    'ssl.hostnameVerification',
    'ssl.allowReverseDnsLookup',
  ),
  ...known(
    'rejectedIfEnabled',
    'certificates of clients are not compared with the names of their hosts, and ignoring it would accept clients that it rejects',
    'ssl.clientHostnameVerification',
  ),
  ...known(
    'rejectedIfEnabled',
    'OCSP is not supported, and ignoring it would accept revoked certificates; use ssl.crl=true with ssl.crl.location instead',
    'ssl.ocsp',
    'ssl.quorum.ocsp',
  ),
  ...known(
    'rejected',
    'Java classes cannot be loaded here',
    'ssl.context.supplier.class',
    'ssl.quorum.context.supplier.class',
  ),
  ...known(
    'ignored',
    'TLS is always provided by OpenSSL in Node',
    'ssl.sslProvider',
    'ssl.quorum.sslProvider',
  ),
  ...known(
    'ignored',
    'FIPS mode is an option of Node and its OpenSSL; use ssl.enabledProtocols and ssl.ciphersuites for the rest',
    'fips-mode',
  ),
  ...known(
    'ignored',
    kerberos,
    'kerberos.*',
    'security.auth_to_local',
    'requireKerberosConfig',
    'kinit',
    'quorum.auth.kerberos.servicePrincipal',
    'jaasLoginRenew',
  ),
  ...known(
    'ignored',
    'ZooKeeper reads it as a Java property only; use jaas.config in this file',
    'java.security.auth.login.config',
  ),
  ...known(
    'ignored',
    'ZooKeeper ignores it too; sessionRequireClientSASLAuth requires a login',
    'requireClientAuthScheme',
  ),
  ...known(
    'ignored',
    'ZooKeeper ignores it too; quorum.auth.learner.saslLoginContext and quorum.auth.server.saslLoginContext name the sections',
    'quorum.auth.learner.loginContext',
    'quorum.auth.server.loginContext',
  ),
  ...known(
    'ignored',
    'requests are not traced into a file; audit.enable=true records those that change something',
    'traceFile',
    'requestTraceFile',
  ),
  ...known('unsupported', adminServer, 'admin.*'),
  ...known(
    'ignored',
    'the HTTP port believes X-Forwarded-For of the proxies that admin.trustedProxies names',
    'IPAuthenticationProvider.usexforwardedfor',
  ),
  ...known('unsupported', metrics, 'metricsProvider.*'),
  ...known(
    'ignored',
    'audit lines go to audit.file or to the log of the server, without a Java class',
    'audit.impl.class',
  ),
  ...known(
    'rejectedIfEnabled',
    'large requests are limited by jute.maxbuffer and backpressure only, and ignoring the setting would leave them unlimited',
    'largeRequestThreshold',
    'largeRequestMaxBytes',
  ),
  ...known(
    'ignored',
    'zabra top and GET /api/v1/top count requests by path without a setting',
    'pathStats.*',
  ),
  ...known('rejectedIfEnabled', 'the old encoding of TTL nodes is not supported', 'emulate353TTLNodes'),
  ...known('rejected', 'any SASL user could act as another one', 'letAnySaslUserDoX'),
  ...known('ignored', 'the queue for an observer is bounded as for every member', 'observerMaster.sizeLimit'),
  ...known('rejected', 'it is a test hook', 'test*', 'testingonly*'),
]

const exact = new Map(knownKeys.filter(({ key }) => !key.endsWith('*')).map((known) => [known.key, known]))
const prefixes = knownKeys.filter(({ key }) => key.endsWith('*'))

/** Returns the entry for a key of zoo.cfg, or undefined for an unknown key. */
export function findKnownKey(key: string): KnownKey | undefined {
  return exact.get(key) ?? prefixes.find((known) => key.startsWith(known.key.slice(0, -1)))
}
