import type { Platform } from '@zabra/runtime'
import type { QuotaBreach } from '../core/tree/index.ts'

/** Milliseconds between two warnings of one quota. */
const QUOTA_WARNING_MS = 60_000

/** Returns a function that logs an exceeded quota, at most once a minute for each. */
export function quotaWarnings({
  clock,
  logger,
}: Pick<Platform, 'clock' | 'logger'>): (path: string, breach: QuotaBreach) => void {
  const warnedAt = new Map<string, number>()
  return (path, { what, isHard, limit, use }) => {
    const key = `${path} ${what}`
    const now = clock.monotonic()
    if (now - (warnedAt.get(key) ?? -Infinity) < QUOTA_WARNING_MS) return
    warnedAt.set(key, now)
    const kind = isHard ? 'hard limit, which is not enforced,' : 'limit'
    logger.warn({ path, limit, use }, `${path} goes beyond its ${kind} of ${limit} ${what}`)
  }
}
