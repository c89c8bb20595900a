import { ErrorCode, errorName, nameOf, parentOf, Perms } from '@zabra/protocol'
import { allows, storedAcl, type AclKind } from '../history/acl.ts'
import { withStat, type TreeModel, type NodeState } from '../history/model.ts'
import { QUOTA_PATH, QuotaUsage } from '../history/quota.ts'
import { readMembers } from '../simulation/membership.ts'
import { formatZxid, hasZxid, type Operation, type MultiPart, type Result } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { highestAcknowledgedBefore } from './highest-acknowledged.ts'
import { difference } from './reads.ts'
import { describeOperation } from './describe-operation.ts'

export const results: Checker = {
  name: 'results',
  proves:
    'Every reply to a write is the one that applying all writes in zxid order gives: versions, names, errors; a multi has the results of all its operations or the error of one.',
  check({ history, committed: { model }, unnamedServers }) {
    const wrong: string[] = []
    const limits = new Limits(model, highestAcknowledgedBefore(history))
    for (const operation of history.operations) {
      if (!hasZxid(operation)) continue
      const limited = limits.problem(operation)
      if (limited !== undefined) wrong.push(`${describeOperation(operation)} ${limited}`)
      if (operation.result.err === ErrorCode.QUOTAEXCEEDED) continue
      const problems = problemsOf(operation, model)
      const isAnonymous = problems.length > 0 && unnamedServers.has(operation.server)
      if (!isAnonymous || problemsOf({ ...operation, user: '' }, model).length > 0) wrong.push(...problems)
    }
    return wrong
  },
}

/** Returns how the reply to a write differs from what the state before it gives. */
function problemsOf(operation: Operation, model: TreeModel): string[] {
  const { request, result, zxid, user } = operation
  if (request.op === 'multi') return multiProblems(operation, request.parts, model)
  const problems: (string | undefined)[] = []
  if (request.op === 'reconfig') problems.push(outdatedProblem(operation, model))
  if (request.op === 'setAcl') problems.push(aclProblem(operation, model))
  else if (request.op === 'create' || request.op === 'delete' || request.op === 'set') {
    problems.push(new View(model, zxid - 1, user).carryOut(request, result))
    if (request.op === 'create') problems.push(keptProblem(operation, request, model))
  }
  problems.push(statProblem(operation, model))
  return problems.filter((one) => one !== undefined).map((one) => `${describeOperation(operation)} ${one}`)
}

/** Checks that the Stat in a reply is that of the znode after the write. Servers change those below `/zookeeper` themselves. */
function statProblem({ request, result, zxid }: Operation, model: TreeModel): string | undefined {
  if (result.stat === undefined || !('path' in request) || request.path.startsWith('/zookeeper'))
    return undefined
  const state = model.stateAt(result.path ?? request.path, zxid)
  return state && difference(state, undefined, result.stat)
}

/** Checks results against the quota. */
class Limits {
  readonly #model: TreeModel
  readonly #use: QuotaUsage
  readonly #known: (time: number) => number

  constructor(model: TreeModel, known: (time: number) => number) {
    this.#model = model
    this.#use = new QuotaUsage(model)
    this.#known = known
  }

  problem({ request, result, zxid, invoked }: Operation): string | undefined {
    const isRefused = result.err === ErrorCode.QUOTAEXCEEDED
    if ((request.op !== 'create' && request.op !== 'set') || !request.path.startsWith(`${QUOTA_PATH}/`))
      return isRefused ? 'is refused, although no quota applies' : undefined
    if (!isRefused && result.err !== 0) return undefined
    const before = this.#model.stateAt(request.path, zxid - 1)
    if (isRefused && (before === undefined) !== (request.op === 'create'))
      return `is refused for a limit when its node ${before === undefined ? 'does not exist' : 'exists'}`
    const bytes = new TextEncoder().encode(request.data).length - (before?.stat.dataLength ?? 0)
    const verdicts = this.#use.possibleOutcomes(
      this.#known(invoked),
      zxid - 1,
      request.op === 'create' ? 1 : 0,
      bytes,
    )
    if (verdicts.has(isRefused ? 'refused' : 'fits')) return undefined
    return isRefused ? 'is refused, although it is within the quota' : 'exceeds the quota and is applied'
  }
}

