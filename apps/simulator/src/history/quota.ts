import type { TreeModel } from './model.ts'

/** The subtree that has limits in each run, and where its limits and its use are kept. */
export const QUOTA_PATH = '/w/q'
const QUOTA = `/zookeeper/quota${QUOTA_PATH}`
export const QUOTA_LIMITS = `${QUOTA}/zookeeper_limits`
export const QUOTA_STATS = `${QUOTA}/zookeeper_stats`

/** Most znodes, the top among them, and most bytes of their data, both hard. */
export const MAX_NODES = 6
export const MAX_BYTES = 260

/** What limits consist of, each behind the one that it needs: paths with their data. */
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

/** What the limited subtree held at each zxid. */
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

  /** The text of the node that tells the use. */
  statsAt(zxid: number): string {
    const { nodes, bytes } = this.#uses.findLast((use) => use.zxid <= zxid)!
    return `count=${nodes},bytes=${bytes}`
  }

  /**
   * Whether a write of so many nodes and bytes more is refused, by what was applied at one moment from `from` to `to`: servers
   * look at what they have applied, not at what is on its way.
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
