import {
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
import { PersistentNode } from '../persistent-node/persistent-node.ts'
import { causeAt, undefinedIfMissing, retryInNewSession } from '../support/retry.ts'
import { commitWithMarker, deleteMarker, uniqueName } from '../support/commit-with-marker.ts'
import { decodeName, encodeName } from '../support/name-codec.ts'
import { RegisteredName } from './registered-name.ts'

export interface RegisterOptions {
  /** Gone with the session, and back in the next one, until it is disposed. Others stay until then (default false). */
  readonly ephemeral?: boolean
}

export interface ResolveOptions extends CallOptions {
  /** Ask the leader first, so that the answer is not older than the question. */
  readonly fresh?: boolean
}

/** A name that was registered. Disposal takes it back. */
export interface Registration<T> extends AsyncDisposable {
  /** Rejects with a `NoNodeError` when a name that is not ephemeral was renamed or removed by somebody else. */
  update(value: T): Promise<void>
  /** Gives the name free, unless somebody else has it by now. */
  unregister(): Promise<void>
}

/** Names for values, any text in one flat space. */
export class NameService<T> {
  readonly base: string
  readonly #client: Client
  readonly #codec: Codec<T>

  constructor(client: Client, base: string, codec: Codec<T>) {
    this.#client = client
    this.base = base
    this.#codec = codec
  }

  /** Takes a name. Rejects when somebody else has it: of several at once exactly one gets it. */
  async register(
    name: string,
    value: T,
    { ephemeral = false }: RegisterOptions = {},
  ): Promise<Registration<T>> {
    const data = this.#codec.encode(value)
    return ephemeral ? this.#registerEphemeral(name, data) : this.#registerPersistent(name, data)
  }

  async #registerEphemeral(name: string, data: Uint8Array): Promise<Registration<T>> {
    const node = new PersistentNode(this.#client, this.#path(name), data, { parents: 'persistent' })
    try {
      await node.ready
    } catch (error) {
      await node.close()
      throw error
    }
    return this.#registration(
      (next) => node.setData(next),
      () => node.close(),
    )
  }

  async #registerPersistent(name: string, data: Uint8Array): Promise<Registration<T>> {
    const kept = new RegisteredName(this.#client, this.#path(name), await this.#create(name, data))
    return this.#registration(
      (next) => kept.update(next),
      () => kept.remove(),
    )
  }

  #registration(
    update: (data: Uint8Array) => Promise<void>,
    unregister: () => Promise<void>,
  ): Registration<T> {
    return {
      update: async (value) => update(this.#codec.encode(value)),
      unregister,
      [Symbol.asyncDispose]: unregister,
    }
  }

  /** The value of a name, or undefined. */
  resolve(name: string, { fresh = false, ...options }: ResolveOptions = {}): Promise<T | undefined> {
    return retryInNewSession(this.#client, async () => {
      if (fresh) await this.#client.sync(this.#path(name), options)
      const found = await undefinedIfMissing(this.#client.getData(this.#path(name), options))
      return found && this.#codec.decode(found.data)
    })
  }

  /** All names, sorted. */
  async names(options: CallOptions = {}): Promise<string[]> {
    const list = await retryInNewSession(this.#client, () =>
      undefinedIfMissing(this.#client.getChildren(this.base, options)),
    )
    return (list?.children ?? []).flatMap((name) => decodeName(name) ?? []).toSorted()
  }

  /**
   * Gives a value another name, in one step for all who look. Rejects when there is no old or already a new one. Whoever
   * registered the old one has it no longer. A `UsageError` for an ephemeral name: its holder would make it again.
   */
  async rename(from: string, to: string): Promise<void> {
    for (;;) {
      const { data, stat } = await retryInNewSession(this.#client, () =>
        this.#client.getData(this.#path(from)),
      )
      if (stat.ephemeralOwner !== 0n)
        throw new UsageError(
          `Expected a name that outlives its session, got ${from}, which is ephemeral: unregister it and register ${to}`,
        )
      if (await this.#move(from, to, data, stat)) return
    }
  }

  /** False when the value has changed meanwhile. */
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

  /** The transaction that made it. */
  async #create(name: string, data: Uint8Array): Promise<bigint> {
    const path = this.#path(name)
    for (;;) {
      const marker = this.#markerPath()
      try {
        const made = await commitWithMarker(this.#client, marker, [{ op: 'create', path, data }], {
          needsMarkerStat: true,
        })
        deleteMarker(this.#client, marker)
        // A mark that went with its session tells nothing any more; the name does.
        const stat = made.marker ?? (await retryInNewSession(this.#client, () => this.#client.exists(path)))
        return stat?.czxid ?? 0n
      } catch (error) {
        const cause = causeAt(error, 0)
        if (cause instanceof NodeExistsError) throw cause
        if (cause instanceof NoNodeError) {
          await retryInNewSession(this.#client, () => this.#client.mkdirp(this.base, { mode: 'persistent' }))
        } else throw error
      }
    }
  }

  #path(name: string): string {
    return `${this.base}/${encodeName(name)}`
  }

  #markerPath(): string {
    return `${this.base}-marks/${uniqueName(this.#client)}`
  }
}
