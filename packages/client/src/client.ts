import { validatePath, WatchMode } from '@zabra/protocol'
import {
  validateCreate,
  validateData,
  validateAuth,
  EMPTY,
  toBytes,
  createFlags,
  isSequential,
  OPEN_ACL,
} from './call-options.ts'
import {
  checkCall,
  wrongAcl,
  wrongOperation,
  wrongOptions,
  wrongPathType,
  type OptionsKind,
} from './call-checks.ts'
import { aList, anObject, checkArgument, oneOf } from './checks.ts'
import { normalizeChroot, toServerPath } from './chroot.ts'
import { ClientScope } from './client-scope.ts'
import { ClosedError, NoNodeError, UsageError, type ZooKeeperError } from './errors.ts'
import { onAbort } from './on-abort.ts'
import { retryForever } from './retry.ts'
import * as ops from './operations.ts'
import { toMultiPart, toWriteResults, toReadResults } from './multi.ts'
import { multi, multiRead, syncCommitted, type MultiReply } from './multi-parts.ts'
import { deleteTree } from './delete-tree.ts'
import type { InternalClient } from './internal-client.ts'
import { createProtected } from './protected-create.ts'
import { parseReplacementServers } from './servers/connect-string.ts'
import type { Session } from './session/session.ts'
import type { Operation, PendingRequest } from './session/pending-request.ts'
import { checkSchemes } from './transport.ts'
import { createMissing, createWithParents, setDataOrCreate } from './tree.ts'
import type { RecursiveDeleteOptions, Visit, WalkOptions } from './tree-types.ts'
import { nodeHandle, typedClient } from './typed-client.ts'
import { withCallerLimits } from './caller-limits.ts'
import { walk } from './walk.ts'
import type { Client, ClientStats, NodeHandle, TypedClient } from './client-api.ts'
import type { ErrorPolicy } from './client-options.ts'
import type { Instrumentation } from './instrumentation.ts'
import type { Platform } from './platform.ts'
import type {
  ACL,
  Bytes,
  CallOptions,
  Codec,
  ConnectionState,
  CreateOptions,
  CreateResult,
  Data,
  DeleteOptions,
  MissingNode,
  OneShotWatches,
  Ordered,
  OwnBytes,
  ReadOp,
  ReadResult,
  ReconfigChange,
  SessionCredentials,
  SetDataOptions,
  Stat,
  StateChange,
  WatchKind,
  WatchOptions,
  Watcher,
  WriteOp,
  WriteResult,
  Zxid,
} from './types.ts'
import { OneShotListener } from './watches/one-shot-listener.ts'
import { PersistentWatcher } from './watches/persistent-watcher.ts'

const CONFIG_PATH = '/zookeeper/config'
const EVENT_BUFFER = 1024

/** Leaves data as they are; the client checks them. */
const rawCodec: Codec<unknown> = { encode: (data) => data as Bytes, decode: (data) => data }

const watchOperations = { data: ops.watchData, exists: ops.watchExists, children: ops.watchChildren }
const aKind = oneOf(...Object.keys(watchOperations))

/**
 * A client of one chroot over a session. The client that connect() returned owns the session; closing a client made
 * by chroot() leaves the session open.
 */
export class ZooKeeperClient implements InternalClient {
  readonly chrootPath: string
  readonly #session: Session
  readonly #ownsSession: boolean
  readonly #scope: ClientScope
  /** The timeout of calls that give none. */
  #timeoutMs: number | undefined
  /** The client that `unordered()` returns, once it was called; this client if it is unordered. */
  #unordered: ZooKeeperClient | undefined
  /** The client that `withoutTimeout()` returns, once it was called. */
  #untimed: ZooKeeperClient | undefined

  constructor(
    session: Session,
    chrootPath: string,
    ownsSession: boolean,
    scope = new ClientScope(session),
    isUnordered = false,
  ) {
    this.chrootPath = chrootPath
    this.#session = session
    this.#ownsSession = ownsSession
    this.#scope = scope
    this.#timeoutMs = session.options.timeoutMs
    if (isUnordered) this.#unordered = this
  }

  /** The session that all clients derived from one connect() share. */
  get sharedSession(): Session {
    return this.#session
  }

  get state(): ConnectionState {
    return this.#scope.closedError === undefined ? this.#session.state : 'closed'
  }

  get session(): SessionCredentials & { readonly timeoutMs: number; readonly generation: number } {
    return this.#session.credentials
  }

  get leaseHorizon(): number {
    return this.#session.lease.horizon
  }

  get server(): string | undefined {
    return this.#session.server
  }

