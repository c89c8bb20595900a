import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'

export const logLevels = ['error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof logLevels)[number]

/** Options of the command line. */
export interface Options {
  readonly config: string | undefined
  readonly checkConfig: boolean
  readonly port: string | undefined
  readonly data: string | undefined
  readonly logLevel: LogLevel | undefined
  readonly logFormat: string | undefined
}

/** Options, or the exit code when the command line was help, version or a usage error. */
export type ParsedCommand = { readonly options: Options } | { readonly exitCode: number }

const examples = `
Without a file it serves on port 2181 and keeps its data in ./data.

Examples:
  zabra-server                            # port 2181, data in ./data
  zabra-server /etc/zookeeper/zoo.cfg     # a configuration of Apache ZooKeeper
  zabra-server --check-config zoo.cfg     # validates the file, starts nothing`

/** Parses the command line. Prints help to `out` and usage errors to `err`; never exits the process. */
export function parseCommand(
  argv: readonly string[],
  version: string,
  io: { out(text: string): void; err(text: string): void },
): ParsedCommand {
  const command = new Command('zabra-server')
    .description('A coordination service compatible with Apache ZooKeeper.')
    .argument('[zoo.cfg]', 'a configuration file of Apache ZooKeeper (else ZOOCFG and ZOOCFGDIR, else none)')
    .option(
      '--check-config',
      'print findings and settings of the configuration, open its key, secret and token files, look whether this user may write to its data folders, then exit',
      false,
    )
    .option('--port <number>', 'port for clients, 0 picks a free one (clientPort)')
    .option('--data <folder>', 'folder for the data (dataDir)', notEmpty)
    .addOption(
      new Option('--log-level <level>', 'how much to log (else LOG_LEVEL, else info)').choices(logLevels),
    )
    .option('--log-format <format>', 'json, text or apache (log.format; text on a terminal, else json)')
    .version(version)
    .addHelpText('after', examples)
    .showHelpAfterError('Run zabra-server --help for its options.')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.out(text), writeErr: (text) => io.err(text) })
  try {
    command.parse([...argv], { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? 0 : 2 }
    throw error
  }
  const options = command.opts<{
    checkConfig: boolean
    port?: string
    data?: string
    logLevel?: LogLevel
    logFormat?: string
  }>()
  return {
    options: {
      config: command.args[0],
      checkConfig: options.checkConfig,
      port: options.port,
      data: options.data,
      logLevel: options.logLevel,
      logFormat: options.logFormat,
    },
  }
}

function notEmpty(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('Expected a folder, got nothing.')
  return value
}
