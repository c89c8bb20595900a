import type { Ensemble } from './ensemble.ts'

const TRIES = 5

/**
 * Describes the differences between the trees of the members. Reads the trees again when they differ, because a session that
 * expires between two reads is no difference.
 */
export async function treeDifferences(ensemble: Ensemble): Promise<string[]> {
  for (let left = TRIES; ; left--) {
    const differences = await dumpDifferences(ensemble)
    if (differences.length === 0 || left === 0) return differences
  }
}

/** Describes up to five differences of each member to the first one. */
async function dumpDifferences(ensemble: Ensemble): Promise<string[]> {
  const [[first, reference], ...others] = [...(await ensemble.dumps())] as [
    [number, Record<string, string>],
    ...[number, Record<string, string>][],
  ]
  return others.flatMap(([id, dump]) =>
    [...new Set([...Object.keys(reference), ...Object.keys(dump)])]
      .filter((path) => reference[path] !== dump[path])
      .slice(0, 5)
      .map((path) => `${path} is ${dump[path]} at ${id} and ${reference[path]} at ${first}`),
  )
}
