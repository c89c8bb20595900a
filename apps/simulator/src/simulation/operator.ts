import { ErrorCode, errorName } from '@zabra/protocol'
import type { Operation } from '../history/records.ts'
import { RetryingClient } from '../workload/retrying-client.ts'
import type { SessionClient } from '../workload/session-client.ts'
import type { SimulatedServer, SimulatedWorld } from '@zabra/testing'
import { readMembers, type Members, type Role } from './membership.ts'
import type { MembershipChange } from './fault.ts'
import { memberLine, membershipText, votersWith, type GroupsPlan } from './membership-text.ts'
import { DATA_DIR, configurationFor } from './settings.ts'

/** A requested change of one server's membership. */
export interface MembershipRequest {
  readonly kind: MembershipChange
  readonly server: SimulatedServer
  /** How long a server with an empty disk stays down. */
  readonly forMs: number
}

interface SeenConfiguration extends Members {
  readonly text: string
}

const CONFIG = '/zookeeper/config'
/** Attempts per change. */
const ATTEMPTS = 6
const PAUSE_MS = 150

/**
 * Changes the membership as a careful operator does: one reconfiguration at a time, each conditional on the current
 * version, so that a change whose reply was lost cannot be applied after the next one. The disk of a server is replaced
 * only while the server is known not to be a voter, by a committed reconfiguration, and the server restarts with the
 * configuration of that moment. A voter that forgets its promises, or a server that believes in an older configuration
 * in which it votes, could form a conflicting quorum with another server that missed the changes.
 */
export class Operator {
  /** Number of changes done and given up. */
  readonly counts: Record<string, number> = {}
  readonly #world: SimulatedWorld
  readonly #servers: readonly SimulatedServer[]
  readonly #begin: () => SessionClient
  /** Present for hierarchical quorums, which exclude incremental reconfigurations. */
  readonly #groups: GroupsPlan | undefined
  /** Servers whose address strangers have. */
  readonly #impersonated: ReadonlySet<number>
  #client: RetryingClient | undefined
  /** Whether no unanswered reconfiguration can still be applied. */
  #isCertain = true
  #requests: MembershipRequest[] = []
  #isBusy = false
  #isStopped = false

  constructor(
    world: SimulatedWorld,
    servers: readonly SimulatedServer[],
    begin: () => SessionClient,
    groups: GroupsPlan | undefined,
    impersonated: ReadonlySet<number>,
  ) {
    this.#groups = groups
    this.#impersonated = impersonated
    this.#world = world
    this.#servers = servers
    this.#begin = begin
  }

  request(change: MembershipRequest): void {
    this.#requests.push(change)
    if (!this.#isBusy) void this.#work()
  }

  /** Stops after the current change. */
  stop(): void {
    this.#isStopped = true
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    this.#client ??= new RetryingClient(this.#begin())
    for (
      let change = this.#requests.shift();
      change !== undefined && !this.#isStopped;
      change = this.#requests.shift()
    ) {
      const done = await this.#carryOut(change)
      this.#count(`${change.kind} ${done ? 'done' : 'given up'}`)
    }
    this.#isBusy = false
  }

  async #carryOut({ kind, server, forMs }: MembershipRequest): Promise<boolean> {
    switch (kind) {
      case 'leave':
        return this.#become(server.id, undefined)
      case 'vote':
        return this.#become(server.id, 'participant')
      case 'observe':
        return this.#become(server.id, 'observer')
      case 'outdated':
        return this.#leaveOutdated(server.id)
      case 'wipe': {
        const seen = await this.#readConfiguration()
        const silent = [server, ...this.#servers].find(({ id }) => !seen.voters.has(id))
        return silent !== undefined && this.#wipe(silent, seen, forMs)
      }
      case 'renew': {
        const role = (await this.#readConfiguration()).roles.get(server.id)
        if (!(await this.#become(server.id, undefined))) return false
        if (!this.#wipe(server, await this.#readConfiguration(), forMs)) return false
        await this.#pause(forMs)
        return role === undefined || this.#become(server.id, role)
      }
    }
  }

  /** Returns whether the membership is known to be as requested in the end. */
  async #become(id: number, role: Role | undefined): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS && !this.#isStopped; attempt++) {
      const { version, roles } = await this.#readConfiguration()
      if (roles.get(id) === role) return this.#isCertain
      // Nothing protects members from false claims of a quorum.
      if (this.#isQuorumImpersonated(withRole(roles, id, role))) return false
      this.#isCertain = false
      const { result } = await this.#ask({ op: 'reconfig', ...this.#change(id, role, roles), from: version })
      this.#isCertain = result.err === ErrorCode.OK
      if (this.#isCertain) return true
      this.#count(`changes refused with ${errorName(result.err)}`)
      if (result.err === ErrorCode.BADARGUMENTS) return false
      await this.#pause(PAUSE_MS)
    }
    return false
  }

  /** Requests a change of the configuration before the one in force. Returns whether it was refused for that. */
  async #leaveOutdated(id: number): Promise<boolean> {
    const { version, roles } = await this.#readConfiguration()
    const change = this.#change(id, undefined, roles)
    this.#isCertain = false
    const { result } = await this.#ask({ op: 'reconfig', ...change, from: version - 1 })
    this.#isCertain = result.err === ErrorCode.BADVERSION
    return this.#isCertain
  }

  #change(
    id: number,
    role: Role | undefined,
    roles: ReadonlyMap<number, Role>,
  ): { joining: string; leaving: string; members?: string } {
    if (this.#groups === undefined)
      return {
        joining: role === undefined ? '' : memberLine(id, role),
        leaving: role === undefined ? String(id) : '',
      }
    return { joining: '', leaving: '', members: membershipText(withRole(roles, id, role), this.#groups) }
  }

  #isQuorumImpersonated(roles: ReadonlyMap<number, Role>): boolean {
    return votersWith(roles, this.#groups).isQuorum((id) => this.#impersonated.has(id))
  }

  /** Replaces the disk of a non-voter by an empty one with the current configuration. */
  #wipe(server: SimulatedServer, { text, version, roles }: SeenConfiguration, forMs: number): boolean {
    if (!this.#isCertain || this.#isStopped) return false
    server.replaceDisk({
      path: `${DATA_DIR}/zoo.cfg.dynamic.${version.toString(16)}`,
      text: text.slice(0, text.lastIndexOf('\n')),
      ensemble: configurationFor(server.id, roles, this.#groups),
    })
    this.#world.schedule(forMs, undefined, 'new disk', () => server.start())
    return true
  }

  async #readConfiguration(): Promise<SeenConfiguration> {
    await this.#ask({ op: 'sync', path: CONFIG })
    const { result } = await this.#ask({ op: 'get', path: CONFIG, watch: false })
    const text = result.data ?? ''
    return { ...readMembers(text), text }
  }

  #ask(request: Parameters<RetryingClient['request']>[0]): Promise<Operation> {
    return this.#client!.request(request)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.schedule(ms, undefined, 'operator waits', resolve))
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }
}

/** Returns the roles after a change of one server; without a role the server is no member. */
function withRole(
  roles: ReadonlyMap<number, Role>,
  id: number,
  role: Role | undefined,
): ReadonlyMap<number, Role> {
  const next = new Map(roles)
  if (role === undefined) next.delete(id)
  else next.set(id, role)
  return next
}
