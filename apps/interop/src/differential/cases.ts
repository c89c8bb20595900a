import { createHash } from 'node:crypto'
import { create } from './requests.ts'
import { accessCases } from './access-cases.ts'
import type { Case, Step } from './case.ts'
import { malformedCases } from './malformed-cases.ts'
import { multiCases } from './multi-cases.ts'
import { sessionCases } from './session-cases.ts'
import { treeCases } from './tree-cases.ts'
import { walkCases } from './walk-cases.ts'
import { watchCases } from './watch-cases.ts'

/** Adds a case; its steps run below a root node of their own, so that cases do not see each other. */
export type Add = (name: string, steps: (root: string) => readonly Step[]) => void

export function allCases(): Case[] {
  const cases: Case[] = []
  const names = new Set<string>()
  const add: Add = (name, steps) => {
    if (names.has(name)) throw new Error(`Two cases are called ${name}`)
    names.add(name)
    // From the name, so that a recorded answer stays valid when cases are added before it.
    const root = `/d${createHash('sha1').update(name).digest('hex').slice(0, 8)}`
    cases.push({ name, steps: [create(root, 'root'), ...steps(root)] })
  }
  treeCases(add)
  accessCases(add)
  watchCases(add)
  multiCases(add)
  sessionCases(add)
  malformedCases(add)
  walkCases(add)
  return cases
}
