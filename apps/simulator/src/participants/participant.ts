import { connectWith, type Client, type CreateMode } from '@zabra/client/core'
import type { History } from '../history/records.ts'
import type { Host, Incarnation, Prng, ServerEndpoint } from '@zabra/testing'
import {
  statOf,
  textOf,
  type ArmedWatch,
  type Call,
  type CallKind,
  type CallLog,
  type StreamReader,
  type Observed,
} from './calls.ts'
import type { ParticipantOperation, ParticipantPlan } from './plan.ts'
import { STREAM_PATHS, isChecked } from './paths.ts'
import { RecordingConnection } from './recording-connection.ts'

export interface ParticipantOptions {
  readonly host: Host
  readonly plan: ParticipantPlan
  readonly prng: Prng
  readonly history: History
  readonly log: CallLog
  readonly servers: () => readonly ServerEndpoint[]
  readonly nextConnection: () => number
}

const encoder = new TextEncoder()

/** A process that uses `@zabra/client` as programs do: calls, promises and event streams. */
export class Participant {
  readonly host: Host
  readonly isReadOnly = false
  readonly #options: ParticipantOptions
  #client: Client | undefined
  #working = false
  #incarnations = 0
  #clients = 0
  #name = ''
  #values = 0
  #pending = 0
  /** Znodes that only this client creates and deletes. */
  #ownPaths: string[] = []

  constructor(options: ParticipantOptions) {
    this.#options = options
    this.host = options.host
  }

  /** Starts the process with a new client, also after a crash. */
  start(): void {
    const incarnation = this.host.start()
    this.#incarnations++
    this.#pending = 0
    this.#ownPaths = []
    this.#working = true
    void this.#connect(incarnation)
  }

  stop(): void {
    this.#working = false
  }

  /** Whether it is connected and has no pending call. */
  get isIdle(): boolean {
    if (this.host.current === undefined) return true
    return this.#pending === 0 && this.#client?.state === 'connected'
  }

  /** Reads all paths that may have been watched, after a sync, with the complete list of servers. */
  async readAll(): Promise<void> {
    const client = this.#client
    if (this.host.current === undefined || client === undefined) return
    await this.#call('sync', '/w', () => client.sync('/w'))
    for (const path of [...STREAM_PATHS, '/w/r/0', '/w/r/1', '/w/r/2', '/w/r/3', '/w/r/4', '/w/r/5'])
      await this.#get(client, path)
  }

  /** Closes the session, or crashes the process without closing it. */
  end(closes: boolean): void {
    const client = this.#client
    if (this.host.current === undefined) return
    if (!closes || client === undefined) return this.host.crash('power')
    void this.#call('end', '', () => client.close())
  }

