import {
  CreateMode as Flags,
  ErrorCode,
  isSequential,
  isTtl,
  OPEN_ACL_UNSAFE,
  OpCode,
  readCreate2Response,
  readGetACLResponse,
  readGetAllChildrenNumberResponse,
  readGetChildren2Response,
  readGetDataResponse,
  readGetEphemeralsResponse,
  readMultiResponse,
  readStat,
  readWhoAmIResponse,
  validatePath,
  WatcherType,
  WatchMode,
  writeAddWatchRequest,
  writeCreateRequest,
  writeCreateTTLRequest,
  writeDeleteRequest,
  writeMultiRequest,
  writeReconfigRequest,
  writeSetACLRequest,
  writeSetDataRequest,
  type ACL,
  type MultiOperation,
  type Reader,
} from '@zabra/protocol'
import { UsageError } from '../exit-codes.ts'
import { RequestError } from './request-error.ts'
import { eventName, WatchBook } from './watches.ts'
import type { Wire } from './wire.ts'
import type { CreateOptions, OneShotWatch, Stat, Watcher, WriteOp, ZooKeeper } from './zookeeper.ts'

const flagsOf = {
  persistent: Flags.PERSISTENT,
  ephemeral: Flags.EPHEMERAL,
  persistentSequential: Flags.PERSISTENT_SEQUENTIAL,
  ephemeralSequential: Flags.EPHEMERAL_SEQUENTIAL,
  container: Flags.CONTAINER,
  persistentWithTtl: Flags.PERSISTENT_WITH_TTL,
  persistentSequentialWithTtl: Flags.PERSISTENT_SEQUENTIAL_WITH_TTL,
} as const

const CONFIG = '/zookeeper/config'

/** The operations of a session over one connection, with paths seen from its root. */
export class WireSession implements ZooKeeper {
  readonly #wire: Wire
  readonly #root: string
  readonly #watches = new WatchBook()

  constructor(wire: Wire, chroot: string) {
    this.#wire = wire
    this.#root = chroot
    wire.onEvent = ({ type, path }) => {
      const name = eventName(type)
      if (name !== undefined && path !== null) this.#watches.tell({ type: name, path: this.#seen(path) })
    }
    void wire.closed.then(() => this.#watches.end())
  }

  get sessionId(): bigint {
    return this.#wire.sessionId
  }
  get server(): string {
    return this.#wire.server
  }
  get closed(): Promise<Error | undefined> {
    return this.#wire.closed
  }

  async create(path: string, data: Uint8Array | null, options: CreateOptions = {}): Promise<string> {
    const operation = this.#creation(path, data, options)
    const body = await this.#wire.request(operation.type, path, (w) =>
      operation.type === OpCode.createTTL
        ? writeCreateTTLRequest(w, operation)
        : writeCreateRequest(w, operation),
    )
    return this.#seen(readCreate2Response(body).path ?? path)
  }

  async delete(path: string, version = -1): Promise<void> {
    const real = this.#real(path)
    await this.#wire.request(OpCode.delete, path, (w) => writeDeleteRequest(w, { path: real, version }))
  }

