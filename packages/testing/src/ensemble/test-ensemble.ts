import { nodeClock, nodeNetwork } from '@zabra/runtime/node'
import { parseConfiguration, type ServerSettings } from '@zabra/server/core'
import { withGiven } from '../given-settings.ts'
import { ChildServer, type ChildServerOptions } from './child-server.ts'
import type { TestMember } from './test-member.ts'
import { TestServer, type TestServerOptions } from './test-server.ts'

export interface TestEnsembleOptions extends Omit<TestServerOptions, 'data'> {
  /** `memory` (the default), or a folder in which each member gets a folder of its own. */
  readonly data?: 'memory' | (string & {}) | undefined
}

export interface ChildEnsembleOptions extends Omit<ChildServerOptions, 'data'> {
  /**
   * A folder in which each member gets a folder of its own. Without it members use temporary folders that `close`
   * removes.
   */
  readonly data?: string | undefined
}

/** How long to wait for a state of the ensemble, in milliseconds. */
const START_MS = 30_000
const POLL_MS = 20

/** Several servers that form an ensemble. Members are numbered from 1. */
export class TestEnsemble<M extends TestMember = TestServer> {
  readonly members: readonly M[]
  readonly #ports: readonly MemberPorts[]
  /** Created by `startEnsemble`. */
  constructor(ports: readonly MemberPorts[], make: (id: number, settings: MemberSettings) => M) {
    this.#ports = ports
    const lines = ports.map(
      ({ quorum, election, client }, index) =>
        `server.${index + 1}=127.0.0.1:${quorum}:${election}:participant;127.0.0.1:${client}`,
    )
    const ensemble = parseConfiguration(lines.join('\n'))
    this.members = ports.map(({ client }, index) =>
      make(index + 1, { serverId: index + 1, clientPort: client, ensemble }),
    )
  }

  /** Returns the connect string with the addresses of all members. */
  get connectString(): string {
    return this.#ports.map(({ client }) => `127.0.0.1:${client}`).join(',')
  }

  member(id: number): M {
    const member = this.members[id - 1]
    if (member === undefined)
      throw new RangeError(`Expected a member from 1 to ${this.members.length}, got ${id}`)
    return member
  }

  /** Returns the member that leads and serves. Undefined while no member leads, or two believe that they lead. */
  get leader(): number | undefined {
    const leaders = this.#leaders()
    return leaders.length === 1 ? leaders[0] : undefined
  }

  /**
   * Waits until a quorum serves and a member other than `except` leads, and resolves to that leader. Rejects after 30
   * seconds.
   */
  waitForLeader(except?: number): Promise<number> {
    return waitUntil('a leader and a quorum that serves', () => {
      const serving = this.members.filter((member) => member.isServing).length
      const leaders = this.#leaders().filter((id) => id !== except)
      return serving * 2 > this.members.length ? leaders[0] : undefined
    })
  }

  /** Waits until every running member serves and exactly one of them leads. Rejects after 30 seconds. */
  waitForAll(): Promise<true> {
    return waitUntil('every member to serve behind one leader', () =>
      this.leader !== undefined && this.members.every((member) => !member.isRunning || member.isServing)
        ? true
        : undefined,
    )
  }

  /**
   * Partitions the members into groups that cannot reach each other. A member that is in no group is isolated. Clients
   * still reach all members.
   */
  partition(...groups: readonly (readonly number[])[]): void {
    const sides = new Map<number, number>()
    for (const [side, group] of groups.entries()) for (const id of group) sides.set(id, side)
    for (const [index] of this.members.entries())
      if (!sides.has(index + 1)) sides.set(index + 1, groups.length + index)
    for (const [index, member] of this.members.entries())
      member.blockPorts(
        this.#ports.flatMap(({ quorum, election }, other) =>
          sides.get(other + 1) === sides.get(index + 1) ? [] : [quorum, election],
        ),
      )
  }

  /** Removes all partitions. */
  heal(): void {
    for (const member of this.members) member.blockPorts([])
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
      member.role === 'leading' && member.isServing ? [index + 1] : [],
    )
  }
}

interface MemberPorts {
  readonly quorum: number
  readonly election: number
  readonly client: number
}

type MemberSettings = Pick<ServerSettings, 'serverId' | 'clientPort' | 'ensemble'>

/**
 * Starts an ensemble of `size` members on free loopback ports and resolves when it serves. With `process: 'child'` each
 * member runs in a process of its own.
 */
export function startEnsemble(size: number, options: ChildEnsembleOptions): Promise<TestEnsemble<ChildServer>>
export function startEnsemble(size?: number, options?: TestEnsembleOptions): Promise<TestEnsemble>
export function startEnsemble(
  size = 3,
  options: TestEnsembleOptions | ChildEnsembleOptions = {},
): Promise<TestEnsemble<TestMember>> {
  const limits = withGiven({ initLimit: 20, syncLimit: 10 }, options.settings)
  if (options.process === 'child')
    return start(size, (id, own) => {
      const data = options.data === undefined ? {} : { data: `${options.data}/${id}` }
      return new ChildServer({ ...options, ...data, settings: { ...limits, ...own } })
    })
  const { data = 'memory' } = options
  return start(size, (id, own) => {
    const settings = { ...limits, ...own }
    return new TestServer({ ...options, settings, data: data === 'memory' ? data : `${data}/${id}` })
  })
}

async function start<M extends TestMember>(
  size: number,
  make: (id: number, settings: MemberSettings) => M,
): Promise<TestEnsemble<M>> {
  if (!Number.isInteger(size) || size < 2) throw new RangeError(`Expected two members or more, got ${size}`)
  const free = await freePorts(size * 3)
  const ports = Array.from({ length: size }, (_, index) => ({
    quorum: free[index * 3]!,
    election: free[index * 3 + 1]!,
    client: free[index * 3 + 2]!,
  }))
  const ensemble = new TestEnsemble(ports, make)
  try {
    await Promise.all(ensemble.members.map((member) => member.start()))
    await ensemble.waitForLeader()
    await ensemble.waitForAll()
    return ensemble
  } catch (error) {
    await ensemble.close()
    throw error
  }
}

/** Returns different ports that were free a moment ago. */
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

async function waitUntil<T>(what: string, find: () => T | undefined): Promise<T> {
  const end = nodeClock.monotonic() + START_MS
  for (;;) {
    const found = find()
    if (found !== undefined) return found
    if (nodeClock.monotonic() > end) throw new Error(`Expected ${what} within ${START_MS} ms`)
    await new Promise<void>((resolve) => void wakeful(POLL_MS, resolve))
  }
}

const wakeful = (ms: number, action: () => void): unknown => setTimeout(action, ms)
