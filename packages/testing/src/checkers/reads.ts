import { ErrorCode } from '@zabra/protocol'
import type { Model, NodeState } from '../history/model.ts'
import { formatZxid, type Operation, type SeenStat } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { tell } from './tell.ts'

export const reads: Checker = {
  name: 'reads',
  proves:
    'A read shows exactly the state of its znode at the zxid of its answer, data, Stat and children: one state for everybody, of a prefix of the history, with the own writes in it.',
  check({ history, chronicle }) {
    const wrong: string[] = []
    for (const operation of history.operations) {
      const problem = operation.outcome === 'answered' ? problemOf(operation, chronicle.model) : undefined
      if (problem !== undefined) wrong.push(`${tell(operation)} ${problem}`)
    }
    return wrong
  },
}

function problemOf({ request, result, zxid }: Operation, model: Model): string | undefined {
  if (request.op !== 'get' && request.op !== 'exists' && request.op !== 'children') return undefined
  if (zxid > model.lastZxid) return `shows ${formatZxid(zxid)}, which is not in the history that survives`
  const state = model.at(request.path, zxid)
  if (result.err === ErrorCode.NONODE)
    return state === undefined ? undefined : `misses a node that was made at ${formatZxid(state.stat.czxid)}`
  if (result.err !== 0) return undefined
  if (state === undefined) return 'shows a node that does not exist then'
  if (request.path === '/' || request.path.startsWith('/zookeeper')) return undefined
  if (request.op === 'children') {
    const expected = [...model.childrenAt(request.path, zxid)].sort().join()
    const got = [...result.children!].sort().join()
    if (expected !== got) return `shows the children [${got}] instead of [${expected}]`
  }
  return difference(state, result.data, result.stat!)
}

const fields = [
  'czxid',
  'mzxid',
  'pzxid',
  'version',
  'cversion',
  'aversion',
  'owner',
  'dataLength',
  'children',
] as const

/** How what was seen differs from what was there. */
export function difference(state: NodeState, data: string | undefined, stat: SeenStat): string | undefined {
  if (data !== undefined && data !== state.data) return `shows "${data}" instead of "${state.data}"`
  const field = fields.find((name) => stat[name] !== state.stat[name])
  return field && `shows ${field} ${stat[field]} instead of ${state.stat[field]}`
}
