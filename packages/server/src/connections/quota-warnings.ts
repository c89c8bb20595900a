import type { Platform } from '@zabra/runtime'
import { TextMap } from '../core/text-map.ts'
import type { QuotaBreach } from '../core/tree/index.ts'

/** Milliseconds between two warnings of one quota. */
const QUOTA_WARNING_MS = 60_000
/** Most quotas with a warning in the last minute; breaches of others are not logged meanwhile. */
const MAX_WARNED = 1000

/** Returns a function that logs an exceeded quota, at most once a minute for each. `hashKey` is the secret key of `TextMap`. */
export function quotaWarnings(
  { clock, logger }: Pick<Platform, 'clock' | 'logger'>,
  hashKey?: number,
): (path: string, breach: QuotaBreach) => void {
  const warnedAt = new TextMap<number>(hashKey)
  let lookedAt = -Infinity
  return (path, { what, isHard, limit, use }) => {
    const key = `${path} ${what}`
    const now = clock.monotonic()
    if (now - (warnedAt.get(key) ?? -Infinity) < QUOTA_WARNING_MS) return
    if (warnedAt.size >= MAX_WARNED && now - lookedAt >= QUOTA_WARNING_MS) {
      lookedAt = now
      for (const [other, at] of warnedAt) if (now - at >= QUOTA_WARNING_MS) warnedAt.delete(other)
    }
    if (warnedAt.size >= MAX_WARNED && warnedAt.get(key) === undefined) return
    warnedAt.set(key, now)
    const kind = isHard ? 'hard limit, which is not enforced,' : 'limit'
    logger.warn(
      { id: 'quota.exceeded', path, what, isHard, limit, use },
      `${path} goes beyond its ${kind} of ${limit} ${what}`,
    )
  }
}