  leaseRemaining(): number {
    return Math.max(0, this.leaseHorizon - this.platform.clock.monotonic())
  }

  stats(): ClientStats {
    return this.#session.stats
  }

  get lastContact(): number {
    return this.#session.lease.lastContact
  }

  get platform(): Platform {
    return this.#session.options.platform
  }

  get errorPolicy(): ErrorPolicy {
    return this.#session.options.errorPolicy
  }

  get instrumentation(): Instrumentation | undefined {
    return this.#session.options.instrumentation
  }

  get closed(): Promise<Error | undefined> {
    return this.#ownsSession ? this.#session.closed : this.#scope.closed
  }

  states(): AsyncIterableIterator<StateChange> {
    return this.#session.states.listen(this.#scope, this.#scope.closedError && this.#finalState)
  }

  chroot(path: string): Client {
    return this.#derive(this.chrootPath + normalizeChroot(path), new ClientScope(this.#session, this.#scope))
  }

  unordered(): ZooKeeperClient {
    this.#unordered ??= this.#view(true, this.#timeoutMs)
    return this.#unordered
  }

  withoutTimeout(): ZooKeeperClient {
    if (this.#timeoutMs === undefined) return this
    this.#untimed ??= this.#view(this.#unordered === this, undefined)
    return this.#untimed
  }

  /** Returns this client with other rules for its calls: closing it closes this one. */
  #view(isUnordered: boolean, timeoutMs: number | undefined): ZooKeeperClient {
    const view = new ZooKeeperClient(
      this.#session,
      this.chrootPath,
      this.#ownsSession,
      this.#scope,
      isUnordered,
    )
    view.#timeoutMs = timeoutMs
    return view
  }

  withCodec<T>(codec: Codec<T>): TypedClient<T> {
    return typedClient(this, codec)
  }

  node<T>(path: string, codec: Codec<T>): NodeHandle<T>
  node(path: string): NodeHandle<OwnBytes, Data>
  node(path: string, codec: unknown = rawCodec): unknown {
    const reason = wrongPathType(path) ?? validatePath(path)
    if (reason !== undefined) throw new UsageError(reason, { path, operation: 'node' })
    return nodeHandle(this, path, codec as Codec<unknown>)
  }

