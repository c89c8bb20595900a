import type { Case } from './case.ts'
import { ceilingCase } from './ceiling.ts'
import { classicCase } from './classic.ts'
import { disturbedCases } from './disturbed.ts'
import { holdCases } from './holds.ts'
import { sizeCases } from './size.ts'
import { throughputCases } from './throughput.ts'

/** All questions, in the order in which they are asked. */
export const cases: readonly Case[] = [
  ceilingCase,
  ...throughputCases,
  classicCase,
  ...sizeCases,
  ...disturbedCases,
  ...holdCases,
]

/** Sets of questions by name. */
export const sets: Readonly<Record<string, readonly string[]>> = {
  all: cases.map(({ name }) => name),
  single: cases.map(({ name }) => name).filter((name) => !/-3$|fail-over/.test(name)),
  three: cases.map(({ name }) => name).filter((name) => /-3$|fail-over/.test(name)),
  quick: ['throughput-1', 'latency-1', 'start'],
}
