import {
  BadVersionError,
  NodeExistsError,
  NoNodeError,
  StateError,
  UsageError,
  type Client,
  type Stat,
} from '@zabra/client/core'
import type { RecipeOptions } from '../handles/types.ts'

/** Somebody else has made the semaphore with another number of permits. Use that one, or change it with `setPermits`. */
export class PermitsConflictError extends StateError {
  static override readonly tag = 'PermitsConflictError'
  /** Permits as the caller has them. */
  readonly expected: number
  /** Permits as the znode has them. */
  readonly actual: number

  constructor(path: string, expected: number, actual: number) {
    super(`Expected ${expected} permits in ${path}, found ${actual}`, 'PERMITS_CONFLICT', { path })
    this.expected = expected
    this.actual = actual
  }
}

export function checkPermits(value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return
  throw new UsageError(`Expected a whole number of permits from ${least} up, got ${value}`)
}

/** How many permits there are, and the version of the znode that says so; undefined where none does. */
export interface Limit {
  readonly permits: number
  readonly version: number | undefined
}

/**
 * The limit as it stands in the znode of the semaphore. Version 0 holds what the first user thought, and who thinks
 * otherwise is mistaken; later versions hold what somebody has set on purpose, which counts for all.
 */
export class PermitLimit {
  /** As it was read last; a transaction that goes by it checks the version. */
  #known: Limit | undefined
  readonly #client: Client
  readonly #path: string
  readonly #initial: number
  readonly #options: RecipeOptions

  constructor(client: Client, path: string, initial: number, options: RecipeOptions) {
    this.#client = client
    this.#path = path
    this.#initial = initial
    this.#options = options
  }

  /** Curator's znode does not hold the limit; its users have to agree. */
  get #isFixed(): boolean {
    return this.#options.naming === 'curator'
  }

  /** As it was read last, or read now if it never was. */
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
        if (actual === undefined) await this.#write(this.#initial, stat)
        else if (stat.version > 0 || actual === this.#initial) {
          return { permits: actual, version: stat.version }
        } else throw new PermitsConflictError(this.#path, this.#initial, actual)
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error
        await this.#create()
      }
    }
  }

  async set(permits: number): Promise<void> {
    checkPermits(permits, 0)
    if (this.#isFixed)
      throw new UsageError('Expected naming recipe: with that of Curator every user brings the limit')
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

  /** False when somebody else was faster. */
  async #write(permits: number, { version }: Stat): Promise<boolean> {
    try {
      await this.#client.setData(this.#path, this.#encode(permits), { version, idempotent: true })
      return true
    } catch (error) {
      if (error instanceof BadVersionError) return false
      throw error
    }
  }

  /** It outlives its last holder, with the limit in it. */
  async #create(): Promise<void> {
    const { acl, parents } = this.#options
    try {
      await this.#client.create(this.#path, this.#encode(this.#initial), {
        parents: parents === 'persistent' ? 'persistent' : true,
        idempotent: true,
        ...(acl === undefined ? {} : { acl }),
      })
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error
    }
  }

  #encode(permits: number): Uint8Array {
    return new TextEncoder().encode(String(permits))
  }

  /** Undefined when it was made as a mere parent. */
  #decode(data: Uint8Array): number | undefined {
    if (data.length === 0) return undefined
    const text = new TextDecoder().decode(data)
    if (/^\d{1,15}$/.test(text)) return Number(text)
    throw new UsageError(
      `Expected a number of permits in ${this.#path}, found ${JSON.stringify(text.slice(0, 40))}`,
    )
  }
}
