import type { Logger, Ports, System } from '@zabra/runtime'
import { invariant } from '@zabra/runtime'
import { SimulatedClock, type ClockFaults } from './clock.ts'
import type { SimulatedConnection } from './connection.ts'
import { SimulatedDisk, type Platter } from './disk.ts'
import type { Happening } from './events.ts'
import { ProcessNetwork } from './network.ts'
import type { World } from './world.ts'

/** How a process ends: its machine goes on (`kill`), or its machine loses power and what was not synced (`power`). */
export type CrashKind = 'kill' | 'power'

/** One life of a process, from its start to its end. Whatever belongs to a life that is over does nothing any more. */
export class Incarnation {
  readonly host: Host
  readonly pid: number
  alive = true
  readonly connections = new Set<SimulatedConnection>()
  /** What forgets the attempts to connect that are under way. */
  readonly dials = new Set<() => void>()
  readonly ports: Ports

  constructor(host: Host, pid: number) {
    this.host = host
    this.pid = pid
    const { world } = host
    const chance = world.chance.branch(`process ${pid}`)
    const system: System = {
      pid,
      identityOf: (other) => (host.current?.pid === other ? `incarnation ${other}` : undefined),
      memory: () => 1 << 26,
      descriptors: () => ({ open: 1, max: 100_000 }),
      environment: () => [['host.name', host.name]],
    }
    const say =
      (level: keyof Logger) =>
      (facts: object, sentence: string): void => {
        if (this.alive) world.heard(this, level, facts, sentence)
      }
    this.ports = {
      clock: new SimulatedClock(world, this),
      random: chance,
      network: new ProcessNetwork(world.network, this),
      disk: new SimulatedDisk(world, this, host.platter),
      compression: uncompressed,
      logger: { error: say('error'), warn: say('warn'), info: say('info'), debug: say('debug') },
      system,
    }
  }

  /** Does something in this process after a time of the world, if it still lives then. */
  later(delayMs: number, kind: string, action: () => void): Happening {
    return this.host.world.later(delayMs, this, kind, action)
  }
}

/** A machine with a name, an address, a disk that lasts, and at most one process at a time. */
export class Host {
  readonly world: World
  readonly name: string
  readonly address: string
  readonly platter: Platter
  /** How its clock differs from the world's time. */
  readonly clock: ClockFaults = { offsetMs: 0, rate: 1, since: 0, monotonicAt: 1000 }
  /** Whether the machine runs: it answers to connections although its process may not. */
  powered = true
  current: Incarnation | undefined
  paused = false
  /** What has come while the process stood still. */
  readonly held: Happening[] = []
  /** Processes that ran here. */
  lives = 0

  constructor(world: World, name: string, address: string, platter: Platter) {
    this.world = world
    this.name = name
    this.address = address
    this.platter = platter
  }

  /** Starts a process: gives the world as it sees it. */
  start(): Incarnation {
    invariant(this.current === undefined, 'A host runs one process at a time.', { host: this.name })
    this.powered = true
    this.paused = false
    this.lives++
    this.current = new Incarnation(this, this.world.nextPid())
    this.world.note(this.current, 'start', '')
    return this.current
  }

  /** Ends the process at once. Nothing that it has begun goes on. */
  crash(kind: CrashKind): void {
    const ended = this.current
    if (ended === undefined) {
      if (kind === 'power' && this.lives > 0) this.#darken()
      return
    }
    this.world.note(ended, 'crash', kind)
    ended.alive = false
    this.current = undefined
    this.paused = false
    this.held.length = 0
    if (kind === 'power') this.powered = false
    this.world.network.processEnded(ended, kind)
    this.platter.crash(kind)
  }

  /** A machine on which nothing runs any more loses power: with it goes what the last process has not synced. */
  #darken(): void {
    this.powered = false
    this.platter.crash('power')
  }

  /** Stops the process where it is. Its clock goes on, and what happens to it waits. */
  pause(): void {
    if (this.current === undefined || this.paused) return
    this.world.note(this.current, 'pause', '')
    this.paused = true
  }

  /** Lets the process go on with all that has come meanwhile. */
  resume(): void {
    if (!this.paused) return
    this.paused = false
    if (this.current !== undefined) this.world.note(this.current, 'resume', '')
    for (const held of this.held.splice(0)) {
      if (held.action === undefined) continue
      // What goes on first may cancel what was held with it.
      this.world.later(0, held.to, held.kind, () => {
        const { action } = held
        held.action = undefined
        action?.()
      })
    }
  }
}

const uncompressed: Ports['compression'] = {
  gzip: () => {
    throw new Error('The simulated world brings no compression')
  },
  gunzip: () => {
    throw new Error('The simulated world brings no compression')
  },
}