  async exists(path: string): Promise<Stat | undefined> {
    const body = await orMissing(this.#read(OpCode.exists, path))
    return body && readStat(body)
  }

  async getData(path: string): Promise<{ data: Uint8Array | null; stat: Stat }> {
    return readGetDataResponse(await this.#read(OpCode.getData, path))
  }

  async setData(path: string, data: Uint8Array | null, version = -1): Promise<Stat> {
    const real = this.#real(path)
    return readStat(
      await this.#wire.request(OpCode.setData, path, (w) =>
        writeSetDataRequest(w, { path: real, data, version }),
      ),
    )
  }

  async getChildren(path: string): Promise<{ children: string[]; stat: Stat }> {
    const { children, stat } = readGetChildren2Response(await this.#read(OpCode.getChildren2, path))
    return { children: (children ?? []).map((name) => name ?? ''), stat }
  }

  async getACL(path: string): Promise<{ acl: ACL[]; stat: Stat }> {
    const real = this.#real(path)
    const body = await this.#wire.request(OpCode.getACL, path, (w) => w.string(real))
    const { acl, stat } = readGetACLResponse(body)
    return { acl: [...(acl ?? [])], stat }
  }

  async setACL(path: string, acl: readonly ACL[], version = -1): Promise<Stat> {
    const real = this.#real(path)
    return readStat(
      await this.#wire.request(OpCode.setACL, path, (w) =>
        writeSetACLRequest(w, { path: real, acl, version }),
      ),
    )
  }

  async getAllChildrenNumber(path: string): Promise<number> {
    const real = this.#real(path)
    const body = await this.#wire.request(OpCode.getAllChildrenNumber, path, (w) => w.string(real))
    return readGetAllChildrenNumberResponse(body).totalNumber
  }

  async getEphemerals(prefix: string): Promise<string[]> {
    const real = this.#real(prefix)
    const body = await this.#wire.request(OpCode.getEphemerals, prefix, (w) => w.string(real))
    return (readGetEphemeralsResponse(body).ephemerals ?? []).map((path) => this.#seen(path ?? ''))
  }

  async sync(path: string): Promise<void> {
    const real = this.#real(path)
    await this.#wire.request(OpCode.sync, path, (w) => w.string(real))
  }

  async multi(ops: readonly WriteOp[]): Promise<void> {
    const operations = ops.map((op) => this.#part(op))
    const body = await this.#wire.request(OpCode.multi, undefined, (w) => writeMultiRequest(w, operations))
    const results = readMultiResponse(body)
    for (const [i, result] of results.entries()) {
      if (result.type !== OpCode.error) continue
      if (result.err !== 0 && result.err !== ErrorCode.RUNTIMEINCONSISTENCY)
        throw new RequestError(result.err, ops[i]?.path)
    }
  }

  async watchOnce(path: string, kind: 'data' | 'exists' | 'children'): Promise<OneShotWatch> {
    const watch = this.#watches.once(this.#checked(path), kind, () => this.#remove(path))
    const type = { data: OpCode.getData, exists: OpCode.exists, children: OpCode.getChildren2 }[kind]
    try {
      const answer = this.#read(type, path, true)
      await (kind === 'exists' ? orMissing(answer) : answer)
      return watch
    } catch (error) {
      await watch.close()
      throw error
    }
  }

  async watch(path: string, mode: 'persistent' | 'persistentRecursive'): Promise<Watcher> {
    const real = this.#real(path)
    const wireMode = mode === 'persistent' ? WatchMode.PERSISTENT : WatchMode.PERSISTENT_RECURSIVE
    const watcher = this.#watches.stream(path, mode, () => this.#remove(path))
    try {
      await this.#wire.request(OpCode.addWatch, path, (w) =>
        writeAddWatchRequest(w, { path: real, mode: wireMode }),
      )
      return watcher
    } catch (error) {
      await watcher.close()
      throw error
    }
  }

  addAuth(scheme: string, auth: Uint8Array): Promise<void> {
    return this.#wire.addAuth(scheme, auth)
  }

  async whoAmI(): Promise<{ scheme: string; user: string }[]> {
    const { clientInfo } = readWhoAmIResponse(await this.#wire.request(OpCode.whoAmI, undefined))
    return (clientInfo ?? []).map(({ authScheme, user }) => ({ scheme: authScheme ?? '', user: user ?? '' }))
  }

  async getConfig(): Promise<{ data: Uint8Array | null; stat: Stat }> {
    const body = await this.#wire.request(OpCode.getData, CONFIG, (w) => {
      w.string(CONFIG)
      w.bool(false)
    })
    return readGetDataResponse(body)
  }

  async reconfig(change: {
    joining?: string
    leaving?: string
    members?: string
    version?: bigint
  }): Promise<{ data: Uint8Array | null; stat: Stat }> {
    const body = await this.#wire.request(OpCode.reconfig, undefined, (w) =>
      writeReconfigRequest(w, {
        joiningServers: change.joining ?? null,
        leavingServers: change.leaving ?? null,
        newMembers: change.members ?? null,
        curConfigId: change.version ?? -1n,
      }),
    )
    return readGetDataResponse(body)
  }

  close(): Promise<void> {
    return this.#wire.close()
  }

  #read(type: number, path: string, watch = false): Promise<Reader> {
    const real = this.#real(path)
    return this.#wire.request(type, path, (w) => {
      w.string(real)
      w.bool(watch)
    })
  }

  /** Takes the watches of a path off the server once nobody here waits for them. */
  async #remove(path: string): Promise<void> {
    if (this.#watches.has(path)) return
    const real = this.#real(path)
    try {
      await this.#wire.request(OpCode.removeWatches, path, (w) => {
        w.string(real)
        w.int(WatcherType.Any)
      })
    } catch (error) {
      // One that has fired or never came to be needs no removal, and a session that is over has none.
      if (!(error instanceof RequestError)) throw error
    }
  }

  #part(op: WriteOp): MultiOperation {
    switch (op.op) {
      case 'create':
        return this.#creation(op.path, op.data, op)
      case 'delete':
        return { type: OpCode.delete, path: this.#real(op.path), version: op.version ?? -1 }
      case 'check':
        return { type: OpCode.check, path: this.#real(op.path), version: op.version ?? -1 }
      case 'setData':
        return { type: OpCode.setData, path: this.#real(op.path), data: op.data, version: op.version ?? -1 }
    }
  }

  #creation(path: string, data: Uint8Array | null, { mode, acl, ttl }: CreateOptions) {
    const flags = flagsOf[mode ?? 'persistent']
    const base = { path: this.#real(path, isSequential(flags)), data, acl: acl ?? OPEN_ACL_UNSAFE, flags }
    if (isTtl(flags)) return { type: OpCode.createTTL, ...base, ttl: BigInt(ttl ?? 0) }
    return { type: flags === Flags.CONTAINER ? OpCode.createContainer : OpCode.create2, ...base }
  }

  #checked(path: string, sequential = false): string {
    const wrong = validatePath(path, sequential)
    if (wrong !== undefined) throw new UsageError(`${wrong}. Paths look like /app/config.`)
    return path
  }

  #real(path: string, sequential = false): string {
    this.#checked(path, sequential)
    return path === '/' && this.#root !== '' ? this.#root : `${this.#root}${path}`
  }

  #seen(path: string): string {
    if (this.#root === '' || !path.startsWith(this.#root)) return path
    return path.slice(this.#root.length) || '/'
  }
}

async function orMissing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof RequestError && error.wireCode === ErrorCode.NONODE) return undefined
    throw error
  }
}
