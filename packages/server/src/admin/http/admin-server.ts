import {
  MAX_QUERY_PARAMETERS,
  NetworkError,
  type Address,
  type Cancel,
  type HttpRequest,
  type HttpResponse,
  type Listener,
  type Platform,
} from '@zabra/runtime'
import { originOf, userNames, type AuditLog } from '../../audit/index.ts'
import { CertificateReload } from '../../connections/certificates.ts'
import { EventLogger } from '../../logging/index.ts'
import { RecoveryProgress } from '../../persistence/index.ts'
import { PROMETHEUS_PROVIDER, useSettingFile, type ServerSettings } from '../../settings/index.ts'
import type { LiveSettings } from '../../settings/live-settings.ts'
import { INITIAL_TRACE_MASK, RestoreRefusal, type AdminTarget, type CommandState } from '../admin-target.ts'
import { SlicedAnswers } from '../sliced-answers.ts'
import { apiRoutesAt } from './api/api.ts'
import { problem, refuseUnknown } from './api/api-route.ts'
import { ClusterProbe } from './api/cluster-probe.ts'
import { ClusterReports } from './api/cluster-reports.ts'
import { readObject } from './api/json-body.ts'
import { encodeReport, OwnReport } from './api/member-report.ts'
import { EventStreams } from './api/event-streams.ts'
import { adminTls } from './tls.ts'
import { AdminAccess, type Refusal } from './access.ts'
import type { AdminRole } from './roles.ts'
import { AdminTokens } from './tokens.ts'
import { adminCommands, type AdminCommand, type Members } from './commands.ts'
import { HealthProbes } from './health-probes.ts'
import { javaJson, type JsonValue } from './java-json.ts'
import { SessionPages } from './api/session-pages.ts'
import { RestoreTooLargeError, Restores } from './restore-command.ts'
import { SupportBundles } from './api/support-bundle.ts'
import { snapshotResponse, takeSnapshot } from './snapshot-command.ts'
import { DiskFigures } from './disk-figures.ts'
import { familiesNamed, writerFor } from './metrics-query.ts'
import { MetricsText } from './metrics-text.ts'
import type { MetricsWriter } from './metrics-writer.ts'
import { writeMetrics, type CollectedFigures } from './prometheus.ts'
import { text } from './text-response.ts'
import { TreeSurvey } from './tree-survey.ts'
import { TrustedProxies, type CallerRequest } from './trusted-proxies.ts'

/** The port that is opened, if it is free, where the settings name none. */
const DEFAULT_PORT = 8080
/** Most connections of the port of the Prometheus provider. */
const MAX_METRICS_CONNECTIONS = 64

/** Length of a part of the window over which metrics report percentiles; there are five parts. */
const WINDOW_PART_MS = 120_000

const NOT_SERVING = 'This ZooKeeper instance is not currently serving requests'

/** Reports that a port for HTTP cannot be opened although the settings name it. The cause is a `NetworkError`. */
export class HttpPortError extends Error {
  override readonly name = 'HttpPortError'

  constructor(key: 'admin.serverPort' | 'metricsProvider.httpPort', cause: NetworkError) {
    super(`${key}: ${cause.message}`, { cause })
  }
}

interface Route {
  readonly role: AdminRole
  readonly methods: readonly string[]
  readonly answer: (request: CallerRequest) => HttpResponse | Promise<HttpResponse>
  /** How a refusal is written; plain text by default. */
  readonly refuse?: (refusal: Refusal) => HttpResponse
  /** The same for a method that the route lacks. */
  readonly refuseMethod?: (method: string, allowed: readonly string[]) => HttpResponse
}

/**
 * The HTTP port of a server: health, metrics and the commands of Apache ZooKeeper's admin server. It is open before the data are
 * read, and a port that cannot be opened by default is no reason not to serve.
 */
