import { expect, test } from 'vitest'
import { loadSettings } from './load.ts'

/** Configurations as deployments of Apache ZooKeeper write them, and the keys that have a warning here. */
const deployments: Record<string, { file: string; dynamic?: string; flags?: string; warns?: string[] }> = {
  'Debian package': { file: 'tickTime=2000 initLimit=10 syncLimit=5 dataDir=/data clientPort=2181' },
  'container of Bitnami with TLS and logins': {
    file: `tickTime=2000 initLimit=10 syncLimit=5 dataDir=/data clientPort=2181
      autopurge.snapRetainCount=3 autopurge.purgeInterval=0 preAllocSize=65536 snapCount=100000
      metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
      metricsProvider.httpPort=9141 metricsProvider.exportJvmInfo=true
      maxCnxns=0 maxClientCnxns=60 reconfigEnabled=false quorumListenOnAllIPs=true
      4lw.commands.whitelist=srvr,mntr,ruok maxSessionTimeout=40000 admin.serverPort=8080 admin.enableServer=true
      server.1=zk-0.zk:2888:3888;2181 server.2=zk-1.zk:2888:3888;2181 server.3=zk-2.zk:2888:3888;2181
      client.secure=true ssl.clientAuth=none secureClientPort=3181
      serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
      ssl.keyStore.password=x ssl.keyStore.location=/k.p12 ssl.trustStore.password=x ssl.trustStore.location=/t.p12
      authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider requireClientAuthScheme=sasl
      quorum.auth.enableSasl=true quorum.auth.learnerRequireSasl=true quorum.auth.serverRequireSasl=true
      quorum.auth.learner.saslLoginContext=QuorumLearner quorum.auth.server.saslLoginContext=QuorumServer`,
    flags: '-Djava.security.auth.login.config=/jaas.conf -Dzookeeper.electionPortBindRetry=0',
    warns: ['client.secure', 'quorum.auth.users', 'requireClientAuthScheme', 'serverCnxnFactory'],
  },
  Strimzi: {
    file: `dataDir=/data 4lw.commands.whitelist=* standaloneEnabled=false reconfigEnabled=true
      serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
      ssl.clientAuth=need ssl.quorum.clientAuth=need secureClientPort=2181 sslQuorum=true
      ssl.trustStore.location=/t.p12 ssl.trustStore.password=x ssl.trustStore.type=PKCS12
      ssl.quorum.trustStore.location=/t.p12 ssl.quorum.trustStore.password=x ssl.quorum.trustStore.type=PKCS12
      ssl.keyStore.location=/k.p12 ssl.keyStore.password=x ssl.keyStore.type=PKCS12
      ssl.quorum.keyStore.location=/k.p12 ssl.quorum.keyStore.password=x ssl.quorum.keyStore.type=PKCS12
      tickTime=2000 initLimit=5 syncLimit=2 autopurge.purgeInterval=1 admin.enableServer=false
      server.1=0.0.0.0:2888:3888:participant;127.0.0.1:12181
      server.2=zk-1.kafka.svc:2888:3888:participant;127.0.0.1:12181
      server.3=zk-2.kafka.svc:2888:3888:participant;127.0.0.1:12181`,
    warns: ['serverCnxnFactory'],
  },
  'operator of Pravega': {
    file: `4lw.commands.whitelist=cons,envi,conf,crst,srvr,stat,mntr,ruok dataDir=/data standaloneEnabled=false
      reconfigEnabled=true skipACL=yes initLimit=10 syncLimit=2 tickTime=2000 globalOutstandingLimit=1000
      metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
      metricsProvider.httpPort=7000 metricsProvider.exportJvmInfo=true preAllocSize=65536 snapCount=10000
      commitLogCount=500 snapSizeLimitInKb=4194304 maxCnxns=0 maxClientCnxns=60 minSessionTimeout=4000
      maxSessionTimeout=40000 autopurge.snapRetainCount=3 autopurge.purgeInterval=1 quorumListenOnAllIPs=false
      admin.serverPort=8080 dynamicConfigFile=/zoo.cfg.dynamic`,
    dynamic: `server.1=zk-0.zk:2888:3888:participant;0.0.0.0:2181 server.2=zk-1.zk:2888:3888:participant;0.0.0.0:2181
      server.3=zk-2.zk:2888:3888:participant;0.0.0.0:2181 server.4=zk-3.zk:2888:3888:observer;0.0.0.0:2181`,
    warns: ['skipACL'],
  },
  'Confluent Platform with Kerberos': {
    file: `dataDir=/data dataLogDir=/log clientPort=2181 maxClientCnxns=0 admin.enableServer=False tickTime=2000
      initLimit=5 syncLimit=2 autopurge.snapRetainCount=10 autopurge.purgeInterval=1 ssl.clientAuth=none
      secureClientPort=2182 serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
      authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider
      authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
      ssl.keyStore.location=/k.p12 ssl.keyStore.password=x ssl.trustStore.location=/t.p12 ssl.trustStore.password=x
      quorum.auth.learner.loginContext=QuorumLearner quorum.auth.server.loginContext=QuorumServer
      quorum.cnxn.threads.size=20 jaasLoginRenew=3600000 kerberos.removeHostFromPrincipal=true
      server.1=one:2888:3888 server.2=two:2888:3888 server.3=three:2888:3888`,
    warns: [
      'jaasLoginRenew',
      'kerberos.removeHostFromPrincipal',
      'quorum.auth.learner.loginContext',
      'quorum.auth.server.loginContext',
      'quorum.cnxn.threads.size',
      'serverCnxnFactory',
    ],
  },
  Cloudera: {
    file: `tickTime=2000 initLimit=10 syncLimit=5 dataDir=/data dataLogDir=/data clientPort=2181 maxClientCnxns=60
      minSessionTimeout=4000 maxSessionTimeout=60000 autopurge.purgeInterval=24 autopurge.snapRetainCount=5
      quorum.auth.enableSasl=false quorum.cnxn.threads.size=20 admin.enableServer=false admin.serverPort=5181
      leaderServes=yes server.1=zk1:3181:4181 server.2=zk2:3181:4181 server.3=zk3:3181:4181`,
    warns: ['quorum.cnxn.threads.size'],
  },
  'manifests for ClickHouse': {
    file: `tickTime=2000 initLimit=300 syncLimit=10 maxClientCnxns=2000 maxTimeToWaitForEpoch=2000
      maxSessionTimeout=60000000 dataDir=/data dataLogDir=/log autopurge.snapRetainCount=10 autopurge.purgeInterval=1
      preAllocSize=131072 snapCount=3000000 leaderServes=yes standaloneEnabled=false 4lw.commands.whitelist=*
      metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
      metricsProvider.httpPort=7000 skipACL=true fastleader.maxNotificationInterval=10000
      server.1=one:2888:3888;2181`,
    warns: ['maxTimeToWaitForEpoch', 'skipACL'],
  },
  NiFi: {
    file: `initLimit=10 autopurge.purgeInterval=24 syncLimit=5 tickTime=2000 dataDir=./state
      autopurge.snapRetainCount=30 server.1=one:2888:3888;2181 server.2=two:2888:3888;2181 server.3=three:2888:3888;2181`,
  },
}

const jaas = `QuorumServer { org.apache.zookeeper.server.auth.DigestLoginModule required user_zk="secret"; };
  QuorumLearner { org.apache.zookeeper.server.auth.DigestLoginModule required username="zk" password="secret"; };
  Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_ada="secret"; };`

const lines = (text: string): string => text.split(/\s+/).join('\n')

test.each(Object.entries(deployments))(
  'a server starts with the configuration of %s unchanged',
  (_, { file, dynamic = '', flags, warns = [] }) => {
    const files: Record<string, string> = {
      '/zoo.cfg.dynamic': lines(dynamic),
      '/jaas.conf': jaas,
      '/data/myid': '1',
      '/here/state/myid': '1',
    }
    const { findings, settings } = loadSettings({
      file: { name: 'zoo.cfg', text: lines(file) },
      environment: flags === undefined ? {} : { JVMFLAGS: flags },
      flags: [],
      files: {
        read: (path) => files[path],
        resolve: (path) => (path.startsWith('/') ? path : `/here/${path.replace(/^\.\//, '')}`),
      },
    })
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    expect(settings).toBeDefined()
    expect(new Set(findings.map(({ key }) => key))).toEqual(new Set(warns))
  },
)
