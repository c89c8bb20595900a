import { NetworkError, type Connection } from '@zabra/runtime'
import { nodeClock, nodeNetwork } from '@zabra/runtime/node'
import { parseConfiguration } from '@zabra/server'
import { TestServer, type TestServerOptions } from './test-server.ts'

export interface TestEnsembleOptions extends Omit<TestServerOptions, 'data'> {
  /** `memory` (the default), or a folder below which each member gets one. */
  readonly data?: 'memory' | (string & {})
}

/** How long an ensemble may take to come into being, in milliseconds. */
const START_MS = 30_000
const LOOK_MS = 20

/** Several servers in the process of a test, and what can happen to them. Members are numbered from 1 on. */
export class TestEnsemble {
  readonly members: readonly TestServer[]
  readonly #ports: readonly MemberPorts[]
  readonly #wires = new Set<{ readonly from: number; readonly to: number; readonly connection: Connection }>()
  /** Which side of a partition a member is on. */
  #sides: ReadonlyMap<number, number> = new Map()

  /** Use `startEnsemble`. */
  constructor(ports: readonly MemberPorts[], options: TestEnsembleOptions) {
    this.#ports = ports
    const lines = ports.map(
      ({ quorum, election, client }, index) =>
        `server.${index + 1}=127.0.0.1:${quorum}:${election}:participant;127.0.0.1:${client}`,
    )
    const ensemble = parseConfiguration(lines.join('\n'))
    const { data = 'memory' } = options
    this.members = ports.map(({ client }, index) => {
      const id = index + 1
      const settings = {
        serverId: id,
        clientPort: client,
        initLimit: 20,
        syncLimit: 10,
        ...options.settings,
        ensemble,
      }
      const ways = {
        open: (port: number) => this.#pass(id, port),
        opened: (connection: Connection) => this.#opened(id, connection),
      }
      return new TestServer({ ...options, settings, data: data === 'memory' ? data : `${data}/${id}` }, ways)
    })
  }

  /** For clients: the addresses of all members. */
  get connectString(): string {
    return this.#ports.map(({ client }) => `127.0.0.1:${client}`).join(',')
  }

  member(id: number): TestServer {
    const member = this.members[id - 1]
    if (member === undefined)
      throw new RangeError(`Expected a member from 1 to ${this.members.length}, got ${id}`)
    return member
  }

  /** The member that leads and serves; undefined while there is none, and while two believe that they do. */
  get leader(): number | undefined {
    const leaders = this.#leaders()
    return leaders.length === 1 ? leaders[0] : undefined
  }

  /** Waits until a quorum serves and a member leads, another one than `except`; gives it. Rejects after half a minute. */
  ready(except?: number): Promise<number> {
    return until('a leader and a quorum that serves', () => {
      const serving = this.members.filter((member) => member.isRunning && member.server.serving).length
      const leaders = this.#leaders().filter((id) => id !== except)
      return serving * 2 > this.members.length ? leaders[0] : undefined
    })
  }

  /** Waits until every member that runs serves, and no more than one of them believes that it leads. */
  whole(): Promise<true> {
    return until('every member to serve behind one leader', () =>
      this.leader !== undefined && this.members.every((member) => !member.isRunning || member.server.serving)
        ? true
        : undefined,
    )
  }

  /** Cuts the members into groups that do not reach each other. Who is not named is alone. Clients reach all of them. */
  partition(...groups: readonly (readonly number[])[]): void {
    const sides = new Map<number, number>()
    for (const [side, group] of groups.entries()) for (const id of group) sides.set(id, side)
    for (const [index] of this.members.entries())
      if (!sides.has(index + 1)) sides.set(index + 1, groups.length + index)
    this.#sides = sides
    for (const wire of this.#wires) if (this.#isCut(wire.from, wire.to)) wire.connection.destroy()
  }

  /** Lets all members reach each other again. */
  heal(): void {
    this.#sides = new Map()
  }

  async close(): Promise<void> {
    this.heal()
    await Promise.all(this.members.map((member) => member.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #leaders(): number[] {
    return this.members.flatMap((member, index) =>
      member.isRunning && member.server.role === 'leading' && member.server.serving ? [index + 1] : [],
    )
  }

  #pass(from: number, port: number): void {
    const to = this.#ports.findIndex(({ quorum, election }) => port === quorum || port === election) + 1
    if (to === 0 || !this.#isCut(from, to)) return
    throw new NetworkError(
      `Cannot connect to 127.0.0.1:${port} (EHOSTUNREACH): the test cut the way`,
      'EHOSTUNREACH',
    )
  }

  #opened(from: number, connection: Connection): void {
    const to =
      this.#ports.findIndex(({ quorum, election }) => [quorum, election].includes(connection.remote.port)) + 1
    this.#wires.add({ from, to, connection })
  }

  #isCut(from: number, to: number): boolean {
    return this.#sides.get(from) !== this.#sides.get(to)
  }
}

interface MemberPorts {
  readonly quorum: number
  readonly election: number
  readonly client: number
}

/** Starts an ensemble of so many members on free ports of loopback, and resolves when it serves. */
export async function startEnsemble(size = 3, options: TestEnsembleOptions = {}): Promise<TestEnsemble> {
  if (!Number.isInteger(size) || size < 2) throw new RangeError(`Expected two members or more, got ${size}`)
  const free = await freePorts(size * 3)
  const ports = Array.from({ length: size }, (_, index) => ({
    quorum: free[index * 3]!,
    election: free[index * 3 + 1]!,
    client: free[index * 3 + 2]!,
  }))
  const ensemble = new TestEnsemble(ports, options)
  try {
    await Promise.all(ensemble.members.map((member) => member.start()))
    await ensemble.ready()
    await ensemble.whole()
    return ensemble
  } catch (error) {
    await ensemble.close()
    throw error
  }
}

/** Ports that were free a moment ago, all different. */
async function freePorts(count: number): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, () =>
      nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, (one) => one.destroy()),
    ),
  )
  const ports = listeners.map(({ address }) => address.port)
  await Promise.all(listeners.map((listener) => listener.close()))
  return ports
}

async function until<T>(what: string, look: () => T | undefined): Promise<T> {
  const end = nodeClock.monotonic() + START_MS
  for (;;) {
    const found = look()
    if (found !== undefined) return found
    if (nodeClock.monotonic() > end) throw new Error(`Expected ${what} within ${START_MS} ms`)
    await new Promise<void>((resolve) => void wakeful(LOOK_MS, resolve))
  }
}

const wakeful = (ms: number, action: () => void): unknown => setTimeout(action, ms)
