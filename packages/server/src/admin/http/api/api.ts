import type { HttpRequest, HttpResponse, LogLevel } from '@zabra/runtime'
import { formatSessionId } from '../../../connections/log-context.ts'
import { TOP_KINDS, TOP_MEASURES } from '../../../connections/top-requests.ts'
import type { ServerId } from '../../../core/quorum/index.ts'
import type { SessionId } from '../../../core/types.ts'
import { LOG_LEVELS, LOG_PARTS } from '../../../logging/index.ts'
import { FULL_VERSION } from '../../../version.ts'
import type { ServerReport } from '../../server-report.ts'
import { json, problem, withService, type ApiCall, type ApiRoute } from './api-route.ts'
import { backupRoutes } from './backup-api.ts'
import { clusterRoutes } from './cluster-api.ts'
import { eventRoutes } from './event-api.ts'
import { finalizeRoutes } from './finalize-api.ts'
import { settingsOf } from '../commands.ts'
import { settingsRoutes } from './settings-api.ts'
import { memberRoutes } from './member-api.ts'
import { DEFAULT_PAGE, MAX_PAGE } from './session-pages.ts'
import { supportBundleRoutes } from './support-bundle-api.ts'
import { treeRoutes } from './tree-api.ts'
import { watchRoutes } from './watch-api.ts'
import { treeFindings, type TreeFindings } from './tree-findings.ts'

/** Longest drain in seconds. */
const MAX_DRAIN_SECONDS = 3600
/** Longest time of a level of the log in seconds. */
const MAX_LEVEL_SECONDS = 86_400
const DEFAULT_TOP = 20
const MAX_TOP = 256

const SESSION = /^\/([\da-f]{1,16})$/
const MEMBER = /^\/\d{1,9}$/

