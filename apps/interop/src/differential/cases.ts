import { createHash } from 'node:crypto'
import { create } from './requests.ts'
import { accessCases } from './access-cases.ts'
import type { AddCase, Case } from './case.ts'
import { malformedCases } from './malformed-cases.ts'
import { multiCases } from './multi-cases.ts'
import { sessionCases } from './session-cases.ts'
import { quotaLimitCases, treeCases } from './tree-cases.ts'
import { randomCases } from './random-cases.ts'
import { watchCases } from './watch-cases.ts'

export function allCases(): Case[] {
  const cases: Case[] = []
  const names = new Set<string>()
  const add: AddCase = (name, steps) => {
    if (names.has(name)) throw new Error(`Two cases are called ${name}`)
    names.add(name)
    // Derived from the name, so that recorded replies stay valid when cases are added.
    const root = `/d${createHash('sha1').update(name).digest('hex').slice(0, 8)}`
    cases.push({ name, steps: [create(root, 'root'), ...steps(root)] })
  }
  treeCases(add)
  accessCases(add)
  watchCases(add)
  multiCases(add)
  sessionCases(add)
  malformedCases(add)
  randomCases(add)
  // Recorded replies hold sequence numbers of the root, so later additions come behind the others.
  quotaLimitCases(add)
  return cases
}
