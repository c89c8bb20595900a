/**
 * What happens to a key of Apache ZooKeeper that this server has no setting for.
 * `moot`: a warning; it tunes Java, or something that is always or never so here.
 * `later`: a warning; the feature that it belongs to is not served yet.
 * `guards`: refused while it is switched on, for ignoring it would leave the server more open than its operator believes.
 * `refused`: refused whatever its value.
 */
export type KeyStatus = 'moot' | 'later' | 'guards' | 'refused'

export interface KnownKey {
  /** The name in zoo.cfg; `*` stands for any rest. */
  readonly key: string
  readonly status: KeyStatus
  /** Completes the sentence "It has no effect here: …" or "It is refused: …". */
  readonly reason: string
}

const known = (status: KeyStatus, why: string, ...keys: readonly string[]): readonly KnownKey[] =>
  keys.map((key) => ({ key, status, reason: why }))

const javaThreads = 'it tunes the threads and buffers of the Java server'
const watchTable = 'it tunes watch tables of the Java server; ours are compact as they are'
const plainQuorum =
  'the ports for other members have no TLS yet, and ignoring it would send everything in the clear'
const kerberos = 'Kerberos is not supported; SASL users log in with DIGEST-MD5'
const adminServer = 'the HTTP admin server is not there yet; four-letter words are'
const metrics = 'the metrics endpoint is not there yet; the four-letter word mntr is'
const openDoor = 'and ignoring it would let everyone in'

/** Keys of Apache ZooKeeper 3.4 to 3.10 that are understood but not honoured. */
export const knownKeys: readonly KnownKey[] = [
  ...known(
    'moot',
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
    'moot',
    'there is no Java virtual machine to watch or to manage',
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
    'moot',
    watchTable,
    'watchManagerName',
    'watcherCleanThreadsNum',
    'watcherCleanThreshold',
    'watcherCleanIntervalInSeconds',
    'maxInProcessingDeadWatchers',
    'bitHashCacheSize',
  ),
  ...known(
    'moot',
    'replies are written straight into the connection, so there is nothing to cache',
    'maxResponseCacheSize',
    'maxGetChildrenResponseCacheSize',
  ),
  ...known(
    'later',
    'new connections are throttled by their number only, not by chance or weight',
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
    'later',
    'requests in progress are limited by globalOutstandingLimit only',
    'largeRequestThreshold',
    'largeRequestMaxBytes',
    'request_throttle_*',
    'request_stale_*',
    'throttled_op_wait_time',
  ),
  ...known(
    'moot',
    'a second signal ends a server that takes too long to stop',
    'request_throttler.shutdownTimeout',
  ),
  ...known('moot', 'writes are always logged together as they come', 'maxWriteQueuePollTime'),
  ...known('moot', 'the nodes of a closing session are always in its transaction', 'closeSessionTxn.enabled'),
  ...known('guards', `the scheme ensemble is not served yet, ${openDoor}`, 'ensembleAuthName'),
  ...known(
    'refused',
    'SHA1 is the only hash of the digest scheme here, and with another nobody would be recognised',
    'DigestAuthenticationProvider.digestAlg',
  ),
  ...known('moot', 'a snapshot always records its last transaction', 'serializeLastProcessedZxid.enabled'),
  ...known(
    'moot',
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
  ...known('moot', 'each access list is checked once, where the write is prepared', 'enableEagerACLCheck'),
  ...known(
    'moot',
    'members are told at once, and closed connections cost nobody time',
    'leader.nodelay',
    'follower.nodelay',
    'leader.closeSocketAsync',
    'learner.closeSocketAsync',
    'learner.asyncSending',
    'leader.ackLoggingFrequency',
    'leader.maxTimeToWaitForEpoch',
    'leader.maxConcurrentDiffSyncs',
    'follower.skipLearnerRequestToNextProcessor',
    'forward_learner_requests_to_commit_processor_disabled',
    'messageTracker.*',
    'skipTxnEnabled',
    'tcpKeepAlive',
  ),
  ...known('moot', 'all addresses of a member are tried at once', 'multiAddress.*'),
  ...known('moot', 'an observer always keeps its log', 'syncEnabled', 'observer.syncEnabled'),
  ...known(
    'moot',
    'a connection that says nothing is closed after nio.sessionlessCnxnTimeout',
    'ssl.handshakeDetectionTimeoutMillis',
  ),
  ...known('guards', plainQuorum, 'sslQuorum', 'portUnification'),
  ...known('later', 'members do not use TLS yet', 'ssl.quorum.*', 'sslQuorumReloadCertFiles'),
  ...known(
    'moot',
    'it concerns clients: whether they look at the host name of the server is theirs to decide',
    'ssl.hostnameVerification',
    'ssl.allowReverseDnsLookup',
  ),
  ...known(
    'guards',
    'certificates of clients are not compared with the names of their hosts, and ignoring it would let in whom it keeps out',
    'ssl.clientHostnameVerification',
  ),
  ...known(
    'guards',
    'OCSP is not supported, and ignoring it would let revoked certificates in; use ssl.crl=true with ssl.crl.location instead',
    'ssl.ocsp',
  ),
  ...known('refused', 'Java classes cannot be loaded here', 'ssl.context.supplier.class'),
  ...known('moot', 'TLS is always that of OpenSSL in Node', 'ssl.sslProvider'),
  ...known(
    'moot',
    'Node decides whether its OpenSSL is in FIPS mode; ssl.enabledProtocols and ssl.ciphersuites say the rest',
    'fips-mode',
  ),
  ...known(
    'guards',
    'members cannot log in to each other yet, and ignoring it would let anybody pass for one',
    'quorum.auth.enableSasl',
    'quorum.auth.learnerRequireSasl',
    'quorum.auth.serverRequireSasl',
  ),
  ...known('later', 'members cannot log in to each other yet', 'quorum.auth.*'),
  ...known(
    'moot',
    kerberos,
    'kerberos.*',
    'security.auth_to_local',
    'requireKerberosConfig',
    'kinit',
    'jaasLoginRenew',
  ),
  ...known(
    'moot',
    'ZooKeeper takes it as a Java property only; write jaas.config in this place',
    'java.security.auth.login.config',
  ),
  ...known(
    'moot',
    'ZooKeeper does nothing with it either; sessionRequireClientSASLAuth demands a login',
    'requireClientAuthScheme',
  ),
  ...known('later', adminServer, 'admin.*', 'IPAuthenticationProvider.usexforwardedfor'),
  ...known('later', metrics, 'metricsProvider.*'),
  ...known('later', 'the audit log is not there yet', 'audit.*'),
  ...known('later', 'path statistics are not there yet', 'pathStats.*'),
  ...known('guards', 'the old encoding of nodes with a time to live is not supported', 'emulate353TTLNodes'),
  ...known('refused', 'any SASL user would pass for another one', 'letAnySaslUserDoX'),
  ...known(
    'moot',
    'what waits for an observer is bounded as it is for every member',
    'observerMaster.sizeLimit',
  ),
  ...known('refused', 'it is a test hook', 'test*', 'testingonly*'),
]

const exact = new Map(knownKeys.filter(({ key }) => !key.endsWith('*')).map((known) => [known.key, known]))
const prefixes = knownKeys.filter(({ key }) => key.endsWith('*'))

/** The entry for a key as it stands in zoo.cfg, or nothing when nobody knows it. */
export function findKnownKey(key: string): KnownKey | undefined {
  return exact.get(key) ?? prefixes.find((known) => key.startsWith(known.key.slice(0, -1)))
}
