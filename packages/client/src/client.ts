import { OpCode, validatePath, WatchMode, type MultiOperation } from '@zabra/protocol'
import { checkCreate, checkData, checkIdentity, EMPTY, flagsOf, isSequential, OPEN_ACL } from './calls.ts'
import { normalRoot, toServer } from './chroot.ts'
import { ClosedError, NoNodeError, UsageError, type ZooKeeperError } from './errors.ts'
import { insist } from './insist.ts'
import * as kinds from './kinds.ts'
import { multiOperation, multiResults, readResults } from './multi.ts'
import { deleteTree } from './delete-tree.ts'
import { createProtected } from './protected-create.ts'
import { laterServers } from './servers/connect-string.ts'
import type { Session } from './session/session.ts'
import type { Kind, Slot } from './session/slot.ts'
import { checkSchemes } from './transport.ts'
import { createWithParents, mkdirp, orCreate } from './tree.ts'
import type { DeleteTreeOptions, Visit, WalkOptions } from './tree-types.ts'
import { typed } from './typed.ts'
import { waitFor } from './wait-for.ts'
import { visit, walk } from './walk.ts'
import type {
  ACL,
  Bytes,
  CallOptions,
  Client,
  ClientPorts,
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
import { OneShot } from './watches/one-shot.ts'
import { WatcherStream } from './watches/watcher.ts'

const CONFIG_PATH = '/zookeeper/config'
const EVENT_BUFFER = 1024

/** One root over a session. The first view owns the session; closing others leaves it. */
export class View implements Client {
  readonly root: string
  readonly #session: Session
  readonly #owner: boolean
  /** The view that it was made of, and with which it closes. */
  readonly #above: View | undefined
  #closed: ClosedError | undefined
  /** For a view that is not the client itself, made when somebody asks for it. */
  #ended: Promise<Error | undefined> | undefined
  #end: (() => void) | undefined

  constructor(session: Session, root: string, owner: boolean, above?: View) {
    this.root = root
    this.#session = session
    this.#owner = owner
    this.#above = above
  }

  /** The machine that all views of one client share. */
  get machine(): Session {
    return this.#session
  }

  get state(): ConnectionState {
    return this.#finished() === undefined ? this.#session.state : 'closed'
  }

  get session(): SessionCredentials & { readonly timeout: number; readonly epoch: number } {
    return this.#session.credentials
  }

  get leaseHorizon(): number {
    return this.#session.lease.horizon
  }

  get lastContact(): number {
    return this.#session.lease.contact
  }

  get ports(): ClientPorts {
    return this.#session.options.ports
  }

  get errorPolicy(): ErrorPolicy {
    return this.#session.options.errorPolicy
  }

  get instrumentation(): Instrumentation | undefined {
    return this.#session.options.instrumentation
  }

  get closed(): Promise<Error | undefined> {
    if (this.#owner) return this.#session.closed
    this.#ended ??= new Promise((resolve) => {
      if (this.#finished() !== undefined) resolve(undefined)
      this.#end = () => resolve(undefined)
      void (this.#above?.closed ?? this.#session.closed).then(resolve)
    })
    return this.#ended
  }

  states(): AsyncIterableIterator<StateChange> {
    return this.#session.states.listen(this, this.#finished() && this.#lastState)
  }

  chroot(path: string): Client {
    return new View(this.#session, this.root + normalRoot(path), false, this)
  }

  withCodec<T>(codec: Codec<T>): TypedClient<T> {
    return typed(this, codec)
  }

  create(path: string, data: Bytes | null = EMPTY, options: CreateOptions = {}): Promise<CreateResult> {
    const { mode = 'persistent', parents, protected: guarded } = options
    const sequential = isSequential(mode)
    if (guarded && !sequential && mode !== 'persistent' && mode !== 'ephemeral') {
      const wrong = `Expected protected with a sequential, persistent or ephemeral mode, got ${mode}`
      return this.#wrong('create', path, wrong)
    }
    if (parents) return createWithParents(this, path, data, options)
    if (guarded ?? sequential) return createProtected(this, path, data, options)
    return this.createOnce(path, data, options)
  }

  /** The same session and root, for what goes on when this view is closed. */
  twin(): View {
    return new View(this.#session, this.root, false)
  }

  /** The same session without any root. */
  absolute(): View {
    return this.root === '' ? this : new View(this.#session, '', false)
  }

  /** A create as it is, without a guard against lost replies. */
  createOnce(
    path: string,
    data: Bytes | null,
    options: CreateOptions,
    guarded = false,
  ): Promise<CreateResult> {
    const { mode = 'persistent', acl = OPEN_ACL, ttl, idempotent = false } = options
    const flags = flagsOf[mode]
    const wrong = checkCreate(path, mode, flags, ttl) ?? checkData(data)
    if (wrong !== undefined) return this.#wrong('create', path, wrong)
    const slot = this.#slot(kinds.kindOfCreate(mode), path, options, isSequential(mode))
    if (slot instanceof Error) return Promise.reject(slot)
    slot.data = data
    slot.number = flags
    slot.ttl = ttl ?? 0
    const extra = {
      acl,
      idempotent,
      guarded,
      ephemeral: mode === 'ephemeral',
      sequential: isSequential(mode),
    }
    slot.extra = extra satisfies kinds.CreateExtra
    return this.#session.requests.submit(slot)
  }

  async delete(path: string, options: DeleteOptions = {}): Promise<void> {
    const { recursive = false, missingOk = false, guaranteed = false, version = -1 } = options
    if (recursive && version !== -1)
      return this.#wrong('delete', path, 'Expected delete with a version or recursive, got both')
    try {
      if (recursive) await deleteTree(this, path, options)
      else if (guaranteed) await this.#deleteSurely(path, options)
      else await this.#deleteOnce(path, options)
    } catch (error) {
      if (!(missingOk && error instanceof NoNodeError)) throw error
    }
  }

  #deleteOnce(path: string, options: DeleteOptions): Promise<void> {
    const slot = this.#slot(kinds.remove, path, options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.number = options.version ?? -1
    slot.extra = options.idempotent
    return this.#session.requests.submit(slot)
  }

  /** Goes on in the background when its caller has gone, until it is done or its session is over. */
  #deleteSurely(path: string, options: DeleteOptions): Promise<void> {
    const twin = this.twin()
    const { version, idempotent } = options
    const call = {
      ...(version === undefined ? {} : { version }),
      ...(idempotent === undefined ? {} : { idempotent }),
    }
    const facts = { path, operation: 'delete' }
    return waitFor(this.ports.clock, () => insist(twin, () => twin.#deleteOnce(path, call)), facts, options)
  }

  exists(path: string, options?: CallOptions): Promise<(Stat & Ordered) | undefined> {
    return this.#simple(kinds.exists, path, options)
  }

  getData(
    path: string,
    options?: CallOptions,
  ): Promise<{ data: Bytes; isNull: boolean; stat: Stat } & Ordered> {
    return this.#simple(kinds.getData, path, options)
  }

  setData(path: string, data: Bytes | null, options?: SetDataOptions): Promise<Stat & Ordered> {
    const wrong = checkData(data)
    if (wrong !== undefined) return this.#wrong('setData', path, wrong)
    const slot = this.#slot(kinds.setData, path, options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.data = data
    slot.number = options?.version ?? -1
    slot.extra = options?.idempotent
    const done = this.#session.requests.submit<Stat & Ordered>(slot)
    return options?.createIfMissing ? orCreate(this, done, path, data, options) : done
  }

  getChildren(path: string, options?: CallOptions): Promise<{ children: string[]; stat: Stat } & Ordered> {
    return this.#simple(kinds.getChildren, path, options)
  }

  getACL(path: string, options?: CallOptions): Promise<{ acl: ACL[]; stat: Stat }> {
    return this.#simple(kinds.getACL, path, options)
  }

  setACL(
    path: string,
    acl: readonly ACL[],
    options?: CallOptions & { version?: number },
  ): Promise<Stat & Ordered> {
    const slot = this.#slot(kinds.setACL, path, options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.number = options?.version ?? -1
    slot.extra = { acl }
    return this.#session.requests.submit(slot)
  }

  getAllChildrenNumber(path: string, options?: CallOptions): Promise<number> {
    return this.#simple(kinds.getAllChildrenNumber, path, options)
  }

  getEphemerals(prefix = '/', options?: CallOptions): Promise<string[]> {
    return this.#simple(kinds.getEphemerals, prefix, options)
  }

  sync(path: string, options?: CallOptions): Promise<void> {
    return this.#simple(kinds.sync, path, options)
  }

  syncCommitted(options?: CallOptions): Promise<bigint> {
    const slot = this.#slot(kinds.barrier, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.extra = [{ type: OpCode.check, path: '/', version: -1 }] satisfies MultiOperation[]
    return this.#session.requests.submit(slot)
  }

  async multi<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }> {
    const answer = await this.#many(kinds.multi, operations, options)
    return multiResults(operations, answer, this.root) as { [K in keyof T]: WriteResult<T[K]> }
  }

  async multiRead<const T extends readonly ReadOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }> {
    const answer = await this.#many(kinds.multiRead, operations, options)
    return readResults(operations, answer) as { [K in keyof T]: ReadResult<T[K]> | ZooKeeperError }
  }

  async watchOnce(
    path: string,
    kind: 'data' | 'exists' | 'children',
    options?: CallOptions,
  ): Promise<OneShotWatch> {
    const request = { data: kinds.watchData, exists: kinds.watchExists, children: kinds.watchChildren }[kind]
    if (request === undefined)
      throw new UsageError(`Expected kind data, exists or children, got ${JSON.stringify(kind)}`)
    const slot = this.#slot(request, path, options)
    if (slot instanceof Error) throw slot
    const watch = new OneShot(this.#session, kind, slot.path, { root: this.root, owner: this })
    slot.watch = true
    slot.extra = watch
    const found = await this.#session.requests.submit<{ stat?: Stat } & Ordered>(slot)
    const closed = this.#finished()
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
    const slot = this.#slot(kinds.addWatch, path, options)
    if (slot instanceof Error) throw slot
    const kind = mode === 'persistent' ? 'persistent' : 'recursive'
    slot.number = mode === 'persistent' ? WatchMode.PERSISTENT : WatchMode.PERSISTENT_RECURSIVE
    const at = { path, serverPath: slot.path, root: this.root, owner: this }
    const watcher = new WatcherStream(this.#session, kind, at, buffer)
    slot.extra = watcher
    await this.#session.requests.submit(slot)
    const closed = this.#finished()
    if (closed !== undefined) {
      await watcher.close()
      throw closed
    }
    return watcher
  }

  async addAuth(scheme: string, auth: Bytes, options: CallOptions = {}): Promise<void> {
    const closed = this.#finished()
    if (closed !== undefined) throw closed
    checkIdentity(scheme, auth)
    const prove = (): Promise<void> =>
      new Promise((resolve, reject) => {
        this.#session.addAuth({ scheme, auth }, (error) => (error === undefined ? resolve() : reject(error)))
      })
    await waitFor(this.ports.clock, prove, { operation: 'addAuth' }, options)
  }

  whoAmI(options?: CallOptions): Promise<{ scheme: string; user: string }[]> {
    return this.#pathless(kinds.whoAmI, options)
  }

  /** The configuration has one path whatever the root is. */
  getConfig(options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered> {
    const slot = this.#slot(kinds.getData, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.path = CONFIG_PATH
    slot.root = ''
    return this.#session.requests.submit(slot)
  }

  reconfig(change: ReconfigChange, options?: CallOptions): Promise<{ data: Bytes; stat: Stat } & Ordered> {
    const { joining = null, leaving = null, members = null, version = -1n } = change
    const slot = this.#slot(kinds.reconfig, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.path = ''
    slot.extra = { joining, leaving, members, version } satisfies kinds.ReconfigExtra
    return this.#session.requests.submit(slot)
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
    const closed = this.#finished()
    if (closed !== undefined) throw closed
    const list = laterServers(servers, this.#session.options.chroot)
    checkSchemes(list, this.#session.options.transport.schemes)
    return this.#session.updateServers(list)
  }

  async close({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    if (this.#owner) {
      const abort = (): void => this.#session.finish(new ClosedError('The client is closed', 'CLOSED'))
      const done = this.#session.close()
      signal?.addEventListener('abort', abort, { once: true })
      if (signal?.aborted) abort()
      await done
      signal?.removeEventListener('abort', abort)
      return
    }
    const covers = (owner: object): boolean => owner instanceof View && owner.#isWithin(this)
    if (this.#closed === undefined) {
      this.#closed = new ClosedError('This view is closed', 'CLOSED')
      this.#session.states.endOf(covers, this.#lastState)
      this.#end?.()
    }
    await Promise.all(this.#session.watches.ownedBy(covers).map((watch) => watch.close()))
  }

  /** What those hear last who listen through this view. */
  get #lastState(): Omit<StateChange, 'previous'> {
    const session = this.#session
    const cause = this.#finished()
    return {
      state: 'closed',
      sessionEpoch: session.epoch,
      order: session.nextOrder(),
      ...(cause && { cause }),
    }
  }

  /** Whether it was made of a view, or of one that was. */
  #isWithin(other: View): boolean {
    const above = this.#above
    return this === other || (above !== undefined && above.#isWithin(other))
  }

  detach(): Promise<SessionCredentials> {
    const finished = this.#session.finished ?? this.#finished()
    if (finished !== undefined) return Promise.reject(finished)
    if (!this.#owner) {
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
  #slot(
    kind: Kind,
    path: string,
    options: CallOptions | undefined,
    sequential = false,
  ): Slot | ZooKeeperError {
    const closed = this.#finished()
    if (closed !== undefined) return closed
    const reason = validatePath(path, sequential)
    if (reason !== undefined) return new UsageError(reason, { path, operation: kind.name })
    const slot = this.#session.requests.take(kind)
    slot.path = toServer(this.root, path)
    slot.root = this.root
    slot.options = options
    return slot
  }

  #simple<T>(kind: Kind, path: string, options: CallOptions | undefined): Promise<T> {
    const slot = this.#slot(kind, path, options)
    return slot instanceof Error ? Promise.reject(slot) : this.#session.requests.submit(slot)
  }

  async #many(
    kind: Kind,
    operations: readonly (WriteOp | ReadOp)[],
    options: CallOptions | undefined,
  ): Promise<kinds.MultiAnswer> {
    const slot = this.#slot(kind, '/', options)
    if (slot instanceof Error) throw slot
    slot.path = ''
    slot.extra = operations.map((operation) => multiOperation(operation, this.root))
    return this.#session.requests.submit(slot)
  }

  #pathless<T>(kind: Kind, options: CallOptions | undefined): Promise<T> {
    const slot = this.#slot(kind, '/', options)
    if (slot instanceof Error) return Promise.reject(slot)
    slot.path = ''
    return this.#session.requests.submit(slot)
  }

  #finished(): ZooKeeperError | undefined {
    const above = this.#above
    return this.#closed ?? (above && above.#finished())
  }

  #wrong(operation: string, path: string, reason: string): Promise<never> {
    return Promise.reject(new UsageError(reason, { path, operation }))
  }
}
