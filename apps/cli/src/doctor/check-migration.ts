import { basename, dirname, join } from 'node:path'
import type { SnapshotNode } from '@zabra/server/files'
import type { Environment, LoadedSettings } from '@zabra/server/settings'
import { finding, type Finding } from './finding.ts'

type Settings = NonNullable<LoadedSettings['settings']>

/** Files beside a `zoo.cfg` from which the start script of Apache ZooKeeper takes variables. */
const VARIABLE_FILES = ['zookeeper-env.sh', 'java.env', 'environment']
const JAVA_OPTIONS = ['SERVER_JVMFLAGS', 'JVMFLAGS', 'JAVA_OPTS']
/** Schemes of access lists that a server decides about; entries of others grant nothing. */
const SCHEMES = new Set(['world', 'auth', 'digest', 'ip', 'x509', 'sasl', 'super'])

/**
 * Returns the variables that the start script of a server would set: from files beside its `zoo.cfg`, or `javaOptions` in place of
 * their Java options. Commands in the files are not run.
 */
export function startVariables(
  file: string,
  javaOptions: string | undefined,
  read: (path: string) => string | undefined,
): Environment {
  const variables: Record<string, string> = {}
  for (const name of VARIABLE_FILES)
    for (const [, key = '', value = ''] of (read(join(dirname(file), name)) ?? '').matchAll(
      /^\s*(?:export\s+)?([A-Z\d_]+)=(.*)$/gm,
    ))
      variables[key] = value
        .trim()
        .replace(/^(["'])(.*)\1$/, '$2')
        .replace(/\$\{?\w+\}?/g, '')
  const flags = javaOptions ?? JAVA_OPTIONS.map((key) => variables[key] ?? '').join(' ')
  const { SERVER_JVMFLAGS: _, JAVA_OPTS: _opts, ...others } = variables
  return { ...others, JVMFLAGS: flags.trim() }
}

/** Finds what differs when a Zabra server takes the place of an Apache ZooKeeper server with these settings and variables. */
export function* checkMigration(
  file: string,
  { settings }: LoadedSettings,
  variables: Environment,
  firstBytes: (path: string) => Uint8Array | undefined,
): Generator<Finding> {
  const flags = variables['JVMFLAGS'] ?? ''
  if (variables['JMXPORT'] || flags.includes('com.sun.management.jmxremote'))
    yield finding(
      'jmx',
      file,
      'the server is watched over JMX, which Zabra does not have',
      'Let those programs read /metrics (metricsProvider.className, the same names) or /commands/monitor of the HTTP port.',
    )
  const heap = /-Xmx(\w+)/.exec(flags)?.[1] ?? variables['ZK_SERVER_HEAP']
  if (heap !== undefined)
    yield finding(
      'java-heap',
      file,
      `the Java heap is limited to ${heap}`,
      'Set NODE_OPTIONS=--max-old-space-size=MEGABYTES for the Zabra server instead.',
    )
  const options = javaSettings(flags)
  if (options.length > 0)
    yield finding(
      'java-options',
      file,
      `${options.join(', ')} ${options.length > 1 ? 'are Java options' : 'is a Java option'}, outside of the file`,
      'Start the Zabra server with the same JVMFLAGS in its environment, or write them into the file, without -D and zookeeper.: else they are lost.',
    )
  if (settings === undefined) return
  for (const path of storesOf(settings)) {
    const bytes = firstBytes(path)
    if (bytes === undefined)
      yield finding(
        'store-elsewhere',
        path,
        'it cannot be read here',
        'Run this on the machine of the server.',
      )
    else if (bytes[0] === 0xfe && bytes[1] === 0xed)
      yield finding(
        'store-jks',
        path,
        'it is a JKS store, which only Java can read',
        `Convert it: keytool -importkeystore -srckeystore ${basename(path)} -destkeystore ${basename(path).replace(/\.jks$/i, '')}.p12 -deststoretype PKCS12, and name the new file.`,
      )
  }
  if (settings.ensemble === undefined)
    yield finding(
      'one-server',
      file,
      'the server is alone, so clients wait while it is replaced',
      'Replace it at a quiet time: clients reconnect with their sessions within the session timeout.',
    )
}

/** Returns the names of Java options that are settings; their values may be secrets. */
function javaSettings(flags: string): string[] {
  const names = [...flags.matchAll(/(?:^|[\s"'])-D([\w.-]+)=/g)].map(([, name = '']) => name)
  return names.filter((name) => SETTING.test(name))
}

/** The properties that Apache ZooKeeper takes as settings. */
const SETTING =
  /^(?:zookeeper|jute|znode|readonlymode|leader|follower|fsync|learner)\.|^java\.security\.auth\.login\.config$/

function storesOf(settings: Settings): string[] {
  const { sslKeyStoreLocation, sslTrustStoreLocation, quorumKeyStoreLocation, quorumTrustStoreLocation } =
    settings
  const paths = [
    sslKeyStoreLocation,
    sslTrustStoreLocation,
    quorumKeyStoreLocation,
    quorumTrustStoreLocation,
  ].filter((path) => path !== undefined && path !== '')
  return [...new Set(paths as string[])]
}

/** A node with its access list. */
type ListedNode = Pick<SnapshotNode, 'path' | 'acl'>

/** Finds entries of access lists that mean something else on a Zabra server. */
export function* checkAccessLists(nodes: Iterable<ListedNode>): Generator<Finding> {
  const unknown = new Map<string, { count: number; readonly path: string }>()
  const principals = { count: 0, path: '' }
  for (const { path, acl } of nodes)
    for (const { id } of acl) {
      const scheme = id.scheme ?? ''
      if (!SCHEMES.has(scheme)) {
        const found = unknown.get(scheme) ?? { count: 0, path }
        found.count++
        unknown.set(scheme, found)
      } else if (scheme === 'sasl' && /[@/]/.test(id.id ?? '') && principals.count++ === 0)
        principals.path = path
    }
  for (const [scheme, { count, path }] of unknown)
    yield finding(
      'acl-scheme',
      path,
      `${count} entries of access lists have the scheme ${JSON.stringify(scheme)}, which grants nothing here`,
      'Give these nodes entries of another scheme with zabra set-acl before you replace the last server.',
    )
  if (principals.count > 0)
    yield finding(
      'kerberos-identity',
      principals.path,
      `${principals.count} entries of access lists name Kerberos principals, which cannot log in here`,
      'Add entries of digest, x509 or sasl users with zabra set-acl, and let the clients use those.',
    )
}

/** Returns what to do, in order. */
export function migrationSteps(
  file: string,
  settings: Settings | undefined,
  variables: Environment = {},
): string[] {
  const check = `zabra-server --check-config ${file}`
  const folder = settings?.dataDir ?? 'the folder of dataDir'
  const options =
    javaSettings(variables['JVMFLAGS'] ?? '').length > 0 ? ', with the same JVMFLAGS in its environment' : ''
  const start = `On the same machine, start Zabra on the same ${basename(file)} and data (${folder})${options}: zabra-server ${file}`
  const ready = 'Wait until /readyz of its HTTP port answers 200 (zabra status shows it as ok).'
  if (settings?.ensemble === undefined)
    return [
      `Settle the errors above, then the warnings. ${check} must accept the file.`,
      'Stop Apache ZooKeeper.',
      `${start}. ${ready}`,
      `To go back: stop Zabra, start Apache ZooKeeper on the same folder.`,
    ]
  const { members } = settings.ensemble
  const others = [...members.keys()].filter((id) => id !== settings.serverId)
  return [
    `Run this on each other member too (${others.map((id) => `server.${id}`).join(', ')}), and settle the errors, then the warnings. ${check} must accept the file of each.`,
    'Find the leader: zabra status with the client addresses of all members. All must be ok. Replace observers first, then followers, the leader last.',
    'Stop Apache ZooKeeper on one member.',
    `${start}. ${ready}`,
    'Look at zabra status again: all members ok, with zxids that move together. Leave it so for as long as you like: members of both kinds work in one ensemble.',
    'Go on with the next member; the leader last.',
    'To go back, at any step: stop Zabra on a member, run zabra doctor --downgrade on its folder, and start Apache ZooKeeper on it.',
  ]
}
