import { parseProperties } from '../core/properties.ts'

/** A key with its text and its place. */
export interface SettingEntry {
  /** Name in zoo.cfg, or a Java system property. */
  readonly key: string
  readonly value: string
  /** `zoo.cfg:12`, `JVMFLAGS`, `ZOO_TICK_TIME` or `--port`. */
  readonly where: string
  /** Where the entry comes from, which decides how Apache ZooKeeper would read it. */
  readonly source: 'file' | 'property' | 'variable' | 'flag'
}

/** An error or a warning for the operator. Never contains a secret. */
export interface Finding {
  readonly severity: 'error' | 'warning'
  readonly where: string
  readonly key?: string
  readonly text: string
}

/** Formats a finding as one line: place, key, problem and what to do. */
export function formatFinding({ where, key, text }: Finding): string {
  return [where, key, text].filter((part) => part !== undefined && part !== '').join(': ')
}

/** Parses a configuration file into its entries, in order, and findings about the syntax. */
export function parseZooCfg(
  text: string,
  name = 'zoo.cfg',
): { entries: SettingEntry[]; findings: Finding[] } {
  const { properties, unreadable } = parseProperties(text)
  const findings: Finding[] = unreadable.map(({ line, reason }) => ({
    severity: 'error',
    where: `${name}:${line}`,
    text: `${reason}. Write \\\\ for one backslash.`,
  }))
  const seen = new Map<string, number>()
  for (const { key, line, hasLostBackslash } of properties) {
    const where = `${name}:${line}`
    const earlier = seen.get(key)
    if (earlier !== undefined)
      findings.push({
        severity: 'warning',
        where,
        key,
        text: `repeats line ${earlier}; this later one counts. Remove one of them.`,
      })
    seen.set(key, line)
    if (hasLostBackslash)
      findings.push({
        severity: 'warning',
        where,
        key,
        text: 'holds a backslash that the format drops. Write \\\\ for one backslash, or use / in paths.',
      })
  }
  const entries = properties.map(({ key, value, line }): SettingEntry => ({
    key,
    value,
    where: `${name}:${line}`,
    source: 'file',
  }))
  return { entries, findings }
}

/** Environment variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Variables of the official container image, with the keys of zoo.cfg that they set. */
export const imageVariables = {
  ZOO_DATA_DIR: 'dataDir',
  ZOO_DATA_LOG_DIR: 'dataLogDir',
  ZOO_MY_ID: 'serverId',
  ZOO_TICK_TIME: 'tickTime',
  ZOO_INIT_LIMIT: 'initLimit',
  ZOO_SYNC_LIMIT: 'syncLimit',
  ZOO_MAX_CLIENT_CNXNS: 'maxClientCnxns',
  ZOO_STANDALONE_ENABLED: 'standaloneEnabled',
  ZOO_ADMINSERVER_ENABLED: 'admin.enableServer',
  ZOO_AUTOPURGE_PURGEINTERVAL: 'autopurge.purgeInterval',
  ZOO_AUTOPURGE_SNAPRETAINCOUNT: 'autopurge.snapRetainCount',
  ZOO_4LW_COMMANDS_WHITELIST: '4lw.commands.whitelist',
  LOG_FORMAT: 'log.format',
} as const

/** Variables of the launch scripts and the container image that have no meaning without Java. */
const ignoredVariables = [
  'ZOO_LOG4J_PROP',
  'ZOOPIDFILE',
  'ZK_SERVER_HEAP',
  'JMXPORT',
  'ZOO_NOEXEC',
  'ZOO_LOG_DIR',
  'ZOO_LOG_FILE',
] as const

/**
 * Returns the entries of the environment: system properties first, then variables of the image, which take precedence: the image
 * writes them into zoo.cfg, which overrides properties.
 */
export function settingsFromEnvironment(environment: Environment): {
  entries: SettingEntry[]
  findings: Finding[]
} {
  const entries: SettingEntry[] = []
  const findings: Finding[] = []
  // The launch script puts JVMFLAGS last, and Java uses the last value.
  for (const variable of ['SERVER_JVMFLAGS', 'JVMFLAGS'])
    addProperties(environment[variable], variable, entries, findings)
  for (const [variable, key] of Object.entries(imageVariables)) {
    const value = environment[variable]?.trim()
    if (value) entries.push({ key, value, where: variable, source: 'variable' })
  }
  addLines(environment['ZOO_SERVERS'], 'ZOO_SERVERS', entries)
  addLines(environment['ZOO_CFG_EXTRA'], 'ZOO_CFG_EXTRA', entries)
  if (environment['ZOO_DATADIR_AUTOCREATE_DISABLE'])
    entries.push({
      key: 'datadir.autocreate',
      value: 'false',
      where: 'ZOO_DATADIR_AUTOCREATE_DISABLE',
      source: 'variable',
    })
  for (const variable of ignoredVariables)
    if (environment[variable])
      findings.push({
        severity: 'warning',
        where: variable,
        text: 'has no effect here: it is for the Java server and its launch script.',
      })
  return { entries, findings }
}

/** Adds `key=value` words, separated by blanks as in the start script of the container image. */
function addLines(words: string | undefined, where: string, entries: SettingEntry[]): void {
  for (const word of words?.split(/\s+/).filter((word) => word !== '') ?? []) {
    const at = word.indexOf('=')
    entries.push({
      key: at < 0 ? word : word.slice(0, at),
      value: at < 0 ? '' : word.slice(at + 1),
      where,
      source: 'variable',
    })
  }
}

function addProperties(
  flags: string | undefined,
  where: string,
  entries: SettingEntry[],
  findings: Finding[],
): void {
  const others: string[] = []
  for (const word of shellWords(flags ?? '')) {
    const match = /^-D([^=]+)(?:=(.*))?$/s.exec(word)
    const property = match?.[1]
    if (property !== undefined && zooKeeperProperties.test(property))
      entries.push({ key: property, value: valueOf(property, match?.[2] ?? ''), where, source: 'property' })
    // Only the name: the value of another program's property may be a password.
    else others.push(property === undefined ? word.split(/[=:]/)[0]! : `-D${property}`)
  }
  if (others.length > 0)
    findings.push({
      severity: 'warning',
      where,
      text: `${others.join(' ')} ${others.length > 1 ? 'have' : 'has'} no effect here: there is no Java virtual machine.`,
    })
}

/** Java accepts the login configuration as a URL too, and with a second `=`, which replaces the one of its installation. */
function valueOf(property: string, value: string): string {
  if (property !== 'java.security.auth.login.config') return value
  return value.replace(/^=/, '').replace(/^file:(\/\/(?=\/))?/, '')
}

/** System properties of Apache ZooKeeper. */
const zooKeeperProperties =
  /^(zookeeper|jute|znode|readonlymode|leader|follower|fsync|learner)\.|^java\.security\.auth\.login\.config$/

/** Splits text into words as a shell does, and removes quotes and backslashes. */
function shellWords(text: string): string[] {
  const words = text.match(/(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'\\]|["'\\])+/gs) ?? []
  return words.map((word) =>
    word.replace(
      /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/gs,
      (_, single?: string, double?: string, bare?: string) =>
        single ?? bare ?? (double ?? '').replace(/\\(["\\$`])/g, '$1'),
    ),
  )
}
