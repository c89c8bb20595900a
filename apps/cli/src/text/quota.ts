import { UsageError } from '../exit-codes.ts'

/** Where quotas are kept, below which the path of the subtree follows. */
export const QUOTA_ROOT = '/zookeeper/quota'

/** The limits of a subtree; -1 is none. */
export interface Limits {
  readonly count: number
  readonly bytes: number
  readonly countHardLimit: number
  readonly byteHardLimit: number
}

/** No limit at all. */
export const unlimited: Limits = { count: -1, bytes: -1, countHardLimit: -1, byteHardLimit: -1 }

/** The node that holds the limits of a subtree. */
export const limitsPath = (path: string): string =>
  `${QUOTA_ROOT}${path === '/' ? '' : path}/zookeeper_limits`
/** The node in which the server keeps count. */
export const statsPath = (path: string): string => `${QUOTA_ROOT}${path === '/' ? '' : path}/zookeeper_stats`

/** Reads the text of a limits or stats node. */
export function parseLimits(text: string): Limits {
  const found: Record<string, number> = {}
  for (const part of text.split(/[,;]+/)) {
    const [key = '', value = ''] = part.split('=')
    if (key === '') continue
    if (!/^[+-]?\d+$/.test(value))
      throw new UsageError(
        `Expected count=N,bytes=M in a quota node, got "${text.slice(0, 80)}". Delete the quota and set it anew.`,
      )
    found[key] = Number(value)
  }
  return {
    count: found['count'] ?? -1,
    bytes: found['bytes'] ?? -1,
    countHardLimit: found['countHardLimit'] ?? -1,
    byteHardLimit: found['byteHardLimit'] ?? -1,
  }
}

/** The text of a limits node: old servers read what stands before the second `=`. */
export const formatLimits = ({ count, bytes, countHardLimit, byteHardLimit }: Limits): string =>
  `count=${count},bytes=${bytes}=;byteHardLimit=${byteHardLimit};countHardLimit=${countHardLimit}`
