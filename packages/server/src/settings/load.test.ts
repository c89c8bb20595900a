import { describe, expect, test } from 'vitest'
import { parseConfiguration } from '../core/quorum/index.ts'
import { defaults, settingNames } from './defaults.ts'
import { loadSettings } from './load.ts'
import { formatFinding, type Environment } from './sources.ts'

interface Given {
  file?: string
  environment?: Environment
  flags?: readonly [flag: string, key: string, value: string][]
  files?: Record<string, string>
}

function load({ file, environment, flags = [], files = {} }: Given) {
  const loaded = loadSettings({
    ...(file === undefined ? {} : { file: { name: 'zoo.cfg', text: file } }),
    ...(environment === undefined ? {} : { environment }),
    flags: flags.map(([flag, key, value]) => ({ flag, key, value })),
    files: {
      read: (path) => files[path],
      resolve: (path) => (path.startsWith('/') ? path : `/here/${path.replace(/^\.\//, '')}`),
    },
  })
  const lines = (severity: string) =>
    loaded.findings.filter((finding) => finding.severity === severity).map(formatFinding)
  return { ...loaded, errors: lines('error'), warnings: lines('warning') }
}

/** Returns a file with the required keys and further lines. */
const cfg = (...lines: string[]) => ['dataDir=/data', 'clientPort=2181', ...lines].join('\n')

describe('defaults', () => {
  test('without any source all settings have their defaults and the data are in ./data', () => {
    const { settings, findings } = load({})
    expect(findings).toEqual([])
    expect(settings).toEqual(defaults({ dataDir: '/here/data' }))
  })

  test('derived defaults follow the settings that they depend on', () => {
    const settings = defaults({ tickTimeMs: 100, dataDir: '/x', juteMaxBufferBytes: 7 })
    expect(settings).toMatchObject({
      minSessionTimeoutMs: 200,
      maxSessionTimeoutMs: 2000,
      dataLogDir: '/x',
      juteMaxBufferExtraBytes: 7,
      webSocketMaxMessage: 11,
      clientPort: 2181,
    })
  })

  test('the result is frozen', () => {
    const settings = defaults()
    expect(Object.isFrozen(settings)).toBe(true)
    expect(Object.isFrozen(settings.fourLetterWords)).toBe(true)
    expect(Object.keys(settings).toSorted()).toEqual(settingNames.toSorted())
  })

  test('invalid values throw one error that lists all of them and shows no secret', () => {
    expect(() => defaults({ clientPort: 70_000, tickTimeMs: 0.5 })).toThrow(
      /Expected `clientPort` to be a TCP port.*got `70000` \(number\); Expected `tickTimeMs` to be a time/,
    )
    expect(() => defaults({ superDigest: 'hunter2' })).toThrow(/^(?!.*hunter2).*not shown/)
    expect(() => defaults({ clientPrt: 1 } as object)).toThrow('`clientPrt` is not a setting')
    expect(() => defaults({ minSessionTimeoutMs: 10, maxSessionTimeoutMs: 5 })).toThrow(RangeError)
    expect(() => defaults({ serverId: 255, extendedTypesEnabled: true })).toThrow('at most 254')
    expect(defaults({ serverId: 255, extendedTypesEnabled: false }).serverId).toBe(255)
  })

  test('a member has the id that it is given, not the default of a server alone', () => {
    const lines = 'server.1=a:1:2\nserver.2=b:1:2'
    const ensemble = parseConfiguration(lines)
    expect(defaults({ ensemble, serverId: 2 })).toMatchObject({ ensemble, serverId: 2 })
    expect(() => defaults({ ensemble })).toThrow(
      'Expected `serverId`, the id of this server in `ensemble` (1, 2)',
    )
    expect(() => defaults({ ensemble: lines, serverId: 1 } as object)).toThrow(
      'Expected `ensemble` to be a configuration, as parseConfiguration makes it of lines, got string',
    )
  })
})