export class AdminServer {
  readonly state: CommandState = { traceMask: INITIAL_TRACE_MASK }
  readonly #settings: ServerSettings
  readonly #liveSettings: LiveSettings
  readonly #platform: Platform
  readonly #audit: AuditLog | undefined
  readonly #log: EventLogger
  readonly #access: AdminAccess
  readonly #proxies: TrustedProxies
  readonly #probes: HealthProbes
  readonly #cluster: ClusterProbe
  readonly #members: ClusterReports
  readonly #ownReport: OwnReport
  readonly #commands: ReadonlyMap<string, AdminCommand>
  readonly #answers: SlicedAnswers
  readonly #survey: TreeSurvey
  readonly #disk: DiskFigures
  readonly #metricsText: MetricsText<MetricsWriter>
  readonly #sessionPages: SessionPages
  #target: AdminTarget | undefined
  #listener: Listener | undefined
  #certificates: CertificateReload | undefined
  /** The port of the Prometheus provider. */
  #metricsListener: Listener | undefined
  /** Connections without TLS to a port that takes both. */
  #plainConnections = 0
  #cancelReport: Cancel = () => {}
  #cancelRotation: Cancel = () => {}
  /** When the command `snapshot` was last run, on the monotonic clock. */
  #lastSnapshotAt = -Infinity
  /** The same for `restore`. */
  #lastRestoreAt = -Infinity
  readonly #restores: Restores
  readonly #eventStreams: EventStreams
  readonly #bundles: SupportBundles

