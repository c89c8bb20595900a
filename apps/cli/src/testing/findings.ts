import { expect } from 'vitest'
import type { Finding } from '../doctor/finding.ts'

/** Returns findings. Each must have evidence and a remedy. */
export async function collect(findings: Iterable<Finding> | AsyncIterable<Finding>): Promise<Finding[]> {
  const found: Finding[] = []
  for await (const one of findings) {
    expect([one.where, one.evidence, one.remedy]).not.toContain('')
    found.push(one)
  }
  return found
}

/** Returns the ids of findings. Each must have evidence and a remedy. */
export const idsOf = async (findings: Iterable<Finding> | AsyncIterable<Finding>): Promise<string[]> =>
  (await collect(findings)).map(({ id }) => id)
