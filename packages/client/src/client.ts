import { OpCode, validatePath, WatchMode, type MultiOperation } from '@zabra/protocol'
import {
  validateCreate,
  validateData,
  validateAuth,
  EMPTY,
  createFlags,
  isSequential,
  OPEN_ACL,
} from './call-options.ts'
import { normalizeChroot, toServerPath } from './chroot.ts'
import { ClosedError, NoNodeError, UsageError, type ZooKeeperError } from './errors.ts'
import { retryForever } from './retry.ts'
import * as kinds from './operations.ts'
import { toMultiOperation, toWriteResults, toReadResults } from './multi.ts'
import { deleteTree } from './delete-tree.ts'
import { createProtected } from './protected-create.ts'
import { parseReplacementServers } from './servers/connect-string.ts'
import type { Session } from './session/session.ts'
import type { Operation, PendingRequest } from './session/pending-request.ts'
import { checkSchemes } from './transport.ts'
import { createWithParents, mkdirp, setDataOrCreate } from './tree.ts'
import type { DeleteTreeOptions, Visit, WalkOptions } from './tree-types.ts'
import { typedClient } from './typed-client.ts'
import { withCallerLimits } from './caller-limits.ts'
import { visit, walk } from './walk.ts'
import type {
  ACL,
  Bytes,
  CallOptions,
  Client,
  Platform,
  Codec,
  ConnectionState,
  CreateOptions,
  CreateResult,
  DeleteOptions,
  ErrorPolicy,
  Instrumentation,
  MkdirpOptions,
  OneShotWatch,
  Ordered,
  ReadOp,
  ReadResult,
  ReconfigChange,
  SessionCredentials,
  SetDataOptions,
  Stat,
  StateChange,
  TypedClient,
  WatchOptions,
  Watcher,
  WriteOp,
  WriteResult,
} from './types.ts'
import { OneShotListener } from './watches/one-shot-listener.ts'
import { PersistentWatcher } from './watches/persistent-watcher.ts'

const CONFIG_PATH = '/zookeeper/config'
const EVENT_BUFFER = 1024

/** One root over a session. The first view owns the session; closing others leaves it. */
export class ZooKeeperClient implements Client {
  readonly chrootPath: string
  readonly #session: Session
  readonly #ownsSession: boolean
  /** The view that it was made of, and with which it closes. */
  readonly #parent: ZooKeeperClient | undefined
  #ownClosedError: ClosedError | undefined
  /** For a view that is not the client itself, made when somebody asks for it. */
  #closedPromise: Promise<Error | undefined> | undefined
  #resolveClosed: (() => void) | undefined

  constructor(session: Session, root: string, owner: boolean, above?: ZooKeeperClient) {
    this.chrootPath = root
    this.#session = session
    this.#ownsSession = owner
    this.#parent = above
  }

  /** The machine that all views of one client share. */
  get sharedSession(): Session {
    return this.#session
  }

  get state(): ConnectionState {
    return this.#closedError() === undefined ? this.#session.state : 'closed'
  }

  get session(): SessionCredentials & { readonly timeout: number; readonly epoch: number } {
    return this.#session.credentials
  }

