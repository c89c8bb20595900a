import {
  AbortedError,
  OperationTimeoutError,
  SessionExpiredError,
  UsageError,
  type CallOptions,
  type Client,
  type Codec,
  type CreateMode,
} from '@zabra/client/core'
import { childPath, isReserved, withCodecErrors, withoutTimeout } from '@zabra/client/recipe-kit'
import { uuid } from '../support/uuid.ts'
import type { KeptHandle, WaitOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { NodeConflictError, PersistentNode, waitForReady } from '../persistent-node/persistent-node.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import { orAborted, withLimits } from '../support/limits.ts'
import { ignoreFailure, isFinished, undefinedIfMissing, retryInNewSession } from '../support/retry.ts'
import { instanceCodec, type Instance, type NewInstance, type PayloadCodec } from './instance.ts'
import { providerRules, ServiceProvider, type ProviderOptions } from './provider.ts'
import {
  checkArgument,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  joining,
  object,
  text,
  type Rules,
  waiting as waitRules,
} from '../support/checks.ts'

export interface ServiceDiscoveryOptions<T> {
  /** Converts payloads to JSON and validates them (default: any JSON). */
  readonly payload?: PayloadCodec<T> | undefined
}

export interface ServiceRegisterOptions extends WaitOptions {
  /**
   * When another live session has this id: fail with an `InstanceIdConflictError` (default), or wait until that
   * session ends.
   */
  readonly onConflict?: 'fail' | 'wait' | undefined
}

/** Another client is registered under this id. */
export class InstanceIdConflictError extends NodeConflictError {
  static override readonly tag = 'InstanceIdConflictError'
}

/** A registration. It survives session expiry until it is released or its discovery is closed. */
export interface ServiceRegistration<T> extends KeptHandle {
  /** The instance as last registered or updated. */
  readonly instance: Instance<T>
  /**
   * Changes everything but name, id and type. Resolves when the servers have it; older data is never written
   * again.
   */
  update(changes: Partial<Omit<Instance<T>, 'name' | 'id' | 'serviceType'>>): Promise<void>
  /** Removes the instance from the service, a permanent one too. */
  release(): Promise<void>
}

const providing: Rules<ProviderOptions<unknown> & WaitOptions> = { ...waitRules, ...providerRules }

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
    checkRecipe('ServiceDiscovery', client, path, options, { payload: aCodec })
    this.#client = withoutTimeout(client)
    this.path = path
    const codec = instanceCodec(options.payload ?? (anyJson as PayloadCodec<T>))
    this.#codec = withCodecErrors(codec, { operation: 'service discovery', path })
  }

  /** Registers an instance and keeps it registered. Resolves when the servers have it. */
  async register(
    instance: NewInstance<T>,
    options: ServiceRegisterOptions = {},
  ): Promise<ServiceRegistration<T>> {
    checkArgument('serviceDiscovery.register', 'an instance', instance, object)
    checkArgument('serviceDiscovery.register', 'the name of the service', instance.name, text)
    checkOptions('serviceDiscovery.register', options, joining)
    const { onConflict = 'fail', ...limits } = options
    if (this.#closed)
      throw new UsageError(`Expected an open service discovery on ${this.path}, got a closed one`)
    const whole = this.#completed(instance)
    const path = this.#pathOf(whole.name, whole.id)
    throwIfAborted(options.signal, path, 'serviceDiscovery.register')
    const registered = new RegisteredInstance(this.#client, path, whole, {
      codec: this.#codec,
      onConflict,
      onClose: () => this.#registrations.delete(registered),
    })
    this.#registrations.add(registered)
    await registered.ready(limits)
    return registered
  }

  /** Returns the names of all services that have or had an instance, sorted. */
  async names(options: CallOptions = {}): Promise<string[]> {
    const names = await this.#children(this.path, options)
    return names.filter((name) => !isReserved(this.#client, childPath(this.path, name))).toSorted()
  }

  /** Returns the instances of a service as the servers have them now, sorted by id. Skips invalid ones. */
  async instances(name: string, options: CallOptions = {}): Promise<Instance<T>[]> {
    checkArgument('serviceDiscovery.instances', 'a name', name, text)
    const path = this.#pathOf(name)
    const children = await this.#children(path, options)
    const found = children.map((child) => this.#read(childPath(path, child), options))
    const instances = (await Promise.all(found)).filter((instance) => instance !== undefined)
    return instances.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /**
   * Follows a service; resolves when its instances are known. The provider is closed with this object at the
   * latest.
   */
  async provider(name: string, options: ProviderOptions<T> & WaitOptions = {}): Promise<ServiceProvider<T>> {
    checkArgument('serviceDiscovery.provider', 'a name', name, text)
    checkOptions('serviceDiscovery.provider', options, providing)
    if (this.#closed)
      throw new UsageError(`Expected an open service discovery on ${this.path}, got a closed one`)
    const { strategy, down, filter, signal } = options
    throwIfAborted(signal, this.#pathOf(name), 'serviceDiscovery.provider')
    const provider = new ServiceProvider(this.#client, this.#pathOf(name), this.#codec, {
      strategy,
      down,
      filter,
    })
    this.#providers.add(provider)
    provider.onClose = () => void this.#providers.delete(provider)
    const waiting = {
      operation: 'serviceDiscovery.provider',
      path: this.#pathOf(name),
      rules: providing,
    }
    try {
      await withLimits(this.#client, options, waiting, (signal) => orAborted(provider.ready, signal, waiting))
    } catch (error) {
      ignoreFailure(provider.close())
      throw error
    }
    return provider
  }

  /** Releases the registrations, except that permanent instances stay, and closes the providers. */
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

  async #children(path: string, options: CallOptions): Promise<readonly string[]> {
    return (await undefinedIfMissing(this.#client.getChildren(path, options)))?.children ?? []
  }

  async #read(path: string, options: CallOptions): Promise<Instance<T> | undefined> {
    const found = await undefinedIfMissing(this.#client.getData(path, options))
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
      checkArgument('serviceDiscovery', 'the name or id of a service', name, text)
      if (name === '' || name === '.' || name === '..' || name.includes('/')) {
        throw new UsageError(
          `Expected names and ids of services without slashes, got ${JSON.stringify(name)}`,
        )
      }
    }
    return childPath(this.path, names.join('/'))
  }
}

interface RegisteredOptions<T> {
  readonly onConflict: 'fail' | 'wait'
  readonly codec: Codec<Instance<T>>
  readonly onClose: () => void
}

const isEndOfLimits = (error: unknown): boolean =>
  error instanceof AbortedError ||
  error instanceof OperationTimeoutError ||
  error instanceof SessionExpiredError

class RegisteredInstance<T> implements ServiceRegistration<T> {
  instance: Instance<T>
  readonly #client: Client
  readonly #node: PersistentNode
  readonly #options: RegisteredOptions<T>
  #released: Promise<void> | undefined

  constructor(client: Client, path: string, instance: Instance<T>, options: RegisteredOptions<T>) {
    this.#client = withoutTimeout(client).unordered()
    this.#options = options
    this.instance = instance
    this.#node = new PersistentNode(client, path, options.codec.encode(instance), {
      mode: modes[instance.serviceType],
      onConflict: options.onConflict,
      leaveBehind: instance.serviceType === 'PERMANENT',
    })
  }

  get signal(): AbortSignal {
    return this.#node.signal
  }

  async ready(limits: WaitOptions): Promise<void> {
    const { path } = this.#node
    try {
      await waitForReady(this.#client, this.#node, limits, { operation: 'serviceDiscovery.register', path })
    } catch (error) {
      this.#options.onClose()
      if (error instanceof NodeConflictError) throw new InstanceIdConflictError(path, error.owner)
      // Its znode stays, and its create may be in flight or wait for a connection.
      if (this.instance.serviceType === 'PERMANENT' && isEndOfLimits(error)) {
        const message = `The call ended, and it is unknown whether ${path} was written`
        throw new AmbiguousResultError(message, { path, cause: error, value: this.instance })
      }
      throw error
    }
  }

  async update(changes: Partial<Omit<Instance<T>, 'name' | 'id' | 'serviceType'>>): Promise<void> {
    checkArgument('registration.update', 'changes', changes, object)
    const { name, id, serviceType } = this.instance
    const next = { ...this.instance, ...changes, name, id, serviceType }
    const data = this.#options.codec.encode(next)
    this.instance = next
    await this.#node.setData(data)
  }

  release(): Promise<void> {
    this.#released ??= this.#unregister()
    return this.#released
  }

  /** The persistent node is closed first, so that nothing creates the znode again. */
  async #unregister(): Promise<void> {
    await this.close()
    if (this.instance.serviceType !== 'PERMANENT' || isFinished(this.#client)) return
    const { path } = this.#node
    await retryInNewSession(this.#client, async () => {
      // That of another client, which has taken its place, is ephemeral.
      if ((await this.#client.exists(path))?.ephemeralOwner !== 0n) return
      await this.#client.delete(path, { guaranteed: true, missingOk: true })
    })
  }

  async close(): Promise<void> {
    await this.#node.close()
    this.#options.onClose()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }
}
