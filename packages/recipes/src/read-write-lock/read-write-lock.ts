import {
  RecoverableError,
  UsageError,
  type Client,
  type CreateResult,
  type ErrorPolicy,
} from '@zabra/client/core'
import { bodyAndRelease } from '../held/combine.ts'
import { Right } from '../held/right.ts'
import type { AcquireOptions, Held, RecipeOptions } from '../held/types.ts'
import { inOrder, parserOf } from '../line/contenders.ts'
import { Line, madePlace, marks, placeOf, type Place } from '../line/line.ts'
import { deleted, takeTurn, tryTurn, type TurnOptions } from '../line/turn.ts'
import { uuid } from '../line/uuid.ts'
import { isAlone } from './upgrade.ts'

const words = {
  recipe: { read: '__READ__', write: '__WRIT__' },
  curator: { read: '__READ__', write: '__WRIT__' },
  kazoo: { read: '__rlock__', write: '__lock__' },
} as const
const parse = parserOf(['__WRIT__', 'write-', '__lock__'], ['__READ__', 'read-', '__rlock__'])

type Mode = 'read' | 'write'
export type SideOptions = Omit<AcquireOptions, 'owner'>

/** One side of a read/write lock. The methods do what those of a `Mutex` do. */
export interface LockSide {
  /** Waits for the right, as `acquire` of a mutex does. */
  acquire(options?: SideOptions): Promise<Held>
  /** Undefined when somebody would have to be waited for. */
  tryAcquire(options?: SideOptions): Promise<Held | undefined>
  run<T>(body: (held: Held) => Promise<T>, options?: SideOptions): Promise<T>
}

interface Entry {
  readonly right: Right
  readonly place: Place
  readonly mode: Mode
  /** Its znode goes by our own hand. */
  passing: boolean
}

/** A lock that many readers or one writer have at a time, in the order of arrival, so that nobody starves. */
export class ReadWriteLock {
  readonly client: Client
  readonly path: string
  /** For those who may hold it together. */
  readonly read: LockSide
  /** For one who holds it alone. */
  readonly write: LockSide
  readonly #line: Line
  readonly #policy: ErrorPolicy
  readonly #options: RecipeOptions
  readonly #entries = new WeakMap<Held, Entry>()

  constructor(client: Client, path: string, options: RecipeOptions = {}) {
    this.client = client
    this.path = path
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#options = options
    this.#line = new Line(client, path, parse, options)
    this.read = this.#side('read')
    this.write = this.#side('write')
  }

  /**
   * Turns a write right into a read right in one transaction, in its place: readers that wait come in, writers that wait
   * stay behind. The write right ends, and its token goes over to the read right. Rejects with a `LostError` when it is not held, a `UsageError` when it is not one
   * of this lock, and a `RecoverableError` when it could not be told whether it happened: release the write right then.
   */
  async downgrade(write: Held): Promise<Held> {
    const entry = this.#entryOf(write, 'write')
    const path = this.#line.pathOf(this.#nameAt(entry.place, 'read'))
    entry.passing = true
    try {
      const made = await this.#exchange(entry.place, path)
      // Writers that wait have tokens from before this znode, and must not be refused for that when their turn comes.
      const place = { ...made, token: entry.place.token }
      entry.right.handedOver()
      return this.#grant(place, 'read')
    } catch (error) {
      entry.passing = false
      void this.client.delete(path, { guaranteed: true, missingOk: true }).catch(() => {})
      if (entry.right.signal.aborted) throw entry.right.signal.reason
      throw error
    }
  }

