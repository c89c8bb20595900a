import { rowOf, settingNames } from './defaults.ts'
import { changeableNames } from './live-settings.ts'
import { bareValue } from './value-types.ts'
import { knownKeys, type KeyStatus } from './known-keys.ts'
import { imageVariables } from './sources.ts'
import type { Group } from './row.ts'

const introduction = `# Configuration

<!-- Generated from packages/server/src/settings: run pnpm --filter @zabra/server gen:docs. Do not edit by hand. -->

A Zabra server takes the \`zoo.cfg\` of Apache ZooKeeper, the variables of its launch scripts and of the official container image,
and the system properties in \`JVMFLAGS\`. \`zabra-server --check-config zoo.cfg\` prints the resulting settings, every
error in the file, and the files and folders in it that this user cannot use, without starting a server.

## Precedence

Later sources override earlier ones:

1. the defaults below;
2. \`-Dproperty=value\` inside \`SERVER_JVMFLAGS\`, then inside \`JVMFLAGS\`;
3. variables of the container image, see [Variables](#variables);
4. the configuration file;
5. flags: \`--port\` for \`clientPort\`, \`--data\` for \`dataDir\`, \`--log-format\` for \`log.format\`.

The file is the argument of \`zabra-server\`, or else the one that \`ZOOCFG\` and \`ZOOCFGDIR\` name. Without a file, the server
listens on port 2181 and stores its data in \`./data\`. Relative paths are resolved against the working folder of the server.
The id in \`dataDir/myid\` overrides \`serverId\`.

## The file

It is a Java properties file in UTF-8: \`key=value\`, \`key: value\` or \`key value\`, one per line.

- A comment starts with \`#\` or \`!\` and needs a line of its own; after a value it would be part of the value.
- A backslash at the end of a line continues it in the next line. Elsewhere it is dropped unless it begins \`\\t\`, \`\\n\`,
  \`\\r\`, \`\\f\` or \`\\uXXXX\`: write \`\\\\\` for one backslash, or \`/\` in Windows paths.
- If a key is repeated, the last value counts; a warning names both lines.
- Times accept a suffix \`ms\`, \`s\`, \`m\`, \`h\` or \`d\`, sizes \`B\`, \`K\`, \`M\` or \`G\` (powers of 1024). ZooKeeper itself
  accepts bare numbers in the unit given below: use those in a file for both.
- True and false can be written \`yes\` and \`no\`, or \`on\` and \`off\`; a warning says where ZooKeeper reads them differently.
  Only \`skipACL\`, \`forceSync\` and \`leaderServes\` are read as ZooKeeper reads them: \`skipACL=true\` does not switch access lists off.
- An unknown key is an error, because a typo would otherwise have no effect silently. \`strictConfig=false\` makes it a warning.
- \`dynamicConfigFile\` names a file with the \`server.N\` lines. One such line means a standalone server, unless
  \`standaloneEnabled=false\`; several mean an ensemble, and \`myid\` in \`dataDir\` says which member this server is. A line can
  include a client port. Reconfigurations are stored in \`dataDir\`; the server never writes a configuration file.
- A key that ZooKeeper reads as a Java property only, such as \`jute.maxbuffer\`, works in the file too, with a warning.

`

const statusTitles: Record<KeyStatus, string> = {
  ignored: 'ignored with a warning',
  unsupported: 'ignored with a warning, not supported yet',
  rejectedIfEnabled: 'rejected unless false',
  rejected: 'rejected',
}

/** Returns the reference page of all settings, as Markdown. */
export function renderDocs(): string {
  return `${introduction}${renderChangeable()}${renderSecretFiles()}${groups().map(renderGroup).join('\n')}\n${renderVariables()}\n${renderKnown()}`
}

function renderChangeable(): string {
  const keys = changeableNames.map((name) => code(rowOf(name).key))
  return `## Changes while a server runs

\`PATCH /api/v1/settings\` and \`zabra admin settings\` change these in one server until its next start, which takes the file again:
${keys.join(', ')}. [investigate.md](investigate.md#change-a-setting) says how. All others need a restart.

`
}

