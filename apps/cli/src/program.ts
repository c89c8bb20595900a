import { Command, Help, Option } from 'commander'
import type { CertificateStore } from '@zabra/runtime'
import { loadCommands } from './commands/index.ts'
import { duration, timeOption } from './arguments.ts'
import { createContext, type GlobalOptions } from './context.ts'
import { exitCodeTable, UsageError } from './exit-codes.ts'
import { adviseForeignName } from './foreign-names.ts'
import type { Io } from './io.ts'
import { resolveLogin } from './session/login.ts'
import { withContext, type KeptFlags } from './session/named-contexts.ts'
import { ClientTransport } from './session/transport.ts'
import { safe } from './text/bytes.ts'

const DEFAULT_SERVER = '127.0.0.1:2181'

const examples = `
Examples:
  zabra create /app/config '{"port":80}' --parents
  zabra get /app/config --server zk1:2181,zk2:2181
  zabra ls -R /app | wc -l
  zabra watch --recursive /app
  zabra export /app > app.jsonl && zabra import app.jsonl --server other:2181
  zabra shell                             # as zkCli.sh, with completion and history
  zabra status zk1 zk2 zk3
  zabra log /var/lib/zookeeper --check`

interface Flags extends KeptFlags {
  readonly server?: string
  readonly context?: string
  readonly auth?: readonly string[]
  readonly timeout: number
  readonly json?: boolean
}

/** Prints the version of the program, as the first word only: after a command, `--version` is the version of a node. */
const versionOption = new Option('-V, --version', 'print the version')

/** Whether a command line only asks for the version of the program. */
export const asksForVersion = ([first]: readonly string[]): boolean =>
  first !== undefined && [versionOption.short, versionOption.long].includes(first)

/** Whether a command line asks for JSON, also one that cannot be parsed. */
export const asksForJson = (argv: readonly string[]): boolean =>
  argv.slice(0, argv.includes('--') ? argv.indexOf('--') : undefined).includes('--json')

/** Resolves to the program with the commands that `argv` may name, to parse it once. */
export async function createProgram(io: Io, argv: readonly string[]): Promise<Command> {
  const program: Command = new Command('zabra')
    .description('Works with a Zabra or Apache ZooKeeper server from the command line.')
    .option(
      '--server <host:port,…/root>',
      `where to connect (else ZABRA_SERVER, else the context in use, else ${DEFAULT_SERVER})`,
    )
    .option('--context <name>', 'the context to use (else ZABRA_CONTEXT); zabra context list shows them')
    .addOption(
      new Option(
        '--auth <scheme:credential>',
        'an identity, such as digest:ada:secret; may be repeated (else ZABRA_AUTH, which other users of the machine cannot see)',
      ).argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]),
    )
    .option('--tls', 'connect over TLS, to port 2281 by default (else ZABRA_TLS=1; or write tls://host:port)')
    .option(
      '--ca <file>',
      'trusted certificate authorities: PEM or PKCS12 (else ZABRA_CA, else those of Node; password in ZABRA_CA_PASSWORD)',
    )
    .option(
      '--cert <file>',
      'client certificate: PEM, with its key or with --key, or PKCS12 (else ZABRA_CERT; password in ZABRA_CERT_PASSWORD)',
    )
    .option('--key <file>', 'the private key of --cert, in a separate PEM file (else ZABRA_KEY)')
    .option('--sasl-user <name>', 'log in by SASL with DIGEST-MD5 (else ZABRA_SASL_USER)')
    .option(
      '--sasl-password-file <file>',
      'the password, in the first line; - for standard input (else ZABRA_SASL_PASSWORD, else prompted for)',
    )
    .addOption(
      timeOption(
        '--timeout <time>',
        'session timeout, and timeout of connecting and of requests, such as 30s',
        duration(100),
        '10s',
      ),
    )
    .option('--json', 'print JSON: one value, or one per line for commands that print several')
    .configureHelp({
      showGlobalOptions: true,
      visibleOptions(command) {
        const options = Help.prototype.visibleOptions.call(this, command)
        return command === program ? [versionOption, ...options] : options
      },
    })
    .addHelpText('after', () => `${examples}\n\nExit codes:\n${exitCodeHelp()}`)
    .showHelpAfterError('Run zabra --help for commands and options.')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      // The caller prints an error as JSON.
      writeErr: (text) => void (asksForJson(argv) || io.stderr.write(text)),
      outputError: (text, write) =>
        write(`${safe(adviseForeignName(text.trimEnd(), argv).replace(/^error: /, 'zabra: '))}\n`),
    })
  let options: GlobalOptions | undefined
  // A context may run a command for credentials: once.
  const context = createContext(io, () => (options ??= resolveOptions(program.opts<Flags>(), io)))
  for (const [heading, commands] of await loadCommands(argv)) {
    program.commandsGroup(heading)
    for (const add of commands) add(program, context)
  }
  inheritSettings(program)
  return program
}

