import leven from 'leven'

/** Returns the candidate with the smallest edit distance to `typed`, or undefined when none is close. */
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
