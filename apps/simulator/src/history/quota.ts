import type { TreeModel } from './model.ts'

/** The subtree that has a quota in each run, and the nodes that hold its limits and its usage. */
export const QUOTA_PATH = '/w/q'
const QUOTA = `/zookeeper/quota${QUOTA_PATH}`
export const QUOTA_LIMITS = `${QUOTA}/zookeeper_limits`
export const QUOTA_STATS = `${QUOTA}/zookeeper_stats`

/** Hard limits: number of znodes, including the top one, and bytes of data. */
export const MAX_NODES = 6
export const MAX_BYTES = 260

/** The nodes that define the quota, parents first: paths with their data. */
export const QUOTA_NODES: readonly (readonly [path: string, data: string])[] = [
  ['/zookeeper/quota/w', ''],
  [QUOTA, ''],
  [QUOTA_LIMITS, `count=-1,bytes=-1;countHardLimit=${MAX_NODES};byteHardLimit=${MAX_BYTES}`],
  [QUOTA_STATS, 'count=0,bytes=0'],
]

interface Usage {
  readonly zxid: number
  readonly nodes: number
  readonly bytes: number
}

/** The usage of the limited subtree at each zxid. */
export class QuotaUsage {
  readonly #uses: Usage[] = [{ zxid: 0, nodes: 0, bytes: 0 }]

  constructor(model: TreeModel) {
    const changes: Usage[] = []
    for (const path of [QUOTA_PATH, ...model.pathsBelow(QUOTA_PATH)]) {
      let before = { nodes: 0, bytes: 0 }
      for (const { zxid, state } of model.paths.get(path) ?? []) {
        const after = { nodes: state === undefined ? 0 : 1, bytes: state?.stat.dataLength ?? 0 }
        changes.push({ zxid, nodes: after.nodes - before.nodes, bytes: after.bytes - before.bytes })
        before = after
      }
    }
    for (const { zxid, nodes, bytes } of changes.sort((a, b) => a.zxid - b.zxid)) {
      const last = this.#uses.at(-1)!
      this.#uses.push({ zxid, nodes: last.nodes + nodes, bytes: last.bytes + bytes })
    }
  }

  /** Returns the data of the usage node at a zxid. */
  statsAt(zxid: number): string {
    const { nodes, bytes } = this.#uses.findLast((use) => use.zxid <= zxid)!
    return `count=${nodes},bytes=${bytes}`
  }

  /**
   * Returns how a write of so many nodes and bytes may end, checked against any state applied between `from` and `to`:
   * servers check quotas against applied transactions, not against those in flight.
   */
  possibleOutcomes(from: number, to: number, nodes: number, bytes: number): ReadonlySet<'refused' | 'fits'> {
    const first = this.#uses.findLastIndex((use) => use.zxid <= from)
    const verdicts = new Set<'refused' | 'fits'>()
    for (const [index, use] of this.#uses.entries()) {
      if (index < first) continue
      if (use.zxid > to) break
      const tooMany = nodes > 0 && use.nodes + nodes > MAX_NODES
      const tooLong = bytes !== 0 && use.bytes + bytes > MAX_BYTES
      verdicts.add(tooMany || tooLong ? 'refused' : 'fits')
    }
    return verdicts
  }
}
