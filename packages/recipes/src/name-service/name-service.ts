import {
  BadVersionError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  type CallOptions,
  type Client,
  type Codec,
  type Stat,
} from '@zabra/client/core'
import { PersistentNode } from '../persistent-node/persistent-node.ts'
import { causeAt, orMissing, throughSessions } from '../waiting/errors.ts'
import { commitMarked, dropMark, uniqueName } from '../waiting/marked.ts'
import { decodeName, encodeName } from '../waiting/names.ts'

export interface RegisterOptions {
  /** Gone with the session, and back in the next one, until it is disposed (default false). */
  readonly ephemeral?: boolean
}

export interface ResolveOptions extends CallOptions {
  /** Ask the leader first, so that the answer is not older than the question. */
  readonly fresh?: boolean
}

/** A name that was registered. Disposal takes it back. */
export interface Registration<T> extends AsyncDisposable {
  update(value: T): Promise<void>
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
    if (!ephemeral) await this.#create(name, data)
    const mode = ephemeral ? 'ephemeral' : 'persistent'
    const node = new PersistentNode(this.#client, this.#path(name), data, { mode, parents: 'persistent' })
    try {
      await node.ready
    } catch (error) {
      await node.close()
      throw error
    }
    const unregister = (): Promise<void> => node.close()
    return {
      update: (next) => node.setData(this.#codec.encode(next)),
      unregister,
      [Symbol.asyncDispose]: unregister,
    }
  }

  /** The value of a name, or undefined. */
  resolve(name: string, { fresh = false, ...options }: ResolveOptions = {}): Promise<T | undefined> {
    return throughSessions(this.#client, async () => {
      if (fresh) await this.#client.sync(this.#path(name), options)
      const found = await orMissing(this.#client.getData(this.#path(name), options))
      return found && this.#codec.decode(found.data)
    })
  }

  /** All names, sorted. */
  async names(options: CallOptions = {}): Promise<string[]> {
    const list = await throughSessions(this.#client, () =>
      orMissing(this.#client.getChildren(this.base, options)),
    )
    return (list?.children ?? []).flatMap((name) => decodeName(name) ?? []).toSorted()
  }

  /** Gives a value another name, in one step for all who look. Rejects when there is no old or already a new one. */
  async rename(from: string, to: string): Promise<void> {
    for (;;) {
      const { data, stat } = await throughSessions(this.#client, () => this.#client.getData(this.#path(from)))
      if (await this.#move(from, to, data, stat)) return
    }
  }

  /** False when the value has changed meanwhile. */
  async #move(from: string, to: string, data: Uint8Array, { version }: Stat): Promise<boolean> {
    const mark = this.#mark()
    try {
      await commitMarked(this.#client, mark, [
        { op: 'create', path: this.#path(to), data },
        { op: 'delete', path: this.#path(from), version },
      ])
      dropMark(this.#client, mark)
      return true
    } catch (error) {
      if (causeAt(error, 1) instanceof BadVersionError) return false
      throw error instanceof MultiError ? error.cause : error
    }
  }

  async #create(name: string, data: Uint8Array): Promise<void> {
    for (;;) {
      const mark = this.#mark()
      try {
        await commitMarked(this.#client, mark, [{ op: 'create', path: this.#path(name), data }])
        return dropMark(this.#client, mark)
      } catch (error) {
        const cause = causeAt(error, 0)
        if (cause instanceof NodeExistsError) throw cause
        if (cause instanceof NoNodeError) {
          await throughSessions(this.#client, () => this.#client.mkdirp(this.base, { mode: 'persistent' }))
        } else throw error
      }
    }
  }

  #path(name: string): string {
    return `${this.base}/${encodeName(name)}`
  }

  #mark(): string {
    return `${this.base}-marks/${uniqueName(this.#client)}`
  }
}
