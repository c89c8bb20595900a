import {
  CodecError,
  UsageError,
  type Bytes,
  type Client,
  type Codec,
  type SetDataOptions,
  type Stat,
} from '@zabra/client/core'
import { withCodecErrors, withoutTimeout } from '@zabra/client/recipe-kit'
import { AtomicValue } from '../atomic-value/atomic-value.ts'
import type { Abortable, WaitOptions } from '../handles/types.ts'
import { orAmbiguous } from '../support/in-doubt.ts'
import { withLimits } from '../support/limits.ts'
import { untilAborted } from '../support/until-aborted.ts'
import { watchData } from '../tree-cache/watchers.ts'
import { createIfMissing, retryInNewSession, undefinedIfMissing } from '../support/retry.ts'
import { delay } from '../support/delay.ts'
import {
  abortable,
  aFunction,
  anything,
  checkArgument,
  checkCodec,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  milliseconds,
  type Rules,
  waiting as waitRules,
} from '../support/checks.ts'

export interface ConfigurationOptions<T> {
  /** Encodes values; `decode` throws for invalid ones. */
  readonly codec: Codec<T>
  /** Written when the znode does not exist yet. */
  readonly defaults?: T | undefined
  /**
   * Maximum random delay in milliseconds before the read after a change, so that many readers do not read at once
   * (default 0).
   */
  readonly jitterMs?: number | undefined
  /**
   * Receives the error and the stat of each value that cannot be decoded; the last valid value stays in force. What it throws or
   * rejects with ends the loop over `updates`.
   */
  readonly onInvalid?: ((error: CodecError, stat: Stat) => void) | undefined
}

export interface ConfigurationSetOptions extends WaitOptions {
  /** Write only over this version. */
  readonly version?: number | undefined
}

/** A value with its version and mzxid. */
export interface ConfigurationValue<T> {
  readonly value: T
  readonly version: number
  /** zxid of the last write. Distinguishes values when versions restart after a delete. */
  readonly mzxid: bigint
}

const rules: Rules<ConfigurationOptions<unknown>> = {
  codec: aCodec,
  defaults: anything,
  jitterMs: milliseconds,
  onInvalid: aFunction,
}
const setting: Rules<ConfigurationSetOptions> = {
  ...waitRules,
  version: ['a version', Number.isInteger],
}

/** Settings that many clients read and few write. */
export class Configuration<T> {
  readonly path: string
  readonly #client: Client
  readonly #options: ConfigurationOptions<T>

  constructor(client: Client, path: string, options: ConfigurationOptions<T>) {
    checkRecipe('Configuration', client, path, options, rules)
    checkCodec('Configuration', options)
    this.#client = withoutTimeout(client).unordered()
    this.path = path
    const codec = withCodecErrors(options.codec, { operation: 'configuration', path })
    this.#options = { ...options, codec }
  }

  /**
   * Returns the current value. Writes and returns the defaults when there is none. Rejects with a `CodecError` for
   * an invalid value.
   */
  get(options: WaitOptions = {}): Promise<ConfigurationValue<T>> {
    const waiting = { operation: 'configuration.get', path: this.path }
    return withLimits(this.#client, options, waiting, (signal) =>
      retryInNewSession(this.#client, async () => {
        for (;;) {
          const found = await undefinedIfMissing(this.#client.getData(this.path, { signal }))
          if (found !== undefined) return this.#decode(found)
          await this.#writeDefaults(signal)
        }
      }),
    )
  }

  /**
   * Writes a value. With `version`, only over that version, else rejects with a `BadVersionError`, and with an
   * `AmbiguousResultError` when its reply is lost, and this client or another one may have written that version.
   */
  async set(value: T, options: ConfigurationSetOptions = {}): Promise<void> {
    checkOptions(`configuration.set ${this.path}`, options, setting)
    const { version, ...limits } = options
    const data = this.#options.codec.encode(value)
    const waiting = { operation: 'configuration.set', path: this.path }
    await withLimits(this.#client, limits, waiting, async (signal) => {
      const write = (call: SetDataOptions): Promise<unknown> =>
        this.#client.setData(this.path, data, { ...call, signal })
      await (version === undefined
        ? orAmbiguous(
            retryInNewSession(this.#client, () => write({ idempotent: true, createIfMissing: true })),
            this.path,
            value,
          )
        : retryInNewSession(this.#client, () => orAmbiguous(write({ version }), this.path, value)))
    })
  }

  /**
   * Applies `change` to the current value and writes the result exactly once; retries when another client wrote in
   * between.
   */
  async update(change: (current: T) => T, options: WaitOptions = {}): Promise<T> {
    checkArgument('configuration.update', 'a change', change, aFunction)
    const waiting = { operation: 'configuration.update', path: this.path }
    return withLimits(this.#client, options, waiting, async (signal) => {
      const { value } = await this.get({ signal })
      const { codec, defaults = value } = this.#options
      return new AtomicValue(this.#client, this.path, { codec, initial: defaults }).update(change, { signal })
    })
  }

  /**
   * Yields the current value, then the newest valid value after each change, until `signal` aborts; values in between are
   * skipped.
   */
  updates(options: Abortable = {}): AsyncGenerator<ConfigurationValue<T>, void, undefined> {
    checkOptions(`configuration.updates ${this.path}`, options, abortable)
    const { signal } = options
    return untilAborted(signal, this.#updates(signal))
  }

  async *#updates(signal: AbortSignal | undefined): AsyncGenerator<ConfigurationValue<T>, void, undefined> {
    const { jitterMs = 0, defaults } = this.#options
    if (defaults !== undefined) await retryInNewSession(this.#client, () => this.#writeDefaults(signal))
    for await (const found of watchData(this.#client, this.path, { signal })) {
      const valid = found && (await this.#decodeValid(found))
      if (valid === undefined) continue
      yield valid
      if (jitterMs > 0) await delay(this.#client, this.#client.platform.random.below(jitterMs), signal)
    }
  }

  async #decodeValid(found: {
    readonly data: Bytes
    readonly stat: Stat
  }): Promise<ConfigurationValue<T> | undefined> {
    try {
      return this.#decode(found)
    } catch (error) {
      if (!(error instanceof CodecError)) throw error
      await (this.#options.onInvalid?.(error, found.stat) as unknown)
      return undefined
    }
  }

  #decode({ data, stat }: { readonly data: Bytes; readonly stat: Stat }): ConfigurationValue<T> {
    return { value: this.#options.codec.decode(data), version: stat.version, mzxid: stat.mzxid }
  }

  async #writeDefaults(signal: AbortSignal | undefined): Promise<void> {
    const { codec, defaults } = this.#options
    if (defaults === undefined) {
      throw new UsageError(`There is no configuration at ${this.path}, and there are no defaults`, {
        path: this.path,
      })
    }
    await createIfMissing(this.#client, this.path, codec.encode(defaults), {
      parents: 'persistent',
      signal,
    })
  }
}
