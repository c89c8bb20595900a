import { parentOf } from '@zabra/protocol'
import { formatZxid, type NodeMode, type Operation, type MultiPart } from '../history/records.ts'
import type { Checker } from './checker.ts'

export const sequences: Checker = {
  name: 'sequences',
  proves:
    'The numbers of sequential znodes of one parent increase strictly in zxid order, across deletions and changes of leader.',
  check({ history }) {
    const wrong: string[] = []
    const made = new Map<string, { zxid: number; number: number; path: string }[]>()
    for (const operation of history.operations) {
      if (operation.outcome !== 'answered' || operation.result.err !== 0) continue
      for (const path of namesOf(operation)) {
        const parent = parentOf(path)
        const one = { zxid: operation.zxid, number: Number(path.slice(-10)), path }
        const list = made.get(parent)
        if (list === undefined) made.set(parent, [one])
        else list.push(one)
      }
    }
    for (const list of made.values()) {
      list.sort((a, b) => a.zxid - b.zxid || a.number - b.number)
      for (const [index, one] of list.entries()) {
        const before = list[index - 1]
        if (before !== undefined && one.number <= before.number)
          wrong.push(
            `${one.path} was made at ${formatZxid(one.zxid)}, after ${before.path} at ${formatZxid(before.zxid)}`,
          )
      }
    }
    return wrong
  },
}

const isSequential = (mode: NodeMode): boolean => mode === 'sequential' || mode === 'ephemeralSequential'
const sequential = (part: MultiPart): boolean => part.op === 'create' && isSequential(part.mode)

function namesOf({ request, result, results }: Operation): string[] {
  if (request.op === 'create') return isSequential(request.mode) ? [result.path!] : []
  if (request.op !== 'multi') return []
  return request.parts.flatMap((part, index) => (sequential(part) ? [results[index]!.path!] : []))
}