/** Checks the access list of a created node. */
function keptProblem(
  { result, zxid, user }: Operation,
  { acl = 'open' }: { acl?: AclKind },
  model: TreeModel,
): string | undefined {
  if (result.err !== 0) return undefined
  const [kept, expected] = [model.stateAt(result.path!, zxid)?.acl.join(), storedAcl(acl, user)?.join()]
  return kept === expected ? undefined : `has the access list [${kept}], expected [${expected}]`
}

function aclProblem({ request, result, zxid, user }: Operation, model: TreeModel): string | undefined {
  if (request.op !== 'setAcl') return undefined
  const { path, version } = request
  const [kept, node] = [storedAcl(request.acl, user), model.stateAt(path, zxid - 1)]
  const expectedError = (): number => {
    if (kept === undefined) return ErrorCode.INVALIDACL
    if (node === undefined) return ErrorCode.NONODE
    if (!allows(node.acl, Perms.ADMIN, user)) return ErrorCode.NOAUTH
    return version !== -1 && version !== node.stat.aversion ? ErrorCode.BADVERSION : 0
  }
  const expected = expectedError()
  if (result.err !== expected)
    return `was answered with ${errorName(result.err)}, expected ${errorName(expected)}`
  if (expected !== 0) return undefined
  if (result.stat?.aversion !== node!.stat.aversion + 1)
    return `was answered with version ${result.stat?.aversion} of the access list, expected ${node!.stat.aversion + 1}`
  const now = model.stateAt(path, zxid)?.acl.join()
  return now === kept!.join() ? undefined : `left the access list [${now}], expected [${kept!.join()}]`
}

/** Checks that a reconfiguration was based on the configuration in force. */
function outdatedProblem({ request, result, zxid }: Operation, model: TreeModel): string | undefined {
  if (request.op !== 'reconfig' || result.err !== 0 || request.from === -1) return undefined
  const { version } = readMembers(model.stateAt('/zookeeper/config', zxid - 1)?.data ?? '')
  // The first leader names the initial configuration after its epoch.
  const isInitial = version === 0 && request.from % 2 ** 32 === 0
  return version === request.from || isInitial
    ? undefined
    : `replaced the configuration ${formatZxid(version)}, expected ${formatZxid(request.from)} to be in force`
}

function multiProblems(operation: Operation, parts: readonly MultiPart[], model: TreeModel): string[] {
  const { results: answers, result, zxid } = operation
  const view = new View(model, zxid - 1, operation.user)
  if (answers.length !== parts.length)
    return [`${describeOperation(operation)} has ${answers.length} answers for ${parts.length} parts`]
  const failed = answers.findIndex(({ err }) => err !== 0 && err !== ErrorCode.RUNTIMEINCONSISTENCY)
  if ((failed === -1) !== (result.err === 0))
    return [`${describeOperation(operation)} is answered differently as a whole than in its parts`]
  for (const [index, part] of parts.entries()) {
    const answer = answers[index]!
    if (failed !== -1 && index > failed) {
      if (answer.err !== ErrorCode.RUNTIMEINCONSISTENCY)
        return [`${describeOperation(operation)}: part ${index} behind the one that failed has ${answer.err}`]
      continue
    }
    // Operations before the failed one succeeded, and their results are not in the reply.
    const problem = view.carryOut(part, failed === -1 || index === failed ? answer : undefined)
    if (problem !== undefined) return [`${describeOperation(operation)}: part ${index} ${problem}`]
  }
  return []
}

/** The tree at a zxid with the operations of a multi applied so far. */
class View {
  readonly #model: TreeModel
  readonly #zxid: number
  readonly #user: string
  readonly #changed = new Map<string, NodeState | undefined>()

  constructor(model: TreeModel, zxid: number, user: string) {
    this.#model = model
    this.#user = user
    this.#zxid = zxid
  }

