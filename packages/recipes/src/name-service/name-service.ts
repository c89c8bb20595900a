import {
  AbortedError,
  BadVersionError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  UsageError,
  type CallOptions,
  type Client,
  type Codec,
  type Stat,
} from '@zabra/client/core'
import { childPath, isReserved, withCodecErrors, withoutTimeout } from '@zabra/client/recipe-kit'
import type { KeptHandle, WaitOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { PersistentNode, waitForReady } from '../persistent-node/persistent-node.ts'
import { orInDoubt } from '../support/in-doubt.ts'
import { withLimits } from '../support/limits.ts'
import { causeAt, readThroughLosses, undefinedIfMissing, retryInNewSession } from '../support/retry.ts'
import { commitWithMarker, deleteMarker, uniqueName } from '../support/commit-with-marker.ts'
import { decodeName, encodeName } from '../support/name-codec.ts'
import { RegisteredName } from './registered-name.ts'
import {
  checkArgument,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  object,
  text,
  trueOrFalse,
  type Rules,
  waiting,
} from '../support/checks.ts'

export interface RegisterOptions extends WaitOptions {
  /**
   * Deletes the name with the session and registers it again in the next one, until released. Other names stay until
   * released, also when the client ends (default false).
   */
  readonly ephemeral?: boolean | undefined
}

export interface ResolveOptions extends CallOptions {
  /** Syncs with the leader first, so that the result is not older than the call. */
  readonly fresh?: boolean | undefined
}

/** A registered name. */
export interface Registration<T> extends KeptHandle {
  /**
   * Aborts as that of every registration. That of a name that is not ephemeral aborts only by a release: the name outlives its
   * session and its client, and no watch shows that another client has removed it.
   */
  readonly signal: AbortSignal
  /**
   * Replaces the value. Rejects with a `NoNodeError` when a name that is not ephemeral was renamed or removed by
   * another client.
   */
  update(value: T): Promise<void>
  /** Frees the name, unless another client has registered it meanwhile. */
  release(): Promise<void>
}

const registering: Rules<RegisterOptions> = { ...waiting, ephemeral: trueOrFalse }

/** Maps names to values in one flat namespace; a name is any text. */
export class NameService<T> {
  readonly base: string
  readonly #client: Client
  readonly #codec: Codec<T>

  constructor(client: Client, base: string, codec: Codec<T>) {
    checkRecipe('NameService', client, base, undefined, {})
    checkArgument('NameService', 'a codec', codec, aCodec)
    this.#client = withoutTimeout(client).unordered()
    this.base = base
    this.#codec = withCodecErrors(codec, { operation: 'name service', path: base })
  }

  /**
   * Registers a name. Rejects when another client has it: of several concurrent registrations exactly one
   * succeeds.
   */
  async register(name: string, value: T, options: RegisterOptions = {}): Promise<Registration<T>> {
    checkArgument('nameService.register', 'a name', name, text)
    checkOptions('nameService.register', options, registering)
    const { ephemeral = false, ...limits } = options
    const data = this.#codec.encode(value)
    if (ephemeral) return this.#registerEphemeral(name, data, limits)
    const waiting = { operation: 'nameService.register', path: this.#path(name) }
    return withLimits(this.#client, limits, waiting, (signal) => this.#registerPersistent(name, data, signal))
  }

  async #registerEphemeral(name: string, data: Uint8Array, limits: WaitOptions): Promise<Registration<T>> {
    const path = this.#path(name)
    throwIfAborted(limits.signal, path, 'nameService.register')
    const node = new PersistentNode(this.#client, path, data, { parents: 'persistent' })
    await waitForReady(this.#client, node, limits, { operation: 'nameService.register', path })
    return this.#registration(
      node.signal,
      (next) => node.setData(next),
      () => node.close(),
    )
  }

  async #registerPersistent(
    name: string,
    data: Uint8Array,
    signal: AbortSignal | undefined,
  ): Promise<Registration<T>> {
    const czxid = await this.#create(name, data, signal)
    const path = this.#path(name)
    const kept = new RegisteredName(this.#client, path, czxid)
    const ended = new AbortController()
    return this.#registration(
      ended.signal,
      (next) => kept.update(next),
      () => {
        ended.abort(new AbortedError(`The name at ${path} is released`, { path }))
        return kept.remove()
      },
    )
  }

  #registration(
    signal: AbortSignal,
    update: (data: Uint8Array) => Promise<void>,
    release: () => Promise<void>,
  ): Registration<T> {
    return {
      signal,
      update: async (value) => update(this.#codec.encode(value)),
      release,
      [Symbol.asyncDispose]: release,
    }
  }

  /** Returns the value of a name, or undefined. */
  async resolve(name: string, options: ResolveOptions = {}): Promise<T | undefined> {
    checkArgument('nameService.resolve', 'a name', name, text)
    checkArgument('nameService.resolve', 'options', options, object)
    const { fresh = false, ...call } = options
    checkArgument('nameService.resolve', 'option fresh', fresh, trueOrFalse)
    return retryInNewSession(this.#client, async () => {
      if (fresh) await this.#client.sync(this.#path(name), call)
      const found = await undefinedIfMissing(this.#client.getData(this.#path(name), call))
      return found && this.#codec.decode(found.data)
    })
  }

  /** Returns all names, sorted. */
  async names(options: CallOptions = {}): Promise<string[]> {
    const list = await retryInNewSession(this.#client, () =>
      undefinedIfMissing(this.#client.getChildren(this.base, options)),
    )
    const own = (list?.children ?? []).filter((name) => !isReserved(this.#client, childPath(this.base, name)))
    return own.flatMap((name) => decodeName(name) ?? []).toSorted()
  }

  /**
   * Renames atomically. Rejects when the old name is missing or the new one exists. The client that registered the
   * old name loses it. Throws a `UsageError` for an ephemeral name, which its holder would create again.
   */
  async rename(from: string, to: string): Promise<void> {
    for (const name of [from, to]) checkArgument('nameService.rename', 'a name', name, text)
    for (;;) {
      const { data, stat } = await retryInNewSession(this.#client, () =>
        this.#client.getData(this.#path(from)),
      )
      if (stat.ephemeralOwner !== 0n)
        throw new UsageError(
          `Expected a name that outlives its session, got ${from}, which is ephemeral: release it and register ${to}`,
        )
      if (await this.#move(from, to, data, stat)) return
    }
  }

  /** Returns false when the value has changed meanwhile. */
  async #move(from: string, to: string, data: Uint8Array, { version }: Stat): Promise<boolean> {
    const marker = this.#markerPath()
    try {
      await commitWithMarker(this.#client, marker, [
        { op: 'create', path: this.#path(to), data },
        { op: 'delete', path: this.#path(from), version },
      ])
      deleteMarker(this.#client, marker)
      return true
    } catch (error) {
      if (causeAt(error, 1) instanceof BadVersionError) return false
      throw error instanceof MultiError ? error.cause : error
    }
  }

  /** Returns the czxid of the created name. */
  async #create(name: string, data: Uint8Array, signal: AbortSignal | undefined): Promise<bigint> {
    const path = this.#path(name)
    for (;;) {
      const marker = this.#markerPath()
      try {
        const made = await commitWithMarker(this.#client, marker, [{ op: 'create', path, data }], {
          needsMarkerStat: true,
          signal,
        })
        deleteMarker(this.#client, marker)
        // A marker that was deleted with its session gives no zxid; the name does.
        const readStat = (): Promise<Stat | undefined> =>
          retryInNewSession(this.#client, () =>
            readThroughLosses(this.#client, (options) => this.#client.exists(path, options)),
          )
        const stat = made.marker ?? (await orInDoubt(this.#client, readStat(), signal, path))
        return stat?.czxid ?? 0n
      } catch (error) {
        const cause = causeAt(error, 0)
        if (cause instanceof NodeExistsError) throw cause
        if (cause instanceof NoNodeError) {
          await retryInNewSession(this.#client, () => this.#client.createMissing([this.base], { signal }))
        } else throw error
      }
    }
  }

  #path(name: string): string {
    return childPath(this.base, encodeName(name))
  }

  #markerPath(): string {
    // No name is encoded like that of the folder in the root, which has no sibling.
    const folder = this.base === '/' ? '/%marks' : `${this.base}-marks`
    return childPath(folder, uniqueName(this.#client))
  }
}
