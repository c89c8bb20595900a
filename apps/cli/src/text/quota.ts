import { UsageError } from '../exit-codes.ts'

/** Parent of the quota nodes; the path of the subtree follows. */
export const QUOTA_ROOT = '/zookeeper/quota'

/** The limits of a subtree; -1 means no limit. */
export interface Limits {
  readonly count: number
  readonly bytes: number
  readonly countHardLimit: number
  readonly byteHardLimit: number
}

export const unlimited: Limits = { count: -1, bytes: -1, countHardLimit: -1, byteHardLimit: -1 }

/** Returns the path of the node that holds the limits of a subtree. */
export const limitsPath = (path: string): string =>
  `${QUOTA_ROOT}${path === '/' ? '' : path}/zookeeper_limits`
/** Returns the path of the node in which the server counts the usage of a subtree. */
export const statsPath = (path: string): string => `${QUOTA_ROOT}${path === '/' ? '' : path}/zookeeper_stats`

/** Parses the data of a limits or stats node. */
export function parseLimits(text: string): Limits {
  const found: Record<string, number> = {}
  for (const part of text.split(/[,;]+/)) {
    const [key = '', value = ''] = part.split('=')
    if (key === '') continue
    if (!/^[+-]?\d+$/.test(value))
      throw new UsageError(
        `Expected count=N,bytes=M in a quota node, got "${text.slice(0, 80)}". Delete the quota and set it again.`,
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

/** Formats the data of a limits node. Old servers read only the part before the `=;`. */
export const formatLimits = ({ count, bytes, countHardLimit, byteHardLimit }: Limits): string =>
  `count=${count},bytes=${bytes}=;byteHardLimit=${byteHardLimit};countHardLimit=${countHardLimit}`
