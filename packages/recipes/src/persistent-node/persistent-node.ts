import {
  AbortedError,
  BadVersionError,
  ConnectionLossError,
  MultiError,
  NodeExistsError,
  StateError,
  type ACL,
  type Bytes,
  type Client,
  type CreateMode,
  type Stat,
  SessionExpiredError,
} from '@zabra/client/core'
import { waitForConnection } from '../handles/own-node-watcher.ts'
import {
  isFinished,
  isNewSession,
  isAmbiguous,
  undefinedIfMissing,
  retryInNewSession,
} from '../support/retry.ts'
import { watchUntil } from '../support/watch.ts'
import { actionFor } from './decide.ts'

export interface PersistentNodeOptions {
  /** Default `ephemeral`. A sequential one keeps the name that it got first. */
  readonly mode?: 'ephemeral' | 'persistent' | 'ephemeralSequential' | 'persistentSequential'
  readonly acl?: readonly ACL[]
  /** Make missing parents, as containers unless told otherwise (default true). */
  readonly parents?: boolean | 'persistent'
  /** When somebody else has the znode: fail (default), or wait until it is gone. */
  readonly onConflict?: 'fail' | 'wait'
  /** Leave the znode when this is closed; a persistent one stays then for good. */
  readonly leaveBehind?: boolean
}

/** Somebody else owns the znode. */
export class NodeConflictError extends StateError {
  static override readonly tag: string = 'NodeConflictError'
  /** The session that owns it; 0n for none. */
  readonly owner: bigint

  constructor(path: string, owner: bigint) {
    const whose = owner === 0n ? 'nobody: it is not ephemeral' : `session 0x${owner.toString(16)}`
    super(`The znode ${path} exists already and belongs to ${whose}`, 'NODE_CONFLICT', { path })
    this.owner = owner
  }
}