describe('a configuration file', () => {
  test('the sample file of Apache ZooKeeper loads without findings', () => {
    const { settings, errors, warnings } = load({
      file: 'tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\nclientPort=2181\n#maxClientCnxns=60\n',
    })
    expect(errors).toEqual([])
    expect(warnings).toEqual([])
    expect(settings).toMatchObject({
      tickTimeMs: 2000,
      minSessionTimeoutMs: 4000,
      dataDir: '/var/lib/zookeeper',
      dataLogDir: '/var/lib/zookeeper',
    })
  })

  test('all errors are reported at once, with line, key, expected and actual value, and what to do', () => {
    const { settings, errors } = load({
      file: cfg('tickTime=2000 # ms', 'maxClientCnxns=', 'snapCount=many', 'maxClientCnxn=5'),
    })
    expect(settings).toBeUndefined()
    expect(errors).toEqual([
      'zoo.cfg:3: tickTime: expected a time from 1 ms to 24 d, as a bare number of milliseconds or with ms, s, m, h or d, got "2000 # ms". A comment needs a line of its own.',
      'zoo.cfg:4: maxClientCnxns: expected a whole number from 0 up, got nothing. Give a value or remove the line.',
      'zoo.cfg:5: snapCount: expected a whole number from 2 up, got "many".',
      'zoo.cfg:6: maxClientCnxn: is an unknown key. Did you mean maxClientCnxns? Correct or remove it, or set strictConfig=false to start anyway.',
    ])
  })

  test('strictConfig=false turns unknown keys into warnings', () => {
    const { errors, warnings } = load({ file: cfg('strictConfig=false', 'entirelyUnheardOf=1') })
    expect(errors).toEqual([])
    expect(warnings).toEqual([
      'zoo.cfg:4: entirelyUnheardOf: is an unknown key and has no effect. Remove it.',
    ])
  })

  test('the last value of a repeated key counts, with a warning', () => {
    const { settings, warnings } = load({ file: cfg('snapCount=10', 'snapCount=20') })
    expect(settings?.snapCount).toBe(20)
    expect(warnings).toEqual([
      'zoo.cfg:4: snapCount: repeats line 3; this later one counts. Remove one of them.',
    ])
  })

  test('dataDir is required', () => {
    expect(load({ file: 'clientPort=1' }).errors).toEqual([
      'zoo.cfg: dataDir: is not set. Add a line such as dataDir=/var/lib/zookeeper, or pass --data.',
    ])
  })

  test('an address without a port is rejected', () => {
    expect(load({ file: 'dataDir=/d\nclientPortAddress=::1' }).errors[0]).toContain(
      'is set but clientPort is not',
    )
  })

  test('relative paths are resolved against the working folder', () => {
    expect(load({ file: 'dataDir=./d\ndataLogDir=logs' }).settings).toMatchObject({
      dataDir: '/here/d',
      dataLogDir: '/here/logs',
    })
  })

  test('a minSessionTimeout above maxSessionTimeout is rejected', () => {
    expect(load({ file: cfg('minSessionTimeout=70000') }).errors[0]).toContain(
      'expected at most maxSessionTimeout (60000 ms), got 70000 ms',
    )
  })

  test('a default that follows from another setting must be valid too', () => {
    expect(load({ file: cfg('tickTime=200000000') }).errors).toEqual([
      'default: maxSessionTimeout: expected a time from 1 ms to 24 d, as a bare number of milliseconds or with ms, s, m, h or d, got 4000000 s, which follows from other settings. Set it.',
    ])
  })

  test('keys that ZooKeeper reads as Java properties only are accepted with a warning', () => {
    const { settings, warnings } = load({ file: cfg('jute.maxbuffer=4M') })
    expect(settings?.juteMaxBufferBytes).toBe(4 * 2 ** 20)
    expect(warnings[0]).toContain('takes -Djute.maxbuffer only')
  })

  test('a snapRetainCount below three becomes three, as in ZooKeeper', () => {
    const { settings, warnings } = load({ file: cfg('autopurge.snapRetainCount=1') })
    expect(settings?.purgeRetainCount).toBe(3)
    expect(warnings[0]).toContain('3 is used')
  })

  test('settings that weaken security or durability cause warnings', () => {
    const { warnings } = load({ file: cfg('skipACL=yes', 'forceSync=no') })
    expect(warnings.join()).toContain('every client may do everything')
    expect(warnings.join()).toContain('loses acknowledged writes')
  })

  test('skipACL and forceSync are what ZooKeeper makes of them, so that no file weakens this server alone', () => {
    const { settings, warnings } = load({ file: cfg('skipACL=true', 'forceSync=false') })
    expect(settings).toMatchObject({ skipAcl: false, forceSync: true })
    expect(warnings).toEqual([
      'zoo.cfg:3: skipACL: is taken as false; ZooKeeper too takes only yes as yes here. Write yes or no.',
      'zoo.cfg:4: forceSync: is taken as true; ZooKeeper too takes only no as no here. Write yes or no.',
    ])
    expect(load({ environment: { ZOO_CFG_EXTRA: 'skipACL=true' } }).warnings.join()).toContain(
      'is taken as false',
    )
  })

  test.each([
    [
      ['audit.chain=yes'],
      /audit\.chain: needs audit\.format=json: .* and audit\.format is apache\. Set it, or audit\.chain=false\.$/,
    ],
    [['audit.chain=yes', 'audit.format=json'], /audit\.chain: needs audit\.file: /],
  ])('refuses an audit log whose lines cannot be linked, with %j', (lines, message) => {
    expect(load({ file: cfg(...lines) }).errors.join('\n')).toMatch(message)
    expect(load({ file: cfg('audit.chain=yes', 'audit.format=json', 'audit.file=/a') }).errors).toEqual([])
  })

  test('backup.s3.endpoint has no credentials, since settings are shown', () => {
    const errors = (endpoint: string) => load({ file: cfg(`backup.s3.endpoint=${endpoint}`) }).errors
    expect(errors('https://minio.example:9000/')).toEqual([])
    expect(errors('https://user:password@minio.example')).toEqual([
      expect.stringContaining('without user and'),
    ])
  })

  test('audit.events takes categories and paths of reads, and refuses what is neither', () => {
    const given = load({ file: cfg('audit.events=Writes, config,reads:/a/b,reads:/c/**,reads:/') })
    expect(given.settings?.auditEvents).toEqual(['writes', 'config', 'reads:/a/b', 'reads:/c/**', 'reads:/'])
    for (const bad of ['reads', 'reads:', 'reads:a', 'reads:/a//b', 'reads:/a*/**/b/./c', 'write'])
      expect(load({ file: cfg(`audit.events=writes,${bad}`) }).errors.join()).toMatch(
        /audit\.events: expected one or more of writes, auth, sessions, admin, config and reads:\/PATH/,
      )
  })

  test('the names of metrics are those of a release that is known', () => {
    expect(load({ file: cfg('metrics.names=3.10') }).settings?.metricsNames).toBe('3.10')
    expect(load({ file: cfg('metrics.names=3.11') }).errors[0]).toContain(
      'metrics.names: expected one of 3.9, 3.10, got "3.11"',
    )
  })

  test('a key of this server alone has no note on how ZooKeeper reads it', () => {
    const { warnings } = load({ file: cfg('backup.logInterval=30s', 'audit.fsync=yes', 'stop.drainMs=5s') })
    expect(warnings).toEqual([])
  })

  test('keys of deployments that ZooKeeper ignores too do not keep a server from starting', () => {
    const { errors, warnings } = load({
      file: cfg(
        'quorum.auth.learner.loginContext=QuorumLearner',
        'maxTimeToWaitForEpoch=2000',
        'traceFile=/t',
        'zookeeper.log.dir=/l',
      ),
    })
    expect(errors).toEqual([])
    expect(warnings).toHaveLength(4)
  })

  test('keys that tune a JVM or are not supported cause warnings; test hooks and security features that are not supported cause errors', () => {
    const { errors, warnings } = load({
      file: cfg('nio.numSelectorThreads=4', 'admin.httpVersion=11', 'testingonly.x=1', 'ensembleAuthName=x'),
    })
    expect(warnings).toHaveLength(2)
    expect(errors).toHaveLength(2)
    expect(load({ file: cfg('emulate353TTLNodes=false') }).errors).toEqual([])
  })

  test('authentication providers of ZooKeeper are accepted, other classes are rejected', () => {
    const auth = 'org.apache.zookeeper.server.auth'
    expect(load({ file: cfg(`authProvider.1=${auth}.DigestAuthenticationProvider`) }).findings).toEqual([])
    for (const name of ['Key', 'Ensemble'])
      expect(
        load({ file: cfg(`authProvider.1=${auth}.${name}AuthenticationProvider`) }).warnings[0],
      ).toContain(`${name} authentication is not supported`)
    expect(load({ file: cfg('authProvider.1=com.example.Mine') }).errors[0]).toContain(
      'Java classes cannot be loaded',
    )
  })

  test.each([
    'backup:STovrOLROy6x1FRC0RuBccuS6lM=',
    'sasl:',
    'sasl:ada, ops',
    'ip:10.0.0.0/33',
    'ip:zk1.example',
    'x509:CN=ops,OU=svc',
  ])('a role of the HTTP port accepts no identity that no caller can prove: %s', (members) => {
    expect(load({ file: cfg(`admin.role.view=${members}`) }).errors[0]).toContain(
      'expected identities separated by commas: super, ip: with an address or network, or sasl:',
    )
  })

  test('a role of the HTTP port is given to identities of all kinds', () => {
    const members = 'sasl:ada, x509:CN=ops*, ip:10.0.0.0/8, ip:::1, digest:a:b=, token:deploy, super'
    expect(load({ file: cfg(`admin.role.view=${members}`) }).findings).toEqual([])
  })

  test('a super digest is never shown', () => {
    const { errors } = load({ file: cfg('DigestAuthenticationProvider.superDigest=super:not*base64') })
    expect(errors[0]).toContain('not shown')
    expect(errors[0]).not.toContain('not*base64')
  })

  test('a secret in a value that a program may not pass is not shown', () => {
    expect(() => defaults({ adminRoleAdmin: ['digest:ada:s3cretHash=', 'bob'] })).toThrow(
      /^(?!.*s3cret).*digest:ada:\(not shown\)/,
    )
  })

  test.each([
    ['admin.role.admin=digest:ada:s3cretHash=, bob', 'got "digest:ada:(not shown), bob"'],
    ['backup.s3.endpoint=https://ada:s3cret@minio:9000', 'got "https://(not shown)@minio:9000"'],
    ['admin.role.admin=digest:ada lovelace:s3cretHash=, bob', 'got "digest:ada lovelace:(not shown), bob"'],
    ['admin.role.admin=digets:ada:s3cretHashWithTheLengthOfSha=', 'got "digets:ada:(not shown)"'],
    ['backup.s3.endpoint=https://ada:s3/cret@minio:9000', 'got "https://(not shown)@minio:9000"'],
    ['backup.s3.endpoint=https://ada:un@safe s3cret@minio:9000', 'got "https://(not shown)@minio:9000"'],
    ['backup.s3.endpoint=ada:s3cret@minio:9000', 'got "(not shown)@minio:9000"'],
  ])('a secret in a value that is refused is not shown: %s', (line, message) => {
    const { errors } = load({ file: cfg(line) })
    expect(errors[0]).toContain(message)
    expect(errors[0]).not.toMatch(/s3\/?cret/)
  })

  test.each(['sasl:ada@EXAMPLE.ORG, bob', 'x509:CN=ada, ip:10.0.0.0/33'])(
    'a value without a secret is shown when it is refused: %s',
    (value) => {
      expect(load({ file: cfg(`admin.role.admin=${value}`) }).errors[0]).toContain(`got "${value}"`)
    },
  )
})

