import { UsageError, utf8, type CallOptions, type Client } from '@zabra/client/core'
import { childPath, isReserved, withoutTimeout } from '@zabra/client/recipe-kit'
import type { KeptHandle, WaitOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { PersistentNode, waitForReady } from '../persistent-node/persistent-node.ts'
import { undefinedIfMissing } from '../support/retry.ts'
import { uuid } from '../support/uuid.ts'
import { checkArgument, checkOptions, checkRecipe, oneOf, text, waiting } from '../support/checks.ts'

export interface PartyOptions {
  /** `party` is the layout of kazoo's `Party`, `shallow` that of its `ShallowParty` (default `party`). */
  readonly layout?: 'party' | 'shallow' | undefined
}

const MARK = '__party__'

/** Membership in a party, which outlives the session that joined. */
export interface PartyMembership extends KeptHandle {
  readonly identifier: string
}

/** Membership shared with kazoo's `Party` and `ShallowParty`. Several members may have the same identifier. */
export class Party {
  readonly path: string
  readonly #client: Client
  readonly #layout: 'party' | 'shallow'

  constructor(client: Client, path: string, options: PartyOptions = {}) {
    checkRecipe('Party', client, path, options, { layout: oneOf('party', 'shallow') })
    const { layout = 'party' } = options
    this.#client = withoutTimeout(client)
    this.path = path
    this.#layout = layout
  }

  /** Joins, and stays a member across sessions until the handle is released. Each call joins once more. */
  async join(identifier: string, options: WaitOptions = {}): Promise<PartyMembership> {
    checkArgument('party.join', 'an identifier', identifier, text)
    checkOptions(`party.join ${this.path}`, options, waiting)
    if (this.#layout === 'shallow' && identifier.includes('/'))
      throw new UsageError(`Expected an identifier without slashes in a shallow party, got ${identifier}`)
    const id = uuid(this.#client).replaceAll('-', '')
    const path = this.#pathOf(this.#layout === 'party' ? `${id}${MARK}` : `${id}-${identifier}`)
    throwIfAborted(options.signal, path, 'party.join')
    // kazoo creates the directory once per object and does not expect its removal.
    const node = new PersistentNode(this.#client, path, utf8.encode(identifier), { parents: 'persistent' })
    await waitForReady(this.#client, node, options, { operation: 'party.join', path })
    const release = (): Promise<void> => node.close()
    return { identifier, signal: node.signal, release, [Symbol.asyncDispose]: release }
  }

  /** Returns the identifiers of all members, sorted. */
  async members(options: CallOptions = {}): Promise<string[]> {
    const names = (await undefinedIfMissing(this.#client.getChildren(this.path, options)))?.children ?? []
    if (this.#layout === 'shallow') {
      const members = names.filter((name) => !isReserved(this.#client, this.#pathOf(name)))
      return members.map((name) => name.slice(name.indexOf('-') + 1)).toSorted()
    }
    const reads = names
      .filter((name) => name.includes(MARK))
      .map(async (name) => {
        const found = await undefinedIfMissing(this.#client.getData(this.#pathOf(name), options))
        return found === undefined ? [] : [utf8.decode(found.data)]
      })
    return (await Promise.all(reads)).flat().toSorted()
  }

  #pathOf(name: string): string {
    return childPath(this.path, name)
  }
}