function renderSecretFiles(): string {
  const keys = settingNames.map(rowOf).flatMap(({ key, isSecretFile }) => (isSecretFile ? [code(key)] : []))
  const secrets = settingNames.map(rowOf).flatMap(({ key, isSecret }) => (isSecret ? [code(key)] : []))
  return `## Files with secrets

These keys name files with private keys, passwords, secrets or the hashes of tokens: ${keys.join(', ')}.
Only the user of the server should be able to read and write them: \`chmod 600 FILE\`. A file that belongs to root may also be readable
for a group, that of the server: \`chmod 640 FILE\`, or \`defaultMode: 0440\` for a secret of Kubernetes.

So should the configuration file where one of these keys is in it: ${secrets.join(', ')}.

A server warns of each of these files that others may read or write, at its start and when a mode has changed (event \`file.open-secret\`), and starts all the same.
\`zabra doctor --config\` reports them as \`secret-file\`. Nothing is checked on Windows, where files have no modes.

`
}

function groups(): Group[] {
  return [...new Set(settingNames.map((name) => rowOf(name).group))]
}

function renderGroup(group: Group): string {
  const lines = settingNames
    .filter((name) => rowOf(name).group === group)
    .map((name) => {
      const { key, property, type, defaultValue, defaultText, apacheDefault, description } = rowOf(name)
      const { isSecret, isChangeable } = rowOf(name)
      const shownDefault =
        typeof defaultValue === 'function' || defaultValue === undefined
          ? (defaultText ?? '')
          : (defaultText ?? code(bareValue(defaultValue, type)))
      const names = property === undefined ? code(key) : `${code(key)}<br>${code(`-D${property}`)}`
      const apache = apacheDefault === undefined ? '' : ` (ZooKeeper: ${apacheDefault})`
      return cells(
        names,
        shownDefault + apache,
        sentence(type.expected),
        `${description}${isSecret ? ' Never shown or logged.' : ''}${isChangeable ? ' May change while the server runs.' : ''}`,
        code(name),
      )
    })
  return `## ${group}\n\n${table(['key', 'default', 'values', 'description', 'in a program'], lines)}`
}

function renderVariables(): string {
  const lines = Object.entries(imageVariables).map(([variable, key]) => cells(code(variable), code(key)))
  lines.push(
    cells(code('ZOO_SERVERS'), '`server.N` lines, separated by blanks'),
    cells(code('ZOO_CFG_EXTRA'), 'any `key=value`, separated by blanks'),
    cells(code('ZOO_DATADIR_AUTOCREATE_DISABLE'), '`datadir.autocreate=false`, if it is set to any value'),
    cells(
      '`JVMFLAGS`, `SERVER_JVMFLAGS`',
      '`-Dproperty=value`, quoted as in a shell; other options have no effect',
    ),
    cells('`ZOOCFG`, `ZOOCFGDIR`', 'name and folder of the configuration file'),
    cells(code('LOG_LEVEL'), '`error`, `warn`, `info` or `debug`, as `--log-level`'),
  )
  return `## Variables\n\n${table(['variable', 'stands for'], lines)}`
}

function renderKnown(): string {
  const lines = knownKeys.map(({ key, status, reason }) =>
    cells(code(key), statusTitles[status], `${sentence(reason)}.`),
  )
  lines.push(
    cells(
      code('authProvider.*'),
      'accepted for the classes of Apache ZooKeeper',
      'The schemes digest and ip are always available, x509 with a TLS port; the class for SASL sets `sasl.aclScheme`; the class for the scheme ensemble has no effect, because the scheme is not supported yet; other classes are rejected.',
    ),
  )
  return `## Keys without effect\n\nKeys of Apache ZooKeeper 3.4 to 3.10 that are recognised, so that an existing file still works. \`*\` stands for any suffix.\n\n${table(['key', 'status', 'reason'], lines)}`
}

const code = (text: string): string => `\`${text}\``
const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const cells = (...texts: string[]): string =>
  `| ${texts.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`
const table = (titles: string[], lines: string[]): string =>
  [cells(...titles), cells(...titles.map(() => '---')), ...lines, ''].join('\n')
