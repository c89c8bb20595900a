import { rowOf, settingNames } from './defaults.ts'
import type { ValueType } from './value-types.ts'
import { knownKeys, type KeyStatus } from './known-keys.ts'
import { imageVariables } from './sources.ts'
import type { Group } from './row.ts'

const opening = `# Configuration

<!-- Generated from packages/server/src/settings: run pnpm --filter @zabra/server gen:docs. Do not edit by hand. -->

A Zabra server takes the \`zoo.cfg\` of Apache ZooKeeper, the variables of its launchers and of the common container image,
and the system properties in \`JVMFLAGS\`. \`zabra-server --check-config zoo.cfg\` says what a file means and what is wrong
with it, all at once, without starting anything.

## What counts

From least to most; what comes later overrides what comes before:

1. the defaults below;
2. variables of the container image, see [Variables](#variables);
3. \`-Dproperty=value\` inside \`SERVER_JVMFLAGS\`, then inside \`JVMFLAGS\`;
4. the configuration file;
5. flags: \`--port\` for \`clientPort\`, \`--data\` for \`dataDir\`.

The file is the argument of \`zabra-server\`, else the one that \`ZOOCFG\` and \`ZOOCFGDIR\` name. Without any, the server
listens on port 2181 and keeps its data in \`./data\`. Relative paths start from the folder that the server was started in.
The identity in \`dataDir/myid\` overrides \`serverId\`.

## The file

It is a Java properties file in UTF-8: \`key=value\`, \`key: value\` or \`key value\`, one a line.

- A comment starts with \`#\` or \`!\` and has a line of its own; after a value it would be part of the value.
- A backslash at the end of a line goes on in the next. Elsewhere it vanishes unless it starts \`\\t\`, \`\\n\`, \`\\r\`, \`\\f\`
  or \`\\uXXXX\`: write \`\\\\\` for one backslash, or \`/\` in Windows paths.
- A repeated key counts the last time; a warning names both lines.
- Times take \`ms\`, \`s\`, \`m\`, \`h\` or \`d\` after the number, sizes \`B\`, \`K\`, \`M\` or \`G\` (powers of 1024). ZooKeeper
  itself takes bare numbers in the unit given below, so keep to those in a file that both read.
- True and false may be written \`yes\` and \`no\`, or \`on\` and \`off\`; a warning says where ZooKeeper would read it differently.
- An unknown key is an error, for a typo would otherwise do nothing in silence. \`strictConfig=false\` makes it a warning.
- \`dynamicConfigFile\` names a file with the \`server.N\` lines. One such line makes a single server, unless
  \`standaloneEnabled=false\`; several make an ensemble, and \`myid\` in \`dataDir\` says which of them this server is. A
  client port may stand there. What reconfigurations change is kept in \`dataDir\`; no file of yours is ever written.
- A key that ZooKeeper takes as a Java property only, such as \`jute.maxbuffer\`, works in the file too, with a warning.

`

const statusTitles: Record<KeyStatus, string> = {
  moot: 'accepted with a warning',
  later: 'accepted with a warning, comes later',
  guards: 'refused unless false',
  refused: 'refused',
}

/** The reference page of all settings, as Markdown. */
export function renderDocs(): string {
  return `${opening}${groups().map(renderGroup).join('\n')}\n${renderVariables()}\n${renderKnown()}`
}

function groups(): Group[] {
  return [...new Set(settingNames.map((name) => rowOf(name).group))]
}

function renderGroup(group: Group): string {
  const lines = settingNames
    .filter((name) => rowOf(name).group === group)
    .map((name) => {
      const {
        key,
        property,
        type: kind,
        defaultValue: fallback,
        defaultText: fallbackText,
        apacheDefault,
        description: meaning,
        isSecret: secret,
      } = rowOf(name)
      const standard =
        typeof fallback === 'function' || fallback === undefined
          ? (fallbackText ?? '')
          : (fallbackText ?? code(bare(fallback, kind)))
      const names = property === undefined ? code(key) : `${code(key)}<br>${code(`-D${property}`)}`
      const apache = apacheDefault === undefined ? '' : ` (ZooKeeper: ${apacheDefault})`
      return cells(
        names,
        standard + apache,
        sentence(kind.expected),
        `${meaning}${secret ? ' Never shown or logged.' : ''}`,
        code(name),
      )
    })
  return `## ${group}\n\n${table(['key', 'default', 'values', 'meaning', 'in a program'], lines)}`
}

function renderVariables(): string {
  const lines = Object.entries(imageVariables).map(([variable, key]) => cells(code(variable), code(key)))
  lines.push(
    cells(code('ZOO_SERVERS'), '`server.N` lines, separated by blanks'),
    cells(code('ZOO_CFG_EXTRA'), 'any `key=value`, separated by blanks'),
    cells(code('ZOO_DATADIR_AUTOCREATE_DISABLE'), '`datadir.autocreate=false`, when it is set to anything'),
    cells(
      '`JVMFLAGS`, `SERVER_JVMFLAGS`',
      '`-Dproperty=value`, quoted as in a shell; every other option has no effect',
    ),
    cells('`ZOOCFG`, `ZOOCFGDIR`', 'name and folder of the configuration file'),
    cells(code('LOG_LEVEL'), '`error`, `warn`, `info` or `debug`, as `--log-level`'),
  )
  return `## Variables\n\n${table(['variable', 'stands for'], lines)}`
}

function renderKnown(): string {
  const lines = knownKeys.map(({ key, status, reason: why }) =>
    cells(code(key), statusTitles[status], `${sentence(why)}.`),
  )
  lines.push(
    cells(
      code('authProvider.*'),
      'the classes of Apache ZooKeeper',
      'The digest and ip schemes are there without it, x509 with a port over TLS; that of SASL sets `sasl.aclScheme`; that of the ensemble scheme has no effect, since the scheme is not served yet; other classes are refused.',
    ),
  )
  return `## Keys without effect\n\nKeys of Apache ZooKeeper 3.4 to 3.10 that are understood, so that an existing file goes on working. \`*\` stands for any rest.\n\n${table(['key', 'is', 'because'], lines)}`
}

/** A value as a file that ZooKeeper reads too would have it: a bare number in the unit of its key. */
function bare(value: unknown, { unit, show }: ValueType<unknown>): string {
  const factor = { hours: 3_600_000, kilobytes: 1024 }[unit] ?? 1
  return typeof value === 'number' ? String(value / factor) : show(value)
}

const code = (text: string): string => `\`${text}\``
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const cells = (...texts: string[]): string =>
  `| ${texts.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
const table = (titles: string[], lines: string[]): string =>
  [cells(...titles), cells(...titles.map(() => '---')), ...lines, ''].join('\n')
