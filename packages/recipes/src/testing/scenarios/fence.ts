import { utf8, ZooKeeperError, type Client } from '@zabra/client/core'
import type { LockHandle } from '../../handles/types.ts'
import { createIfMissing, retryUntilKnown } from '../../support/retry.ts'

interface FencedWrite {
  readonly token: bigint
  /** zxid of the write. */
  readonly zxid: bigint
  /** True when the write was made under an exclusive lock. */
  readonly alone: boolean
}

/** Records writes to a znode that are guarded by one lock, and finds those out of order. */
export class Fence {
  readonly #writes: FencedWrite[] = []
  readonly #path: string

  private constructor(path: string) {
    this.#path = path
  }

  static async create(observer: Client, path = '/fenced'): Promise<Fence> {
    await retryUntilKnown(observer, () => createIfMissing(observer, path, null, { idempotent: false }))
    return new Fence(path)
  }

  /** Writes as a holder; a refused or ambiguous write is not recorded. */
  async write(held: Pick<LockHandle, 'token' | 'guard'>, alone: boolean): Promise<void> {
    const data = utf8.encode(String(held.token))
    try {
      const [stat] = await held.guard([{ op: 'setData', path: this.#path, data }])
      this.#writes.push({ token: held.token, zxid: stat.mzxid, alone })
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }

  /** Writes that were applied although another lock had been granted in between. */
  get violations(): string[] {
    const found: string[] = []
    let [highest, highestAlone] = [0n, 0n]
    for (const { token, alone } of this.#writes.toSorted((a, b) => (a.zxid < b.zxid ? -1 : 1))) {
      const before = alone ? highest : highestAlone
      if (token < before) found.push(`${token} has written after ${before}`)
      if (token > highest) highest = token
      if (alone && token > highestAlone) highestAlone = token
    }
    return found
  }
}
