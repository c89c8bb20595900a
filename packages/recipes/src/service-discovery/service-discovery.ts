import { UsageError, type Client, type Codec, type CreateMode } from '@zabra/client/core'
import { withCodecErrors } from '@zabra/client/recipe-kit'
import { uuid } from '../support/uuid.ts'
import { NodeConflictError, PersistentNode } from '../persistent-node/persistent-node.ts'
import { isFinished, undefinedIfMissing, retryInNewSession } from '../support/retry.ts'
import { instanceCodec, type Instance, type NewInstance, type PayloadCodec } from './instance.ts'
import { ServiceProvider, type ProviderOptions } from './provider.ts'

export interface ServiceDiscoveryOptions<T> {
  /** Converts payloads to JSON and validates them (default: any JSON). */
  readonly payload?: PayloadCodec<T>
}

export interface ServiceRegisterOptions {
  /**
   * When another live session has this id: fail with an `InstanceIdConflictError` (default), or wait until that
   * session ends.
   */
  readonly onConflict?: 'fail' | 'wait'
}

/** Another client is registered under this id. */
export class InstanceIdConflictError extends NodeConflictError {
  static override readonly tag = 'InstanceIdConflictError'
}

/** A registration. It survives session expiry until it is unregistered or its discovery is closed. */
export interface ServiceRegistration<T> extends AsyncDisposable {
  /** The instance as last registered or updated. */
  readonly instance: Instance<T>
  /**
   * Changes everything but name, id and type. Resolves when the servers have it; older data is never written
   * again.
   */
  update(changes: Partial<Omit<Instance<T>, 'name' | 'id' | 'serviceType'>>): Promise<void>
  /** Removes the instance from the service. Idempotent. */
  unregister(): Promise<void>
}

const modes = {
  DYNAMIC: 'ephemeral',
  DYNAMIC_SEQUENTIAL: 'ephemeralSequential',
  STATIC: 'persistent',
  PERMANENT: 'persistent',
} as const satisfies Record<Instance['serviceType'], CreateMode>

const anyJson: PayloadCodec<unknown> = { encode: (payload) => payload, decode: (json) => json }

/** Registers and finds instances of services. Compatible with Curator's service discovery. */
export class ServiceDiscovery<T = unknown> implements AsyncDisposable {
  readonly path: string
  readonly #client: Client
  readonly #codec: Codec<Instance<T>>
  readonly #registrations = new Set<RegisteredInstance<T>>()
  readonly #providers = new Set<ServiceProvider<T>>()
  #closed = false

  constructor(client: Client, path: string, options: ServiceDiscoveryOptions<T> = {}) {
    this.#client = client
    this.path = path
    const codec = instanceCodec(options.payload ?? (anyJson as PayloadCodec<T>))
    this.#codec = withCodecErrors(codec, { operation: 'service discovery', path })
  }

  /** Registers an instance and keeps it registered. Resolves when the servers have it. */
  async register(
    instance: NewInstance<T>,
    { onConflict = 'fail' }: ServiceRegisterOptions = {},
  ): Promise<ServiceRegistration<T>> {
    if (this.#closed)
      throw new UsageError(`Expected an open service discovery on ${this.path}, got a closed one`)
    const whole = this.#completed(instance)
    const registered = new RegisteredInstance(this.#client, this.#pathOf(whole.name, whole.id), whole, {
      codec: this.#codec,
      onConflict,
      onClose: () => this.#registrations.delete(registered),
    })
    this.#registrations.add(registered)
    await registered.ready()
    return registered
  }

