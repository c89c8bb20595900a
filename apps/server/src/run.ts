import type { Logger } from '@zabra/runtime'
import type { FileProblem } from '@zabra/server'
import {
  formatFinding,
  type Environment,
  type LoadedSettings,
  type ServerSettings,
} from '@zabra/server/settings'
import type { LogFormat } from './logger.ts'
import { logLevels, parseCommand, type LogLevel, type Options } from './command.ts'
import { configFile, loadConfiguration, report, withFileProblems } from './configuration.ts'
import { ExitCode, toExit } from './failures.ts'
import { readyBlock, readyInfo, type ListeningPort } from './ready.ts'

/** The part of a running server that this program uses. */
export interface RunningServer {
  /** Listening ports; the first is the one to announce to clients. */
  readonly listeners: readonly ListeningPort[]
  /** Resolves when the server has stopped: to the reason of a failure, or to undefined when it was closed. */
  readonly failed: Promise<unknown>
  /** Recovered state, among other figures. */
  stats(): { readonly lastZxid: number; readonly nodes: number; readonly sessions: number }
  /** Reloads certificates. */
  reload(): Promise<void>
  /** Adds to lines what the server is. */
  readonly logger: Logger
  close(): Promise<void>
}

/** Process, terminal and server factory of the program, which tests replace. */
export interface Host {
  readonly argv: readonly string[]
  readonly environment: Environment
  readonly version: string
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean
  out(text: string): void
  err(text: string): void
  /** Resolves to the logger; by default its lines are text on a terminal, and JSON otherwise. */
  logger(level: LogLevel, format: LogFormat | undefined): Promise<Logger>
  /** Starts a server. Rejects with the reason of `signal` where that ends the start. */
  start(settings: ServerSettings, logger: Logger, signal: AbortSignal): Promise<RunningServer>
  /** Opens the files that a server opens at its start, looks at its data folders, and resolves to what it could not use. */
  checkFiles(settings: ServerSettings): Promise<readonly FileProblem[]>
  /** Monotonic time in milliseconds. */
  now(): number
  /** Calls `stop` for each signal to stop, with its name. Returns a function that unsubscribes. */
  onStop(stop: (signal: string) => void): () => void
  /** Calls `reload` for each signal to reload certificates. Returns a function that unsubscribes. */
  onReload(reload: () => void): () => void
  /** Calls `toggle` for each signal to log more, or as before. Returns a function that unsubscribes. */
  onToggleDebug(toggle: () => void): () => void
  /** Ends the process at once. */
  exit(code: number): void
}

/** Two signals within this time are one key press: terminal and npm both forward Ctrl-C. */
const signalEchoMs = 700

/** Runs the program and resolves to its exit code. */
export async function run(host: Host): Promise<number> {
  const parsed = parseCommand(host.argv, host.version, host)
  if ('exitCode' in parsed) return parsed.exitCode
  const loaded = load(parsed.options, host)
  if (loaded === undefined) return ExitCode.badConfiguration
  if (parsed.options.checkConfig) return check(loaded, host)
  const settings = await resolveSettings(loaded, parsed.options, host)
  return 'exitCode' in settings ? settings.exitCode : serve(settings.settings, settings.logger, host)
}

type ResolvedSettings =
  | { readonly exitCode: number }
  | { readonly settings: ServerSettings; readonly logger: Logger }

/** Loads the configuration. Prints why it cannot be read, and returns undefined. */
function load(options: Options, host: Host): LoadedSettings | undefined {
  try {
    return loadConfiguration(options, host.environment)
  } catch (error) {
    host.err(
      `zabra-server: cannot read ${configFile(options, host.environment)}: ${(error as Error).message}. Check the path and its permissions.\n`,
    )
    return undefined
  }
}

/** Prints all findings about a configuration and the files that it names. Resolves to the exit code. */
async function check(loaded: LoadedSettings, host: Host): Promise<number> {
  const problems = loaded.settings === undefined ? [] : await host.checkFiles(loaded.settings)
  const checked = withFileProblems(loaded, problems)
  host.out(`${report(checked).join('\n')}\n`)
  return checked.settings === undefined ? ExitCode.badConfiguration : ExitCode.ok
}

/** Returns the settings and the logger to start with; reports all findings together. */
async function resolveSettings(
  loaded: LoadedSettings,
  options: Options,
  host: Host,
): Promise<ResolvedSettings> {
  const level = options.logLevel ?? logLevelOf(host)
  if (level === undefined) return { exitCode: ExitCode.badConfiguration }
  if (loaded.settings === undefined) {
    for (const line of report(loaded)) host.err(`zabra-server: ${line}\n`)
    return { exitCode: ExitCode.badConfiguration }
  }
  const logger = await host.logger(level, loaded.settings.logFormat)
  for (const finding of loaded.findings)
    logger.warn(
      { id: 'config.finding', part: 'config', where: finding.where, key: finding.key },
      formatFinding(finding),
    )
  return { settings: loaded.settings, logger }
}