  /**
   * Turns a read right into a write right if no other reader is there; else gives undefined and the read right stays as
   * it is. It never waits: two readers that waited for each other to leave would do so for ever.
   */
  async tryUpgrade(read: Held): Promise<Held | undefined> {
    const entry = this.#entryOf(read, 'read')
    const { name: readName } = entry.place
    const name = this.#nameAt(entry.place, 'write')
    const path = this.#line.pathOf(name)
    try {
      const made = this.#make(path)
      const listed = this.#line.list(undefined).catch(() => undefined)
      const place = placeOf(await made)
      let names = (await listed)?.names
      if (names?.includes(name) !== true) names = (await this.#line.list(undefined))?.names ?? []
      if (isAlone(names, { read: readName, write: name }, parse)) {
        const token = await this.#tokenBefore(names, place)
        entry.right.assertHeld()
        const write = this.#grant({ ...place, token }, 'write')
        entry.passing = true
        await read.release()
        return write
      }
    } catch (error) {
      void this.client.delete(path, { guaranteed: true, missingOk: true }).catch(() => {})
      throw error
    }
    await this.client.delete(path, { guaranteed: true, missingOk: true })
    if (!entry.right.signal.aborted) return undefined
    throw entry.right.signal.reason
  }

  #side(mode: Mode): LockSide {
    const isFree = (names: readonly string[]): boolean =>
      inOrder(names, parse).every(({ shared }) => shared && mode === 'read')
    const acquire = (options: SideOptions = {}): Promise<Held> =>
      takeTurn(this.#line, this.#turn(mode, options))
    return {
      acquire,
      tryAcquire: (options = {}) => tryTurn(this.#line, this.#turn(mode, options), isFree),
      run: async (body, options) => {
        const held = await acquire(options)
        return bodyAndRelease(
          () => body(held),
          () => held.release(),
        )
      },
    }
  }

  #turn(mode: Mode, options: SideOptions): TurnOptions<Held> {
    const { signal, onSessionLoss } = options
    return {
      ...(signal === undefined ? {} : { signal }),
      ...(onSessionLoss === undefined ? {} : { onSessionLoss }),
      word: words[this.#line.naming][mode],
      policy: this.#policy,
      grant: (place, waitedMs) => this.#grant(place, mode, waitedMs),
    }
  }

  #grant(place: Place, mode: Mode, waitedMs = 0): Right {
    const right: Right = new Right(this.client, place, {
      recipe: `${mode} lock`,
      policy: this.#policy,
      waitedMs,
      reasonWhenGone: () => (entry.passing ? 'released' : 'nodeDeleted'),
    })
    const entry: Entry = { right, place, mode, passing: false }
    this.#entries.set(right, entry)
    return right
  }

  #entryOf(held: Held, mode: Mode): Entry {
    const entry = this.#entries.get(held)
    if (entry?.mode !== mode) {
      throw new UsageError(`Expected a ${mode} right of the lock ${this.path}, got ${held.path}`, {
        path: this.path,
      })
    }
    held.assertHeld()
    return entry
  }

  /** The name of a znode at the place of another one. */
  #nameAt({ name }: Place, mode: Mode): string {
    const { naming } = this.#line
    return `${marks[naming](uuid(this.client))}${words[naming][mode]}${parse(name)!.suffix}`
  }

  /**
   * A token for a writer who has passed others: not below that of any reader before it, and below those of the writers
   * that wait already, who come after it.
   */
  async #tokenBefore(names: readonly string[], place: Place): Promise<bigint> {
    for (const { name, shared } of inOrder(names, parse)) {
      if (shared || name === place.name) continue
      const waiting = await this.client.exists(this.#line.pathOf(name))
      if (waiting !== undefined) return waiting.czxid < place.token ? waiting.czxid - 1n : place.token
    }
    return place.token
  }

  #make(path: string): Promise<CreateResult> {
    const { acl, data } = this.#options
    return this.client.create(path, data, { mode: 'ephemeral', ...(acl === undefined ? {} : { acl }) })
  }

  /** Makes a znode and removes another one at once. */
  async #exchange(from: Place, path: string): Promise<Place> {
    const { acl, data } = this.#options
    try {
      const [made] = await this.client.multi([
        {
          op: 'create',
          path,
          mode: 'ephemeral',
          ...(acl === undefined ? {} : { acl }),
          ...(data === undefined ? {} : { data }),
        },
        { op: 'delete', path: from.path },
      ])
      const place = await madePlace(this.client, made)
      if (place === undefined) throw deleted(from)
      return place
    } catch (error) {
      if (!(error instanceof RecoverableError) || !error.maybeApplied) throw error
      // A znode of that name says that it happened.
      await this.client.sync(path)
      const stat = await this.client.exists(path)
      if (stat?.ephemeralOwner !== this.client.session.id) throw error
      return placeOf({ path, stat })
    }
  }
}