describe('members of an ensemble', () => {
  test('one server.N line means a standalone server with its id and client port', () => {
    const { settings, errors, warnings } = load({
      file: 'dataDir=/data\nserver.3=localhost:2888:3888;127.0.0.1:2199',
    })
    expect(errors).toEqual([])
    expect(warnings[0]).toContain('the server is standalone')
    expect(settings).toMatchObject({ serverId: 3, clientPort: 2199, clientPortAddress: '127.0.0.1' })
  })

  const three = ['server.1=a:2888:3888', 'server.2=b:2888:3888;2181', 'server.3=c:2888:3888:observer']

  test('several server.N lines mean an ensemble, and myid is the id of this member', () => {
    const files = { '/data/myid': '2' }
    const { settings, errors } = load({ file: cfg('initLimit=7', ...three), files })
    expect(errors).toEqual([])
    expect(settings).toMatchObject({ serverId: 2, clientPort: 2181, initLimit: 7, syncLimit: 5 })
    expect([...settings!.ensemble!.members.keys()]).toEqual([1, 2, 3])
    expect(settings!.ensemble!.members.get(3)!.role).toBe('observer')
    expect(load({ file: cfg('server.1=a:1:2'), files: { '/data/myid': '1' } }).settings!.ensemble).toBe(
      undefined,
    )
  })

  test('one server.N line with standaloneEnabled=false means an ensemble of one', () => {
    const file = cfg('standaloneEnabled=false', 'server.4=a:2888:3888')
    const { settings, errors } = load({ file, files: { '/data/myid': '4' } })
    expect(errors).toEqual([])
    expect([...settings!.ensemble!.members.keys()]).toEqual([4])
  })

  test('lines that contradict each other are reported with their place', () => {
    const files = { '/data/myid': '2' }
    const problem = (...lines: string[]): string | undefined => load({ file: cfg(...lines), files }).errors[0]
    expect(load({ file: cfg(...three) }).errors[0]).toContain('Write one of 1, 2, 3 into it')
    expect(load({ file: cfg(...three), files: { '/data/myid': '9' } }).errors[0]).toContain('got 9')
    expect(problem(...three, 'server.2=b:1:2;99')).toContain('clientPort: is 2181, but server.2 says 99')
    expect(problem(three[0]!, three[2]!)).toContain('the only participant')
    expect(problem(...three, 'server.4=a|b:1')).toMatch(/zoo\.cfg:\d+: server\.4: expected host:quorumPort/)
    expect(problem(...three, 'server.4=d:1:2|e:1:2')).toContain('needs multiAddress.enabled=true')
    expect(problem(...three, 'group.1=1')).toContain('is in no group')
    expect(problem(...three, 'weight.300=1')).toContain('from 0 to 255')
    expect(problem(...three, 'electionAlg=2')).toContain('electionAlg')
    expect(load({ file: cfg(...three, 'peerType=observer'), files }).warnings.join()).toContain(
      'makes this member a participant',
    )
  })

  test('the version of a configuration is the suffix of the name of its file', () => {
    const files = { '/here/zoo.cfg.dynamic.10000000a': three.join('\n'), '/data/myid': '1' }
    const { settings, errors } = load({ file: cfg('dynamicConfigFile=zoo.cfg.dynamic.10000000a'), files })
    expect(errors).toEqual([])
    expect(settings!.ensemble!.version).toBe(0x10000000a)
  })

  test('a malformed line is rejected with the expected form', () => {
    expect(load({ file: cfg('server.1=a:1'), files: {} }).errors).toEqual([])
    expect(load({ file: cfg('server.1=a') }).errors[0]).toContain('expected host:quorumPort:electionPort')
    expect(load({ file: cfg('server.one=a:1:2') }).errors[0]).toContain('expected server.N')
  })

  test('a reconfiguration that ZooKeeper has not finished is refused, unless the members are newer', () => {
    const next = (version: string): Record<string, string> => ({
      '/data/myid': '2',
      '/here/zoo.cfg.dynamic.next': `version=${version}\n${three.join('\n')}`,
      '/here/zoo.cfg.dynamic.10000000a': three.join('\n'),
    })
    const linked = cfg('dynamicConfigFile=zoo.cfg.dynamic.10000000a')
    expect(load({ file: linked, files: next('10000000b') }).errors).toEqual([
      '/here/zoo.cfg.dynamic.next: holds the reconfiguration 10000000b, which ZooKeeper has not finished. Start ZooKeeper with this file once more until it has, or remove the file if the members in zoo.cfg are the ones that count.',
    ])
    expect(load({ file: linked, files: next('10000000a') }).errors).toEqual([])
    expect(load({ file: cfg(...three), files: next('nonsense') }).errors[0]).toContain('"nonsense"')
    // In the data folder the file is one of this server, which reads it later.
    expect(
      load({ file: linked.replace('/data', '/here'), files: { ...next('10000000b'), '/here/myid': '2' } })
        .errors,
    ).toEqual([])
  })

  test('the static file must not declare members when there is a dynamic file', () => {
    const files = { '/here/zoo.dyn': 'server.1=[::1]:2888:3888:participant;2182\n' }
    expect(load({ file: 'dataDir=/data\ndynamicConfigFile=zoo.dyn', files }).settings).toMatchObject({
      clientPort: 2182,
    })
    expect(load({ file: cfg('dynamicConfigFile=zoo.dyn', 'server.1=a:1:2'), files }).errors[0]).toContain(
      'must be in the dynamic file',
    )
    expect(load({ file: cfg('dynamicConfigFile=gone') }).errors[0]).toContain('there is none at /here/gone')
    expect(load({ file: cfg('dynamicConfigFile=v'), files: { '/here/v': 'version=1' } }).errors[0]).toContain(
      'Remove this line: the version is the end of the name of the file',
    )
    expect(
      load({ file: cfg('dynamicConfigFile=v'), files: { '/here/v': 'tickTime=1' } }).errors[0],
    ).toContain('expected only server.N')
  })

  test('myid sets the server id; invalid contents are an error only for a member', () => {
    expect(load({ file: cfg(), files: { '/data/myid': '7\n' } })).toMatchObject({
      errors: [],
      settings: { serverId: 7 },
    })
    const placeholder = { '/data/myid': 'replace this text' }
    expect(load({ file: cfg(), files: placeholder })).toMatchObject({ errors: [], settings: { serverId: 1 } })
    expect(load({ file: cfg('server.2=a:1:2'), files: placeholder }).errors[0]).toContain('Write 2 into it')
  })
})