  /** Without `audit` no request is recorded. `log` is the logger of the platform, `recovery` what the server counts as it reads its data. */
  constructor(
    liveSettings: LiveSettings,
    platform: Platform,
    {
      audit,
      log = new EventLogger(platform.logger, platform.clock),
      recovery = new RecoveryProgress(() => platform.clock.monotonic()),
    }: { audit?: AuditLog | undefined; log?: EventLogger; recovery?: RecoveryProgress } = {},
  ) {
    this.#audit = audit
    this.#log = log
    const settings = liveSettings.values
    this.#liveSettings = liveSettings
    this.#settings = settings
    this.#platform = platform
    this.#cluster = new ClusterProbe(platform, settings.reconfigEnabled)
    this.#answers = new SlicedAnswers(platform.clock)
    this.#members = new ClusterReports(platform.clock, this.#cluster, this.#answers)
    this.#survey = new TreeSurvey(platform.clock)
    this.#disk = new DiskFigures(platform.clock, platform.disk)
    this.#ownReport = new OwnReport(this.#disk, () => this.#certificates?.certificate)
    this.#metricsText = new MetricsText(this.#answers, async (writer) =>
      writeMetrics(writer, this.#target, await this.#collect(), this.#certificates?.certificate),
    )
    this.#restores = new Restores(platform)
    this.#eventStreams = new EventStreams(log.events, platform.clock, settings.adminIdleTimeoutMs)
    this.#proxies = new TrustedProxies(settings.adminTrustedProxies)
    this.#probes = new HealthProbes({ settings, platform, recovery, target: () => this.#target })
    this.#bundles = new SupportBundles(platform)
    this.#sessionPages = new SessionPages(platform.clock)
    this.#commands = new Map(adminCommands.flatMap((command) => command.names.map((name) => [name, command])))
    this.#access = new AdminAccess(settings, platform.clock, (address) => {
      platform.logger.info({ address }, 'A login to the HTTP port was refused')
      const stats = this.#target?.service?.stats
      if (stats !== undefined) stats.authFailed++
    })
  }

  /** Where the port listens; undefined while it is closed. */
  get address(): Address | undefined {
    return this.#listener?.address
  }

  /**
   * Opens the ports. Rejects with an `HttpPortError` when a port that is set cannot be opened, and with a `SettingFileError` for a bad
   * tokens file.
   */
  async listen(): Promise<void> {
    await useSettingFile('admin.tokensFile', () => this.#readTokens())
    await this.#listenForAdmin()
    try {
      await this.#listenForMetrics()
    } catch (error) {
      await this.close()
      throw error
    }
  }

  async #readTokens(): Promise<void> {
    const { adminTokensFile: file } = this.#settings
    if (file === undefined) return
    this.#access.tokens = await AdminTokens.read(this.#platform.disk, file)
  }

  /** Reads the certificate files and the tokens file again, and logs the result. What cannot be used changes nothing. */
  async reload(): Promise<void> {
    await this.#readTokens().catch((error: unknown) => {
      this.#platform.logger.error(
        { error: String(error) },
        'The tokens file was not read again; the old tokens stay',
      )
    })
    await this.#certificates?.reload()
  }

  async #listenForMetrics(): Promise<void> {
    const { metricsProvider, metricsHost, metricsPort, adminIdleTimeoutMs } = this.#settings
    if (metricsProvider !== PROMETHEUS_PROVIDER) return
    const createHttpServer = this.#platform.networkFactories?.http
    if (createHttpServer === undefined) throw noHttpServer('remove metricsProvider.className')
    const limits = { connections: MAX_METRICS_CONNECTIONS, idleTimeoutMs: adminIdleTimeoutMs }
    const opening = createHttpServer({}).listen({ host: metricsHost, port: metricsPort }, limits, {
      handle: async (request) => {
        const { path, method } = request
        if (path !== '/metrics') return text(404, 'There is nothing here. Try /metrics.\n')
        if (method !== 'GET' && method !== 'HEAD') return notAllowed(method, READ)
        if (request.isQueryCut === true) return this.#tooManyParameters(request)
        return this.#answers.run(() => this.#metrics(request))
      },
      failed: (error) => this.#logFailure(error),
    })
    this.#metricsListener = await opening.catch((error: unknown) => {
      throw error instanceof NetworkError ? new HttpPortError('metricsProvider.httpPort', error) : error
    })
  }

  #logFailure(error: Error): void {
    this.#platform.logger.warn({ error: error.message }, 'An HTTP request has failed')
  }

  async #listenForAdmin(): Promise<void> {
    const { adminEnabled, adminPort, adminAddress, adminMaxConnections, adminIdleTimeoutMs } = this.#settings
    const { logger, networkFactories } = this.#platform
    if (!adminEnabled) return
    const createHttpServer = networkFactories?.http
    if (createHttpServer === undefined) {
      if (adminPort === undefined) return
      throw noHttpServer('set admin.enableServer=false')
    }
    const tls = adminTls(this.#settings, networkFactories)
    const at = { host: adminAddress, port: adminPort ?? DEFAULT_PORT }
    const limits = { connections: adminMaxConnections, idleTimeoutMs: adminIdleTimeoutMs }
    try {
      const isMixed = !this.#settings.adminForceHttps
      this.#listener = await createHttpServer({ tls, isMixed }).listen(at, limits, {
        connected: (isSecure) => {
          if (tls !== undefined && !isSecure) this.#plainConnections++
        },
        handle: async (request) => this.#overHttpsOnly(request, await this.#answer(request)),
        failed: (error) => this.#logFailure(error),
      })
      if (tls !== undefined) {
        this.#certificates = new CertificateReload(tls, this.#platform, 'The certificates of the HTTP port')
        this.#certificates.start(true)
      }
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      if (adminPort !== undefined) throw new HttpPortError('admin.serverPort', error)
      logger.warn(
        { ...at, error: error.message },
        'The HTTP port for health, metrics and commands is not open; set admin.serverPort or admin.enableServer=false',
      )
    }
  }

  /** Reports about a server from now on. */
  attach(target: AdminTarget): void {
    this.#target = target
    if (this.#listener !== undefined) this.#scheduleReport()
    if (this.#listener === undefined && this.#metricsListener === undefined) return
    this.#scheduleRotation()
    // The first scrape reports the figures of the disk without a wait for it.
    void this.#disk.next(target.directories)
  }

  /** Makes the report of the server for other members; an empty one where that fails. */
  async report(): Promise<Uint8Array> {
    try {
      return encodeReport(await this.#ownReport.make(this.#target!))
    } catch (error) {
      const { logger } = this.#platform
      logger.warn({ error: String(error) }, 'The report of this server could not be made')
      return new Uint8Array(0)
    }
  }

  /** Logs the verdict of readiness if it has changed since the last call. */
  reportReadiness(): void {
    this.#probes.report()
  }

  #scheduleReport(): void {
    this.#cancelReport = this.#platform.clock.after(this.#settings.tickTimeMs, 'report of readiness', () => {
      this.reportReadiness()
      this.#scheduleReport()
    })
  }

  #scheduleRotation(): void {
    this.#cancelRotation = this.#platform.clock.after(WINDOW_PART_MS, 'window of percentiles', () => {
      this.#target?.rotateStatistics()
      this.#scheduleRotation()
    })
  }

  async close(): Promise<void> {
    this.#cancelReport()
    this.#cancelRotation()
    this.#log.close()
    this.#eventStreams.close()
    this.#certificates?.stop()
    await Promise.all([this.#listener?.close(), this.#metricsListener?.close()])
    this.#listener = this.#metricsListener = undefined
  }

  /** Has browsers use HTTPS from now on, where the request has come by it. */
  #overHttpsOnly({ isSecure }: HttpRequest, response: HttpResponse): HttpResponse {
    const { adminHstsMs } = this.#settings
    if (!isSecure || adminHstsMs === 0) return response
    const policy = `max-age=${Math.floor(adminHstsMs / 1000)}`
    return { ...response, headers: { ...response.headers, 'strict-transport-security': policy } }
  }

  async #answer(request: HttpRequest): Promise<HttpResponse> {
    if (request.isQueryCut === true) return this.#tooManyParameters(request)
    try {
      return await this.#handle(this.#proxies.callerOf(request))
    } catch (error) {
      this.#logFailure(error instanceof Error ? error : new Error(String(error)))
      return this.#failure(request, 500, 'The request has failed', 'The log of the server says why.')
    }
  }

  #tooManyParameters(request: HttpRequest): HttpResponse {
    const advice = `Expected ${MAX_QUERY_PARAMETERS} at most: leave out those that are not known.`
    return this.#failure(request, 400, 'Too many parameters', advice)
  }

  /** Returns the answer to a request that is not understood or has failed, in the form of its path. */
  #failure({ path }: HttpRequest, status: number, title: string, detail: string): HttpResponse {
    const commands = `${this.#settings.adminCommandUrl}/`
    if (path.startsWith('/api/')) return problem(status, title, detail)
    const error = `${title}. ${detail}`
    return path.startsWith(commands)
      ? this.#json(status, { command: path.slice(commands.length), error })
      : text(status, `${error}\n`)
  }

  async #handle(request: CallerRequest): Promise<HttpResponse> {
    const route = this.#routeOf(request)
    if (route === undefined)
      return request.path.startsWith('/api/')
        ? problem(404, 'There is no such operation', '/api/v1/openapi.json describes those that there are.')
        : text(404, 'There is nothing here. Try /commands, /metrics, /livez or /readyz.\n')
    if (!route.methods.includes(request.method))
      return (route.refuseMethod ?? notAllowed)(request.method, route.methods)
    const refusal = this.#access.refusalOf(request, route.role, this.#hosts())
    if (refusal === undefined) {
      let status = 500
      try {
        const response = await this.#answers.run(() => route.answer(request))
        status = response.status
        return response
      } finally {
        this.#record(request, route, status)
      }
    }
    this.#record(request, route, refusal.status)
    const response = (route.refuse ?? (({ status, error }) => text(status, `${error}.\n`)))(refusal)
    const { retryAfterSeconds } = refusal
    return retryAfterSeconds === undefined
      ? response
      : { ...response, headers: { ...response.headers, 'retry-after': String(retryAfterSeconds) } }
  }

  /** Records a request that changes something or reads the whole database, also a refused one. */
  #record(request: CallerRequest, { role }: Route, status: number): void {
    if (this.#audit === undefined || role === 'health' || role === 'metrics' || role === 'view') return
    this.#audit.record({
      category: 'admin',
      operation: `${request.method} ${request.path}`,
      result: status < 400 ? 'success' : 'failure',
      users: userNames(this.#access.identitiesOf(request)),
      ip: request.remote.host,
      origin: originOfCaller(request),
      via: 'http',
      ...(status < 400 ? {} : { error: String(status) }),
    })
  }

  /** Hosts of members, by which callers may address this one. */
  #hosts(): readonly string[] {
    const members = this.#target?.configuration?.members.values() ?? []
    return [...members].flatMap(({ addresses, client }) => [
      ...addresses.map(({ host }) => host),
      ...(client === undefined ? [] : [client.host]),
    ])
  }

  #routeOf(request: HttpRequest): Route | undefined {
    const { path } = request
    const { adminCommandUrl } = this.#settings
    if (path === adminCommandUrl || path === `${adminCommandUrl}/`)
      return { role: 'view', methods: GET, answer: () => this.#index() }
    if (path.startsWith(`${adminCommandUrl}/`))
      return this.#commandRoute(path.slice(adminCommandUrl.length + 1))
    if (path.startsWith('/api/')) return this.#apiRoute(request)
    const [, name, check] = /^\/(livez|readyz|startupz|ready|metrics)(?:\/([\w-]+))?$/.exec(path) ?? []
    if (name === undefined) return undefined
    if (name === 'metrics')
      return { role: 'metrics', methods: READ, answer: (request) => this.#metrics(request) }
    return { role: 'health', methods: READ, answer: (request) => this.#probes.answer(name, request, check) }
  }

  #apiRoute({ path, method }: HttpRequest): Route | undefined {
    const { routes, ...inPath } = apiRoutesAt(path)
    const [first] = routes
    if (first === undefined) return undefined
    const route = routes.find((one) => one.method === method) ?? first
    return {
      role: route.role,
      methods: routes.map((one) => one.method),
      answer: async (request) => {
        const target = this.#target
        if (target === undefined)
          return problem(503, 'The server starts', 'It reads the snapshot and the log.')
        const refused = await refuseUnknown(route, request)
        if (refused !== undefined) return refused
        const call = {
          target,
          request,
          readBody: () => readObject(request.body, Object.keys(route.body ?? {})),
          ...inPath,
          caller: () => ({
            identities: this.#access.identitiesOf(request),
            origin: { ...originOfCaller(request), via: 'http' as const },
          }),
          logger: this.#log,
          cluster: this.#cluster,
          members: this.#members,
          report: () => this.#ownReport.make(target),
          answers: this.#answers,
          sessionPages: this.#sessionPages,
          restores: this.#restores,
          eventStreams: this.#eventStreams,
          liveSettings: this.#liveSettings,
          bundles: this.#bundles,
          ask: (asked: string) => this.#ask(asked, request),
        }
        const response = await route.run(call)
        this.reportReadiness()
        return response
      },
      refuse: ({ status, error }) => problem(status, error, `The operation needs the role ${route.role}.`),
      refuseMethod: (method, allowed) =>
        withAllow(problem(405, `${method} is not possible here`, `Use ${allowed.join(' or ')}.`), allowed),
    }
  }

  /** Answers a GET for the server itself, which has every role. */
  async #ask(asked: string, caller: HttpRequest): Promise<HttpResponse> {
    const { pathname: path, searchParams: query } = new URL(asked, 'http://localhost')
    const request = { ...caller, method: 'GET', path, query, headers: {}, body: NO_BODY }
    const route = this.#routeOf(request)
    return route === undefined
      ? problem(404, 'There is no such operation', `This release has no ${path}.`)
      : this.#answers.run(() => route.answer(request))
  }

  // Metrics

  async #metrics({ query }: HttpRequest): Promise<HttpResponse> {
    const writer = writerFor(query, this.#settings)
    if (typeof writer === 'string') return text(400, `${writer}\n`)
    const all = await this.#metricsText.next(writer)
    const names = new Set(query.getAll('name[]'))
    const body =
      names.size === 0 ? all : this.#answers.chunksOf(familiesNamed(new TextDecoder().decode(all), names))
    return { status: 200, headers: { 'content-type': writer.contentType }, body }
  }

  async #collect(): Promise<CollectedFigures> {
    const figures = {
      logLines: this.#log.lines,
      logLost: this.#platform.logger.lost,
      plainConnections: this.#plainConnections,
    }
    if (this.#target === undefined) return figures
    const { directories, service } = this.#target
    if (service !== undefined) this.#survey.refresh(service.tree)
    return { ...figures, tree: this.#survey.report, disk: await this.#disk.next(directories) }
  }

  // Commands

  #index(): HttpResponse {
    const { adminCommandUrl } = this.#settings
    const names = adminCommands.map(({ names: [name] }) => name!).toSorted()
    const links = names.map((name) => `<a href="${adminCommandUrl}/${name}">${name}</a>\n<br/>\n`)
    return { status: 200, body: links.join('') }
  }

  #commandRoute(given: string): Route {
    const command = this.#commands.get(given)
    const name = command?.names[0] ?? given
    return {
      role: command?.role ?? 'view',
      methods: command === undefined ? GET : [command.method],
      answer: (request) => this.#runCommand(command, name, request),
      refuse: ({ status, error }) => this.#json(status, { command: name, error }),
      refuseMethod: (method, allowed) => {
        const error = `${method} is not possible here: use ${allowed.join(' or ')}`
        return withAllow(this.#json(405, { command: name, error }), allowed)
      },
    }
  }

  async #runCommand(
    command: AdminCommand | undefined,
    name: string,
    request: HttpRequest,
  ): Promise<HttpResponse> {
    if (command === undefined) return this.#json(200, { command: name, error: `Unknown command: ${name}` })
    const target = this.#target
    const server = target?.service
    if (target === undefined || (command.needsService && server === undefined))
      return this.#json(200, { command: name, error: NOT_SERVING })
    if (name === 'snapshot') return this.#snapshot(target, request)
    if (name === 'restore') return this.#restore(target, request)
    const { error, ...members } = await command.run({ target, state: this.state, server: server!, request })
    // Where a command has an error of its own, Apache ZooKeeper writes it first.
    return error === undefined
      ? this.#json(200, { ...members, command: name, error: null })
      : this.#json(command.method === 'POST' ? 400 : 200, { error, ...members, command: name })
  }

  /** Answers `snapshot`: the file, or with `streaming=false` its headers alone. A refusal is logged, as in Apache ZooKeeper. */
  async #snapshot(target: AdminTarget, { query }: HttpRequest): Promise<HttpResponse> {
    const { adminSnapshotEnabled, adminRateLimitMs } = this.#settings
    const { clock, disk } = this.#platform
    const members = { command: 'snapshot', error: null }
    if (!adminSnapshotEnabled) return this.#json(503, members)
    const wait = this.#lastSnapshotAt + adminRateLimitMs - clock.monotonic()
    if (wait > 0 && target.service !== undefined) target.service.stats.snapshotsRateLimited++
    if (wait > 0) return this.#json(429, members, { 'retry-after': String(Math.ceil(wait / 1000)) })
    this.#lastSnapshotAt = clock.monotonic()
    const taken = await takeSnapshot(target)
    if (taken === undefined) return this.#json(500, members)
    if (query.get('streaming') === 'false') return this.#json(200, members, taken.headers)
    return snapshotResponse(disk, taken)
  }

  /** Answers `restore`. What cannot be restored is logged, as in Apache ZooKeeper. */
  async #restore(target: AdminTarget, request: HttpRequest): Promise<HttpResponse> {
    const { adminRestoreEnabled, adminRateLimitMs } = this.#settings
    const { clock } = this.#platform
    const members = { command: 'restore', error: null }
    if (!adminRestoreEnabled) return this.#json(503, members)
    if (target.configuration !== undefined)
      return this.#json(409, {
        command: 'restore',
        error:
          'A member of an ensemble cannot have other data than the others. zabra restore --replace restores to all of them',
      })
    const stats = target.service!.stats
    const wait = this.#lastRestoreAt + adminRateLimitMs - clock.monotonic()
    if (wait > 0) {
      stats.restoresRateLimited++
      return this.#json(429, members, { 'retry-after': String(Math.ceil(wait / 1000)) })
    }
    this.#lastRestoreAt = clock.monotonic()
    try {
      const { done } = await this.#restores.begin(target, request)
      return this.#json(200, { last_zxid: await done, ...members })
    } catch (error) {
      if (error instanceof RestoreRefusal)
        return this.#json(409, { command: 'restore', error: error.message })
      if (error instanceof RestoreTooLargeError)
        return this.#json(error.status, { command: 'restore', error: error.message })
      return this.#json(500, members)
    }
  }

  #json(status: number, members: Members, headers: HttpResponse['headers'] = {}): HttpResponse {
    return {
      status,
      headers: { ...headers, 'content-type': 'application/json' },
      body: this.#answers.chunksOf(javaJson(members as JsonValue)),
    }
  }
}

const NO_BODY: HttpRequest['body'] = {
  async *[Symbol.asyncIterator]() {},
}

/** Returns where a caller connects from. The connection of one behind a proxy is that of the proxy. */
const originOfCaller = (request: CallerRequest): ReturnType<typeof originOf> => {
  const ip = request.remote.host
  return request.forwarded === 'named' ? { ip } : originOf(ip, request)
}

const GET = ['GET'] as const
const READ = ['GET', 'HEAD'] as const

function noHttpServer(otherwise: string): NetworkError {
  const sentence = `Cannot listen: this program gave the server no HTTP server. Pass one in networkFactories of its platform, or ${otherwise}.`
  return new NetworkError(sentence, 'ENOTSUP')
}

const notAllowed = (method: string, allowed: readonly string[]): HttpResponse =>
  withAllow(text(405, `${method} is not possible here. Use ${allowed.join(' or ')}.\n`), allowed)

const withAllow = (response: HttpResponse, allowed: readonly string[]): HttpResponse => ({
  ...response,
  headers: { ...response.headers, allow: allowed.join(', ') },
})
