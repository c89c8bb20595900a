import {
  AbortedError,
  BadVersionError,
  ConnectionLossError,
  MultiError,
  NodeExistsError,
  ZooKeeperError,
  type ACL,
  type Bytes,
  type CallOptions,
  type Client,
  type Data,
  type Stat,
  SessionExpiredError,
} from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { waitForConnection } from '../handles/own-node-watcher.ts'
import {
  ignoreFailure,
  isFinished,
  isNewSession,
  isAmbiguous,
  pauses,
  undefinedIfMissing,
  retryInNewSession,
} from '../support/retry.ts'
import type { Explanation } from '../handles/lock-timeout.ts'
import type { WaitOptions } from '../handles/types.ts'
import { orAborted, withLimits, type WaitContext } from '../support/limits.ts'
import { report } from '../support/report.ts'
import { toBytes } from '../support/to-bytes.ts'
import { watchUntil } from '../support/watch.ts'
import { actionFor } from './decide.ts'
import {
  acl,
  checkArgument,
  checkRecipe,
  data as aData,
  oneOf,
  trueOrFalse,
  type Rules,
} from '../support/checks.ts'

export interface PersistentNodeOptions {
  /** Default `ephemeral`. A sequential node keeps the name that it got first. */
  readonly mode?: 'ephemeral' | 'persistent' | 'ephemeralSequential' | 'persistentSequential' | undefined
  readonly acl?: readonly ACL[] | undefined
  /** Create missing parents, as containers unless `persistent` (default true). */
  readonly parents?: boolean | 'persistent' | undefined
  /** When another client has the znode: fail (default), or wait until it is gone. */
  readonly onConflict?: 'fail' | 'wait' | undefined
  /** Keep the znode on close; a persistent one then stays for good. */
  readonly leaveBehind?: boolean | undefined
}

const rules: Rules<PersistentNodeOptions> = {
  mode: oneOf('ephemeral', 'persistent', 'ephemeralSequential', 'persistentSequential'),
  acl,
  parents: oneOf(true, false, 'persistent'),
  onConflict: oneOf('fail', 'wait'),
  leaveBehind: trueOrFalse,
}

/** The znode belongs to another client. */
export class NodeConflictError extends ZooKeeperError {
  static override readonly tag: string = 'NodeConflictError'
  /** Id of the session that owns it; 0n for none. */
  readonly owner: bigint

  constructor(path: string, owner: bigint) {
    const whose = owner === 0n ? 'no session: it is not ephemeral' : `session 0x${owner.toString(16)}`
    super(`The znode ${path} already exists and belongs to ${whose}`, 'NODE_CONFLICT', { path })
    this.owner = owner
  }
}

/**
 * Waits within the limits of the caller until a node is ready. Closes the node on failure: at once where the caller has
 * given up, since a connection that is lost must not hold it.
 */
export async function waitForReady(
  client: Client,
  node: PersistentNode,
  options: WaitOptions,
  context: WaitContext,
): Promise<void> {
  const explain = async (call: CallOptions): Promise<Explanation | undefined> => {
    const owner = (await client.exists(context.path, call))?.ephemeralOwner
    return owner === undefined || owner === 0n || owner === client.session.id
      ? undefined
      : { text: `the znode belongs to session 0x${owner.toString(16)}` }
  }
  let isGivenUp = false
  try {
    await withLimits(client, options, { explain, ...context }, async (signal) => {
      try {
        await orAborted(node.ready, signal, context)
      } finally {
        isGivenUp = signal?.aborted ?? false
      }
    })
  } catch (error) {
    if (isGivenUp) ignoreFailure(node.close())
    else await node.close()
    throw error
  }
}

/**
 * Keeps a znode present, created with the newest data, across session expiry and deletion by other clients, until it is
 * closed. What another client writes over it stays until `setData`.
 */