  /**
   * Applies an operation and returns how its result differs from the expected one. Without a result the operation must
   * succeed.
   */
  carryOut(part: MultiPart, answer: Result | undefined): string | undefined {
    const path = part.op === 'create' ? (answer?.path ?? part.path) : part.path
    const expected = this.#expectedError(part, path)
    const got = answer?.err ?? 0
    if (got !== expected) return `was answered with ${errorName(got)}, expected ${errorName(expected)}`
    if (expected !== 0) return undefined
    if (part.op === 'create' && (part.mode === 'sequential' || part.mode === 'ephemeralSequential')) {
      if (answer === undefined) return undefined
      if (!answer.path!.startsWith(part.path) || !/^-?\d{10}$/.test(answer.path!.slice(part.path.length)))
        return `was answered with the name ${answer.path}`
    } else if (part.op === 'create' && path !== part.path) return `was answered with the name ${path}`
    return this.#change(part, path, answer)
  }

  #expectedError(part: MultiPart, path: string): number {
    if (part.op === 'create') {
      if (storedAcl(part.acl ?? 'open', this.#user) === undefined) return ErrorCode.INVALIDACL
      const above = this.#get(parentOf(path))
      if (above === undefined) return ErrorCode.NONODE
      if (!allows(above.acl, Perms.CREATE, this.#user)) return ErrorCode.NOAUTH
      const isSequential = part.mode === 'sequential' || part.mode === 'ephemeralSequential'
      if (!isSequential && this.#get(path) !== undefined) return ErrorCode.NODEEXISTS
      return above.stat.owner > 0n ? ErrorCode.NOCHILDRENFOREPHEMERALS : 0
    }
    if (part.op === 'delete') {
      const above = this.#get(parentOf(path))
      if (above === undefined) return ErrorCode.NONODE
      if (!allows(above.acl, Perms.DELETE, this.#user)) return ErrorCode.NOAUTH
    }
    const node = this.#get(path)
    if (node === undefined) return ErrorCode.NONODE
    const wanted = part.op === 'set' ? Perms.WRITE : part.op === 'check' ? Perms.READ : 0
    if (wanted !== 0 && !allows(node.acl, wanted, this.#user)) return ErrorCode.NOAUTH
    if (part.version !== -1 && part.version !== node.stat.version) return ErrorCode.BADVERSION
    return part.op === 'delete' && node.stat.children > 0 ? ErrorCode.NOTEMPTY : 0
  }

  #change(part: MultiPart, path: string, answer: Result | undefined): string | undefined {
    if (part.op === 'check') return undefined
    const before = this.#get(path)
    if (part.op === 'create') {
      const zero = {
        czxid: 0,
        mzxid: 0,
        ctime: 0,
        mtime: 0,
        pzxid: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        dataLength: 0,
        children: 0,
      }
      const owner = part.mode === 'ephemeral' || part.mode === 'ephemeralSequential' ? 1n : 0n
      const acl = storedAcl(part.acl ?? 'open', this.#user)!
      const made = { acl, kind: 'plain', ttl: 0 } as const
      this.#changed.set(path, { ...made, data: part.data, stat: { ...zero, owner } })
      this.#countChild(path, 1)
      return nameOf(path) === '' ? 'made a node without a name' : undefined
    }
    if (part.op === 'delete') {
      this.#changed.set(path, undefined)
      this.#countChild(path, -1)
      return undefined
    }
    const version = before!.stat.version + 1
    this.#changed.set(path, { ...before!, data: part.data, stat: { ...before!.stat, version } })
    if (answer?.stat === undefined || answer.stat.version === version) return undefined
    return `was answered with version ${answer.stat.version}, expected ${version}`
  }

  #countChild(path: string, by: number): void {
    const parent = parentOf(path)
    const above = this.#get(parent)!
    const { stat } = above
    this.#changed.set(parent, withStat(above, { ...stat, children: stat.children + by }))
  }

  #get(path: string): NodeState | undefined {
    return this.#changed.has(path) ? this.#changed.get(path) : this.#model.stateAt(path, this.#zxid)
  }
}