  get leaseHorizon(): number {
    return this.#session.lease.horizon
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
    if (this.#ownsSession) return this.#session.closed
    this.#closedPromise ??= new Promise((resolve) => {
      if (this.#closedError() !== undefined) resolve(undefined)
      this.#resolveClosed = () => resolve(undefined)
      void (this.#parent?.closed ?? this.#session.closed).then(resolve)
    })
    return this.#closedPromise
  }

  states(): AsyncIterableIterator<StateChange> {
    return this.#session.states.listen(this, this.#closedError() && this.#finalState)
  }

  chroot(path: string): Client {
    return new ZooKeeperClient(this.#session, this.chrootPath + normalizeChroot(path), false, this)
  }

  withCodec<T>(codec: Codec<T>): TypedClient<T> {
    return typedClient(this, codec)
  }

  create(path: string, data: Bytes | null = EMPTY, options: CreateOptions = {}): Promise<CreateResult> {
    const { mode = 'persistent', parents, protected: guarded } = options
    const sequential = isSequential(mode)
    if (guarded && !sequential && mode !== 'persistent' && mode !== 'ephemeral') {
      const wrong = `Expected protected with a sequential, persistent or ephemeral mode, got ${mode}`
      return this.#rejectUsage('create', path, wrong)
    }
    if (parents) return createWithParents(this, path, data, options)
    if (guarded ?? sequential) return createProtected(this, path, data, options)
    return this.createOnce(path, data, options)
  }

  /** The same session and root, for what goes on when this view is closed. */
  clone(): ZooKeeperClient {
    return new ZooKeeperClient(this.#session, this.chrootPath, false)
  }

  /** The same session without any root. */
  withoutChroot(): ZooKeeperClient {
    return this.chrootPath === '' ? this : new ZooKeeperClient(this.#session, '', false)
  }

  /** A create as it is, without a guard against lost replies. */
  createOnce(
    path: string,
    data: Bytes | null,
    options: CreateOptions,
    guarded = false,
  ): Promise<CreateResult> {
    const { mode = 'persistent', acl = OPEN_ACL, ttl, idempotent = false } = options
    const flags = createFlags[mode]
    const wrong = validateCreate(path, mode, flags, ttl) ?? validateData(data)
    if (wrong !== undefined) return this.#rejectUsage('create', path, wrong)
    const slot = this.#request(kinds.createOperationFor(mode), path, options, isSequential(mode))
    if (slot instanceof Error) return Promise.reject(slot)
    slot.data = data
    slot.intArgument = flags
    slot.ttl = ttl ?? 0
    const extra = {
      acl,
      isIdempotent: idempotent,
      isProtected: guarded,
      isEphemeral: mode === 'ephemeral',
      isSequential: isSequential(mode),
    }
    slot.params = extra satisfies kinds.CreateParams
    return this.#session.dispatcher.submit(slot)
  }

  async delete(path: string, options: DeleteOptions = {}): Promise<void> {
    const { recursive = false, missingOk = false, guaranteed = false, version = -1 } = options
    if (recursive && version !== -1)
      return this.#rejectUsage('delete', path, 'Expected delete with a version or recursive, got both')
    try {
      if (recursive) await deleteTree(this, path, options)
      else if (guaranteed) await this.#deleteGuaranteed(path, options)
      else await this.#deleteOnce(path, options)
    } catch (error) {
      if (!(missingOk && error instanceof NoNodeError)) throw error
    }
  }

  #deleteOnce(path: string, options: DeleteOptions): Promise<void> {
    const slot = this.#request(kinds.deleteNode, path, options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.intArgument = options.version ?? -1
    slot.params = options.idempotent
    return this.#session.dispatcher.submit(slot)
  }

  /** Goes on in the background when its caller has gone, until it is done or its session is over. */
  #deleteGuaranteed(path: string, options: DeleteOptions): Promise<void> {
    const twin = this.clone()
    const { version, idempotent } = options
    const call = {
      ...(version === undefined ? {} : { version }),
      ...(idempotent === undefined ? {} : { idempotent }),
    }
    const facts = { path, operation: 'delete' }
    return withCallerLimits(
      this.platform.clock,
      () => retryForever(twin, () => twin.#deleteOnce(path, call)),
      facts,
      options,
    )
  }

  exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined> {
    return this.#submitForPath(kinds.exists, path, options)
  }

  getData(
    path: string,
    options?: CallOptions,
  ): Promise<{ data: Bytes; isNull: boolean; stat: Stat } & Ordered> {
    return this.#submitForPath(kinds.getData, path, options)
  }

  setData(path: string, data: Bytes | null, options?: SetDataOptions): Promise<Stat & Ordered> {
    const wrong = validateData(data)
    if (wrong !== undefined) return this.#rejectUsage('setData', path, wrong)
    const slot = this.#request(kinds.setData, path, options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.data = data
    slot.intArgument = options?.version ?? -1
    slot.params = options?.idempotent
    const done = this.#session.dispatcher.submit<Stat & Ordered>(slot)
    return options?.createIfMissing ? setDataOrCreate(this, done, path, data, options) : done
  }

  getChildren(path: string, options?: CallOptions): Promise<{ children: string[]; stat: Stat } & Ordered> {
    return this.#submitForPath(kinds.getChildren, path, options)
  }

  getACL(path: string, options?: CallOptions): Promise<{ acl: ACL[]; stat: Stat }> {
    return this.#submitForPath(kinds.getACL, path, options)
  }

  setACL(
    path: string,
    acl: readonly ACL[],
    options?: CallOptions & { version?: number },
  ): Promise<Stat & Ordered> {
    const slot = this.#request(kinds.setACL, path, options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.intArgument = options?.version ?? -1
    slot.params = { acl }
    return this.#session.dispatcher.submit(slot)
  }

  getAllChildrenNumber(path: string, options?: CallOptions): Promise<number> {
    return this.#submitForPath(kinds.getAllChildrenNumber, path, options)
  }

  getEphemerals(prefix = '/', options?: CallOptions): Promise<string[]> {
    return this.#submitForPath(kinds.getEphemerals, prefix, options)
  }

  sync(path: string, options?: CallOptions): Promise<void> {
    return this.#submitForPath(kinds.sync, path, options)
  }

  syncCommitted(options?: CallOptions): Promise<bigint> {
    const slot = this.#request(kinds.syncCommitted, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.params = [{ type: OpCode.check, path: '/', version: -1 }] satisfies MultiOperation[]
    return this.#session.dispatcher.submit(slot)
  }

  async multi<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }> {
    const answer = await this.#submitMulti(kinds.multi, operations, options)
    return toWriteResults(operations, answer, this.chrootPath) as { [K in keyof T]: WriteResult<T[K]> }
  }

  async multiRead<const T extends readonly ReadOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }> {
    const answer = await this.#submitMulti(kinds.multiRead, operations, options)
    return toReadResults(operations, answer) as { [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }
  }

  async watchOnce(
    path: string,
    kind: 'data' | 'exists' | 'children',
    options?: CallOptions,
  ): Promise<OneShotWatch> {
    const request = { data: kinds.watchData, exists: kinds.watchExists, children: kinds.watchChildren }[kind]
    if (request === undefined)
      throw new UsageError(`Expected kind data, exists or children, got ${JSON.stringify(kind)}`)
    const slot = this.#request(request, path, options)
    if (slot instanceof Error) throw slot
    const watch = new OneShotListener(this.#session, kind, slot.path, { root: this.chrootPath, owner: this })
    slot.watch = true
    slot.params = watch
    const found = await this.#session.dispatcher.submit<{ stat?: Stat } & Ordered>(slot)
    const closed = this.#closedError()
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
    const { mode = 'persistent', buffer = EVENT_BUFFER } = options
    if (!Number.isInteger(buffer) || buffer < 1)
      throw new UsageError(`Expected a buffer of 1 item or more, got ${buffer}`)
    const slot = this.#request(kinds.addWatch, path, options)
    if (slot instanceof Error) throw slot
    const kind = mode === 'persistent' ? 'persistent' : 'recursive'
    slot.intArgument = mode === 'persistent' ? WatchMode.PERSISTENT : WatchMode.PERSISTENT_RECURSIVE
    const at = { path, serverPath: slot.path, root: this.chrootPath, owner: this }
    const watcher = new PersistentWatcher(this.#session, kind, at, buffer)
    slot.params = watcher
    await this.#session.dispatcher.submit(slot)
    const closed = this.#closedError()
    if (closed !== undefined) {
      await watcher.close()
      throw closed
    }
    return watcher
  }

  async addAuth(scheme: string, auth: Bytes, options: CallOptions = {}): Promise<void> {
    const closed = this.#closedError()
    if (closed !== undefined) throw closed
    validateAuth(scheme, auth)
    const prove = (): Promise<void> =>
      new Promise((resolve, reject) => {
        this.#session.addAuth({ scheme, auth }, (error) => (error === undefined ? resolve() : reject(error)))
      })
    await withCallerLimits(this.platform.clock, prove, { operation: 'addAuth' }, options)
  }

  whoAmI(options?: CallOptions): Promise<{ scheme: string; user: string }[]> {
    return this.#submitWithoutPath(kinds.whoAmI, options)
  }

  /** The configuration has one path whatever the root is. */
  getConfig(options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered> {
    const slot = this.#request(kinds.getData, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.path = CONFIG_PATH
    slot.chroot = ''
    return this.#session.dispatcher.submit(slot)
  }

  reconfig(change: ReconfigChange, options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered> {
    const { joining = null, leaving = null, members = null, version = -1n } = change
    const slot = this.#request(kinds.reconfig, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.path = ''
    slot.params = { joining, leaving, members, version } satisfies kinds.ReconfigParams
    return this.#session.dispatcher.submit(slot)
  }

  async mkdirp(path: string, options: MkdirpOptions = {}): Promise<void> {
    await mkdirp(this, path, options)
  }

  walk(path: string, options?: WalkOptions): AsyncIterableIterator<string> {
    return walk(this, path, options)
  }

  visit(path: string, options?: WalkOptions): AsyncIterableIterator<Visit> {
    return visit(this, path, options)
  }

  deleteTree(path: string, options?: DeleteTreeOptions): Promise<number> {
    return deleteTree(this, path, options)
  }

  async updateServerList(servers: string | readonly string[]): Promise<boolean> {
    const closed = this.#closedError()
    if (closed !== undefined) throw closed
    const list = parseReplacementServers(servers, this.#session.options.chroot)
    checkSchemes(list, this.#session.options.transport.schemes)
    return this.#session.updateServers(list)
  }

  async close({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#ownsSession) {
      const abort = (): void => this.#session.finish(new ClosedError('The client is closed', 'CLOSED'))
      const done = this.#session.close()
      signal?.addEventListener('abort', abort, { once: true })
      if (signal?.aborted) abort()
      await done
      signal?.removeEventListener('abort', abort)
      return
    }
    const covers = (owner: object): boolean => owner instanceof ZooKeeperClient && owner.#isDerivedFrom(this)
    if (this.#ownClosedError === undefined) {
      this.#ownClosedError = new ClosedError('This view is closed', 'CLOSED')
      this.#session.states.endFor(covers, this.#finalState)
      this.#resolveClosed?.()
    }
    await Promise.all(this.#session.watches.ownedBy(covers).map((watch) => watch.close()))
  }

  /** What those hear last who listen through this view. */
  get #finalState(): Omit<StateChange, 'previous'> {
    const session = this.#session
    const cause = this.#closedError()
    return {
      state: 'closed',
      sessionGeneration: session.generation,
      order: session.nextOrder(),
      ...(cause && { cause }),
    }
  }

  /** Whether it was made of a view, or of one that was. */
  #isDerivedFrom(other: ZooKeeperClient): boolean {
    const above = this.#parent
    return this === other || (above !== undefined && above.#isDerivedFrom(other))
  }

  detach(): Promise<SessionCredentials> {
    const finished = this.#session.terminalError ?? this.#closedError()
    if (finished !== undefined) return Promise.reject(finished)
    if (!this.#ownsSession) {
      const message = 'Expected detach of the client itself, got it of a view, whose session others use'
      return Promise.reject(new UsageError(message, { operation: 'detach' }))
    }
    const { id, password } = this.#session.credentials
    this.#session.finish(new ClosedError('The client has left its session to another one', 'CLOSED'))
    return Promise.resolve({ id, password })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** A request for a path of this view, or why there is none. */
  #request(
    kind: Operation,
    path: string,
    options: CallOptions | undefined,
    sequential = false,
  ): PendingRequest | ZooKeeperError {
    const closed = this.#closedError()
    if (closed !== undefined) return closed
    const reason = validatePath(path, sequential)
    if (reason !== undefined) return new UsageError(reason, { path, operation: kind.name })
    const slot = this.#session.dispatcher.acquire(kind)
    slot.path = toServerPath(this.chrootPath, path)
    slot.chroot = this.chrootPath
    slot.options = options
    return slot
  }

  #submitForPath<T>(kind: Operation, path: string, options: CallOptions | undefined): Promise<T> {
    const slot = this.#request(kind, path, options)
    return slot instanceof Error ? Promise.reject(slot) : this.#session.dispatcher.submit(slot)
  }

  async #submitMulti(
    kind: Operation,
    operations: readonly (WriteOp | ReadOp)[],
    options: CallOptions | undefined,
  ): Promise<kinds.MultiReply> {
    const slot = this.#request(kind, '/', options)
    if (slot instanceof Error) throw slot
    slot.path = ''
    slot.params = operations.map((operation) => toMultiOperation(operation, this.chrootPath))
    return this.#session.dispatcher.submit(slot)
  }

  #submitWithoutPath<T>(kind: Operation, options: CallOptions | undefined): Promise<T> {
    const slot = this.#request(kind, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.path = ''
    return this.#session.dispatcher.submit(slot)
  }

  #closedError(): ZooKeeperError | undefined {
    const above = this.#parent
    return this.#ownClosedError ?? (above && above.#closedError())
  }

  #rejectUsage(operation: string, path: string, reason: string): Promise<never> {
    return Promise.reject(new UsageError(reason, { path, operation }))
  }
}