  create(path: string, options: CreateOptions = {}): Promise<CreateResult> {
    const wrong = this.#argumentsError('create', path, options)
    if (wrong !== undefined) return Promise.reject(wrong)
    const { data = EMPTY, mode = 'persistent', parents, protected: isProtected } = options
    const sequential = isSequential(mode)
    if (isProtected && !sequential && mode !== 'persistent' && mode !== 'ephemeral') {
      const message = `Expected protected with a sequential, persistent or ephemeral mode, got ${mode}`
      return this.#rejectUsage('create', path, message)
    }
    if (parents) return createWithParents(this, path, this.#withTimeout(options))
    if (isProtected ?? sequential) return createProtected(this, path, data, this.#withTimeout(options))
    return this.createOnce(path, data, options)
  }

  /** Returns a client for background work: without timeouts, it stays open when this one closes. */
  clone(): ZooKeeperClient {
    const client = this.#derive(this.chrootPath)
    client.#timeoutMs = undefined
    return client
  }

  /** Returns a client with the same session and no chroot. */
  withoutChroot(): ZooKeeperClient {
    return this.chrootPath === '' ? this : this.#derive('')
  }

  /** Returns a client with the same session and order that does not own the session. */
  #derive(chrootPath: string, scope?: ClientScope): ZooKeeperClient {
    const client = new ZooKeeperClient(this.#session, chrootPath, false, scope, this.#unordered === this)
    client.#timeoutMs = this.#timeoutMs
    return client
  }

  /** Sends a create without protection against lost replies. */
  createOnce(path: string, data: Data, options: CreateOptions, isProtected = false): Promise<CreateResult> {
    const { mode = 'persistent', acl = OPEN_ACL, ttlMs, idempotent = false } = options
    const flags = createFlags[mode]
    const wrong = validateCreate(path, mode, ttlMs) ?? validateData(data)
    if (wrong !== undefined) return this.#rejectUsage('create', path, wrong)
    const request = this.#request(ops.createOperationFor(mode), path, options, 'create', isSequential(mode))
    if (request instanceof Error) return Promise.reject(request)
    request.data = toBytes(data)
    request.intArgument = flags
    request.ttl = ttlMs ?? 0
    const params = {
      acl,
      isIdempotent: idempotent,
      isProtected,
      isEphemeral: mode === 'ephemeral',
      isSequential: isSequential(mode),
    }
    request.params = params satisfies ops.CreateParams
    return this.#session.dispatcher.submit(request)
  }

  delete(path: string, options: RecursiveDeleteOptions): Promise<number>
  delete(path: string, options?: DeleteOptions): Promise<void>
  async delete(path: string, options: DeleteOptions | RecursiveDeleteOptions = {}): Promise<number | void> {
    const isRecursive = (options as DeleteOptions | RecursiveDeleteOptions | null)?.recursive === true
    const wrong = this.#argumentsError(isRecursive ? 'deleteRecursive' : 'delete', path, options)
    if (wrong !== undefined) throw wrong
    try {
      if (options.recursive) return await deleteTree(this, path, options)
      if (options.guaranteed) await this.#deleteGuaranteed(path, options)
      else await this.#deleteOnce(path, options)
      return undefined
    } catch (error) {
      if (!(options.missingOk && error instanceof NoNodeError)) throw error
      return options.recursive ? 0 : undefined
    }
  }

  #deleteOnce(path: string, options: DeleteOptions): Promise<void> {
    const { version, idempotent } = options
    return this.#submit(ops.deleteNode, path, options, 'delete', version, idempotent)
  }

  /** Deletes in the background until it succeeds or the session ends, even after the caller has given up. */
  #deleteGuaranteed(path: string, options: DeleteOptions): Promise<void> {
    const background = this.clone()
    const { version, idempotent } = options
    const context = { path, operation: 'delete' }
    return withCallerLimits(
      this.platform.clock,
      () => retryForever(background, () => background.#deleteOnce(path, { version, idempotent })),
      context,
      this.#withTimeout(options),
    )
  }

  exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined> {
    return this.#submit(ops.exists, path, options)
  }

  getData(
    path: string,
    options?: CallOptions,
  ): Promise<{ data: OwnBytes; isNull: boolean; stat: Stat } & Ordered> {
    return this.#submit(ops.getData, path, options)
  }

  setData(path: string, data: Data, options?: SetDataOptions): Promise<Stat & Ordered> {
    const wrong = validateData(data)
    if (wrong !== undefined) return this.#rejectUsage('setData', path, wrong)
    const request = this.#request(ops.setData, path, options, 'setData')
    if (request instanceof Error) return Promise.reject(request)
    request.data = toBytes(data)
    request.intArgument = options?.version ?? -1
    request.params = options?.idempotent
    const done = this.#session.dispatcher.submit<Stat & Ordered>(request)
    return options?.createIfMissing
      ? setDataOrCreate(this, done, path, data, this.#withTimeout(options))
      : done
  }

  getChildren(path: string, options?: CallOptions): Promise<{ children: string[]; stat: Stat } & Ordered> {
    return this.#submit(ops.getChildren, path, options)
  }

  getACL(path: string, options?: CallOptions): Promise<{ acl: ACL[]; stat: Stat }> {
    return this.#submit(ops.getACL, path, options)
  }

  setACL(
    path: string,
    acl: readonly ACL[],
    options?: CallOptions & { version?: number | undefined },
  ): Promise<Stat & Ordered> {
    const wrong = wrongAcl(acl, 'setACL', path)
    if (wrong !== undefined) return Promise.reject(wrong)
    return this.#submit(ops.setACL, path, options, 'setACL', options?.version, { acl })
  }

  getAllChildrenNumber(path: string, options?: CallOptions): Promise<number> {
    return this.#submit(ops.getAllChildrenNumber, path, options)
  }

  getEphemerals(prefix = '/', options?: CallOptions): Promise<string[]> {
    return this.#submit(ops.getEphemerals, prefix, options)
  }

  sync(path: string, options?: CallOptions): Promise<void> {
    return this.#submit(ops.sync, path, options)
  }

  syncCommitted(options?: CallOptions): Promise<Zxid> {
    const parts = [toMultiPart({ op: 'check', path: '/' }, '')]
    return this.#submit(syncCommitted, '/', options, 'call', undefined, parts)
  }

  async multi<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }> {
    const reply = await this.#submitMulti(multi, operations, options)
    return toWriteResults(operations, reply, this.chrootPath) as { [K in keyof T]: WriteResult<T[K]> }
  }

  async multiRead<const T extends readonly ReadOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }> {
    const reply = await this.#submitMulti(multiRead, operations, options)
    return toReadResults(operations, reply, this.chrootPath) as {
      [K in keyof T]: ReadResult<T[K]> | ZooKeeperError
    }
  }