function logLevelOf(host: Host): LogLevel | undefined {
  const text = host.environment['LOG_LEVEL']
  if (!text) return 'info'
  const level = logLevels.find((level) => level === text.toLowerCase())
  if (level === undefined)
    host.err(`zabra-server: LOG_LEVEL: expected one of ${logLevels.join(', ')}, got "${text}".\n`)
  return level
}

async function serve(settings: ServerSettings, output: Logger, host: Host): Promise<number> {
  let server: RunningServer
  const stop = waitForStop(host, output)
  const others = takeOtherSignals(host, output)
  const unsubscribe = (): void => {
    stop.unsubscribe()
    others.unsubscribe()
  }
  try {
    server = await host.start(settings, output, stop.signal)
  } catch (error) {
    unsubscribe()
    if (stop.signal.aborted && error === stop.signal.reason) return reportEndedStart(output)
    return reportFailure(error, 'cannot start', output, host)
  }
  announce(server, settings, host)
  others.started(server)
  const { logger } = server
  try {
    const failure = await Promise.race([stop.requested, server.failed.then((reason) => ({ reason }))])
    if (typeof failure === 'object') {
      if (failure.reason !== undefined) return reportFailure(failure.reason, 'stopped', logger, host)
      return ExitCode.ok
    }
    logger.info(
      { id: 'program.stopping', signal: failure },
      `Stopping on ${failure}: requests in progress are finished first`,
    )
    await server.close()
    const reason = await server.failed
    if (reason !== undefined) return reportFailure(reason, 'stopped', logger, host)
    logger.info({ id: 'program.stopped' }, 'Stopped; everything is on disk')
    return ExitCode.ok
  } catch (error) {
    return reportFailure(error, 'did not stop cleanly', logger, host)
  } finally {
    unsubscribe()
  }
}

/**
 * Takes the signals to reload and to log more, also before the server has started: each ends a process that does not listen to it. A reload
 * that is asked for before then begins with `started`.
 */
function takeOtherSignals(
  host: Host,
  output: Logger,
): { started: (server: RunningServer) => void; unsubscribe: () => void } {
  let server: RunningServer | undefined
  let mustReload = false
  const reload = (): void => {
    mustReload = server === undefined
    if (server === undefined) return
    server.logger.info(
      { id: 'program.reloading' },
      'Reloading certificates, tokens and the audit file on SIGHUP',
    )
    void server.reload()
  }
  const { level } = output
  const unsubscribeReload = host.onReload(reload)
  const unsubscribeToggle = host.onToggleDebug(() => {
    const logger = server?.logger ?? output
    logger.level = logger.level === 'debug' ? level : 'debug'
    logger.info(
      { id: 'program.log-level', part: 'program', to: logger.level },
      'The level of the log was changed by SIGUSR2',
    )
  })
  return {
    started(running) {
      server = running
      if (mustReload) reload()
    },
    unsubscribe() {
      unsubscribeReload()
      unsubscribeToggle()
    },
  }
}

/**
 * Resolves `requested` on the first signal to stop, and aborts `signal`. A second signal that is no echo of the first exits the process.
 */
function waitForStop(
  host: Host,
  logger: Logger,
): { requested: Promise<string>; signal: AbortSignal; unsubscribe: () => void } {
  const controller = new AbortController()
  let request: ((signal: string) => void) | undefined
  const requested = new Promise<string>((resolve) => {
    request = resolve
  })
  let firstAt: number | undefined
  const unsubscribe = host.onStop((signal) => {
    if (firstAt === undefined) {
      firstAt = host.now()
      request?.(signal)
      controller.abort(new Error(`Stopped by ${signal}`))
    } else if (host.now() - firstAt > signalEchoMs) {
      logger.warn(
        { id: 'program.second-signal', part: 'program', signal },
        'Stopping at once on a second signal',
      )
      host.exit(ExitCode.unexpected)
    }
  })
  return { requested, signal: controller.signal, unsubscribe }
}

function announce(server: RunningServer, settings: ServerSettings, host: Host): void {
  const info = readyInfo(server.listeners, settings)
  if (host.isTerminal) return host.out(readyBlock(info))
  const { lastZxid, nodes, sessions } = server.stats()
  server.logger.info(
    { id: 'program.started', ...info, lastZxid: `0x${lastZxid.toString(16)}`, nodes, sessions },
    `${info.member === undefined ? 'Serving' : 'Listening'} on ${info.listening}; ${info.member === undefined ? '' : `member ${info.member}; `}data in ${info.dataDir}; ${info.access === undefined ? '' : `${info.access}; `}try: ${info.next}`,
  )
}

/** Logs that a signal has ended the start, and returns the exit code. */
function reportEndedStart(logger: Logger): number {
  logger.info({ id: 'program.start-ended' }, 'Stopped before the data were read; they are as they were')
  return ExitCode.ok
}

/** Prints one line about an error and returns the exit code. */
function reportFailure(error: unknown, what: string, logger: Logger, host: Host): number {
  const { line, exitCode } = toExit(error)
  logger.debug(
    { id: 'program.stack', part: 'program', stack: error instanceof Error ? error.stack : undefined },
    'Stack of the error',
  )
  host.err(`zabra-server ${what}: ${line}\n`)
  return exitCode
}
