import leven from 'leven'

/** The one of `candidates` that `typed` most likely stands for, or nothing when none is near. */
export function closestMatch(typed: string, candidates: Iterable<string>): string | undefined {
  const lower = typed.toLowerCase()
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = leven(lower, candidate.toLowerCase(), { maxDistance: bestDistance })
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}