describe('the environment', () => {
  test('variables of the container image set their keys', () => {
    const environment = {
      ZOO_MY_ID: '5',
      ZOO_TICK_TIME: '1000',
      ZOO_SERVERS: 'server.5=localhost:2888:3888;2181',
      ZOO_4LW_COMMANDS_WHITELIST: 'srvr, ruok',
      ZOO_CFG_EXTRA: 'snapCount=77 preAllocSize=1024',
      ZOO_DATA_DIR: '/data',
      ZOO_DATADIR_AUTOCREATE_DISABLE: '1',
    }
    expect(load({ environment })).toMatchObject({
      errors: [],
      settings: {
        serverId: 5,
        tickTimeMs: 1000,
        clientPort: 2181,
        fourLetterWords: ['srvr', 'ruok'],
        snapCount: 77,
        preAllocSizeBytes: 2 ** 20,
        dataDir: '/data',
        autoCreateDataDir: false,
      },
    })
  })

  test('JVMFLAGS take precedence over SERVER_JVMFLAGS, and are split into words as in a shell', () => {
    const { settings } = load({
      environment: {
        SERVER_JVMFLAGS: '-Dzookeeper.snapCount=5',
        JVMFLAGS: `-Xmx1g "-Dzookeeper.snapCount=6" -Djute.maxbuffer='99'`,
      },
    })
    expect(settings).toMatchObject({ snapCount: 6, juteMaxBufferBytes: 99 })
  })

  test('other flags are reported without their values, since a value may be a password', () => {
    const { warnings } = load({
      environment: { JVMFLAGS: '-Xmx1g -Djavax.net.ssl.keyStorePassword=hunter2' },
    })
    expect(warnings).toEqual([
      'JVMFLAGS: -Xmx1g -Djavax.net.ssl.keyStorePassword have no effect here: there is no Java virtual machine.',
    ])
  })

  test('flags override the file, the file overrides variables, and variables override -D', () => {
    const environment = {
      ZOO_TICK_TIME: '1',
      ZOO_CFG_EXTRA: 'snapCount=11 maxCnxns=11',
      JVMFLAGS: '-Dzookeeper.snapCount=12 -Dzookeeper.maxCnxns=12 -Dzookeeper.globalOutstandingLimit=12',
    }
    const { settings, origins } = load({
      environment,
      file: cfg('maxCnxns=13', 'tickTime=3'),
      flags: [['--port', 'clientPort', '5']],
    })
    expect(settings).toMatchObject({
      snapCount: 11,
      maxCnxns: 13,
      globalOutstandingLimit: 12,
      tickTimeMs: 3,
      clientPort: 5,
    })
    expect(origins).toMatchObject({
      snapCount: 'ZOO_CFG_EXTRA',
      globalOutstandingLimit: 'JVMFLAGS',
      maxCnxns: 'zoo.cfg:3',
      clientPort: '--port',
      dataDir: 'zoo.cfg:1',
      forceSync: 'default',
    })
  })

  test('the ports for WebSockets and for HTTP bind to loopback by default', () => {
    const { settings } = load({ file: cfg('webSocketPort=2182', 'admin.serverPort=8080') })
    expect(settings).toMatchObject({
      webSocketPort: 2182,
      webSocketPortAddress: '127.0.0.1',
      adminAddress: '127.0.0.1',
    })
  })

  test.each(['largeRequestThreshold=1000', 'largeRequestMaxBytes=100000'])(
    '%s is refused until it has an effect',
    (line) => {
      expect(load({ file: cfg(line) }).errors.join()).toContain('is refused')
      expect(load({ file: cfg(line.replace(/=.*/, '=-1')) }).errors).toEqual([])
    },
  )

  test.each(['skipACL=yes', 'forceSync=no', 'snapCount=5'])(
    'zookeeper.%s in zoo.cfg has no effect, as in Apache ZooKeeper, and a warning says what to write',
    (line) => {
      const { settings, warnings } = load({ file: cfg(`zookeeper.${line}`) })
      expect(settings).toMatchObject({ skipAcl: false, forceSync: true, snapCount: 100_000 })
      expect(warnings.join()).toContain(`Write ${line.split('=')[0]}, or remove the line.`)
      const environment = { JVMFLAGS: `-Dzookeeper.${line}` }
      expect(load({ file: cfg(), environment }).warnings.join()).not.toContain('has no effect')
    },
  )

  test('a misspelled property is an error that names the closest key', () => {
    expect(load({ environment: { JVMFLAGS: '-Dzookeeper.forceSink=no' } }).errors[0]).toContain(
      'Did you mean forceSync?',
    )
  })
})

