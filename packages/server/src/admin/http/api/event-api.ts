import type { HttpResponse, LogLevel } from '@zabra/runtime'
import { isEventId, LOG_LEVELS, LOG_PARTS, type RecentEvent } from '../../../logging/index.ts'
import { passingProblem, problem, type ApiCall, type ApiRoute } from './api-route.ts'

const EVENT_STREAM = 'text/event-stream'
const LEVELS: readonly LogLevel[] = LOG_LEVELS.filter((level) => level !== 'debug')
/** Numbers of events have at most so many digits. */
const NUMBER = /^\d{1,16}$/
/** Seconds after which a reader asks again while there are too many. */
const RETRY_SECONDS = 15

/** The stream of events. */
export const eventRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/events',
    method: 'GET',
    role: 'view',
    summary:
      'Sends the last 512 events of the log at level `info` and above, and those to come, as server-sent events: `event` is the id of the log, `data` its line as JSON. Goes on after the event `after`, or the header `Last-Event-ID`. An event `events.lost` says that some were left out. `level` is the least important level, `types` lists ids and parts of the log, separated by commas or each in a parameter of its own. With `follow=false` the answer ends after the events that there are.',
    query: {
      after: { type: 'string', pattern: NUMBER.source },
      level: { enum: LEVELS, default: 'info' },
      types: { type: 'string' },
      follow: { type: 'boolean', default: true },
    },
    type: EVENT_STREAM,
    statuses: [200, 400, 503],
    run: openStream,
  },
]

function openStream({ request: { query, headers }, eventStreams }: ApiCall): HttpResponse {
  const level = LEVELS.find((one) => one === (query.get('level') ?? 'info'))
  const [after, follow] = [query.get('after'), query.get('follow') ?? 'true']
  const types = query.has('types')
    ? query.getAll('types').flatMap((types) => types.split(',').filter((type) => type !== ''))
    : undefined
  if (level === undefined || !/^(?:true|false)$/.test(follow) || (after !== null && !NUMBER.test(after)))
    return problem(
      400,
      'The query is not understood',
      `Expected level=${LEVELS.join('|')}, follow=true|false, and after to be the id of an event, such as 1764400000000017.`,
    )
  const unknown = types?.find((type) => !LOG_PARTS.includes(type) && !isEventId(type))
  if (unknown !== undefined)
    return problem(
      400,
      'There is no such type of events',
      `Expected ids of https://github.com/zabra/zabra/blob/main/docs/log-events.md, such as server.role, or parts: ${LOG_PARTS.join(', ')}; got ${JSON.stringify(unknown.slice(0, 100))}.`,
    )
  const body = eventStreams.open({
    // A browser that connects again repeats the query, and knows better.
    after: lastId(headers['last-event-id']) ?? (after === null ? undefined : Number(after)),
    follows: follow === 'true',
    includes: filterOf(level, types),
  })
  if (body === undefined) return tooMany()
  return {
    status: 200,
    // The last header keeps nginx from collecting events before it passes them on.
    headers: { 'content-type': EVENT_STREAM, 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
    body,
  }
}

/** Returns the number in the header `Last-Event-ID`; NaN for that of another kind of server, undefined without one. */
const lastId = (header: string | readonly string[] | undefined): number | undefined =>
  header === undefined || header === ''
    ? undefined
    : NUMBER.test(String(header))
      ? Number(header)
      : Number.NaN

function filterOf(least: LogLevel, types: readonly string[] | undefined): (event: RecentEvent) => boolean {
  const rank = LOG_LEVELS.indexOf(least)
  const wanted = types === undefined || types.length === 0 ? undefined : new Set(types)
  return ({ level, event }) =>
    LOG_LEVELS.indexOf(level) <= rank &&
    (wanted === undefined || wanted.has(event.id) || wanted.has(event.part))
}

const tooMany = (): HttpResponse =>
  passingProblem(
    503,
    'Too many streams of events',
    `As many streams are open as the server keeps. Close one, ask again in ${RETRY_SECONDS} s, or ask with follow=false from time to time when there is room.`,
    RETRY_SECONDS,
  )
