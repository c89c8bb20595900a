import {
  ClosedError,
  SessionExpiredError,
  type CallOptions,
  type Client,
  type CreateResult,
  type Stat,
} from '@zabra/client/core'
import { childPath, nameOf, withoutTimeout } from '@zabra/client/recipe-kit'
import type { HandleNode } from '../handles/ephemeral-lock-handle.ts'
import type { Naming, RecipeOptions } from '../handles/types.ts'
import type { ContenderParser } from './contenders.ts'
import { report } from '../support/report.ts'
import { undefinedIfMissing } from '../support/retry.ts'

/** Options for the znodes of a queue. */
export interface LockQueueOptions extends RecipeOptions {
  /** Receives the stat of each znode that was created, and when the create was sent. */
  readonly onCreate?: ((stat: Stat, sentAt: number) => void) | undefined
  /** Removes an entry with what belongs to it. Returns false when the entry is left. */
  readonly withdraw?: ((entry: QueueEntry) => Promise<boolean>) | undefined
}

/** Creates the protection id, the start of a contender's name, from a UUID, for each naming scheme. */
export const protectionIds: Readonly<Record<Naming, (uuid: string) => string>> = {
  recipe: (uuid) => `${uuid}-`,
  curator: (uuid) => `_c_${uuid}-`,
  kazoo: (uuid) => uuid.replaceAll('-', ''),
}

/** The znode of one contender. */
export interface QueueEntry extends HandleNode {
  readonly name: string
}

/** The children of the directory. `directoryCzxid` identifies the directory, should it be created again. */
export interface Listing {
  readonly names: readonly string[]
  readonly directoryCzxid: bigint
}

/** A directory whose children are contenders in the order of their creation. */
export class LockQueue {
  readonly client: Client
  readonly directory: string
  readonly parse: ContenderParser
  readonly #options: LockQueueOptions

  constructor(client: Client, directory: string, parse: ContenderParser, options: LockQueueOptions) {
    this.client = withoutTimeout(client)
    this.directory = directory
    this.parse = parse
    this.#options = options
  }

  get naming(): Naming {
    return this.#options.naming ?? 'recipe'
  }

  pathOf(name: string): string {
    return childPath(this.directory, name)
  }

  /**
   * Creates a znode at the end of the queue. The listing is requested in the same batch, so that a contender
   * without predecessor waits for one round trip; it is undefined when it may be older than the znode.
   */
  async enqueue(
    prefix: string,
    signal: AbortSignal | undefined,
  ): Promise<{ entry: QueueEntry; listing: Listing | undefined }> {
    const { acl, data = '', onCreate } = this.#options
    // kazoo creates the directory once per object and does not expect its removal.
    const { parents = this.naming === 'kazoo' ? 'persistent' : 'container' } = this.#options
    const sentAt = this.client.platform.clock.monotonic()
    const created = this.client.unordered().create(this.pathOf(prefix), {
      data,
      mode: 'ephemeralSequential',
      protected: protectionIds[this.naming],
      parents: parents === 'persistent' ? 'persistent' : true,
      ...(acl === undefined ? {} : { acl }),
      ...(signal === undefined ? {} : { signal }),
    })
    // When the listing fails, the create decides the outcome.
    const listed = this.list({ signal }).catch(() => undefined)
    const result = await created
    onCreate?.(result.stat, sentAt)
    const entry = entryOf(result)
    const listing = await listed
    return { entry, listing: listing?.names.includes(entry.name) ? listing : undefined }
  }

  /** Returns undefined when the directory does not exist. */
  async list(options: CallOptions = {}): Promise<Listing | undefined> {
    const found = await undefinedIfMissing(this.client.getChildren(this.directory, options))
    return found && { names: found.children, directoryCzxid: found.stat.czxid }
  }

  /** Removes an entry. Retries until it is gone; the end of its session removes it as well. */
  async remove(entry: QueueEntry): Promise<void> {
    const { path, owner } = entry
    if (owner !== this.client.session.id) return
    try {
      if (await this.#options.withdraw?.(entry)) return
      await this.client.delete(path, { guaranteed: true, missingOk: true })
    } catch (error) {
      if (!(error instanceof SessionExpiredError || error instanceof ClosedError)) throw error
    }
  }

  /** Removes an entry without waiting for the result. */
  removeInBackground(entry: QueueEntry): void {
    this.remove(entry).catch(() => {
      report(this.client, { recipe: 'line', path: entry.path, phase: 'leaveFailed' })
    })
  }
}

export function entryOf({ path, stat }: Pick<CreateResult, 'path' | 'stat'>): QueueEntry {
  return { path, name: nameOf(path), token: stat.czxid, owner: stat.ephemeralOwner }
}

/** Returns the entry that a transaction created. Apache servers return no stat there, so it is read. */
export async function createdEntry(
  client: Client,
  onCreate: { path: string; stat?: Stat | undefined },
): Promise<QueueEntry | undefined> {
  const stat = onCreate.stat ?? (await client.exists(onCreate.path))
  return stat === undefined ? undefined : entryOf({ path: onCreate.path, stat })
}
