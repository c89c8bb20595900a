import type { HttpRequest, HttpResponse } from '@zabra/runtime'
import type { MemberChangeCaller } from '../../../connections/member-changes.ts'
import type { ServerId } from '../../../core/quorum/index.ts'
import type { SessionId } from '../../../core/types.ts'
import type { EventLogger } from '../../../logging/index.ts'
import type { LiveSettings } from '../../../settings/live-settings.ts'
import type { AdminTarget } from '../../admin-target.ts'
import type { ServerReport } from '../../server-report.ts'
import type { SlicedAnswers } from '../../sliced-answers.ts'
import type { ClusterProbe } from './cluster-probe.ts'
import type { ClusterReports } from './cluster-reports.ts'
import type { MemberReport } from './member-report.ts'
import type { EventStreams } from './event-streams.ts'
import type { Restores } from '../restore-command.ts'
import type { AdminRole } from '../roles.ts'
import { readObject } from './json-body.ts'

/** A request to the API. */
export interface ApiCall {
  readonly target: AdminTarget
  readonly request: HttpRequest
  /**
   * Reads the JSON object in the body. Resolves to an empty one without a body, and to undefined for something else, or one with a member
   * that the operation lacks.
   */
  readonly readBody: () => Promise<Readonly<Record<string, unknown>> | undefined>
  readonly logger: EventLogger
  /** The session in the path. */
  readonly session: SessionId
  /** The id of the member in the path. */
  readonly member: ServerId
  /** Returns who asks, for what is audited elsewhere. */
  readonly caller: () => MemberChangeCaller
  readonly cluster: ClusterProbe
  readonly members: ClusterReports
  /** Makes the report of this server. */
  readonly report: () => Promise<MemberReport>
  readonly answers: SlicedAnswers
  readonly restores: Restores
  readonly eventStreams: EventStreams
  readonly liveSettings: LiveSettings
  /** Makes bundles for support. */
  readonly bundles: { begin(call: ApiCall): HttpResponse }
  /** Answers a GET of this port, as `/api/v1/self` or `/metrics`, with every role. */
  readonly ask: (target: string) => Promise<HttpResponse>
  /** Makes the pages of a list of sessions, in steps that yield empty strings. */
  readonly sessionPages: { page(server: ServerReport, request: HttpRequest): Generator<string, HttpResponse> }
}

/** An operation of the API. */
export interface ApiRoute {
  /** The path. `{session}` at its end stands for a session id, such as 0x1000018f5ff0000, `{member}` for the id of a member. */
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly role: AdminRole
  readonly summary: string
  /** The parameters of the query, with their JSON schemas. */
  readonly query?: Readonly<Record<string, object>>
  /** Members of the JSON object in the body, with their JSON schemas; all may be left out but `requires`. */
  readonly body?: Readonly<Record<string, object>>
  readonly requires?: readonly string[]
  /** The content type of the body, and of answers, where it is not JSON. */
  readonly bodyType?: string
  readonly type?: string
  /** The statuses of answers, beside those of refusals. */
  readonly statuses: readonly number[]
  readonly run: (call: ApiCall) => HttpResponse | Promise<HttpResponse>
}

/** Returns an error of the API (RFC 9457). */
export const problem = (status: number, title: string, detail: string): HttpResponse =>
  json(status, { type: 'about:blank', title, status, detail }, 'application/problem+json')

/** Returns an error that passes: the caller may ask again after some seconds. */
export function passingProblem(
  status: 429 | 503,
  title: string,
  detail: string,
  retryAfterSeconds: number,
): HttpResponse {
  const answer = problem(status, title, detail)
  return { ...answer, headers: { ...answer.headers, 'retry-after': String(retryAfterSeconds) } }
}

/** Returns an answer of the API. */
export function json(status: number, value: object, type = 'application/json'): HttpResponse {
  return {
    status,
    headers: { 'content-type': type, 'cache-control': 'no-store' },
    body: `${JSON.stringify(value)}\n`,
  }
}

/**
 * Returns the refusal of a request that changes something and has a parameter that its operation lacks, or a body where it takes none: a
 * caller that misspells `dryRun` would otherwise get the change. Resolves to undefined for others.
 */
export async function refuseUnknown(
  { method, query = {}, body, bodyType }: ApiRoute,
  request: HttpRequest,
): Promise<HttpResponse | undefined> {
  if (method === 'GET') return undefined
  const takesBody = body !== undefined || bodyType !== undefined
  if (!takesBody && (await readObject(request.body, [])) === undefined)
    return problem(400, 'The body is not understood', 'Expected none.')
  const unknown = [...request.query.keys()].find((name) => !Object.hasOwn(query, name))
  if (unknown === undefined) return undefined
  const known = Object.keys(query)
  const expected = known.length === 0 ? 'no parameters' : known.join(' and ')
  return problem(
    400,
    'The query is not understood',
    `Expected ${expected}, got ${JSON.stringify(unknown.slice(0, 100))}.`,
  )
}

/** Returns the answer of the service; 503 while the server serves no clients. */
export function withService(
  { target }: ApiCall,
  answer: (server: ServerReport) => HttpResponse | Promise<HttpResponse>,
): HttpResponse | Promise<HttpResponse> {
  const { service } = target
  if (service !== undefined) return answer(service)
  return problem(
    503,
    'The server serves no clients',
    `It is ${target.role}. Ask again when /readyz answers 200.`,
  )
}
