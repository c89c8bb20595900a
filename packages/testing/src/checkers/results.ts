import { ErrorCode, errorName, nameOf, parentOf } from '@zabra/protocol'
import type { Model, NodeState } from '../history/model.ts'
import { hasPlace, type Operation, type Part, type Result } from '../history/records.ts'
import type { Checker } from './checker.ts'
import { tell } from './tell.ts'

export const results: Checker = {
  name: 'results',
  proves:
    'Every answer to a write is the one that carrying out all writes in the order of their zxids gives: versions, names, errors; and a transaction has the answers of all its parts or the error of one.',
  check({ history, chronicle }) {
    const wrong: string[] = []
    for (const operation of history.operations) {
      const { request, result, zxid } = operation
      if (!hasPlace(operation)) continue
      if (request.op === 'multi') wrong.push(...multiProblems(operation, request.parts, chronicle.model))
      else if (request.op === 'create' || request.op === 'delete' || request.op === 'set') {
        const view = new View(chronicle.model, zxid - 1)
        const problem = view.carryOut(request, result)
        if (problem !== undefined) wrong.push(`${tell(operation)} ${problem}`)
      }
    }
    return wrong
  },
}

function multiProblems(operation: Operation, parts: readonly Part[], model: Model): string[] {
  const { results: answers, result, zxid } = operation
  const view = new View(model, zxid - 1)
  if (answers.length !== parts.length)
    return [`${tell(operation)} has ${answers.length} answers for ${parts.length} parts`]
  const failed = answers.findIndex(({ err }) => err !== 0 && err !== ErrorCode.RUNTIMEINCONSISTENCY)
  if ((failed === -1) !== (result.err === 0))
    return [`${tell(operation)} is answered differently as a whole than in its parts`]
  for (const [index, part] of parts.entries()) {
    const answer = answers[index]!
    if (failed !== -1 && index > failed) {
      if (answer.err !== ErrorCode.RUNTIMEINCONSISTENCY)
        return [`${tell(operation)}: part ${index} behind the one that failed has ${answer.err}`]
      continue
    }
    // Parts before the one that failed were fine, and their results are not told.
    const problem = view.carryOut(part, failed === -1 || index === failed ? answer : undefined)
    if (problem !== undefined) return [`${tell(operation)}: part ${index} ${problem}`]
  }
  return []
}

/** The tree at a zxid with the parts of a transaction done so far. */
class View {
  readonly #model: Model
  readonly #zxid: number
  readonly #changed = new Map<string, NodeState | undefined>()

  constructor(model: Model, zxid: number) {
    this.#model = model
    this.#zxid = zxid
  }

  /** Carries a part out and says how its answer differs from what it must be. Without an answer it must succeed. */
  carryOut(part: Part, answer: Result | undefined): string | undefined {
    const path = part.op === 'create' ? (answer?.path ?? part.path) : part.path
    const expected = this.#judge(part, path)
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

  #judge(part: Part, path: string): number {
    if (part.op === 'create') {
      const above = this.#get(parentOf(path))
      if (above === undefined) return ErrorCode.NONODE
      const isSequential = part.mode === 'sequential' || part.mode === 'ephemeralSequential'
      if (!isSequential && this.#get(path) !== undefined) return ErrorCode.NODEEXISTS
      return above.stat.owner > 0n ? ErrorCode.NOCHILDRENFOREPHEMERALS : 0
    }
    const node = this.#get(path)
    if (node === undefined) return ErrorCode.NONODE
    if (part.version !== -1 && part.version !== node.stat.version) return ErrorCode.BADVERSION
    return part.op === 'delete' && node.stat.children > 0 ? ErrorCode.NOTEMPTY : 0
  }

  #change(part: Part, path: string, answer: Result | undefined): string | undefined {
    if (part.op === 'check') return undefined
    const before = this.#get(path)
    if (part.op === 'create') {
      const zero = {
        czxid: 0,
        mzxid: 0,
        pzxid: 0,
        version: 0,
        cversion: 0,
        aversion: 0,
        dataLength: 0,
        children: 0,
      }
      const owner = part.mode === 'ephemeral' || part.mode === 'ephemeralSequential' ? 1n : 0n
      this.#changed.set(path, { data: part.data, stat: { ...zero, owner } })
      this.#countChild(path, 1)
      return nameOf(path) === '' ? 'made a node without a name' : undefined
    }
    if (part.op === 'delete') {
      this.#changed.set(path, undefined)
      this.#countChild(path, -1)
      return undefined
    }
    const version = before!.stat.version + 1
    this.#changed.set(path, { data: part.data, stat: { ...before!.stat, version } })
    if (answer?.stat === undefined || answer.stat.version === version) return undefined
    return `was answered with version ${answer.stat.version}, expected ${version}`
  }

  #countChild(path: string, by: number): void {
    const parent = parentOf(path)
    const { data, stat } = this.#get(parent)!
    this.#changed.set(parent, { data, stat: { ...stat, children: stat.children + by } })
  }

  #get(path: string): NodeState | undefined {
    return this.#changed.has(path) ? this.#changed.get(path) : this.#model.at(path, this.#zxid)
  }
}