/** The operations under `/api/v1`. */
export const apiRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/self',
    method: 'GET',
    role: 'view',
    summary:
      'Describes this server: role, readiness, counts, disk, certificates, memory, findings, settings in force.',
    statuses: [200],
    run: describe,
  },
  {
    path: '/api/v1/sessions',
    method: 'GET',
    role: 'view',
    summary: `Lists sessions: at most \`limit\` (${DEFAULT_PAGE} by default, up to ${MAX_PAGE}) of those after the session \`after\`.`,
    query: {
      limit: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
      after: { type: 'string', pattern: '^0x[0-9a-f]{1,16}$' },
    },
    statuses: [200, 400, 410, 503],
    run: (call) =>
      withService(call, (server) => call.answers.result(call.sessionPages.page(server, call.request))),
  },
  {
    path: '/api/v1/sessions/{session}',
    method: 'DELETE',
    role: 'operate',
    summary: 'Ends a session: closes its connection and deletes its ephemeral nodes.',
    statuses: [202, 404, 409, 503],
    run: (call) => withService(call, (server) => endSession(server, call.session)),
  },
  {
    path: '/api/v1/connections/{session}',
    method: 'DELETE',
    role: 'operate',
    summary: 'Closes the connection of a session, which its client may resume.',
    statuses: [200, 404, 503],
    run: (call) => withService(call, (server) => closeConnection(server, call.session)),
  },
  {
    path: '/api/v1/drain',
    method: 'POST',
    role: 'operate',
    summary:
      'Makes the server unready, refuses new sessions, and closes connections within `seconds` of the body. With `for` the drain ends after so many seconds, else by a request.',
    body: {
      seconds: { type: 'number', minimum: 0, maximum: MAX_DRAIN_SECONDS, default: 0 },
      for: { type: 'number', exclusiveMinimum: 0, maximum: MAX_DRAIN_SECONDS },
    },
    statuses: [200, 400],
    run: drain,
  },
  {
    path: '/api/v1/drain',
    method: 'DELETE',
    role: 'operate',
    summary: 'Ends a drain, unless the server stops.',
    statuses: [200],
    run({ target }) {
      target.undrain()
      return json(200, { draining: target.isDraining })
    },
  },
  ...backupRoutes,
  ...clusterRoutes,
  ...finalizeRoutes,
  ...eventRoutes,
  ...settingsRoutes,
  ...memberRoutes,
  ...supportBundleRoutes,
  ...treeRoutes,
  ...watchRoutes,
  {
    path: '/api/v1/slow',
    method: 'GET',
    role: 'view',
    summary:
      'Lists the last requests that took longer than slow.request.ms, or slow.request.readMs if they are reads, the newest first.',
    statuses: [200, 503],
    run: (call) =>
      withService(call, ({ slowRequests }) => json(200, { requests: [...slowRequests.newestFirst()] })),
  },
  {
    path: '/api/v1/top',
    method: 'GET',
    role: 'view',
    summary:
      'Lists what has used this server most in the last minute, from the entry `offset` on. The first request starts to count; counting ends a minute after the last one. Where `oneIn` is above 1, a random sample of that share was counted and the figures are estimates.',
    query: {
      by: { enum: TOP_KINDS, default: TOP_KINDS[0] },
      sort: { enum: TOP_MEASURES, default: TOP_MEASURES[0] },
      limit: { type: 'integer', minimum: 1, maximum: MAX_TOP, default: DEFAULT_TOP },
      offset: { type: 'integer', minimum: 0, default: 0 },
    },
    statuses: [200, 400, 503],
    run: (call) => withService(call, (server) => listTop(server, call.request)),
  },
  {
    path: '/api/v1/findings',
    method: 'GET',
    role: 'view',
    summary:
      'Walks the whole tree, in slices, for what is unwise: counters and quotas near their ends, the largest nodes, open nodes with the names of secrets, sessions with most ephemeral nodes. Names nodes and no data; answers within seconds where there are millions of nodes.',
    statuses: [200, 503],
    run: (call) => withService(call, (server) => findingsOf(call, server)),
  },
  {
    path: '/api/v1/log-level',
    method: 'GET',
    role: 'view',
    summary: 'Returns the level of the log, and of the parts that have another one.',
    statuses: [200],
    run: ({ logger: { levels } }) => json(200, { level: levels.level ?? null, parts: levels.parts }),
  },
  {
    path: '/api/v1/log-level',
    method: 'PUT',
    role: 'operate',
    summary: 'Sets the `level` of the log, or of a `part`, for `seconds` or for good.',
    body: {
      level: { enum: LOG_LEVELS },
      part: { enum: LOG_PARTS },
      seconds: { type: 'number', exclusiveMinimum: 0, maximum: MAX_LEVEL_SECONDS },
    },
    requires: ['level'],
    statuses: [200, 400, 501],
    run: setLogLevel,
  },
  {
    path: '/api/v1/openapi.json',
    method: 'GET',
    role: 'health',
    summary: 'Describes these operations.',
    statuses: [200],
    run: () => json(200, openApi()),
  },
]

/** Returns the operations at a path, with the session in it. */
export function apiRoutesAt(path: string): {
  readonly routes: readonly ApiRoute[]
  readonly session: SessionId
  readonly member: ServerId
} {
  const slash = path.lastIndexOf('/')
  const last = path.slice(slash)
  const [, digits] = SESSION.exec(last.replace(/^\/0x/i, '/').toLowerCase()) ?? []
  const paths = [path]
  if (digits !== undefined) paths.push(`${path.slice(0, slash)}/{session}`)
  if (MEMBER.test(last)) paths.push(`${path.slice(0, slash)}/{member}`)
  return {
    routes: apiRoutes.filter((route) => paths.includes(route.path)),
    session: digits === undefined ? 0n : BigInt.asIntN(64, BigInt(`0x${digits}`)),
    member: Number(last.slice(1)),
  }
}

async function describe({ target, report }: ApiCall): Promise<HttpResponse> {
  const { settings, leader, role } = target
  return json(200, {
    id: settings.serverId,
    clusterId: target.clusterId ?? null,
    version: FULL_VERSION,
    role,
    leader: leader ?? null,
    ...(await report()),
    settings: Object.fromEntries(settingsOf(settings as unknown as Record<string, unknown>)),
  })
}