  async #connect(incarnation: Incarnation): Promise<void> {
    const { plan, history, servers, nextConnection, log } = this.#options
    this.#name = `${this.host.name}.${this.#incarnations}.${++this.#clients}`
    const name = this.#name
    const { clock, random, network } = incarnation.platform
    const names = new Map(servers().map((server) => [server.host, server.name]))
    let epoch = 0
    const connected = connectWith(
      {
        servers: this.#addresses(),
        sessionTimeoutMs: plan.timeoutMs,
        waitForever: true,
        batchReads: plan.batchReads,
        transport: {
          schemes: ['tcp'],
          open: async (server, signal) =>
            new RecordingConnection(await network.connect(server, { signal }), {
              world: incarnation.host.world,
              history,
              client: name,
              server: names.get(server.host) ?? server.host,
              connection: nextConnection(),
              isChecked: isChecked,
            }),
        },
        instrumentation: {
          state: ({ sessionGeneration, order }) => {
            if (sessionGeneration !== epoch) log.newSessions.push({ client: name, order })
            epoch = sessionGeneration
          },
        },
      },
      { platform: { clock, random } },
    )
    const client = await this.#track('connect', '', connected)
    if (client === undefined || !incarnation.isAlive) return
    this.#client = client
    if (plan.follows) for (const path of STREAM_PATHS) void this.#follow(client, incarnation, path)
    this.#think(client, incarnation)
  }

  #addresses(count = Infinity): string[] {
    const { servers, prng } = this.#options
    const all = servers().map(({ host, port }) => `${host}:${port}`)
    return count >= all.length ? all : prng.shuffled(all).slice(0, count)
  }

  #think(client: Client, incarnation: Incarnation): void {
    const { prng, plan } = this.#options
    incarnation.platform.clock.after(prng.exponential(plan.thinkMs), 'think', () => {
      if (this.#client !== client) return
      if (this.#working && this.#pending < 4 * plan.burst) {
        const count = prng.integer(1, plan.burst)
        for (let i = 0; i < count && this.#client === client; i++)
          this.#act(client, prng.pickWeighted(plan.weights))
      }
      if (this.#client === client) this.#think(client, incarnation)
    })
  }

  #act(client: Client, deed: ParticipantOperation): void {
    const { prng } = this.#options
    switch (deed) {
      case 'get': {
        // With batching there should be several reads in one turn.
        const count = this.#options.plan.batchReads === false ? 1 : prng.integer(1, 6)
        for (let i = 0; i < count; i++) void this.#get(client, this.#anyPath())
        return
      }
      case 'exists': {
        const path = this.#anyPath()
        const exists = this.#track('exists', path, client.exists(path, this.#limits()), (stat) => ({
          order: stat?.order ?? -1,
          path,
          stat: statOf(stat),
        }))
        return void exists
      }
      case 'children': {
        const path = prng.pick(['/w/t', '/w/s', '/w/e'])
        const got = client.getChildren(path, this.#limits())
        return void this.#track('children', path, got, ({ stat, order, children }) => ({
          order,
          path,
          stat: statOf(stat),
          children,
        }))
      }
      case 'sync':
        return void this.#call('sync', '/w', () => client.sync('/w'))
      case 'watch':
        return void this.#watch(client)
      case 'move':
        return void this.#call('update', '', () =>
          client.updateServerList(this.#addresses(prng.integer(1, 3))),
        )
      case 'reconnect':
        return this.#reconnect(client)
      case 'set':
      case 'setIf':
      case 'create':
      case 'ephemeral':
      case 'sequential':
      case 'delete':
      case 'multi':
      case 'failingMulti':
        return this.#write(client, deed)
    }
  }

  /** Closes the session and connects a new client. */
  #reconnect(client: Client): void {
    this.#client = undefined
    this.#options.log.closedClients.add(this.#name)
    const incarnation = this.host.current!
    void this.#call('end', '', () => client.close()).then(() => {
      if (incarnation.isAlive) return this.#connect(incarnation)
      return undefined
    })
  }

  #write(
    client: Client,
    deed: 'set' | 'setIf' | 'create' | 'ephemeral' | 'sequential' | 'delete' | 'multi' | 'failingMulti',
  ): void {
    const { prng } = this.#options
    const uniqueData = `${this.#name}:${this.#values++}`
    const data = encoder.encode(uniqueData)
    const limits = this.#limits()
    const idempotent = prng.chance(0.3)
    switch (deed) {
      case 'set': {
        const path = prng.chance(0.4) ? prng.pick(STREAM_PATHS) : this.#register()
        const made = client.setData(path, data, { ...limits, idempotent })
        return void this.#trackWrite('set', path, uniqueData, idempotent, made, (stat) => ({
          order: stat.order,
          path,
          stat: statOf(stat),
        }))
      }
      case 'setIf':
        return void this.#setIf(client, uniqueData)
      case 'create': {
        // Some names are unique to this client, so that it alone deletes them.
        const isOwn = prng.chance(0.5)
        const path = isOwn ? `/w/t/own-${uniqueData}` : `/w/t/${prng.below(6)}`
        const made = client.create(path, { data, ...limits, idempotent })
        return void this.#trackWrite('create', path, uniqueData, idempotent, made, (created) => {
          if (isOwn) this.#ownPaths.push(path)
          return { order: created.order, path: created.path, stat: statOf(created.stat) }
        })
      }
      case 'ephemeral': {
        const path = `/w/e/${prng.below(5)}`
        const made = client.create(path, { data, ...limits, mode: 'ephemeral' })
        return void this.#trackWrite('ephemeral', path, uniqueData, true, made, (created) => ({
          order: created.order,
          path,
          stat: statOf(created.stat),
        }))
      }
      case 'sequential': {
        const mode: CreateMode = prng.pick(['persistentSequential', 'ephemeralSequential'])
        const made = client.create('/w/s/p-', { data, ...limits, mode })
        return void this.#trackWrite('sequential', '/w/s/p-', uniqueData, false, made, (created) => ({
          order: created.order,
          path: created.path,
          stat: statOf(created.stat),
        }))
      }
      case 'delete': {
        const path = this.#ownPaths.pop()
        if (path !== undefined) void this.#call('delete', path, () => client.delete(path, limits))
        return
      }
      case 'multi':
      case 'failingMulti': {
        const path = this.#register()
        const check = { op: 'check', path, version: deed === 'failingMulti' ? 1_000_000 : -1 } as const
        const made = client.multi([{ op: 'setData', path, data }, check], limits)
        return void this.#trackWrite(deed, path, uniqueData, false, made)
      }
    }
  }

  async #setIf(client: Client, uniqueData: string): Promise<void> {
    const path = this.#register()
    const stat = (await this.#get(client, path))?.stat
    if (stat === undefined) return
    const made = client.setData(path, encoder.encode(uniqueData), {
      ...this.#limits(),
      version: stat.version,
    })
    await this.#trackWrite('setIf', path, uniqueData, false, made, ({ order, ...found }) => ({
      order,
      path,
      stat: statOf(found),
    }))
  }

  #get(client: Client, path: string): Promise<Observed | undefined> {
    let shown: Observed | undefined
    const got = client.getData(path, this.#limits())
    return this.#track('get', path, got, ({ data, stat, order }) => {
      shown = { order, path, stat: statOf(stat), data: textOf(data) }
      return shown
    }).then(() => shown)
  }

  async #watch(client: Client): Promise<void> {
    const { prng } = this.#options
    const kind = prng.pick(['data', 'exists', 'children'] as const)
    const isBrief = prng.chance(0.3)
    const path = isBrief
      ? prng.pick(STREAM_PATHS)
      : kind === 'children'
        ? prng.pick(['/w/t', '/w/s', '/w/e'])
        : this.#anyPath()
    const call = this.#begin('watch', path, undefined, false)
    const made = client.watchOnce(path, kind)
    const watch = await this.#record(call, made, ({ stat, data, children, order }) => ({
      order,
      path,
      stat: statOf(stat),
      ...(data === undefined ? {} : { data: textOf(data) }),
      ...(children === undefined ? {} : { children }),
    }))
    if (watch === undefined) return
    if (isBrief) return void this.#call('end', path, () => watch.close())
    const armed: ArmedWatch = { kind, observed: call.observed! }
    call.armed = armed
    void this.#options.log.track(
      this.#begin('follow', path, undefined, false),
      watch.fired.then(
        (event) => void (armed.event = event),
        // It ends with its client or its session, after everything that the client observed in it.
        () => {},
      ),
      () => undefined,
    )
  }

  /** Reads a znode again after each event of its stream, across connections and sessions. */
  async #follow(client: Client, incarnation: Incarnation, path: string): Promise<void> {
    const call = this.#begin('follow', path, undefined, false)
    const watcher = await this.#record(call, client.watch(path, { buffer: 4 }), () => undefined)
    if (watcher === undefined) return
    const follower: StreamReader = {
      client: this.#name,
      path,
      incarnation,
      last: undefined,
      reads: 0,
      isEnded: false,
    }
    this.#options.log.streamReaders.push(follower)
    await this.#readUntilSuccess(client, follower)
    for await (const event of watcher) {
      await this.#readUntilSuccess(client, follower)
      if (event.type !== 'resync') follower.reads++
    }
    follower.isEnded = true
  }

  /** Retries until a read succeeds: losing the connection between event and read causes no further event. */
  async #readUntilSuccess(client: Client, follower: StreamReader): Promise<void> {
    while (client.state !== 'closed') {
      const found = await this.#get(client, follower.path)
      if (found?.stat !== undefined) follower.last = found.stat
      if (found !== undefined) return
      await new Promise<void>(
        (resolve) => void follower.incarnation.platform.clock.after(50, 'again', resolve),
      )
    }
  }

  #begin(kind: CallKind, path: string, uniqueData: string | undefined, isRepeatable: boolean): Call {
    const incarnation = this.host.current!
    return {
      client: this.#name,
      kind,
      path,
      uniqueData,
      isRepeatable,
      incarnation,
      invoked: incarnation.host.world.now,
      outcome: 'pending',
    }
  }

  #track<T>(
    kind: CallKind,
    path: string,
    made: Promise<T>,
    tell: (value: T) => Observed | undefined = () => undefined,
  ): Promise<T | undefined> {
    return this.#record(this.#begin(kind, path, undefined, false), made, tell)
  }

  #trackWrite<T>(
    kind: CallKind,
    path: string,
    uniqueData: string,
    isRepeatable: boolean,
    made: Promise<T>,
    tell: (value: T) => Observed | undefined = () => undefined,
  ): Promise<T | undefined> {
    return this.#record(this.#begin(kind, path, uniqueData, isRepeatable), made, tell)
  }

  #call<T>(kind: CallKind, path: string, make: () => Promise<T>): Promise<T | undefined> {
    return this.#track(kind, path, make())
  }

  async #record<T>(
    call: Call,
    made: Promise<T>,
    tell: (value: T) => Observed | undefined,
  ): Promise<T | undefined> {
    this.#pending++
    const value = await this.#options.log.track(call, made, tell)
    if (call.incarnation.isAlive) this.#pending--
    return value
  }

  /** Returns limits for a call: most calls have none, some a timeout, some no retry. */
  #limits(): { timeout?: number; retry?: false } {
    const { prng } = this.#options
    if (prng.chance(0.1)) return { timeout: prng.integer(5, 2000) }
    return prng.chance(0.1) ? { retry: false } : {}
  }

  #register(): string {
    return `/w/r/${this.#options.prng.below(6)}`
  }

  #anyPath(): string {
    const { prng } = this.#options
    return prng.pick([this.#register(), this.#register(), `/w/t/${prng.below(6)}`, `/w/e/${prng.below(5)}`])
  }
}