describe('TLS and WebSocket ports', () => {
  const keys = ['ssl.keyStore.location=tls/server.pem', 'ssl.trustStore.location=/tls/ca.pem']
  const file = (...lines: string[]) => ({ file: ['dataDir=/data', ...lines].join('\n') })

  test('with a TLS port alone there is no port without TLS, and paths are absolute', () => {
    const { settings, findings } = load(
      file('secureClientPort=2281', ...keys, 'ssl.keyStore.password=secret'),
    )
    expect(findings).toEqual([])
    expect(settings).toMatchObject({
      clientPort: undefined,
      secureClientPort: 2281,
      sslKeyStoreLocation: '/here/tls/server.pem',
      sslTrustStoreLocation: '/tls/ca.pem',
      sslClientAuth: 'need',
      sslEnabledProtocols: ['TLSv1.2', 'TLSv1.3'],
    })
  })

  test.each(['ssl', 'ssl.quorum', 'admin.ssl'])('an empty password of the files of %s means none', (port) => {
    const passwords = [`${port}.keyStore.password=`, `${port}.trustStore.password=`]
    const { settings, findings } = load(file('secureClientPort=2281', ...keys, ...passwords))
    expect(findings).toEqual([])
    expect(Object.values(settings ?? {}).filter((value) => value === '')).toEqual(['', ''])
  })

  test('a TLS configuration of ZooKeeper loads without findings', () => {
    const { settings, findings } = load(
      file(
        'clientPort=2181',
        'secureClientPort=2281',
        ...keys,
        'ssl.keyStore.type=PEM',
        'ssl.protocol=TLSv1.2',
        'ssl.ciphersuites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256',
        'ssl.clientAuth=want',
        'authProvider.x509=org.apache.zookeeper.server.auth.X509AuthenticationProvider',
      ),
    )
    expect(findings).toEqual([])
    expect(settings).toMatchObject({ sslEnabledProtocols: ['TLSv1.2'], sslClientAuth: 'want' })
  })

  test.each([
    [['secureClientPort=1'], /secureClientPort: needs ssl\.keyStore\.location/],
    [['webSocketPort=1', 'webSocketSecure=true'], /webSocketSecure: needs ssl\.keyStore\.location/],
    [['secureClientPort=1', keys[0]!], /ssl\.clientAuth: is need, which needs ssl\.trustStore\.location/],
    [['ssl.enabledProtocols=TLSv1.1'], /expected one or more of TLSv1\.2, TLSv1\.3/],
    [['ssl.x509.clientCertIdSanMatchRegex=('], /expected a regular expression/],
    [['webSocketPath=zabra'], /expected a path such as/],
    [['ssl.crl=true'], /ssl\.crl: needs ssl\.crl\.location/],
    [['ssl.ocsp=true'], /ssl\.ocsp: is refused: OCSP is not supported, .*use ssl\.crl=true/],
    [['client.portUnification=true'], /needs ssl\.keyStore\.location/],
    [['ssl.clientHostnameVerification=true'], /is refused: certificates of clients/],
    [['ssl.context.supplier.class=x'], /is refused: Java classes/],
    [['ssl.keystore.location=/x'], /Did you mean ssl\.keyStore\.location/],
  ])('%j is rejected', (lines, text) => {
    expect(load(file(...lines)).errors.join()).toMatch(text)
  })

  const quorumKeys = ['ssl.quorum.keyStore.location=/k', 'ssl.quorum.trustStore.location=/t']
  test.each([
    [['sslQuorum=true'], /sslQuorum: needs ssl\.quorum\.keyStore\.location.*zabra cert issue/],
    [['portUnification=true'], /portUnification: needs ssl\.quorum\.keyStore\.location/],
    [['sslQuorum=true', quorumKeys[0]!], /sslQuorum: needs ssl\.quorum\.trustStore\.location/],
    [['ssl.quorum.crl=true'], /ssl\.quorum\.crl: needs ssl\.quorum\.crl\.location/],
    [['ssl.quorum.ocsp=true'], /is refused: OCSP is not supported/],
    [['ssl.quorum.id=spiffe://member'], /expected a URI with \{id\}/],
    [['ssl.quorum.allowedSubjects=('], /expected a regular expression/],
    [['ssl.quorum.context.supplier.class=x'], /is refused: Java classes/],
    [['ssl.quorum.keystore.location=/x'], /Did you mean ssl\.quorum\.keyStore\.location/],
  ])('%j is rejected for connections between members', (lines, text) => {
    expect(load(file(...lines)).errors.join()).toMatch(text)
  })

  test.each([
    ['portUnification=true', /other members may connect without TLS/],
    ['ssl.quorum.clientAuth=want', /a program without a certificate may connect as any member/],
    ['ssl.quorum.hostnameVerification=false', /may be used by any member/],
    ['ssl.quorum.clientHostnameVerification=false', /may be used by any member that connects/],
  ])('%s is a warning at each start', (line, text) => {
    const { errors, warnings } = load(file('sslQuorum=true', ...quorumKeys, line))
    expect(errors).toEqual([])
    expect(warnings.join()).toMatch(text)
  })

  const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required'
  const jaas = `QuorumServer { ${module} user_quser="p1"; }; QuorumLearner { ${module} username="quser" password="p1"; };`
  const sasl = ['quorum.auth.enableSasl=true', 'quorum.auth.learnerRequireSasl=true', 'jaas.config=/jaas']
  const withJaas = (text: string, ...lines: string[]) => load({ ...file(...lines), files: { '/jaas': text } })

  test('the users of logins between members come from the JAAS file, without users of clients', () => {
    const loaded = withJaas(jaas, ...sasl, 'quorum.auth.users=1:quser')
    expect([
      loaded.errors,
      loaded.warnings.filter((line) => !line.includes('may connect without a login')),
    ]).toEqual([[], []])
    expect(loaded.settings).toMatchObject({
      quorumSaslUsers: { quser: 'p1' },
      quorumSaslUser: 'quser',
      quorumSaslPassword: 'p1',
      quorumUserOf: { '1': 'quser' },
      saslUsers: {},
    })
  })

  test('users who may be any member are named at the start', () => {
    const open = (...lines: string[]): number =>
      withJaas(jaas, ...sasl, ...lines).warnings.filter((line) => line.includes('may be any member')).length
    expect([open(), open('quorum.auth.users=1:quser')]).toEqual([1, 0])
  })

  test.each([
    [jaas, ['quorum.auth.serverRequireSasl=true'], /needs quorum\.auth\.enableSasl=true/],
    [jaas, ['quorum.auth.enableSasl=true'], /needs users who may log in/],
    [jaas.replace(/ QuorumLearner.*/, ''), sasl, /needs the user and password of this member/],
    [jaas.replace('username="quser"', ''), sasl, /expected the options username and password/],
    [jaas.replace('user_quser="p1"', ''), sasl, /no member can log in/],
    [
      jaas.replaceAll('DigestLoginModule', 'Krb5LoginModule'),
      sasl,
      /Kerberos is not supported between members/,
    ],
    [jaas, [...sasl, 'quorum.auth.users=a:b'], /expected pairs id:user/],
    [jaas, [...sasl, 'quorumSecretFile=/secret'], /cannot be on together with quorumSecretFile/],
    [jaas, ['quorumSecretFile=/none'], /there is none at \/none/],
    [jaas, ['quorumSecretFile=/short'], /expected a secret of 32 to 4096 characters, got 5\. Make one with/],
  ])('%j with %j is rejected', (text, lines, reason) => {
    const files = { '/jaas': text, '/secret': 'x'.repeat(32), '/short': 'hello\n' }
    const { errors } = load({ ...file(...lines), files })
    expect(errors.join()).toMatch(reason)
    expect(errors.join()).not.toContain('hello')
  })

  test('a secret is read from its file, without the end of its line', () => {
    const secret = 'x'.repeat(44)
    const { settings } = load({ ...file('quorumSecretFile=/secret'), files: { '/secret': `${secret}\n` } })
    expect(settings?.quorumSecret).toBe(secret)
  })

  test('defaults() rejects the same settings', () => {
    expect(() => defaults({ sslQuorum: true })).toThrow(/`sslQuorum` needs ssl\.quorum\.keyStore\.location/)
    expect(() => defaults({ secureClientPort: 0 })).toThrow(
      /`secureClientPort` needs ssl\.keyStore\.location/,
    )
    expect(defaults({ webSocketPort: 0 })).toMatchObject({ clientPort: 2181, webSocketMaxMessage: 1_048_579 })
  })
})
