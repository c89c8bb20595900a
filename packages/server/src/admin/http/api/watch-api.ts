import type { HttpResponse } from '@zabra/runtime'
import type { ServerReport } from '../../server-report.ts'
import { json, problem, withService, type ApiCall, type ApiRoute } from './api-route.ts'
import { parsePosition, WATCH_KINDS, watchPage, type WatchQuery } from './watch-pages.ts'

const DEFAULT_PAGE = 100
const MAX_PAGE = 1000
const SESSION = '^0x[0-9a-f]{1,16}$'

/** The list of watches. */
export const watchRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/watches',
    method: 'GET',
    role: 'view',
    summary: `Lists the watches of this server's clients by session and path, of all, or of a \`path\`, a \`session\`, a \`kind\`: at most \`limit\` (${DEFAULT_PAGE} by default, up to ${MAX_PAGE}) of those after the position \`after\`, which is \`next\` of the page before.`,
    query: {
      path: { type: 'string' },
      session: { type: 'string', pattern: SESSION },
      kind: { enum: WATCH_KINDS },
      limit: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
      after: { type: 'string', pattern: '^0x[0-9a-f]{1,16}(:.*)?$' },
    },
    statuses: [200, 400, 503],
    run: (call) => withService(call, (server) => listWatches(call, server)),
  },
]

async function listWatches({ answers, request }: ApiCall, server: ServerReport): Promise<HttpResponse> {
  const query = parseQuery(request.query)
  if (typeof query === 'string') return problem(400, 'The query is not understood', query)
  return json(200, await answers.result(watchPage(server, query)))
}

/** Returns the query, or what was expected instead. */
function parseQuery(given: URLSearchParams): WatchQuery | string {
  const [session, kindName, position] = [given.get('session'), given.get('kind'), given.get('after')]
  const kind = WATCH_KINDS.find((one) => one === kindName)
  const limit = Number(given.get('limit') ?? DEFAULT_PAGE)
  const after = position === null ? undefined : parsePosition(position)
  if (session !== null && !new RegExp(SESSION).test(session))
    return 'Expected session to be an id in hexadecimal, such as 0x1000018f5ff0000.'
  if (kindName !== null && kind === undefined) return `Expected kind to be one of ${WATCH_KINDS.join(', ')}.`
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE)
    return `Expected limit to be a number from 1 to ${MAX_PAGE}.`
  if (position !== null && after === undefined)
    return 'Expected after to be next of the page before, such as 0x1000018f5ff0000:/app.'
  return {
    path: given.get('path') ?? undefined,
    session: session === null ? undefined : BigInt.asIntN(64, BigInt(session)),
    kind,
    limit,
    after,
  }
}
