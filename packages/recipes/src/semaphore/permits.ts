import {
  BadVersionError,
  NoNodeError,
  ZooKeeperError,
  UsageError,
  type Client,
  type Stat,
} from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import type { RecipeOptions } from '../handles/types.ts'
import { checkArgument, whole } from '../support/checks.ts'
import { createIfMissing } from '../support/retry.ts'

/** The semaphore exists with another number of permits. Use that one, or change it with `setPermits`. */
export class PermitsConflictError extends ZooKeeperError {
  static override readonly tag = 'PermitsConflictError'
  /** Permits that the caller specified. */
  readonly expected: number
  /** Permits in the znode. */
  readonly actual: number

  constructor(path: string, expected: number, actual: number) {
    super(`Expected ${expected} permits in ${path}, found ${actual}`, 'PERMITS_CONFLICT', { path })
    this.expected = expected
    this.actual = actual
  }
}

/** Throws a `UsageError` for a wrong number of permits. `what` names the call. */
export const checkPermits = (what: string, value: unknown, least: number): void =>
  checkArgument(what, 'permits', value, [`a whole number from ${least}`, whole(least)])

/** The number of permits, and the version of the znode that holds it; undefined where none does. */
export interface Limit {
  readonly permits: number
  readonly version: number | undefined
}

/**
 * The limit in the znode of the semaphore. Version 0 holds the number of the first user, and a different number is
 * a conflict; later versions were set on purpose with `setPermits` and apply to all.
 */
export class PermitLimit {
  /** Last limit that was read; transactions that rely on it check its version. */
  #known: Limit | undefined
  readonly #client: Client
  readonly #path: string
  readonly #initial: number
  readonly #options: RecipeOptions

  constructor(client: Client, path: string, initial: number, options: RecipeOptions) {
    this.#client = withoutTimeout(client).unordered()
    this.#path = path
    this.#initial = initial
    this.#options = options
  }

  /** Curator's znode does not hold the limit; its users have to agree on one. */
  get #isFixed(): boolean {
    return this.#options.naming === 'curator'
  }

  /** Returns the last limit, or reads it if it was never read. */
  async recent(signal?: AbortSignal): Promise<Limit> {
    return this.#known ?? this.read(signal)
  }

  async read(signal?: AbortSignal): Promise<Limit> {
    if (this.#isFixed) return { permits: this.#initial, version: undefined }
    this.#known = undefined
    this.#known = await this.#read(signal)
    return this.#known
  }

  async #read(signal: AbortSignal | undefined): Promise<Limit> {
    for (;;) {
      try {
        const { data, stat } = await this.#client.getData(this.#path, signal === undefined ? {} : { signal })
        const actual = this.#decode(data)
        if (actual === undefined) await this.#write(this.#initial, stat, signal)
        else if (stat.version > 0 || actual === this.#initial) {
          return { permits: actual, version: stat.version }
        } else throw new PermitsConflictError(this.#path, this.#initial, actual)
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
        await this.#create(signal)
      }
    }
  }

  async set(permits: number): Promise<void> {
    checkPermits(`setPermits ${this.#path}`, permits, 0)
    if (this.#isFixed)
      throw new UsageError('Expected naming recipe: with that of Curator each client sets its own limit')
    for (;;) {
      try {
        const { stat } = await this.#client.getData(this.#path)
        if (await this.#write(permits, stat)) return
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
        await this.#create()
      }
    }
  }

  /** Returns false when another client wrote first. */
  async #write(permits: number, { version }: Stat, signal?: AbortSignal): Promise<boolean> {
    try {
      await this.#client.setData(this.#path, this.#encode(permits), { version, idempotent: true, signal })
      return true
    } catch (error) {
      if (error instanceof BadVersionError) return false
      throw error
    }
  }

  /** A persistent znode, since the limit must outlive the last holder. */
  async #create(signal?: AbortSignal): Promise<void> {
    const { acl, parents } = this.#options
    await createIfMissing(this.#client, this.#path, this.#encode(this.#initial), {
      parents: parents === 'persistent' ? 'persistent' : true,
      ...(acl === undefined ? {} : { acl }),
      signal,
    })
  }

  #encode(permits: number): Uint8Array {
    return new TextEncoder().encode(String(permits))
  }

  /** Returns undefined when the znode was created as a mere parent. */
  #decode(data: Uint8Array): number | undefined {
    if (data.length === 0) return undefined
    const text = new TextDecoder().decode(data)
    if (/^\d{1,15}$/.test(text)) return Number(text)
    throw new UsageError(
      `Expected a number of permits in ${this.#path}, found ${JSON.stringify(text.slice(0, 40))}`,
    )
  }
}
