import { ErrorCode, errorName, Perms } from '@zabra/protocol'
import { allows, nameOf, redactedAcl } from '../history/acl.ts'
import type { TreeModel, NodeState } from '../history/model.ts'
import { QUOTA_STATS, QuotaUsage } from '../history/quota.ts'
import { formatZxid, isWrite, type Operation, type ReadPart, type PlainStat } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { describeOperation } from './describe-operation.ts'

export const reads: Checker = {
  name: 'reads',
  proves:
    'A read shows exactly the state of its znode at the zxid of its reply: data, Stat and children, in one state shared by all clients that includes the own writes.',
  check({ history, committed }) {
    const wrong: string[] = []
    const known = { model: committed.model, use: new QuotaUsage(committed.model) }
    for (const operation of history.operations) {
      // The last transactions in the log of a server without a quorum may never have been committed.
      if (operation.isReadOnly === true && !committed.byZxid.has(operation.zxid)) continue
      const problem =
        operation.outcome === 'answered' ? (zxidProblem(operation) ?? problemOf(operation, known)) : undefined
      if (problem !== undefined) wrong.push(`${describeOperation(operation)} ${problem}`)
    }
    return wrong
  },
}

const JUDGED: ReadonlySet<string> = new Set(['get', 'exists', 'children', 'getAcl', 'count', 'ephemerals'])

/** Errors of reads whose session has ended or moved. */
const SESSION_IS_GONE: ReadonlySet<number> = new Set([ErrorCode.SESSIONEXPIRED, ErrorCode.SESSIONMOVED])

interface Known {
  readonly model: TreeModel
  readonly use: QuotaUsage
}

/** Other checkers compare zxids: they would skip a reply without one. A read-only server may have no transaction. */
function zxidProblem({ request, result, zxid, isReadOnly }: Operation): string | undefined {
  if (zxid > 0 || isReadOnly === true || isWrite(request) || SESSION_IS_GONE.has(result.err)) return undefined
  return 'names no zxid'
}

function problemOf(operation: Operation, known: Known): string | undefined {
  const { request, result, zxid, user } = operation
  const { model } = known
  if (request.op === 'multiRead') return partProblem(operation, request.parts, known)
  if (request.op === 'whoAmI') return identityProblem(operation)
  if (!JUDGED.has(request.op) || !('path' in request)) return undefined
  if (zxid > model.lastZxid) return `shows ${formatZxid(zxid)}, which is not in the history that survives`
  if (request.op === 'ephemerals') return ephemeralsProblem(operation, model)
  const state = model.stateAt(request.path, zxid)
  if (result.err === ErrorCode.NONODE)
    return state === undefined ? undefined : `misses a node that was made at ${formatZxid(state.stat.czxid)}`
  const wanted = request.op === 'getAcl' ? Perms.READ | Perms.ADMIN : Perms.READ
  const mayRead = state === undefined || allows(state.acl, wanted, user)
  if (result.err === ErrorCode.NOAUTH)
    return mayRead ? 'is refused, although its user may read it' : undefined
  if (result.err !== 0)
    return SESSION_IS_GONE.has(result.err) ? undefined : `is refused with ${errorName(result.err)}`
  if (state === undefined) return 'shows a node that does not exist then'
  if (!mayRead) return `shows what "${user}" must not read`
  if (request.path === QUOTA_STATS) {
    const expected = known.use.statsAt(zxid)
    return result.data === expected ? undefined : `shows the use "${result.data}" instead of "${expected}"`
  }
  if (request.path === '/' || request.path.startsWith('/zookeeper')) return undefined
  if (request.op === 'children') {
    const [got, expected] = [result.children!, model.childrenAt(request.path, zxid)]
    if (!haveSameNames(got, expected))
      return `shows the children [${[...got].sort().join()}] instead of [${[...expected].sort().join()}]`
  }
  if (request.op === 'count') {
    const below = model.countBelow(request.path, zxid)
    return result.count === below ? undefined : `counts ${result.count} nodes instead of ${below}`
  }
  if (request.op === 'getAcl') {
    const [got, expected] = [result.acl!.join(), redactedAcl(state.acl, user).join()]
    if (got !== expected) return `shows the access list [${got}] instead of [${expected}]`
  }
  return result.stat === undefined ? undefined : difference(state, result.data, result.stat)
}

/** Returns whether a list has each name of a set once, and nothing else. */
function haveSameNames(list: readonly string[], names: ReadonlySet<string>): boolean {
  return (
    list.length === names.size && list.every((name) => names.has(name)) && new Set(list).size === list.length
  )
}

/** One state answers all reads; each shows what a single read at that zxid shows. */
function partProblem(operation: Operation, parts: readonly ReadPart[], known: Known): string | undefined {
  const { results, result } = operation
  if (result.err !== 0) return 'is refused as a whole'
  if (results.length !== parts.length) return `has ${results.length} answers for ${parts.length} parts`
  for (const [index, { op, path }] of parts.entries()) {
    const request = { op, path, watch: false }
    const problem = problemOf({ ...operation, request, result: results[index]! }, known)
    if (problem !== undefined) return `part ${index} ${problem}`
  }
  return undefined
}

/** Checks that a server knows exactly the identities that the client has proved, each once. */
function identityProblem({ result, user }: Operation): string | undefined {
  const named = (result.identities ?? []).filter((one) => !one.startsWith('ip:')).join()
  const expected = nameOf(user)
  return named === expected ? undefined : `is taken for "${named}" instead of "${expected}"`
}

function ephemeralsProblem(
  { request, result, session, zxid }: Operation,
  model: TreeModel,
): string | undefined {
  if (result.err !== 0 || !('path' in request)) return undefined
  const own = BigInt.asIntN(64, BigInt(`0x${session}`))
  const expected = model.ephemeralsBelow(request.path, own, zxid).sort().join()
  const got = [...result.children!].sort().join()
  return got === expected ? undefined : `shows the ephemeral nodes [${got}] instead of [${expected}]`
}

const fields = [
  'czxid',
  'mzxid',
  'ctime',
  'mtime',
  'pzxid',
  'version',
  'cversion',
  'aversion',
  'owner',
  'dataLength',
  'children',
] as const

/** Returns how an observed node differs from the state; undefined when they are equal. */
export function difference(state: NodeState, data: string | undefined, stat: PlainStat): string | undefined {
  if (data !== undefined && data !== state.data) return `shows "${data}" instead of "${state.data}"`
  const field = fields.find((name) => stat[name] !== state.stat[name])
  return field && `shows ${field} ${stat[field]} instead of ${state.stat[field]}`
}
