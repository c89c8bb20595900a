import type { HttpResponse } from '@zabra/runtime'
import type { ServerReport } from '../../server-report.ts'
import { json, passingProblem, problem, withService, type ApiCall, type ApiRoute } from './api-route.ts'
import { MAX_LISTED, treeUsage, type NodeUsage, type TreeUsage } from './tree-usage.ts'

const DEFAULT_PAGE = 100
const MAX_PAGE = 1000
const MAX_DEPTH = 10
/** Characters of paths that end a page: a path may have a million of them. */
const PAGE_CHARS = 1 << 18
/** Walks of which pages can be asked for. */
const MAX_WALKS = 4
/** Seconds after which to ask again while another walk is under way. */
const RETRY_SECONDS = 1

/** The sizes of nodes. */
export const treeRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/tree',
    method: 'GET',
    role: 'view',
    summary: `Measures the nodes down to \`depth\` levels below \`path\`: children, descendants, bytes of data of each node and of its subtree, the largest subtree first, up to ${MAX_LISTED}. Names nodes and no data. Walks the subtree in slices; pages after \`after\`, which is \`next\` of the page before, are of the same walk.`,
    query: {
      path: { type: 'string', default: '/' },
      depth: { type: 'integer', minimum: 1, maximum: MAX_DEPTH, default: 1 },
      limit: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
      after: { type: 'string', pattern: '^\\d{1,15}-\\d{1,15}$' },
    },
    statuses: [200, 400, 404, 410, 503],
    run: (call) => withService(call, (server) => measure(call, server)),
  },
]

/** The walks of a server: one at a time, so that pages of the same walk are stable, and many requests cost one walk. */
class TreeWalks {
  #running: { readonly key: string; readonly walk: Promise<TreeUsage | undefined> } | undefined
  #last = 0
  readonly #done = new Map<number, TreeUsage>()

  get(id: number): TreeUsage | undefined {
    return this.#done.get(id)
  }

  /** Begins a walk, or waits for the same one that is under way. Returns undefined while another one is. */
  begin(
    key: string,
    start: () => Promise<TreeUsage | undefined>,
  ): Promise<TreeUsage | undefined> | undefined {
    if (this.#running !== undefined) return this.#running.key === key ? this.#running.walk : undefined
    const walk = start().finally(() => (this.#running = undefined))
    this.#running = { key, walk }
    return walk
  }

  /** Keeps the result of a walk for its further pages. Returns its number. */
  keep(usage: TreeUsage): number {
    for (const [id, kept] of this.#done) if (kept === usage) return id
    this.#done.set(++this.#last, usage)
    const [oldest] = this.#done.keys()
    if (this.#done.size > MAX_WALKS) this.#done.delete(oldest!)
    return this.#last
  }
}

/** By server: the walks of a former role are not kept. */
const walksOf = new WeakMap<ServerReport, TreeWalks>()

async function measure({ answers, request }: ApiCall, server: ServerReport): Promise<HttpResponse> {
  const { query } = request
  const [path, after] = [query.get('path') ?? '/', query.get('after')]
  const [depth, limit] = [Number(query.get('depth') ?? 1), Number(query.get('limit') ?? DEFAULT_PAGE)]
  const isPage = Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE
  const isDepth = Number.isInteger(depth) && depth >= 1 && depth <= MAX_DEPTH
  const [, id, from] = /^(\d{1,15})-(\d{1,15})$/.exec(after ?? '0-0') ?? []
  if (!path.startsWith('/') || !isPage || !isDepth || id === undefined)
    return problem(
      400,
      'The query is not understood',
      `Expected path to begin with /, depth from 1 to ${MAX_DEPTH}, limit from 1 to ${MAX_PAGE}, after to be next of the page before.`,
    )
  const walks = walksOf.get(server) ?? new TreeWalks()
  walksOf.set(server, walks)
  if (after !== null) {
    const kept = walks.get(Number(id))
    if (kept !== undefined) return json(200, pageOf(kept, Number(id), Number(from), limit))
    return problem(
      410,
      'The walk of the page before is gone',
      `The last ${MAX_WALKS} walks of this server are kept. Ask for the first page again.`,
    )
  }
  const walk = walks.begin(`${depth} ${path}`, () => answers.result(treeUsage(server.tree, path, depth)))
  if (walk === undefined) return busy()
  const usage = await walk
  if (usage === undefined)
    return problem(404, 'The node is missing', 'There is no node at path, or it was deleted meanwhile.')
  return json(200, pageOf(usage, walks.keep(usage), 0, limit))
}

const busy = (): HttpResponse =>
  passingProblem(
    429,
    'Another subtree is being measured',
    `This server measures one at a time. Ask again in ${RETRY_SECONDS} s.`,
    RETRY_SECONDS,
  )

function pageOf({ node, depth, nodes, omitted }: TreeUsage, id: number, from: number, limit: number): object {
  const page: NodeUsage[] = []
  let chars = 0
  for (let at = from; at < nodes.length && page.length < limit && chars < PAGE_CHARS; at++) {
    page.push(nodes[at]!)
    chars += nodes[at]!.path.length
  }
  const end = from + page.length
  return { node, depth, nodes: page, omitted, next: end < nodes.length ? `${id}-${end}` : null }
}