/** Gives subcommands the output and error settings of the program. */
function inheritSettings(command: Command, name = 'zabra'): void {
  for (const sub of command.commands) {
    const fullName = `${name} ${sub.name()}`
    sub.copyInheritedSettings(command)
    sub.showHelpAfterError(`Run ${fullName} --help for its arguments and options.`)
    inheritSettings(sub, fullName)
  }
}

/** The scheme of identities for HTTP ports. A token is a secret, so it is not sent to client ports, which refuse the scheme. */
const TOKEN = 'token'

function resolveOptions(flags: Flags, io: Io): GlobalOptions {
  const environment = withContext(io.environment, flags.context, flags.server !== undefined)
  const identities = flags.auth ?? environment['ZABRA_AUTH']?.split('\n') ?? []
  const given = identities
    .filter((text) => text.trim() !== '')
    .map((text) => {
      const colon = text.indexOf(':')
      // The text may be a secret, so the message does not repeat it.
      if (colon < 1)
        throw new UsageError(
          'Expected an identity as scheme:credential, such as digest:ada:secret, in --auth or ZABRA_AUTH.',
        )
      return { scheme: text.slice(0, colon), credential: text.slice(colon + 1) }
    })
  const token = given.find(({ scheme }) => scheme === TOKEN)
  const tls = {
    trustStore: certificateStore(flags.ca ?? environment['ZABRA_CA'], environment['ZABRA_CA_PASSWORD']),
    keyStore: keyStore(flags, environment),
  }
  const isSecure = flags.tls ?? ['1', 'true'].includes(environment['ZABRA_TLS'] ?? '')
  const clientTransport = new ClientTransport(tls, isSecure)
  const login = resolveLogin(flags, { ...io, environment })
  return {
    server: flags.server ?? (environment['ZABRA_SERVER'] || DEFAULT_SERVER),
    auth: given.filter(({ scheme }) => scheme !== TOKEN),
    ...(token ? { token: token.credential } : {}),
    ...(login ? { login } : {}),
    timeoutMs: flags.timeout,
    tls,
    json: flags.json === true,
    clientTransport,
  }
}

function keyStore(flags: Flags, environment: Io['environment']): CertificateStore | undefined {
  const certificate = flags.cert ?? environment['ZABRA_CERT']
  const key = flags.key ?? environment['ZABRA_KEY']
  if (key && !certificate)
    throw new UsageError('Expected --cert with --key, got --key alone. Name the certificate with --cert.')
  const keyStore = certificateStore(certificate, environment['ZABRA_CERT_PASSWORD'])
  return keyStore && key ? { ...keyStore, keyPath: key } : keyStore
}

const certificateStore = (
  path: string | undefined,
  password: string | undefined,
): CertificateStore | undefined => (path ? { path, ...(password ? { password } : {}) } : undefined)

const exitCodeHelp = (): string =>
  exitCodeTable.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join('\n')

/** Returns the commands on one screen, for a command line without one. */
export function overview(program: Command): string {
  const commands = program
    .createHelp()
    .visibleCommands(program)
    .filter((command) => command.helpGroup() !== '')
  const headings = [...new Set(commands.map((command) => command.helpGroup()))]
  const lines = headings.map((heading) => {
    const names = commands
      .filter((command) => command.helpGroup() === heading)
      .map((command) => command.name())
    return `  ${heading.padEnd(23)}${names.join(' ')}`
  })
  return `Usage: zabra [options] <command>

${lines.join('\n')}

  zabra get /app/config --server zk1:2181
  zabra shell

zabra help shows all commands and options, zabra help <command> those of one.
`
}