/** Keeps a znode present, with the newest data, through lost sessions and deletions by others, until it is closed. */
export class PersistentNode implements AsyncDisposable {
  /** The path, once the znode is there. Rejects when it cannot be: no permission, no parent, somebody else's. */
  readonly ready: Promise<string>
  readonly #client: Client
  readonly #options: PersistentNodeOptions
  readonly #stop = new AbortController()
  readonly #earlierSessions = new Set<bigint>()
  readonly #done: Promise<void>
  #path: string
  #mode: CreateMode
  #hasName: boolean
  #data: Bytes
  #written: Bytes | undefined
  #waiting: { resolve(): void; reject(error: unknown): void }[] = []
  #wake = (): void => {}
  #settleReady: { resolve(path: string): void; reject(error: unknown): void } = {
    resolve: () => {},
    reject: () => {},
  }
  #failure: unknown
  #closing: Promise<void> | undefined

  constructor(client: Client, path: string, data: Bytes, options: PersistentNodeOptions = {}) {
    this.#client = client
    this.#path = path
    this.#data = data
    this.#options = options
    this.#mode = options.mode ?? 'ephemeral'
    this.#hasName = !this.#mode.endsWith('Sequential')
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }))
    // Nobody has to wait for it.
    this.ready.catch(() => {})
    this.#done = this.#run().catch((error: unknown) => {
      // Being stopped is no failure.
      if (!(error instanceof AbortedError && this.#stop.signal.aborted)) this.#fail(error)
    })
  }

  /** Where it is; the name of a sequential one is known once it is ready. */
  get path(): string {
    return this.#path
  }

  /** From now on it holds this. Resolves when it does on the servers; earlier data never comes back. */
  setData(data: Bytes): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    if (this.#stop.signal.aborted) return Promise.reject(this.#closedError())
    this.#data = data
    const written = new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }))
    this.#wake()
    return written
  }

  /** Ends it, and removes the znode unless it was asked to leave it. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#stop.abort()
    await this.#done
    this.#fail(this.#closedError())
    if (this.#options.leaveBehind || !this.#hasName || isFinished(this.#client)) return
    try {
      await retryInNewSession(this.#client, () => this.#remove())
    } catch (error) {
      if (!isFinished(this.#client)) throw error
    }
  }

  /** Only what is ours. */
  async #remove(): Promise<void> {
    const stat = await this.#readStat()
    if (stat === undefined || this.#actionFor(stat.ephemeralOwner, true) === 'conflict') return
    await this.#client.delete(this.#path, { guaranteed: true, missingOk: true })
  }

  /** Nobody calls this again, so it goes on however often connections break at it. */
  async #readStat(): Promise<Stat | undefined> {
    for (;;) {
      try {
        return await this.#client.exists(this.#path)
      } catch (error) {
        if (!(error instanceof ConnectionLossError)) throw error
        await waitForConnection(this.#client)
      }
    }
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const written = this.#data
      await retryInNewSession(this.#client, () => this.#ensure(written))
      this.#written = written
      if (this.#data === written) this.#resolveWrites()
      await this.#waitForChange()
    }
  }

  #resolveWrites(): void {
    this.#settleReady.resolve(this.#path)
    for (const waiter of this.#waiting.splice(0)) waiter.resolve()
  }

  /** Makes it as it should be. */
  async #ensure(data: Bytes): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        if (await this.#createOrRepair(data)) return
      } catch (error) {
        // The call may have been made between two sessions: the one that ended may have made the znode.
        if (error instanceof SessionExpiredError) this.#earlierSessions.add(error.sessionId)
        // Whatever came between, the next look tells.
        const passing =
          error instanceof BadVersionError ||
          error instanceof MultiError ||
          error instanceof ConnectionLossError ||
          isAmbiguous(error)
        if (!passing || isFinished(this.#client)) throw error
        if (isNewSession(this.#client, error)) throw error
        if (error instanceof ConnectionLossError) await waitForConnection(this.#client)
      }
    }
  }

  async #createOrRepair(data: Bytes): Promise<boolean> {
    const { acl, parents = true } = this.#options
    const options = { mode: this.#mode, parents, ...(acl && { acl }) }
    // Now, since the reply that tells of it may be lost together with the session.
    this.#rememberSession()
    try {
      const { path } = await this.#client.create(this.#path, data, options)
      this.#rememberSession()
      this.#path = path
      if (!this.#hasName) this.#mode = this.#mode === 'ephemeralSequential' ? 'ephemeral' : 'persistent'
      this.#hasName = true
      return true
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error
    }
    return this.#repair(data)
  }

  async #repair(data: Bytes): Promise<boolean> {
    const found = await undefinedIfMissing(this.#client.getData(this.#path))
    if (found === undefined) return false
    const { ephemeralOwner, version } = found.stat
    const same = found.data.length === data.length && found.data.every((byte, at) => byte === data[at])
    const what = this.#actionFor(ephemeralOwner, same)
    if (what === 'conflict') return this.#conflict(ephemeralOwner)
    if (what === 'write') {
      const writing = this.#client.setData(this.#path, data, { version, idempotent: true })
      // Somebody may have deleted it since the look.
      if ((await undefinedIfMissing(writing)) === undefined) return false
    }
    if (what === 'replace') await this.#replace(version, data)
    this.#rememberSession()
    return true
  }

  async #replace(version: number, data: Bytes): Promise<void> {
    const { acl } = this.#options
    await this.#client.multi([
      { op: 'delete', path: this.#path, version },
      { op: 'create', path: this.#path, data, mode: this.#mode, ...(acl && { acl }) },
    ])
  }

  #actionFor(owner: bigint, same: boolean): ReturnType<typeof actionFor> {
    const ephemeral = this.#mode.startsWith('ephemeral')
    return actionFor(
      { owner, hasData: same },
      { session: this.#client.session.id, earlier: this.#earlierSessions, ephemeral },
    )
  }

  #rememberSession(): void {
    const { id } = this.#client.session
    // Between two sessions there is none, and what no session owns is not ours.
    if (id !== 0n) this.#earlierSessions.add(id)
  }

  async #conflict(owner: bigint): Promise<boolean> {
    if (this.#options.onConflict !== 'wait') throw new NodeConflictError(this.#path, owner)
    const options = { signal: this.#stop.signal, operation: 'persistentNode' }
    await watchUntil(this.#client, options, async (reader) => {
      const found = await reader.data(this.#path)
      return (
        found === undefined || this.#actionFor(found.stat.ephemeralOwner, true) !== 'conflict' || undefined
      )
    })
    return false
  }

  /** Waits until the znode is gone or not ours, or is to hold something else. */
  async #waitForChange(): Promise<void> {
    const options = { signal: this.#stop.signal, operation: 'persistentNode' }
    const poked = (): Promise<void> => new Promise((resolve) => (this.#wake = resolve))
    await watchUntil(this.#client, options, async (reader) => {
      reader.recheckWhen(poked())
      if (this.#data !== this.#written) return true
      const found = await reader.data(this.#path)
      const wrong =
        found === undefined ||
        ['replace', 'conflict'].includes(this.#actionFor(found.stat.ephemeralOwner, true))
      return wrong || this.#data !== this.#written || undefined
    })
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    this.#settleReady.reject(error)
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error)
  }

  #closedError(): AbortedError {
    return new AbortedError(`The keeper of ${this.#path} is closed`, { path: this.#path })
  }
}
