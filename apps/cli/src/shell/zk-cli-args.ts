import { parseProperties } from '@zabra/server/settings'
import { readFileSync } from 'node:fs'
import { UsageError } from '../exit-codes.ts'

/** A command line in the syntax of `zabra`, and variables read from a `-client-configuration` file. */
export interface CommandLine {
  readonly args: string[]
  readonly environment: Readonly<Record<string, string>>
}

/** Options of the program and of `shell` that take a value. */
const optionsWithValue = new Set(
  '--server --context --auth --ca --cert --key --sasl-user --sasl-password-file --timeout -c --command'.split(
    ' ',
  ),
)
/** Options of the program, which may also follow the command. */
const globalOption =
  /^--(?:server|context|auth|tls|ca|cert|key|sasl-user|sasl-password-file|timeout|json)(?:=|$)/

/**
 * Translates the arguments of `shell` from the syntax of zkCli.sh (`-server host -r get -s /a`) to that of `zabra`. Returns other
 * command lines unchanged. Throws a `UsageError` for a configuration file that cannot be read or has other keys.
 */
export function translateZkCliArgs(argv: readonly string[]): CommandLine {
  let at = 0
  while (at < argv.length && argv[at]!.startsWith('-')) at += optionsWithValue.has(argv[at]!) ? 2 : 1
  if (argv[at] !== 'shell') return { args: [...argv], environment: {} }
  const options = argv.slice(0, at + 1)
  const command: string[] = []
  const environment: Record<string, string> = {}
  const rest = argv.slice(at + 1)
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '--') command.push(...rest.splice(0))
    else if (command.length > 0 ? globalOption.test(word) : word.startsWith('-'))
      takeOption(word, rest, options, environment)
    else command.push(word)
  }
  return { args: command.length === 0 ? options : [...options, '--', ...command], environment }
}

function takeOption(
  word: string,
  rest: string[],
  options: string[],
  environment: Record<string, string>,
): void {
  if (word === '-waitforconnection') return
  if (word === '-r') options.push('--read-only')
  else if (word === '-server' || word === '-timeout') options.push(`-${word}`, ...rest.splice(0, 1))
  else if (word === '-client-configuration') {
    const file = rest.shift()
    if (file === undefined) throw new UsageError('Expected a file after -client-configuration, got none.')
    Object.assign(environment, readClientConfiguration(file))
  } else options.push(word, ...(optionsWithValue.has(word) ? rest.splice(0, 1) : []))
}

/** Client configuration keys of Apache ZooKeeper and the variables with the same meaning. */
const variables: ReadonlyMap<string, string> = new Map([
  ['zookeeper.client.secure', 'ZABRA_TLS'],
  ['zookeeper.ssl.trustStore.location', 'ZABRA_CA'],
  ['zookeeper.ssl.trustStore.password', 'ZABRA_CA_PASSWORD'],
  ['zookeeper.ssl.keyStore.location', 'ZABRA_CERT'],
  ['zookeeper.ssl.keyStore.password', 'ZABRA_CERT_PASSWORD'],
])
/** Keys without effect: the transport is fixed, and the type of a store is detected from the file. */
const impliedKeys = /^zookeeper\.(?:clientCnxnSocket|ssl\.(?:key|trust)Store\.type)$/

function readClientConfiguration(file: string): Record<string, string> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(
      `Cannot read ${file} (${(error as NodeJS.ErrnoException).code}). Check the path and its permissions.`,
    )
  }
  const found: Record<string, string> = {}
  for (const { key, value, line } of parseProperties(text).properties) {
    const variable = variables.get(key)
    if (variable !== undefined) found[variable] = value
    // Ignoring a key such as a login or a revocation list would silently weaken security.
    else if (!impliedKeys.test(key))
      throw new UsageError(
        `${file}:${line}: Expected one of ${[...variables.keys()].join(', ')}, got ${key}. Leave it out and use the options of zabra (zabra --help).`,
      )
  }
  return found
}
