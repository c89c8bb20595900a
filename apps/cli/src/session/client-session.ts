import { validatePath, type ACL } from '@zabra/protocol'
import {
  ClosedError,
  type ACL as ClientAcl,
  type Client,
  type CreateMode,
  type CreateOptions,
  type NodeEvent,
  type ReconfigChange,
  type ModeOptions,
  type RecursiveDeleteOptions,
  type Stat,
  type Visit,
  type WalkOptions,
  type WatchedEvent,
  type WriteOp,
} from '@zabra/client'
import { UsageError } from '../exit-codes.ts'

/**
 * Session of a client for the commands: every request has a timeout, and an expired session is not replaced. `toExit` maps the
 * errors of every call to an exit code.
 */
export class ClientSession {
  readonly #client: Client
  readonly #call: { readonly timeoutMs: number }
  readonly #notice: (line: string) => void
  #server = ''

  /** `timeoutMs` is the timeout of a request; `notice` receives a line when the connection is lost and when it is back. */
  constructor(client: Client, timeoutMs: number, notice: (line: string) => void) {
    this.#client = client
    this.#call = { timeoutMs }
    this.#notice = notice
    void this.#trackServer()
  }

  /** The client, for recipes. */
  get client(): Client {
    return this.#client
  }
  /** Milliseconds between the loss of a lock and the moment when another client can hold it. */
  get graceMs(): number {
    return Math.floor(this.#client.session.timeoutMs / 3)
  }
  get sessionId(): bigint {
    return this.#client.session.id
  }
  /** The connected server, as `host:port`. */
  get server(): string {
    return this.#server
  }
  /** Resolves when the session ends, to the error that ended it or undefined; never rejects. */
  get closed(): Promise<Error | undefined> {
    return this.#client.closed
  }

  /** Creates a node, and missing parents with the same access list. Resolves to its path. */
  async create(
    path: string,
    data: Uint8Array | null,
    options: Pick<CreateOptions, 'mode' | 'ttlMs'> & { acl?: readonly ACL[]; parents?: boolean } = {},
  ): Promise<string> {
    const { acl, mode = 'persistent', ttlMs, parents } = options
    const created = await this.#client.create(checkPath(path, mode), {
      data,
      ...this.#call,
      // The client rejects a time that its mode does not take.
      ...({ mode, ttlMs } as ModeOptions),
      ...(acl ? { acl: toClientAcl(acl) } : {}),
      ...(parents ? { parents: 'persistent' } : {}),
      // A protected create would add a prefix to the name that the user typed.
      protected: false,
    })
    return created.path
  }

  async delete(path: string, version?: number): Promise<void> {
    await this.#client.delete(checkPath(path), { ...this.#call, ...versionOption(version) })
  }

  async exists(path: string): Promise<Stat | undefined> {
    return this.#client.exists(checkPath(path), this.#call)
  }

  async getData(path: string): Promise<{ data: Uint8Array | null; stat: Stat }> {
    const { data, isNull, stat } = await this.#client.getData(checkPath(path), this.#call)
    return { data: isNull ? null : data, stat }
  }

  async setData(path: string, data: Uint8Array | null, version?: number): Promise<Stat> {
    return this.#client.setData(checkPath(path), data, { ...this.#call, ...versionOption(version) })
  }

  async getChildren(path: string): Promise<{ children: string[]; stat: Stat }> {
    return this.#client.getChildren(checkPath(path), this.#call)
  }

  async getACL(path: string): Promise<{ acl: ACL[]; stat: Stat }> {
    const { acl, stat } = await this.#client.getACL(checkPath(path), this.#call)
    return { acl: acl.map(({ perms, scheme, id }) => ({ perms, id: { scheme, id } })), stat }
  }

  async setACL(path: string, acl: readonly ACL[], version?: number): Promise<Stat> {
    return this.#client.setACL(checkPath(path), toClientAcl(acl), {
      ...this.#call,
      ...versionOption(version),
    })
  }

  async getAllChildrenNumber(path: string): Promise<number> {
    return this.#client.getAllChildrenNumber(checkPath(path), this.#call)
  }

  async getEphemerals(prefix: string): Promise<string[]> {
    return this.#client.getEphemerals(checkPath(prefix), this.#call)
  }

  async sync(path: string): Promise<void> {
    await this.#client.sync(checkPath(path), this.#call)
  }

  visit(path: string, options: Omit<WalkOptions, 'stats'>): AsyncIterable<Visit> {
    return this.#client.walk(checkPath(path), {
      stats: true,
      requestTimeoutMs: this.#call.timeoutMs,
      ...options,
    })
  }

  async deleteTree(path: string, options: Omit<RecursiveDeleteOptions, 'recursive'>): Promise<number> {
    return this.#client.delete(checkPath(path), {
      recursive: true,
      requestTimeoutMs: this.#call.timeoutMs,
      ...options,
    })
  }

  async multi(operations: readonly WriteOp[]): Promise<void> {
    await this.#client.multi(operations, this.#call)
  }

  /** Sets a watch for one event. `fired` resolves to undefined when the watch is closed or its session ends. */
  async watchOnce(
    path: string,
    kind: 'data' | 'exists' | 'children',
  ): Promise<{ fired: Promise<NodeEvent | undefined>; close(): Promise<void> }> {
    const watch = await this.#client.watchOnce(checkPath(path), kind, this.#call)
    return { fired: watch.fired.catch((): undefined => undefined), close: () => watch.close() }
  }

  async watch(
    path: string,
    mode: 'persistent' | 'persistentRecursive',
  ): Promise<{ events: AsyncIterable<WatchedEvent>; close(): Promise<void> }> {
    const watcher = await this.#client.watch(checkPath(path), { ...this.#call, mode })
    return { events: eventsOf(watcher), close: () => watcher.close() }
  }

  async addAuth(scheme: string, auth: Uint8Array): Promise<void> {
    await this.#client.addAuth(scheme, auth, this.#call)
  }

  async whoAmI(): Promise<{ scheme: string; user: string }[]> {
    const identities = await this.#client.whoAmI(this.#call)
    return identities.map(({ scheme, id }) => ({ scheme, user: id }))
  }

  async getConfig(): Promise<{ data: Uint8Array; stat: Stat }> {
    return this.#client.getConfig(this.#call)
  }

  async reconfig(change: ReconfigChange): Promise<{ data: Uint8Array; stat: Stat }> {
    // Retried, a refusal for want of a quorum would end as a timeout.
    return this.#client.reconfig(change, { ...this.#call, retry: false })
  }

  /** Closes the session; the server deletes its ephemeral nodes at once. */
  close(): Promise<void> {
    return this.#client.close()
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

/** Returns the events of a watcher, without failing when the session ends; `closed` then has the reason. */
async function* eventsOf(watcher: AsyncIterable<WatchedEvent>): AsyncGenerator<WatchedEvent> {
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

export const toClientAcl = (acl: readonly ACL[]): ClientAcl[] =>
  acl.map(({ perms, id }) => ({ perms, scheme: id.scheme ?? '', id: id.id ?? '' }))