  /** Returns the names of all services that have or had an instance, sorted. */
  async names(): Promise<string[]> {
    return (await this.#children(this.path)).toSorted()
  }

  /** Returns the instances of a service as the servers have them now, sorted by id. Skips invalid ones. */
  async instances(name: string): Promise<Instance<T>[]> {
    const path = this.#pathOf(name)
    const found = (await this.#children(path)).map((child) => this.#read(`${path}/${child}`))
    const instances = (await Promise.all(found)).filter((instance) => instance !== undefined)
    return instances.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /**
   * Follows a service; resolves when its instances are known. The provider is closed with this object at the
   * latest.
   */
  async provider(name: string, options: ProviderOptions<T> = {}): Promise<ServiceProvider<T>> {
    if (this.#closed)
      throw new UsageError(`Expected an open service discovery on ${this.path}, got a closed one`)
    const provider = new ServiceProvider(this.#client, this.#pathOf(name), this.#codec, options)
    this.#providers.add(provider)
    try {
      await provider.ready
    } catch (error) {
      this.#providers.delete(provider)
      throw error
    }
    return provider
  }

  /** Unregisters the registered instances except permanent ones, and closes the providers. */
  async close(): Promise<void> {
    this.#closed = true
    const registrations = [...this.#registrations].map((each) => each.close())
    await Promise.all([...registrations, ...[...this.#providers].map((each) => each.close())])
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #completed(instance: NewInstance<T>): Instance<T> {
    return {
      id: uuid(this.#client),
      registrationTimeUTC: this.#client.platform.clock.wall(),
      serviceType: 'DYNAMIC',
      enabled: true,
      ...instance,
    }
  }

  async #children(path: string): Promise<readonly string[]> {
    return (await undefinedIfMissing(this.#client.getChildren(path)))?.children ?? []
  }

  async #read(path: string): Promise<Instance<T> | undefined> {
    const found = await undefinedIfMissing(this.#client.getData(path))
    try {
      return found && this.#codec.decode(found.data)
    } catch {
      // A foreign znode, or a payload of another format.
      return undefined
    }
  }

  /** Names are used in paths unencoded, since Curator looks for them there. */
  #pathOf(...names: readonly string[]): string {
    for (const name of names) {
      if (name === '' || name === '.' || name === '..' || name.includes('/')) {
        throw new UsageError(
          `Expected names and ids of services without slashes, got ${JSON.stringify(name)}`,
        )
      }
    }
    return [this.path === '/' ? '' : this.path, ...names].join('/')
  }
}

interface RegisteredOptions<T> extends Required<ServiceRegisterOptions> {
  readonly codec: Codec<Instance<T>>
  readonly onClose: () => void
}

class RegisteredInstance<T> implements ServiceRegistration<T> {
  instance: Instance<T>
  readonly #client: Client
  readonly #node: PersistentNode
  readonly #options: RegisteredOptions<T>
  #unregistering: Promise<void> | undefined

  constructor(client: Client, path: string, instance: Instance<T>, options: RegisteredOptions<T>) {
    this.#client = client.unordered()
    this.#options = options
    this.instance = instance
    this.#node = new PersistentNode(client, path, options.codec.encode(instance), {
      mode: modes[instance.serviceType],
      onConflict: options.onConflict,
      leaveBehind: instance.serviceType === 'PERMANENT',
    })
  }

  async ready(): Promise<void> {
    try {
      await this.#node.ready
    } catch (error) {
      await this.close()
      throw error instanceof NodeConflictError
        ? new InstanceIdConflictError(this.#node.path, error.owner)
        : error
    }
  }

  async update(changes: Partial<Omit<Instance<T>, 'name' | 'id' | 'serviceType'>>): Promise<void> {
    const { name, id, serviceType } = this.instance
    const next = { ...this.instance, ...changes, name, id, serviceType }
    const data = this.#options.codec.encode(next)
    this.instance = next
    await this.#node.setData(data)
  }

  unregister(): Promise<void> {
    this.#unregistering ??= this.#unregister()
    return this.#unregistering
  }

  /** The persistent node is closed first, so that nothing creates the znode again. */
  async #unregister(): Promise<void> {
    await this.close()
    if (this.instance.serviceType !== 'PERMANENT' || isFinished(this.#client)) return
    const options = { guaranteed: true, missingOk: true }
    await retryInNewSession(this.#client, () => this.#client.delete(this.#node.path, options))
  }

  async close(): Promise<void> {
    await this.#node.close()
    this.#options.onClose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.instance.serviceType === 'PERMANENT' ? this.close() : this.unregister()
  }
}
