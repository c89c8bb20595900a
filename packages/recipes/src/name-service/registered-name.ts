import { BadVersionError, NoNodeError, type Client, type Stat } from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { undefinedIfMissing, retryUntilKnown } from '../support/retry.ts'

/**
 * A name that stays until it is unregistered or renamed. Its holder recognises it by its czxid, so it never
 * changes or removes a later registration of the same name.
 */
export class RegisteredName {
  readonly #client: Client
  readonly #path: string
  readonly #czxid: bigint
  /** The session generation of the last read; a new session may start on a server that lags behind. */
  #generation: number
  /** Serialises updates, so that the last one requested wins. */
  #pending: Promise<unknown> = Promise.resolve()

  constructor(client: Client, path: string, czxid: bigint) {
    this.#client = withoutTimeout(client)
    this.#path = path
    this.#czxid = czxid
    this.#generation = client.session.generation
  }

  /** Rejects with a `NoNodeError` when another client has removed or renamed the name. */
  update(data: Uint8Array): Promise<void> {
    const updated = this.#pending.then(() => retryUntilKnown(this.#client, () => this.#write(data)))
    this.#pending = updated.catch(() => {})
    return updated
  }

  /** Does nothing when another client has removed or renamed the name. */
  remove(): Promise<void> {
    const removed = this.#pending.then(() => retryUntilKnown(this.#client, () => this.#delete()))
    this.#pending = removed.catch(() => {})
    return removed
  }

  async #write(data: Uint8Array): Promise<void> {
    for (;;) {
      const stat = await this.#readOwnStat()
      if (stat === undefined)
        throw new NoNodeError(`The name at ${this.#path} belongs to another client or is gone`, 'NO_NODE', {
          path: this.#path,
        })
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
      const stat = await this.#readOwnStat()
      if (stat === undefined) return
      try {
        return await this.#client.delete(this.#path, { version: stat.version, missingOk: true })
      } catch (error) {
        if (!(error instanceof BadVersionError)) throw error
      }
    }
  }

  async #readOwnStat(): Promise<Stat | undefined> {
    const { generation } = this.#client.session
    if (generation !== this.#generation) await this.#client.sync(this.#path)
    this.#generation = generation
    const stat = await undefinedIfMissing(this.#client.exists(this.#path))
    return stat?.czxid === this.#czxid ? stat : undefined
  }
}
