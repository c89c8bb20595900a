import { UsageError, utf8, type Client } from '@zabra/client/core'
import { PersistentNode } from '../persistent-node/persistent-node.ts'
import { undefinedIfMissing } from '../support/retry.ts'
import { uuid } from '../support/uuid.ts'

export interface PartyOptions {
  /** `party` is the layout of kazoo's `Party`, `shallow` that of its `ShallowParty` (default `party`). */
  readonly layout?: 'party' | 'shallow'
}

const MARK = '__party__'

/** Membership shared with kazoo's `Party` and `ShallowParty`. Several members may have the same identifier. */
export class Party implements AsyncDisposable {
  readonly path: string
  readonly #client: Client
  readonly #identifier: string
  readonly #layout: 'party' | 'shallow'
  #node: PersistentNode | undefined

  constructor(client: Client, path: string, identifier: string, { layout = 'party' }: PartyOptions = {}) {
    if (layout === 'shallow' && identifier.includes('/'))
      throw new UsageError(`Expected an identifier without slashes in a shallow party, got ${identifier}`)
    this.#client = client
    this.path = path
    this.#identifier = identifier
    this.#layout = layout
  }

  /** Joins, and stays a member across sessions until `leave`. Idempotent. */
  async join(): Promise<void> {
    const id = uuid(this.#client).replaceAll('-', '')
    const name = this.#layout === 'party' ? `${id}${MARK}` : `${id}-${this.#identifier}`
    // kazoo creates the directory once per object and does not expect its removal.
    const options = { parents: 'persistent' } as const
    const node = (this.#node ??= new PersistentNode(
      this.#client,
      this.#pathOf(name),
      utf8.encode(this.#identifier),
      options,
    ))
    try {
      await node.ready
    } catch (error) {
      // A later join tries again.
      if (this.#node === node) this.#node = undefined
      await node.close()
      throw error
    }
  }

  /** Leaves. Idempotent. */
  async leave(): Promise<void> {
    const node = this.#node
    this.#node = undefined
    await node?.close()
  }

  /** Returns the identifiers of all members, sorted. */
  async members(): Promise<string[]> {
    const names = (await undefinedIfMissing(this.#client.getChildren(this.path)))?.children ?? []
    if (this.#layout === 'shallow') return names.map((name) => name.slice(name.indexOf('-') + 1)).toSorted()
    const reads = names
      .filter((name) => name.includes(MARK))
      .map(async (name) => {
        const found = await undefinedIfMissing(this.#client.getData(this.#pathOf(name)))
        return found === undefined ? [] : [utf8.decode(found.data)]
      })
    return (await Promise.all(reads)).flat().toSorted()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.leave()
  }

  #pathOf(name: string): string {
    return this.path === '/' ? `/${name}` : `${this.path}/${name}`
  }
}