// Sessions

function endSession(server: ServerReport, id: SessionId): HttpResponse {
  const { sessions, localSessions, connections, pipeline, role } = server
  const local = localSessions?.get(id)
  if (local === undefined && !sessions.isOpen(id)) return noSession(id)
  const connection = connections.ofSession(id)
  const decides = role.mode === 'standalone' || role.mode === 'leader'
  if (local === undefined && connection === undefined && !decides)
    return problem(
      409,
      'The session is not connected here',
      'Ask the leader, or the server of its connection.',
    )
  let isEnding = true
  server.runTurn(() => {
    if (local === undefined) isEnding = pipeline.closeSession(id, 0, undefined)
    else localSessions!.remove(id)
    if (isEnding) server.stats.sessionsKilled++
    if (isEnding)
      server.audit?.record({ category: 'sessions', operation: 'sessionEnd', session: id, result: 'invoked' })
    if (isEnding) connection?.destroy('killed', 'Closed: an operator has ended its session')
  })
  if (!isEnding)
    return problem(
      503,
      'The session cannot be ended now',
      'The disk is full, or there is no leader: try again later.',
    )
  return json(202, { session: formatSessionId(id) })
}

function closeConnection(server: ServerReport, id: SessionId): HttpResponse {
  const connection = server.connections.ofSession(id)
  if (connection === undefined) return noSession(id)
  server.runTurn(() => connection.destroy('killed', 'Closed by an operator'))
  return json(200, { session: formatSessionId(id) })
}

const noSession = (id: SessionId): HttpResponse =>
  problem(
    404,
    'The session is unknown',
    `This server has no session, or no connection of one, with the id ${formatSessionId(id)}.`,
  )

// Top

function listTop({ topRequests }: ServerReport, { query }: HttpRequest): HttpResponse {
  const by = TOP_KINDS.find((kind) => kind === (query.get('by') ?? TOP_KINDS[0]))
  const sort = TOP_MEASURES.find((measure) => measure === (query.get('sort') ?? TOP_MEASURES[0]))
  const [limit, offset] = [Number(query.get('limit') ?? DEFAULT_TOP), Number(query.get('offset') ?? 0)]
  const isPage = Number.isInteger(limit) && limit >= 1 && limit <= MAX_TOP
  if (by === undefined || sort === undefined || !isPage || !Number.isInteger(offset) || offset < 0)
    return problem(
      400,
      'The query is not understood',
      `Expected by=${TOP_KINDS.join('|')}, sort=${TOP_MEASURES.join('|')}, limit from 1 to ${MAX_TOP}, offset from 0.`,
    )
  const { windowMs, oneIn, operations, bytes, timeMs, entries } = topRequests.look(by, sort)
  const next = offset + limit < entries.length ? offset + limit : null
  const page = entries
    .slice(offset, offset + limit)
    .map(({ key, operations, bytes, timeMs, overcount }) => ({ key, operations, bytes, timeMs, overcount }))
  return json(200, { by, sort, windowMs, oneIn, operations, bytes, timeMs, entries: page, next })
}

// Findings

/** The walks that are under way: further requests wait for the same one. */
const walks = new WeakMap<ServerReport, Promise<TreeFindings>>()

async function findingsOf({ answers }: ApiCall, server: ServerReport): Promise<HttpResponse> {
  let walk = walks.get(server)
  if (walk === undefined) {
    walk = answers.result(treeFindings(server.tree)).finally(() => walks.delete(server))
    walks.set(server, walk)
  }
  return json(200, await walk)
}

// Drain

/** Starts a drain, in which connections are closed within `seconds`; none by default. */
async function drain({ target, readBody }: ApiCall): Promise<HttpResponse> {
  const body = await readBody()
  const { seconds = 0, for: lasts } = body ?? {}
  if (
    body === undefined ||
    !isDrainTime(seconds) ||
    !(lasts === undefined || (isDrainTime(lasts) && lasts > 0))
  )
    return problem(
      400,
      'The body is not understood',
      `Expected {"seconds": n, "for": m} with n and m up to ${MAX_DRAIN_SECONDS}, m above 0, or no body.`,
    )
  target.drain(seconds * 1000, lasts === undefined ? undefined : lasts * 1000)
  return json(200, { draining: target.isDraining })
}

