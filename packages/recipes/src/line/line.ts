import {
  ClosedError,
  NoNodeError,
  SessionExpiredError,
  type Bytes,
  type Client,
  type CreateResult,
  type Stat,
} from '@zabra/client/core'
import type { RightNode } from '../held/right.ts'
import type { Naming, RecipeOptions } from '../held/types.ts'
import type { Parse } from './contenders.ts'

/** What a line needs to know to make its znodes. */
export interface LineOptions extends RecipeOptions {
  /** Hears of each znode that was made, and when that was asked for. */
  readonly made?: (stat: Stat, sentAt: number) => void
}

const EMPTY: Bytes = new Uint8Array(0)

/** How each kind of name begins, written from a UUID. */
export const marks: Readonly<Record<Naming, (uuid: string) => string>> = {
  recipe: (uuid) => `${uuid}-`,
  curator: (uuid) => `_c_${uuid}-`,
  kazoo: (uuid) => uuid.replaceAll('-', ''),
}

/** One contender's znode. */
export interface Place extends RightNode {
  readonly name: string
}

/** The children of the directory, and which directory it was, should it be made again. */
export interface Listing {
  readonly names: readonly string[]
  readonly directory: bigint
}

/** A directory in which contenders stand in the order of their creation. */
export class Line {
  readonly client: Client
  readonly directory: string
  readonly parse: Parse
  readonly #options: LineOptions

  constructor(client: Client, directory: string, parse: Parse, options: LineOptions) {
    this.client = client
    this.directory = directory
    this.parse = parse
    this.#options = options
  }

  get naming(): Naming {
    return this.#options.naming ?? 'recipe'
  }

  pathOf(name: string): string {
    return this.directory === '/' ? `/${name}` : `${this.directory}/${name}`
  }

  /**
   * Makes a znode at the end of the line. The listing that comes along was asked for in the same breath, so that who finds
   * nobody waits for one round trip; it is undefined when it can be older than the znode.
   */
  async enter(
    word: string,
    signal: AbortSignal | undefined,
  ): Promise<{ place: Place; listing: Listing | undefined }> {
    const { acl, data = EMPTY, made } = this.#options
    // kazoo makes the folder once for each of its objects, and does not expect it to go.
    const { parents = this.naming === 'kazoo' ? 'persistent' : 'container' } = this.#options
    const sentAt = this.client.platform.clock.monotonic()
    const created = this.client.create(this.pathOf(word), data, {
      mode: 'ephemeralSequential',
      protected: marks[this.naming],
      parents: parents === 'persistent' ? 'persistent' : true,
      ...(acl === undefined ? {} : { acl }),
      ...(signal === undefined ? {} : { signal }),
    })
    // When it fails, the znode decides what to make of that.
    const listed = this.list(signal).catch(() => undefined)
    const result = await created
    made?.(result.stat, sentAt)
    const place = placeOf(result)
    const listing = await listed
    return { place, listing: listing?.names.includes(place.name) ? listing : undefined }
  }

  /** Undefined when the directory does not exist. */
  async list(signal: AbortSignal | undefined): Promise<Listing | undefined> {
    try {
      const { children, stat } = await this.client.getChildren(
        this.directory,
        signal === undefined ? {} : { signal },
      )
      return { names: children, directory: stat.czxid }
    } catch (error) {
      if (error instanceof NoNodeError) return undefined
      throw error
    }
  }

  /** Removes a place. Goes on until it is gone; the end of its session removes it as well. */
  async leave({ path, owner }: Place): Promise<void> {
    if (owner !== this.client.session.id) return
    try {
      await this.client.delete(path, { guaranteed: true, missingOk: true })
    } catch (error) {
      if (!(error instanceof SessionExpiredError || error instanceof ClosedError)) throw error
    }
  }

  /** The same when nobody waits for it. */
  leaveBehind(place: Place): void {
    this.leave(place).catch(() => {
      this.client.instrumentation?.recipe?.({ recipe: 'line', path: place.path, phase: 'leaveFailed' })
    })
  }
}

export function placeOf({ path, stat }: Pick<CreateResult, 'path' | 'stat'>): Place {
  return { path, name: path.slice(path.lastIndexOf('/') + 1), token: stat.czxid, owner: stat.ephemeralOwner }
}

/** The place that a transaction made. Apache's servers tell no Stat there, so that it has to be asked for. */
export async function madePlace(
  client: Client,
  made: { path: string; stat?: Stat },
): Promise<Place | undefined> {
  const stat = made.stat ?? (await client.exists(made.path))
  return stat === undefined ? undefined : placeOf({ path: made.path, stat })
}