  async watchOnce<K extends WatchKind>(
    path: string,
    kind: K,
    options?: CallOptions,
  ): Promise<OneShotWatches[K]> {
    checkArgument('watchOnce', 'the kind of a watch', kind, aKind)
    const operation = watchOperations[kind]
    const request = this.#request(operation, path, options)
    if (request instanceof Error) throw request
    const watch = new OneShotListener(this.#session, kind, request.path, {
      chroot: this.chrootPath,
      owner: this.#scope,
    })
    request.watch = true
    request.params = watch
    // What the kind reads; the members of the watch are added below.
    const found = await this.#session.dispatcher.submit<OneShotWatches[K]>(request)
    const closed = this.#scope.closedError
    if (closed !== undefined) {
      await watch.close()
      throw closed
    }
    return {
      ...found,
      fired: watch.fired,
      close: () => watch.close(),
      [Symbol.asyncDispose]: () => watch.close(),
    }
  }

  async watch(path: string, options: WatchOptions = {}): Promise<Watcher> {
    const request = this.#request(ops.addWatch, path, options, 'watch')
    if (request instanceof Error) throw request
    const { mode = 'persistent', buffer = EVENT_BUFFER } = options
    const kind = mode === 'persistent' ? 'persistent' : 'recursive'
    request.intArgument = mode === 'persistent' ? WatchMode.PERSISTENT : WatchMode.PERSISTENT_RECURSIVE
    const at = { path, serverPath: request.path, chroot: this.chrootPath, owner: this.#scope }
    const watcher = new PersistentWatcher(this.#session, kind, at, buffer)
    request.params = watcher
    await this.#session.dispatcher.submit(request)
    const closed = this.#scope.closedError
    if (closed !== undefined) {
      await watcher.close()
      throw closed
    }
    return watcher
  }

  async addAuth(scheme: string, auth: Bytes | string, options: CallOptions = {}): Promise<void> {
    const closed = this.#scope.closedError
    if (closed !== undefined) throw closed
    validateAuth(scheme, auth)
    checkCall('call', options, 'addAuth')
    const authenticate = (): Promise<void> =>
      new Promise((resolve, reject) => {
        this.#session.addAuth({ scheme, auth }, (error) => (error === undefined ? resolve() : reject(error)))
      })
    await withCallerLimits(
      this.platform.clock,
      authenticate,
      { operation: 'addAuth' },
      this.#withTimeout(options),
    )
  }

  whoAmI(options?: CallOptions): Promise<{ scheme: string; id: string }[]> {
    return this.#submitWithoutPath(ops.whoAmI, options)
  }

  /** Reads the configuration at its path outside of every chroot. */
  getConfig(options?: CallOptions): Promise<{ data: OwnBytes; stat: Stat } & Ordered> {
    const request = this.#request(ops.getData, '/', options)
    if (request instanceof Error) return Promise.reject(request)
    request.path = CONFIG_PATH
    request.chroot = ''
    return this.#session.dispatcher.submit(request)
  }

  async reconfig(
    change: ReconfigChange,
    options?: CallOptions,
  ): Promise<{ data: OwnBytes; stat: Stat } & Ordered> {
    checkArgument('reconfig', 'a change', change, anObject)
    checkCall('reconfig', change, 'reconfig')
    const { joining = null, leaving = null, members = null, version = -1n } = change
    const request = this.#request(ops.reconfig, '/', options)
    if (request instanceof Error) throw request
    request.path = ''
    request.params = { joining, leaving, members, version } satisfies ops.ReconfigParams
    return this.#session.dispatcher.submit(request)
  }

  async createMissing(nodes: readonly (string | MissingNode)[], options: CallOptions = {}): Promise<void> {
    const closed = this.#scope.closedError
    if (closed !== undefined) throw closed
    checkCall('call', options, 'createMissing')
    checkArgument('createMissing', 'nodes', nodes, aList)
    return createMissing(this, nodes, this.#withTimeout(options))
  }

  walk(path: string, options: WalkOptions & { readonly stats: true }): AsyncIterableIterator<Visit>
  walk(
    path: string,
    options?: WalkOptions & { readonly stats?: false | undefined },
  ): AsyncIterableIterator<string>
  walk(path: string, options: WalkOptions = {}): AsyncIterableIterator<Visit | string> {
    return walk(this, path, options)
  }

  async updateServerList(servers: string | readonly string[]): Promise<boolean> {
    const closed = this.#scope.closedError ?? this.#session.callRejection
    if (closed !== undefined) throw closed
    const list = parseReplacementServers(servers, this.#session.options.chroot)
    checkSchemes(list, this.#session.options.transport.schemes)
    return this.#session.updateServers(list)
  }

  async close(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    checkCall('signal', options, 'close')
    const { signal } = options
    if (this.#ownsSession) {
      const abort = (): void => this.#session.finish(new ClosedError('The client is closed', 'CLOSED'))
      const done = this.#session.close()
      const stopListening = onAbort(signal, abort)
      await done
      stopListening()
      return
    }
    const isWithinThis = (owner: object): boolean =>
      owner instanceof ClientScope && owner.isWithin(this.#scope)
    this.#scope.close(() => this.#session.states.endFor(isWithinThis, this.#finalState))
    await Promise.all(this.#session.watches.ownedBy(isWithinThis).map((watch) => watch.close()))
  }

  /** The state change that listeners of this client receive last. */
  get #finalState(): Omit<StateChange, 'previous'> {
    const session = this.#session
    const cause = this.#scope.closedError
    return {
      state: 'closed',
      sessionGeneration: session.generation,
      order: session.nextOrder(),
      ...(cause && { cause }),
    }
  }

  detach(): Promise<SessionCredentials> {
    const closed = this.#session.callRejection ?? this.#scope.closedError
    if (closed !== undefined) return Promise.reject(closed)
    if (!this.#ownsSession) {
      const message = 'Expected detach of the client that connect() returned, got one made by chroot()'
      return Promise.reject(new UsageError(message, { operation: 'detach' }))
    }
    const { id, password } = this.#session.credentials
    this.#session.finish(new ClosedError('The client is closed: its session was detached', 'CLOSED'))
    return Promise.resolve({ id, password })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Returns a request for a path of this client, or the error that the call rejects with. */
  #request(
    operation: Operation,
    path: string,
    options: CallOptions | undefined,
    kind: OptionsKind = 'call',
    sequential = false,
  ): PendingRequest | ZooKeeperError {
    const closed = this.#scope.closedError
    if (closed !== undefined) return closed
    const reason = wrongPathType(path) ?? validatePath(path, sequential)
    if (reason !== undefined) return new UsageError(reason, { path, operation: operation.name })
    const wrong = wrongOptions(kind, options, operation.name, path)
    if (wrong !== undefined) return wrong
    const request = this.#session.dispatcher.acquire(operation)
    request.path = toServerPath(this.chrootPath, path)
    request.chroot = this.chrootPath
    request.options = this.#timeoutMs === undefined ? options : this.#withTimeout(options ?? {})
    request.isUnordered = this.#unordered === this
    return request
  }

  /** Returns the options of a call with the timeout of this client, unless they have one. */
  #withTimeout<T extends CallOptions>(options: T): T {
    const timeoutMs = this.#timeoutMs
    return timeoutMs === undefined || options.timeoutMs !== undefined ? options : { ...options, timeoutMs }
  }

  #submit<T>(
    operation: Operation,
    path: string,
    options: CallOptions | undefined,
    kind?: OptionsKind,
    version = -1,
    params?: unknown,
  ): Promise<T> {
    const request = this.#request(operation, path, options, kind)
    if (request instanceof Error) return Promise.reject(request)
    request.intArgument = version
    request.params = params
    return this.#session.dispatcher.submit(request)
  }

  async #submitMulti(
    operation: Operation,
    operations: readonly (WriteOp | ReadOp)[],
    options: CallOptions | undefined,
  ): Promise<MultiReply> {
    const request = this.#request(operation, '/', options)
    if (request instanceof Error) throw request
    checkArgument(operation.name, 'operations', operations, aList)
    request.path = ''
    request.params = operations.map((part, index) => {
      const wrong = wrongOperation(operation.name, part, index)
      if (wrong !== undefined) throw wrong
      return toMultiPart(part, this.chrootPath)
    })
    return this.#session.dispatcher.submit(request)
  }

  #submitWithoutPath<T>(operation: Operation, options: CallOptions | undefined): Promise<T> {
    const request = this.#request(operation, '/', options)
    if (request instanceof Error) return Promise.reject(request)
    request.path = ''
    return this.#session.dispatcher.submit(request)
  }

  /** Returns the error for a path that is no string, or for wrong options; undefined for valid ones. */
  #argumentsError(kind: OptionsKind, path: string, options: object | undefined): UsageError | undefined {
    const reason = wrongPathType(path)
    if (reason !== undefined) return new UsageError(reason, { operation: kind })
    return wrongOptions(kind, options, kind, path)
  }

  #rejectUsage(operation: string, path: string, reason: string): Promise<never> {
    return Promise.reject(new UsageError(reason, { path, operation }))
  }
}
