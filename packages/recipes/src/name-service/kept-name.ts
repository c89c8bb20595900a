import { BadVersionError, NoNodeError, type Client, type Stat } from '@zabra/client/core'
import { orMissing, untilClear } from '../waiting/errors.ts'

/**
 * A name that stays until it is taken back or given another name. Its holder knows it by the transaction that made it, so
 * that it never changes or removes what somebody else has registered under the same name since.
 */
export class KeptName {
  readonly #client: Client
  readonly #path: string
  readonly #czxid: bigint
  /** The session in which it was last seen; another one may begin at a server that lags behind. */
  #epoch: number
  /** Updates go one after the other, so that the last one asked for is the one that stays. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(client: Client, path: string, czxid: bigint) {
    this.#client = client
    this.#path = path
    this.#czxid = czxid
    this.#epoch = client.session.generation
  }

  /** Rejects with a `NoNodeError` when the name is no longer ours. */
  update(data: Uint8Array): Promise<void> {
    const updated = this.#last.then(() => untilClear(this.#client, () => this.#write(data)))
    this.#last = updated.catch(() => {})
    return updated
  }

  /** Does nothing when the name is no longer ours. */
  remove(): Promise<void> {
    const removed = this.#last.then(() => untilClear(this.#client, () => this.#delete()))
    this.#last = removed.catch(() => {})
    return removed
  }

  async #write(data: Uint8Array): Promise<void> {
    for (;;) {
      const stat = await this.#own()
      if (stat === undefined)
        throw new NoNodeError(`The name at ${this.#path} is ours no longer`, 'NO_NODE', { path: this.#path })
      try {
        return void (await this.#client.setData(this.#path, data, {
          version: stat.version,
          idempotent: true,
        }))
      } catch (error) {
        if (!(error instanceof BadVersionError || error instanceof NoNodeError)) throw error
      }
    }
  }

  async #delete(): Promise<void> {
    for (;;) {
      const stat = await this.#own()
      if (stat === undefined) return
      try {
        return await this.#client.delete(this.#path, { version: stat.version, missingOk: true })
      } catch (error) {
        if (!(error instanceof BadVersionError)) throw error
      }
    }
  }

  async #own(): Promise<Stat | undefined> {
    const { generation: epoch } = this.#client.session
    if (epoch !== this.#epoch) await this.#client.sync(this.#path)
    this.#epoch = epoch
    const stat = await orMissing(this.#client.exists(this.#path))
    return stat?.czxid === this.#czxid ? stat : undefined
  }
}
