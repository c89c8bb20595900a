import type { Client, Codec } from '@zabra/client/core'
import { childPath, syncResult, withoutTimeout } from '@zabra/client/recipe-kit'
import type { Abortable } from '../handles/types.ts'
import { TreeCache } from '../tree-cache/tree-cache.ts'
import {
  aFunction,
  checkArgument,
  checkRecipe,
  codec as aCodec,
  milliseconds,
  object,
  positive,
  text,
  type Rules,
} from '../support/checks.ts'
import { ErrorTracker, usableInstances, type DownPolicy } from './down.ts'
import type { Instance } from './instance.ts'
import { simpleStrategies, type Strategy } from './strategies.ts'

export interface ProviderOptions<T> {
  /** Default `roundRobin`. */
  readonly strategy?: keyof typeof simpleStrategies | Strategy<T> | undefined
  /** When reported errors take an instance out. */
  readonly down?: DownPolicy | undefined
  /** Restricts the instances. */
  readonly filter?: ((instance: Instance<T>) => boolean) | undefined
}

export const providerRules: Rules<ProviderOptions<unknown>> = {
  strategy: [
    'a function, or one of roundRobin, random and sticky',
    (value) => typeof value === 'function' || Object.hasOwn(simpleStrategies, value as PropertyKey),
  ],
  down: [
    'an object with errors and withinMs',
    (value) => {
      if (!object[1](value)) return false
      const { errors = 1, withinMs = 0, ...others } = value as DownPolicy
      return positive[1](errors) && milliseconds[1](withinMs) && Object.keys(others).length === 0
    },
  ],
  filter: aFunction,
}

/** Follows the instances of one service and chooses among them locally. */
export class ServiceProvider<T> implements AsyncDisposable {
  readonly #client: Client
  readonly #path: string
  readonly #cache: TreeCache<Instance<T> | undefined>
  readonly #choose: Strategy<T>
  readonly #filter: (instance: Instance<T>) => boolean
  readonly #errors: ErrorTracker
  /** The instances of one revision of the cache, sorted. */
  #known: { readonly revision: number; readonly instances: readonly Instance<T>[] } | undefined
  /**
   * Called by `close`.
   * @internal
   */
  onClose = (): void => {}

  constructor(client: Client, path: string, codec: Codec<Instance<T>>, options: ProviderOptions<T> = {}) {
    checkRecipe('ServiceProvider', client, path, options, providerRules)
    checkArgument('ServiceProvider', 'a codec', codec, aCodec)
    const { strategy = 'roundRobin', down, filter = () => true } = options
    this.#client = withoutTimeout(client)
    this.#path = path
    this.#cache = new TreeCache(client, path, { depth: 1, codec: ignoringInvalid(codec) })
    this.#choose = typeof strategy === 'function' ? strategy : simpleStrategies[strategy]<T>()
    this.#filter = filter
    this.#errors = new ErrorTracker(down)
  }

  /** Resolves when the instances are known. */
  get ready(): Promise<void> {
    return this.#cache.ready
  }

  /**
   * True while the connection is lost and the instances may be outdated, and once the provider has ended with an error, which
   * `changes` rejects with, or is closed. It keeps using them.
   */
  get stale(): boolean {
    return this.#cache.stale
  }

  /** Returns all known instances, including disabled ones and those that are down, sorted by id. */
  all(): readonly Instance<T>[] {
    return this.#sorted().filter((instance) => syncResult('the filter of a provider', this.#filter(instance)))
  }

  /** Returns the instances that are in the cache. They are sorted once for each change, and not for each choice. */
  #sorted(): readonly Instance<T>[] {
    const { revision } = this.#cache
    if (this.#known?.revision === revision) return this.#known.instances
    const instances = (this.#cache.children(this.#path) ?? []).flatMap((name) => {
      const instance = this.#cache.get(childPath(this.#path, name))?.value
      return instance === undefined ? [] : [instance]
    })
    instances.sort((a, b) => (a.id < b.id ? -1 : 1))
    this.#known = { revision, instances }
    return instances
  }

  /**
   * Yields the instances as `all` returns them, and again after each change, until the consumer leaves the loop, `signal`
   * aborts or the provider closes. Changes that arrive together are reported once, and an outage reports none.
   */
  async *changes(options: Abortable = {}): AsyncGenerator<readonly Instance<T>[], void, undefined> {
    let last: readonly Instance<T>[] | undefined
    let revision = -1
    for await (const _event of this.#cache.events(options)) {
      if (this.stale || this.#cache.revision === revision) continue
      revision = this.#cache.revision
      const all = this.all()
      if (last?.length === all.length && all.every((instance, at) => instance === last?.[at])) continue
      last = all
      yield all
    }
  }

  /** Returns the instance to use now; undefined if there is none. */
  next(): Instance<T> | undefined {
    const all = this.all()
    this.#errors.retain(all)
    const now = this.#now()
    const candidates = usableInstances(all, (id) => this.#errors.isDown(id, now))
    return candidates.length === 0 ? undefined : this.#choose(candidates, (end) => this.#draw(end))
  }

  /** Reports a failed use of an instance. After enough of them it is skipped for a while. */
  noteError(id: string): void {
    checkArgument('provider.noteError', 'an id', id, text)
    this.#errors.record(id, this.#now())
  }

  close(): Promise<void> {
    this.onClose()
    return this.#cache.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #now(): number {
    return this.#client.platform.clock.monotonic()
  }

  #draw(end: number): number {
    const bytes = this.#client.platform.random.bytes(4)
    const number = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
    return Math.floor((number / 2 ** 32) * end)
  }
}

/** The service's own znode holds no instance, and invalid children are ignored. */
const ignoringInvalid = <T>(codec: Codec<T>): Codec<T | undefined> => ({
  encode: () => new Uint8Array(0),
  decode(data) {
    try {
      return codec.decode(data)
    } catch {
      return undefined
    }
  },
})
