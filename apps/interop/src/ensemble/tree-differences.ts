import type { Ensemble } from './ensemble.ts'

const TRIES = 5

/**
 * What is left of the differences between members once nothing happens any more: sessions end by the servers' own clock,
 * and one that ends between two looks is no difference.
 */
export async function treeDifferences(ensemble: Ensemble): Promise<string[]> {
  for (let left = TRIES; ; left--) {
    const differences = await dumpDifferences(ensemble)
    if (differences.length === 0 || left === 0) return differences
  }
}

/** Sentences about what members have that another one has not, or has otherwise; none when all have the same tree. */
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
