/**
 * Tells one ensemble from another, and from the same ensemble before it was recovered from a lost quorum (quorum-protocol 18.6).
 */
export interface ClusterId {
  /** How often the ensemble was recovered: 0 to 255. */
  readonly generation: number
  /** 16 bytes: random ones, drawn by the first leader or by a recovery. */
  readonly bytes: Uint8Array
  /** Whether a later leader may still replace the id: no quorum is known to have stored it. */
  readonly isProposed: boolean
}

export const CLUSTER_ID_BYTES = 16
/** The most recoveries of an ensemble. */
export const MAX_GENERATION = 255

/** The id of a member whose ensemble has none yet. */
export const NO_CLUSTER: ClusterId = {
  generation: 0,
  bytes: new Uint8Array(CLUSTER_ID_BYTES),
  isProposed: false,
}

export const hasClusterId = ({ generation, bytes }: ClusterId): boolean =>
  generation > 0 || bytes.some((byte) => byte !== 0)

/** Whether no leader may replace the id. */
export const isFinal = (id: ClusterId): boolean => hasClusterId(id) && !id.isProposed

export const isSameCluster = (a: ClusterId, b: ClusterId): boolean =>
  a.generation === b.generation && a.bytes.every((byte, index) => byte === b.bytes[index])

/** Returns the id as hexadecimal digits, with the generation before them, such as `1-0f…`; `none` for a member without one. */
export const formatClusterId = (id: ClusterId): string =>
  hasClusterId(id)
    ? `${id.generation}-${[...id.bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
    : 'none'

/** Reads the form of `formatClusterId`; undefined for other text. */
export function parseClusterId(text: string): ClusterId | undefined {
  const [, generation, digits] = /^(\d{1,3})-([\da-f]{32})$/.exec(text) ?? []
  if (digits === undefined || Number(generation) > MAX_GENERATION) return undefined
  const bytes = Uint8Array.from(digits.match(/../g)!, (pair) => Number.parseInt(pair, 16))
  const id = { generation: Number(generation), bytes, isProposed: false }
  return hasClusterId(id) ? id : undefined
}

/** What a member says of its ensemble. */
export interface ClusterClaim {
  readonly cluster: ClusterId
  /** Whether the member has accepted an epoch or logged a transaction. */
  readonly hasData: boolean
}

/**
 * Compares what another member says with what this one says. `compatible`: both are of one ensemble, or one of them may become a member
 * of the other's, since it has no data, or since the ensemble of one of them has no final id yet. `later`: the other is of an ensemble
 * that was recovered without this member. `other`: it is of an earlier ensemble, or of one that was formed or recovered apart from this
 * one.
 */
export function compareClusters(own: ClusterClaim, other: ClusterClaim): 'compatible' | 'later' | 'other' {
  if (isSameCluster(own.cluster, other.cluster) || isOpen(own) || isOpen(other)) return 'compatible'
  const generations = other.cluster.generation - own.cluster.generation
  if (generations !== 0) return generations > 0 ? 'later' : 'other'
  return own.cluster.generation === 0 && !(isFinal(own.cluster) && isFinal(other.cluster))
    ? 'compatible'
    : 'other'
}

const isOpen = ({ cluster, hasData }: ClusterClaim): boolean => cluster.generation === 0 && !hasData