const isDrainTime = (seconds: unknown): seconds is number =>
  typeof seconds === 'number' && seconds >= 0 && seconds <= MAX_DRAIN_SECONDS

// Log

async function setLogLevel({ logger, readBody }: ApiCall): Promise<HttpResponse> {
  const { level, seconds, part } = (await readBody()) ?? {}
  const isTime =
    seconds === undefined || (typeof seconds === 'number' && seconds > 0 && seconds <= MAX_LEVEL_SECONDS)
  if (!isLogLevel(level) || !isTime)
    return problem(
      400,
      'The body is not understood',
      `Expected {"level": one of ${LOG_LEVELS.join(', ')}, "part": a part, "seconds": n} with n up to ${MAX_LEVEL_SECONDS}, of which only level is needed.`,
    )
  if (part !== undefined && !isLogPart(part))
    return problem(
      400,
      'There is no such part',
      `Expected one of ${LOG_PARTS.join(', ')}, or no part for all, got ${JSON.stringify(part).slice(0, 100)}.`,
    )
  const { levels } = logger
  if (levels.level === undefined)
    return problem(
      501,
      'The level cannot be changed',
      'The program of this server gave it a logger without a level.',
    )
  levels.set(level, seconds, part)
  logger.info(
    { of: part ?? 'all', to: level, ...(seconds === undefined ? {} : { seconds }) },
    'The level of the log was changed',
  )
  return json(200, { level: levels.level, parts: levels.parts, seconds: seconds ?? null })
}

const isLogLevel = (value: unknown): value is LogLevel => LOG_LEVELS.includes(value as LogLevel)
const isLogPart = (value: unknown): value is string => LOG_PARTS.includes(value as string)

// OpenAPI

function openApi(): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of apiRoutes) {
    const { path, method, role, summary, statuses, query = {}, type = JSON_TYPE } = route
    const refusals = role === 'health' ? [] : [401, 403, 421, 429]
    const responses = [...statuses, ...refusals].map((status) => [status, describeAnswer(status, type)])
    const parameters: object[] = Object.entries(query).map(([name, schema]) => ({
      name,
      in: 'query',
      schema,
    }))
    if (path.includes('{session}'))
      parameters.push({
        name: 'session',
        in: 'path',
        required: true,
        schema: { type: 'string', pattern: '^0x[0-9a-f]{1,16}$' },
      })
    if (path.includes('{member}'))
      parameters.push({
        name: 'member',
        in: 'path',
        required: true,
        schema: { type: 'integer', minimum: 0, maximum: 999_999_999 },
      })
    const operation = {
      summary,
      'x-role': role,
      parameters,
      ...describeBody(route),
      responses: Object.fromEntries(responses) as object,
    }
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  }
  const info = { title: 'Zabra', version: FULL_VERSION }
  return { openapi: '3.1.0', info, paths, components: { schemas: { Problem: PROBLEM } } }
}

const JSON_TYPE = 'application/json'
/** RFC 9457. */
const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
  },
}

function describeBody({ body, requires = [], bodyType = JSON_TYPE }: ApiRoute): object {
  if (body === undefined && bodyType === JSON_TYPE) return {}
  const schema =
    body === undefined
      ? {}
      : { type: 'object', properties: body, required: requires, additionalProperties: false }
  const required = body === undefined || requires.length > 0
  return { requestBody: { required, content: { [bodyType]: { schema } } } }
}

const describeAnswer = (status: number, type: string): object =>
  status < 300
    ? {
        description: 'The request was done.',
        content: { [type]: { schema: type === JSON_TYPE ? { type: 'object' } : {} } },
      }
    : {
        description: 'The request was refused.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      }
