import type { Case } from './case.ts'
import { backupSize } from './backup-size.ts'
import { ceilingCase } from './ceiling.ts'
import { classicCase } from './classic.ts'
import { clientHolds } from './client-holds.ts'
import { disturbedCases } from './disturbed.ts'
import { enduranceCase } from './endurance.ts'
import { garbageCase } from './garbage.ts'
import { holdCases } from './holds.ts'
import { operateCases } from './operate.ts'
import { replaceCase } from './replace.ts'
import { sizeCases } from './size.ts'
import { throughputCases } from './throughput.ts'

/** All cases, in the order in which they run. */
export const cases: readonly Case[] = [
  ceilingCase,
  ...throughputCases,
  classicCase,
  ...sizeCases,
  ...disturbedCases,
  ...holdCases,
  clientHolds,
  ...operateCases,
  backupSize,
  replaceCase,
  garbageCase,
  enduranceCase,
]

const names = cases.filter(({ isLong }) => isLong !== true).map(({ name }) => name)

/** Sets of cases by name. Long cases are in no set. */
export const sets: Readonly<Record<string, readonly string[]>> = {
  all: names,
  single: names.filter((name) => !/-3$|fail-over/.test(name)),
  three: names.filter((name) => /-3$|fail-over/.test(name)),
  quick: ['throughput-1', 'latency-1', 'start'],
}
