import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Proxy } from '../client/proxy.ts'
import { Client, ConnectionLost, fourLetterWord } from '../harness/client.ts'
import { dumpTree } from '../harness/dump.ts'
import { freePort } from '../harness/ports.ts'
import { pauseBetweenPolls, scratch, Server, type Kind } from '../harness/servers.ts'

/** How long the tree of a member may take to read, in milliseconds, connections that are lost meanwhile included: it may have millions of znodes. */
const DUMP_MS = 900_000
/** The password behind it is `secret`. */
const superDigest = 'super:lK75jTNcA+U9vtVEw5vB51mj/w4='

export interface EnsembleOptions {
  /** The kind of each member, in the order of ids from 1. */
  readonly kinds: readonly Kind[]
  /** Settings of every member. */
  readonly config?: Readonly<Record<string, string | number>>
  /** Additional settings of one member. */
  readonly configOf?: (id: number, kind: Kind) => Readonly<Record<string, string | number>>
  /** Additional environment variables of one member. */
  readonly envOf?: (id: number) => Readonly<Record<string, string>>
  /** Ids of members that are observers. */
  readonly observers?: readonly number[]
  /** JVM flags; Zabra receives them as `JVMFLAGS`. */
  readonly javaFlags?: readonly string[]
  /** The host of a member, for tests in which members share a port; 127.0.0.1 by default. */
  readonly hostOf?: (id: number) => string
  /** Puts a proxy in front of each connection between two members, so that it can be cut. */
  readonly proxied?: boolean
}

/** An ensemble of server processes of any kinds on loopback, for one test. Their data stays between starts. */
export class Ensemble {
  readonly ids: readonly number[]
  readonly #options: EnsembleOptions
  readonly #ports: readonly number[]
  readonly #kinds: Kind[]
  /** Proxies of the quorum port and the election port, by `from to`. */
  readonly #proxies = new Map<string, readonly [Proxy, Proxy]>()
  readonly #folders = new Map<number, string>()
  readonly #members = new Map<number, Server>()

  private constructor(options: EnsembleOptions, ports: readonly number[]) {
    this.#options = options
    this.#ports = ports
    this.#kinds = [...options.kinds]
    this.ids = options.kinds.map((_, index) => index + 1)
  }

  /** Returns the `server.N` lines for one member: its own ports, and the proxies of the others. */
  #lines(self: number): Record<string, string> {
    const role = (id: number): string => (this.#options.observers?.includes(id) ? ':observer' : '')
    return Object.fromEntries(
      this.ids.map((id) => {
        const host = this.#options.hostOf?.(id) ?? '127.0.0.1'
        return [`server.${id}`, `${host}:${this.#portsTo(self, id).join(':')}${role(id)}`]
      }),
    )
  }

  #portsTo(self: number, id: number): number[] {
    const proxies = this.#proxies.get(`${self} ${id}`)
    return proxies?.map(({ port }) => port) ?? [this.#ports[2 * id - 2]!, this.#ports[2 * id - 1]!]
  }

  /**
   * Plans an ensemble on free ports and starts all of its members. Resolves when each of them serves. `dispose` registers its
   * removal: by default when the test finishes.
   */
  static async start(
    options: EnsembleOptions,
    dispose?: (remove: () => Promise<void>) => void,
  ): Promise<Ensemble> {
    const ensemble = await Ensemble.plan(options, dispose)
    await ensemble.start(...ensemble.ids)
    return ensemble
  }

  /** Plans an ensemble on free ports without starting a member. It is removed when the test finishes. */
  static async plan(
    options: EnsembleOptions,
    dispose: (remove: () => Promise<void>) => void = onTestFinished,
  ): Promise<Ensemble> {
    const ports = await Promise.all(options.kinds.flatMap(() => [freePort(), freePort()]))
    const ensemble = new Ensemble(options, ports)
    dispose(() => ensemble.#dispose())
    if (options.proxied === true) await ensemble.#startProxies()
    return ensemble
  }

  async #startProxies(): Promise<void> {
    for (const from of this.ids)
      for (const to of this.ids)
        if (from !== to) {
          const [quorum = 0, election = 0] = this.#portsTo(from, to)
          this.#proxies.set(`${from} ${to}`, [await Proxy.start(quorum), await Proxy.start(election)])
        }
  }

