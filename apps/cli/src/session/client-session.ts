import { validatePath, type ACL } from '@zabra/protocol'
import {
  ClosedError,
  type ACL as ClientAcl,
  type Client,
  type DeleteTreeOptions,
  type Visit,
  type WalkOptions,
  type WatchedEvent as ClientEvent,
} from '@zabra/client'
import { UsageError } from '../exit-codes.ts'
import type {
  CreateMode,
  CreateOptions,
  OneShotWatch,
  Stat,
  WatchedEvent,
  Watcher,
  WriteOp,
  ZooKeeper,
} from './zookeeper.ts'

/** Session of a client for the commands: every request has a timeout, and an expired session is not replaced. */
export class ClientSession implements ZooKeeper {
  readonly #client: Client
  readonly #timeout: number
  readonly #notice: (line: string) => void
  #server = ''

  /** `timeoutMs` is the timeout of a request; `notice` receives a line when the connection is lost and when it is back. */
  constructor(client: Client, timeoutMs: number, notice: (line: string) => void) {
    this.#client = client
    this.#timeout = timeoutMs
    this.#notice = notice
    void this.#trackServer()
  }

  get sessionId(): bigint {
    return this.#client.session.id
  }
  get server(): string {
    return this.#server
  }
  get closed(): Promise<Error | undefined> {
    return this.#client.closed
  }

  async create(path: string, data: Uint8Array | null, options: CreateOptions = {}): Promise<string> {
    const { acl, mode = 'persistent', ttl, parents } = options
    const created = await this.#client.create(checkPath(path, mode), data, {
      ...this.#callOptions,
      mode,
      ...(acl ? { acl: toClientAcl(acl) } : {}),
      ...(ttl === undefined ? {} : { ttl }),
      ...(parents ? { parents: 'persistent' } : {}),
      // A protected create would add a prefix to the name that the user typed.
      protected: false,
    })
    return created.path
  }

  async delete(path: string, version?: number): Promise<void> {
    await this.#client.delete(checkPath(path), { ...this.#callOptions, ...versionOption(version) })
  }

  async exists(path: string): Promise<Stat | undefined> {
    return this.#client.exists(checkPath(path), this.#callOptions)
  }

  async getData(path: string): Promise<{ data: Uint8Array | null; stat: Stat }> {
    const { data, isNull, stat } = await this.#client.getData(checkPath(path), this.#callOptions)
    return { data: isNull ? null : data, stat }
  }

  async setData(path: string, data: Uint8Array | null, version?: number): Promise<Stat> {
    return this.#client.setData(checkPath(path), data, { ...this.#callOptions, ...versionOption(version) })
  }

  async getChildren(path: string): Promise<{ children: string[]; stat: Stat }> {
    return this.#client.getChildren(checkPath(path), this.#callOptions)
  }

  async getACL(path: string): Promise<{ acl: ACL[]; stat: Stat }> {
    const { acl, stat } = await this.#client.getACL(checkPath(path), this.#callOptions)
    return { acl: acl.map(({ perms, scheme, id }) => ({ perms, id: { scheme, id } })), stat }
  }

  async setACL(path: string, acl: readonly ACL[], version?: number): Promise<Stat> {
    return this.#client.setACL(checkPath(path), toClientAcl(acl), {
      ...this.#callOptions,
      ...versionOption(version),
    })
  }

  async getAllChildrenNumber(path: string): Promise<number> {
    return this.#client.getAllChildrenNumber(checkPath(path), this.#callOptions)
  }

  async getEphemerals(prefix: string): Promise<string[]> {
    return this.#client.getEphemerals(checkPath(prefix), this.#callOptions)
  }

  async sync(path: string): Promise<void> {
    await this.#client.sync(checkPath(path), this.#callOptions)
  }

  visit(path: string, options: WalkOptions): AsyncIterable<Visit> {
    return this.#client.visit(checkPath(path), { requestTimeout: this.#timeout, ...options })
  }

  async deleteTree(path: string, options: DeleteTreeOptions): Promise<number> {
    return this.#client.deleteTree(checkPath(path), { requestTimeout: this.#timeout, ...options })
  }

  async multi(ops: readonly WriteOp[]): Promise<void> {
    const operations = ops.map((op) => {
      if (op.op !== 'create') return op
      const { acl, ...rest } = op
      return acl ? { ...rest, acl: toClientAcl(acl) } : rest
    })
    await this.#client.multi(operations, this.#callOptions)
  }

  async watchOnce(path: string, kind: 'data' | 'exists' | 'children'): Promise<OneShotWatch> {
    const watch = await this.#client.watchOnce(checkPath(path), kind, this.#callOptions)
    // Rejects when the watch is closed or its session ends: no event then.
    const fired = watch.fired.catch((): undefined => undefined)
    return { fired, close: () => watch.close() }
  }

  async watch(path: string, mode: 'persistent' | 'persistentRecursive'): Promise<Watcher> {
    const watcher = await this.#client.watch(checkPath(path), { ...this.#callOptions, mode })
    return {
      path,
      close: () => watcher.close(),
      [Symbol.asyncIterator]: () => eventsOf(watcher),
    }
  }

  async addAuth(scheme: string, auth: Uint8Array): Promise<void> {
    await this.#client.addAuth(scheme, auth, this.#callOptions)
  }

  async whoAmI(): Promise<{ scheme: string; user: string }[]> {
    return this.#client.whoAmI(this.#callOptions)
  }

  async getConfig(): Promise<{ data: Uint8Array | null; stat: Stat }> {
    return this.#client.getConfig(this.#callOptions)
  }

  async reconfig(change: {
    joining?: string
    leaving?: string
    members?: string
    version?: bigint
  }): Promise<{ data: Uint8Array | null; stat: Stat }> {
    // Retried, a refusal for want of a quorum would end as a timeout.
    return this.#client.reconfig(change, { ...this.#callOptions, retry: false })
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  get #callOptions(): { readonly timeout: number } {
    return { timeout: this.#timeout }
  }

  /** Tracks the connected server, and reports lost and restored connections. */
  async #trackServer(): Promise<void> {
    let isDisconnected = false
    for await (const { state, server } of this.#client.states()) {
      if (state === 'suspended') {
        isDisconnected = true
        this.#notice(`the connection to ${this.#server} was lost; reconnecting`)
      }
      if (!state.startsWith('connected')) continue
      if (server !== undefined) this.#server = server.replace(/^tcp:../, '')
      if (isDisconnected) this.#notice(`reconnected to ${this.#server}`)
      isDisconnected = false
    }
  }
}

/** Returns the events of a watcher, without failing when the session ends; `ZooKeeper.closed` then has the reason. */
async function* eventsOf(watcher: AsyncIterable<ClientEvent>): AsyncGenerator<WatchedEvent> {
  try {
    for await (const event of watcher) yield event
  } catch (error) {
    const { category } = error as { category?: unknown }
    if (!(error instanceof ClosedError) && category !== 'fatal') throw error
  }
}

function checkPath(path: string, mode: CreateMode = 'persistent'): string {
  const problem = validatePath(path, mode.includes('Sequential'))
  if (problem !== undefined) throw new UsageError(`${problem}. Paths look like /app/config.`)
  return path
}

const versionOption = (version: number | undefined): { version?: number } =>
  version === undefined ? {} : { version }

const toClientAcl = (acl: readonly ACL[]): ClientAcl[] =>
  acl.map(({ perms, id }) => ({ perms, scheme: id.scheme ?? '', id: id.id ?? '' }))
