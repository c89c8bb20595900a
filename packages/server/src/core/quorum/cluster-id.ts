/**
 * Tells an ensemble that was recovered from a lost quorum from the ensemble before (quorum-protocol 18.6). Ensembles that were never
 * recovered have all the same id.
 */
export interface ClusterId {
  /** How often the ensemble was recovered: 0 to 255. */
  readonly generation: number
  /** 16 bytes: random ones, made by the recovery. */
  readonly bytes: Uint8Array
}

export const CLUSTER_ID_BYTES = 16
/** The most recoveries of an ensemble. */
export const MAX_GENERATION = 255

/** The id of every ensemble that was never recovered. */
export const ORIGINAL_CLUSTER: ClusterId = { generation: 0, bytes: new Uint8Array(CLUSTER_ID_BYTES) }

export const isOriginal = ({ generation }: ClusterId): boolean => generation === 0

export const isSameCluster = (a: ClusterId, b: ClusterId): boolean =>
  a.generation === b.generation &&
  (a.generation === 0 || a.bytes.every((byte, index) => byte === b.bytes[index]))

/** Returns the id as hexadecimal digits, with the generation before them, such as `1-0f…`; `original` without a recovery. */
export const formatClusterId = ({ generation, bytes }: ClusterId): string =>
  generation === 0
    ? 'original'
    : `${generation}-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`

/** Reads the form of `formatClusterId`; undefined for other text. */
export function parseClusterId(text: string): ClusterId | undefined {
  const [, generation, digits] = /^(\d{1,3})-([\da-f]{32})$/.exec(text) ?? []
  if (digits === undefined || Number(generation) < 1 || Number(generation) > MAX_GENERATION) return undefined
  return {
    generation: Number(generation),
    bytes: Uint8Array.from(digits.match(/../g)!, (pair) => Number.parseInt(pair, 16)),
  }
}

/** What a member says of its ensemble. */
export interface ClusterClaim {
  readonly cluster: ClusterId
  /** Whether the member has accepted an epoch or logged a transaction. */
  readonly hasData: boolean
}

/**
 * Compares what another member says with what this one says. `compatible`: both are of one ensemble, or one of them has no data and may
 * become a member of the other's. `later`: the other is of an ensemble that was recovered without this member. `other`: it is of an
 * earlier ensemble, or of one that was recovered apart from this one.
 */
export function compareClusters(own: ClusterClaim, other: ClusterClaim): 'compatible' | 'later' | 'other' {
  if (isSameCluster(own.cluster, other.cluster)) return 'compatible'
  if (isOriginal(own.cluster) && !own.hasData) return 'compatible'
  if (isOriginal(other.cluster) && !other.hasData) return 'compatible'
  return other.cluster.generation > own.cluster.generation ? 'later' : 'other'
}
