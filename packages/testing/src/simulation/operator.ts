import { ErrorCode, errorName } from '@zabra/protocol'
import type { Operation } from '../history/records.ts'
import { Asking } from '../workload/tasks.ts'
import type { SessionClient } from '../workload/session-client.ts'
import type { World } from '../world/world.ts'
import { readMembers, type Members, type Role } from './membership.ts'
import type { Change, GroupsPlan } from './plan.ts'
import type { SimulatedServer } from './server.ts'
import { DATA_DIR, memberLine, membershipText, writtenFor } from './settings.ts'

/** Something that is to become of a server. */
export interface Wish {
  readonly kind: Change
  readonly server: SimulatedServer
  /** How long a server that gets an empty disk is away. */
  readonly forMs: number
}

interface Seen extends Members {
  readonly text: string
}

const CONFIG = '/zookeeper/config'
/** Attempts at one change. */
const ATTEMPTS = 6
const PAUSE_MS = 150

/**
 * Changes the ensemble as a careful operator does: one change after the other, each on the condition that nobody made another one
 * meanwhile, so that one whose answer was lost cannot be carried out behind the next.
 *
 * A server may lose its disk only while it has no voice by a change that is known to be committed, and it comes back with the
 * configuration of that moment in its folder. Who forgets what it has promised while it may still vote, or believes in an older
 * configuration in which it may, can make a second history together with another server that has missed the changes.
 */
export class Operator {
  /** What was done, and what was given up. */
  readonly counts: Record<string, number> = {}
  readonly #world: World
  readonly #servers: readonly SimulatedServer[]
  readonly #begin: () => SessionClient
  /** Present when voices are weighed: single changes are not possible then. */
  readonly #groups: GroupsPlan | undefined
  #asking: Asking | undefined
  /** Whether no change can be on its way that was not answered. */
  #certain = true
  #wishes: Wish[] = []
  #busy = false
  #stopped = false

  constructor(
    world: World,
    servers: readonly SimulatedServer[],
    begin: () => SessionClient,
    groups: GroupsPlan | undefined,
  ) {
    this.#groups = groups
    this.#world = world
    this.#servers = servers
    this.#begin = begin
  }

  ask(wish: Wish): void {
    this.#wishes.push(wish)
    if (!this.#busy) void this.#work()
  }

  /** Begins nothing more. */
  stop(): void {
    this.#stopped = true
  }

  async #work(): Promise<void> {
    this.#busy = true
    this.#asking ??= new Asking(this.#begin())
    for (let wish = this.#wishes.shift(); wish !== undefined && !this.#stopped; wish = this.#wishes.shift()) {
      const done = await this.#carryOut(wish)
      this.#count(`${wish.kind} ${done ? 'done' : 'given up'}`)
    }
    this.#busy = false
  }

  async #carryOut({ kind, server, forMs }: Wish): Promise<boolean> {
    switch (kind) {
      case 'leave':
        return this.#become(server.id, undefined)
      case 'vote':
        return this.#become(server.id, 'participant')
      case 'observe':
        return this.#become(server.id, 'observer')
      case 'wipe': {
        const seen = await this.#look()
        const silent = [server, ...this.#servers].find(({ id }) => !seen.voters.has(id))
        return silent !== undefined && this.#wipe(silent, seen, forMs)
      }
      case 'renew': {
        const role = (await this.#look()).roles.get(server.id)
        if (!(await this.#become(server.id, undefined))) return false
        if (!this.#wipe(server, await this.#look(), forMs)) return false
        await this.#pause(forMs)
        return role === undefined || this.#become(server.id, role)
      }
    }
  }

  /** Whether it is known to be so in the end. */
  async #become(id: number, role: Role | undefined): Promise<boolean> {
    for (let attempt = 0; attempt < ATTEMPTS && !this.#stopped; attempt++) {
      const { version, roles } = await this.#look()
      if (roles.get(id) === role) return this.#certain
      this.#certain = false
      const { result } = await this.#ask({ op: 'reconfig', ...this.#change(id, role, roles), from: version })
      this.#certain = result.err === ErrorCode.OK
      if (this.#certain) return true
      this.#count(`changes refused with ${errorName(result.err)}`)
      if (result.err === ErrorCode.BADARGUMENTS) return false
      await this.#pause(PAUSE_MS)
    }
    return false
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
    const next = new Map(roles)
    if (role === undefined) next.delete(id)
    else next.set(id, role)
    return { joining: '', leaving: '', members: membershipText(next, this.#groups) }
  }

  /** Gives a server without a voice an empty disk, with the configuration of the others on it. */
  #wipe(server: SimulatedServer, { text, version, roles }: Seen, forMs: number): boolean {
    if (!this.#certain || this.#stopped) return false
    server.replaceDisk({
      path: `${DATA_DIR}/zoo.cfg.dynamic.${version.toString(16)}`,
      text: text.slice(0, text.lastIndexOf('\n')),
      ensemble: writtenFor(server.id, roles, this.#groups),
    })
    this.#world.later(forMs, undefined, 'new disk', () => server.start())
    return true
  }

  async #look(): Promise<Seen> {
    await this.#ask({ op: 'sync', path: CONFIG })
    const { result } = await this.#ask({ op: 'get', path: CONFIG, watch: false })
    const text = result.data ?? ''
    return { ...readMembers(text), text }
  }

  #ask(request: Parameters<Asking['ask']>[0]): Promise<Operation> {
    return this.#asking!.ask(request)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.later(ms, undefined, 'operator waits', resolve))
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1
  }
}
