import type { Logger } from '@zabra/runtime'
import { formatFinding, type Environment, type ServerSettings } from '@zabra/server/settings'
import { logLevels, parseCommand, type LogLevel, type Options } from './command.ts'
import { configFile, loadConfiguration, report } from './configuration.ts'
import { ExitCode, toExit } from './failures.ts'
import { readyBlock, readyInfo, type ListeningPort } from './ready.ts'

/** What this program needs of a running server. */
export interface RunningServer {
  /** Every port on which it listens, the one that clients shall try first. */
  readonly listeners: readonly ListeningPort[]
  /** Settles when the server stopped by itself: with the reason, or with nothing when it was closed. */
  readonly failed: Promise<unknown>
  /** What it has recovered, among other figures. */
  stats(): { readonly lastZxid: number; readonly nodes: number; readonly sessions: number }
  /** Reads certificates again. */
  reload(): Promise<void>
  close(): Promise<void>
}

/** Everything outside of this program that it touches, so that a test can stand in for it. */
export interface Host {
  readonly argv: readonly string[]
  readonly environment: Environment
  readonly version: string
  /** Whether a person is watching. */
  readonly isTerminal: boolean
  out(text: string): void
  err(text: string): void
  logger(level: LogLevel): Logger
  start(settings: ServerSettings, logger: Logger): Promise<RunningServer>
  /** Milliseconds that never go back. */
  now(): number
  /** Calls `stop` for each request to stop: a signal by its name. Returns how to unsubscribe. */
  onStop(stop: (signal: string) => void): () => void
  /** Calls `reload` for each request to read files again. Returns how to unsubscribe. */
  onReload(reload: () => void): () => void
  /** Ends the process at once. */
  exit(code: number): void
}

/** A terminal and npm both pass Ctrl-C on, so two signals this close together are one key press. */
const signalEchoMs = 700

/** Runs the program and resolves to its exit code. */
export async function run(world: Host): Promise<number> {
  const parsed = parseCommand(world.argv, world.version, world)
  if ('exitCode' in parsed) return parsed.exitCode
  const settings = resolveSettings(parsed.options, world)
  return 'exitCode' in settings ? settings.exitCode : serve(settings.settings, settings.logger, world)
}

type ResolvedSettings =
  | { readonly exitCode: number }
  | { readonly settings: ServerSettings; readonly logger: Logger }

/** Reads the configuration; everything that is wrong with it is told at once. */
function resolveSettings(options: Options, world: Host): ResolvedSettings {
  let loaded
  try {
    loaded = loadConfiguration(options, world.environment)
  } catch (error) {
    world.err(
      `zabra-server: cannot read ${configFile(options, world.environment)}: ${(error as Error).message}. Check the path and its permissions.\n`,
    )
    return { exitCode: ExitCode.badConfiguration }
  }
  const exitCode = loaded.settings === undefined ? ExitCode.badConfiguration : ExitCode.ok
  if (options.checkConfig) {
    world.out(`${report(loaded).join('\n')}\n`)
    return { exitCode }
  }
  const level = options.logLevel ?? logLevelOf(world)
  if (level === undefined) return { exitCode: ExitCode.badConfiguration }
  if (loaded.settings === undefined) {
    for (const line of report(loaded)) world.err(`zabra-server: ${line}\n`)
    return { exitCode }
  }
  const logger = world.logger(level)
  for (const finding of loaded.findings)
    logger.warn({ where: finding.where, key: finding.key }, formatFinding(finding))
  return { settings: loaded.settings, logger }
}

function logLevelOf(world: Host): LogLevel | undefined {
  const text = world.environment['LOG_LEVEL']
  if (!text) return 'info'
  const level = logLevels.find((level) => level === text.toLowerCase())
  if (level === undefined)
    world.err(`zabra-server: LOG_LEVEL: expected one of ${logLevels.join(', ')}, got "${text}".\n`)
  return level
}

async function serve(settings: ServerSettings, logger: Logger, world: Host): Promise<number> {
  let server: RunningServer
  const stopping = stopRequest(world, logger)
  try {
    server = await world.start(settings, logger)
  } catch (error) {
    stopping.forget()
    return reportFailure(error, 'cannot start', logger, world)
  }
  announce(server, settings, logger, world)
  const forgetReload = world.onReload(() => {
    logger.info({}, 'Reading the certificates again, as SIGHUP asks for')
    void server.reload()
  })
  try {
    const failure = await Promise.race([stopping.requested, server.failed.then((reason) => ({ reason }))])
    if (typeof failure === 'object') {
      if (failure.reason !== undefined) return reportFailure(failure.reason, 'stopped', logger, world)
      return ExitCode.ok
    }
    logger.info({ signal: failure }, `Stopping on ${failure}: requests in progress are finished first`)
    await server.close()
    logger.info({}, 'Stopped; everything is on disk')
    return ExitCode.ok
  } catch (error) {
    return reportFailure(error, 'did not stop cleanly', logger, world)
  } finally {
    stopping.forget()
    forgetReload()
  }
}

/** The first signal asks to stop; a second one, later than an echo of the first, ends the process at once. */
function stopRequest(world: Host, logger: Logger): { requested: Promise<string>; forget: () => void } {
  let asked: ((signal: string) => void) | undefined
  const requested = new Promise<string>((resolve) => {
    asked = resolve
  })
  let firstAt: number | undefined
  const forget = world.onStop((signal) => {
    if (firstAt === undefined) {
      firstAt = world.now()
      asked?.(signal)
    } else if (world.now() - firstAt > signalEchoMs) {
      logger.warn({ signal }, 'Stopping at once, without waiting any further')
      world.exit(ExitCode.unexpected)
    }
  })
  return { requested, forget }
}

function announce(server: RunningServer, settings: ServerSettings, logger: Logger, world: Host): void {
  const facts = readyInfo(server.listeners, settings)
  if (world.isTerminal) return world.out(readyBlock(facts))
  const { lastZxid, nodes, sessions } = server.stats()
  logger.info(
    { ...facts, lastZxid: `0x${lastZxid.toString(16)}`, nodes, sessions },
    `${facts.member === undefined ? 'Serving' : 'Listening'} on ${facts.listening}; ${facts.member === undefined ? '' : `member ${facts.member}; `}data in ${facts.dataDir}; try: ${facts.next}`,
  )
}

/** One line for whoever watches, and the exit code that fits. */
function reportFailure(error: unknown, what: string, logger: Logger, world: Host): number {
  const { line, exitCode } = toExit(error)
  logger.debug({ stack: error instanceof Error ? error.stack : undefined }, 'Where it came from')
  world.err(`zabra-server ${what}: ${line}\n`)
  return exitCode
}