  /** Cuts the connections between two members, in both directions, until the returned function is called. */
  partition(a: number, b: number): () => void {
    const proxies = [`${a} ${b}`, `${b} ${a}`].flatMap((pair) => this.#proxies.get(pair)!)
    const heal = proxies.map((proxy) => proxy.refuse())
    return () => heal.forEach((one) => one())
  }

  /** Cuts a member off from all others until the returned function is called. */
  isolate(id: number): () => void {
    const heal = this.ids.filter((other) => other !== id).map((other) => this.partition(id, other))
    return () => heal.forEach((one) => one())
  }

  kindOf(id: number): Kind {
    return this.#kinds[id - 1]!
  }

  /** Stops a member and starts one of another kind on its data and ports. Resolves when it serves. */
  async replace(id: number, kind: Kind): Promise<void> {
    const { port } = this.member(id)
    await this.stop(id)
    this.#members.delete(id)
    this.#kinds[id - 1] = kind
    await this.#start(id, port)
  }

  member(id: number): Server {
    const member = this.#members.get(id)
    if (member === undefined) throw new Error(`Member ${id} was never started`)
    return member
  }

  /** Starts members concurrently. Resolves when all of them serve, which requires a quorum. */
  async start(...ids: number[]): Promise<void> {
    await Promise.all(ids.map((id) => this.#start(id)))
  }

  async kill(...ids: number[]): Promise<void> {
    await Promise.all(ids.map((id) => this.member(id).kill()))
  }

  async stop(...ids: number[]): Promise<void> {
    await Promise.all(ids.map((id) => this.member(id).stop()))
  }

  /** Stops members with SIGSTOP; their connections stay open. Resolves when all their threads have stopped. */
  async freeze(...ids: number[]): Promise<void> {
    for (const id of ids) this.member(id).signal('SIGSTOP')
    await until('the members to stop', () => Promise.resolve(ids.every((id) => this.member(id).isStopped)))
  }

  /** Returns the quorum port and the election port of a member. */
  portsOf(id: number): number[] {
    return [this.#ports[2 * id - 2]!, this.#ports[2 * id - 1]!]
  }

  /** Returns the data directory of a member. */
  folder(id: number): string {
    return this.#folders.get(id)!
  }

  async #start(id: number, port?: number): Promise<void> {
    const known = this.#members.get(id)
    if (known !== undefined) return known.start()
    const { config, configOf, envOf, javaFlags } = this.#options
    const kind = this.kindOf(id)
    const dataDir = this.#folders.get(id) ?? join(scratch(`ensemble-${id}`), 'data')
    mkdirSync(dataDir, { recursive: true })
    writeFileSync(join(dataDir, 'myid'), String(id))
    this.#folders.set(id, dataDir)
    const server = await Server.plan({
      kind,
      dataDir,
      ...(port === undefined ? {} : { port }),
      ...(javaFlags === undefined ? {} : { javaFlags }),
      ...(envOf === undefined ? {} : { env: envOf(id) }),
      config: {
        tickTime: 400,
        initLimit: 25,
        syncLimit: 10,
        'DigestAuthenticationProvider.superDigest': superDigest,
        ...this.#lines(id),
        ...config,
        ...configOf?.(id, kind),
      },
    })
    this.#members.set(id, server)
    await server.start()
  }

  /** Ids of the members that run. */
  get running(): number[] {
    return this.ids.filter((id) => this.#members.get(id)?.isRunning === true)
  }

  /** Returns the mode of a member from `srvr`, or undefined when it does not serve. */
  async modeOf(id: number): Promise<string | undefined> {
    const text = await fourLetterWord(this.member(id).port, 'srvr', { timeoutMs: 2000 }).catch(() => '')
    return /Mode: ([\w-]+)/.exec(text)?.[1]
  }

  /** Waits until all running members serve with one leader. Resolves to its id. */
  async leader(): Promise<number> {
    let leaders: number[] = []
    await until('one leader', async () => {
      const modes = await Promise.all(this.running.map(async (id) => ({ id, mode: await this.modeOf(id) })))
      leaders = modes.filter(({ mode }) => mode === 'leader').map(({ id }) => id)
      return leaders.length === 1 && modes.every(({ mode }) => mode !== undefined)
    })
    return leaders[0]!
  }

  /** Calls an action with a client of one member and closes its session afterwards. */
  async withClient<T>(id: number, action: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.connect(id)
    try {
      return await action(client)
    } finally {
      await client.close()
    }
  }

  /** Opens a session at a member. Retries while the member does not serve. */
  async connect(id: number, timeoutMs = 30_000): Promise<Client> {
    let client: Client | undefined
    await until(`a session at member ${id}`, async () => {
      client = await Client.connect(this.member(id).port, { timeoutMs }).catch(() => undefined)
      return client !== undefined
    })
    return client!
  }

  /** Returns the last zxid of a member. */
  async zxidOf(id: number): Promise<string | undefined> {
    return /Zxid: (0x[\da-f]+)/.exec(await fourLetterWord(this.member(id).port, 'srvr').catch(() => ''))?.[1]
  }

  /** Waits until all running members have the same last zxid. */
  async waitUntilSynced(): Promise<void> {
    await until('members with the same zxid', async () => {
      const zxids = await Promise.all(this.running.map((id) => this.zxidOf(id)))
      return zxids[0] !== undefined && zxids.every((zxid) => zxid === zxids[0])
    })
  }

  /** Returns the tree of each running member, read after a sync. Reads again when a member changes its role meanwhile. */
  async dumps(): Promise<Map<number, Record<string, string>>> {
    const dumps = new Map<number, Record<string, string>>()
    for (const id of this.running) {
      const dump = async (): Promise<boolean> => {
        try {
          dumps.set(id, await this.withClient(id, (client) => dumpSynced(client)))
          return true
        } catch (error) {
          if (error instanceof ConnectionLost) return false
          throw error
        }
      }
      await until(`the tree of member ${id}`, dump, DUMP_MS)
    }
    return dumps
  }

  async #dispose(): Promise<void> {
    await Promise.all([...this.#members.values()].map((member) => member[Symbol.asyncDispose]()))
    await Promise.all([...this.#proxies.values()].flat().map((proxy) => proxy.close()))
  }
}

async function dumpSynced(client: Client): Promise<Record<string, string>> {
  await client.addAuth('digest', 'super:secret')
  await sync(client)
  const dump = await dumpTree(client)
  // Each server writes these nodes on its own, at a different time.
  for (const path of Object.keys(dump)) if (path.startsWith('/zookeeper')) delete dump[path]
  return dump
}

/** Waits until the client's server has applied everything committed before. */
export async function sync(client: Client, path = '/'): Promise<void> {
  const body = Buffer.alloc(4 + path.length)
  body.writeInt32BE(path.length)
  body.write(path, 4)
  await client.ok(9, body, 'sync')
}

/** Polls until a condition holds. Rejects after the timeout. */
export async function until(
  what: string,
  condition: () => Promise<boolean>,
  withinMs = 30_000,
): Promise<void> {
  const began = Date.now()
  while (!(await condition())) {
    if (Date.now() - began > withinMs) throw new Error(`Waited ${withinMs} ms for ${what}`)
    await pauseBetweenPolls(began)
  }
}