export class PersistentNode implements AsyncDisposable {
  /**
   * Resolves with the path once the znode exists. Rejects when it cannot be created: no permission, no parent, a quota, or
   * a conflict.
   */
  readonly ready: Promise<string>
  readonly #client: Client
  readonly #options: PersistentNodeOptions
  readonly #stop = new AbortController()
  readonly #earlierSessions = new Set<bigint>()
  readonly #done: Promise<void>
  #path: string
  #mode: NonNullable<PersistentNodeOptions['mode']>
  #hasName: boolean
  #data: Bytes
  #written: Bytes | undefined
  #waiting: { resolve(): void; reject(error: unknown): void }[] = []
  #wake = (): void => {}
  #settleReady: { resolve(path: string): void; reject(error: unknown): void } = {
    resolve: () => {},
    reject: () => {},
  }
  readonly #ended = new AbortController()
  #closing: Promise<void> | undefined

  constructor(client: Client, path: string, data: Data, options: PersistentNodeOptions = {}) {
    checkRecipe('PersistentNode', client, path, options, rules)
    checkArgument('PersistentNode', 'data', data, aData)
    this.#client = withoutTimeout(client).unordered()
    this.#path = path
    this.#data = toBytes(data)
    this.#options = options
    this.#mode = options.mode ?? 'ephemeral'
    this.#hasName = !this.#mode.endsWith('Sequential')
    this.ready = new Promise((resolve, reject) => (this.#settleReady = { resolve, reject }))
    // The caller may ignore it.
    this.ready.catch(() => {})
    this.#done = this.#run().catch((error: unknown) => {
      // A close is no failure.
      if (!(error instanceof AbortedError && this.#stop.signal.aborted)) this.#fail(error)
    })
  }

  /**
   * Aborts when the znode is no longer kept: with an `AbortedError` by a close, else with the error for which it could not be
   * created, created again or written.
   */
  get signal(): AbortSignal {
    return this.#ended.signal
  }

  /** Path of the znode; that of a sequential node is known once it is ready. */
  get path(): string {
    return this.#path
  }

  /** Replaces the data. Resolves when the servers have it; older data is never written again. */
  async setData(data: Data): Promise<void> {
    if (this.signal.aborted) throw this.signal.reason
    checkArgument('setData', 'data', data, aData)
    this.#data = toBytes(data)
    const written = new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }))
    this.#wake()
    return written
  }

  /** Stops maintaining the znode, and deletes it unless `leaveBehind` is set. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    this.#stop.abort()
    this.#ended.abort(this.#closedError())
    await this.#done
    this.#fail(this.signal.reason)
    if (this.#options.leaveBehind || !this.#hasName || isFinished(this.#client)) return
    try {
      await retryInNewSession(this.#client, () => this.#remove())
    } catch (error) {
      if (!isFinished(this.#client)) throw error
    }
  }

  /** Deletes the znode only if it belongs to this client. */
  async #remove(): Promise<void> {
    const stat = await this.#readStat()
    if (stat === undefined || this.#actionFor(stat.ephemeralOwner, true) === 'conflict') return
    await this.#client.delete(this.#path, { guaranteed: true, missingOk: true })
  }

  /** No caller retries this, so it retries every lost connection itself. */
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

  /** Creates or repairs the znode. */
  async #ensure(data: Bytes): Promise<void> {
    const pause = pauses(this.#client, this.#stop.signal)
    while (!this.#stop.signal.aborted) {
      try {
        if (await this.#createOrRepair(data)) return
      } catch (error) {
        // The session that expired during the call may have created the znode.
        if (error instanceof SessionExpiredError) this.#earlierSessions.add(error.sessionId)
        // A race or a lost reply: the next read decides.
        const isTransient =
          error instanceof BadVersionError ||
          error instanceof MultiError ||
          error instanceof ConnectionLossError ||
          isAmbiguous(error)
        if (!isTransient || isFinished(this.#client)) throw error
        if (isNewSession(this.#client, error)) throw error
        await pause()
        if (error instanceof ConnectionLossError) await waitForConnection(this.#client)
      }
    }
  }

  async #createOrRepair(data: Bytes): Promise<boolean> {
    const { acl, parents = true } = this.#options
    const options = { mode: this.#mode, parents, ...(acl && { acl }) }
    // Before the call, since its reply may be lost together with the session.
    this.#rememberSession()
    try {
      const { path } = await this.#client.create(this.#path, { ...options, data })
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
    const hasData = found.data.length === data.length && found.data.every((byte, at) => byte === data[at])
    const action = this.#actionFor(ephemeralOwner, hasData)
    if (action === 'conflict') return this.#conflict(ephemeralOwner)
    if (action === 'write') {
      const writing = this.#client.setData(this.#path, data, { version, idempotent: true })
      // Another client may have deleted the znode since the read.
      if ((await undefinedIfMissing(writing)) === undefined) return false
    }
    if (action === 'replace') await this.#replace(version, data)
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

  #actionFor(owner: bigint, hasData: boolean): ReturnType<typeof actionFor> {
    const ephemeral = this.#mode.startsWith('ephemeral')
    return actionFor(
      { owner, hasData },
      { session: this.#client.session.id, earlier: this.#earlierSessions, ephemeral },
    )
  }

  #rememberSession(): void {
    const { id } = this.#client.session
    // Between two sessions the id is 0, and a znode without owner is not this client's.
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

  /** Waits until the znode is gone, belongs to another client, or must hold other data. */
  async #waitForChange(): Promise<void> {
    const options = { signal: this.#stop.signal, operation: 'persistentNode' }
    const woken = (): Promise<void> => new Promise((resolve) => (this.#wake = resolve))
    await watchUntil(this.#client, options, async (reader) => {
      reader.recheckWhen(woken())
      if (this.#data !== this.#written) return true
      const found = await reader.data(this.#path)
      const isOutdated =
        found === undefined ||
        ['replace', 'conflict'].includes(this.#actionFor(found.stat.ephemeralOwner, true))
      return isOutdated || this.#data !== this.#written || undefined
    })
  }

  #fail(error: unknown): void {
    if (!this.signal.aborted) {
      this.#ended.abort(error)
      report(this.#client, { recipe: 'persistent node', path: this.#path, phase: 'lost' })
    }
    this.#settleReady.reject(error)
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error)
  }

  #closedError(): AbortedError {
    return new AbortedError(`The persistent node ${this.#path} is closed`, { path: this.#path })
  }
}
