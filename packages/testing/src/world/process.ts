import type { Logger, Platform, System } from '@zabra/runtime'
import { invariant } from '@zabra/runtime'
import { SimulatedClock, type ClockSkew } from './clock.ts'
import type { SimulatedConnection } from './connection.ts'
import { SimulatedDisk, type DiskImage } from './disk.ts'
import type { ScheduledEvent } from './event-queue.ts'
import { ProcessNetwork } from './network.ts'
import type { SimulatedWorld } from './world.ts'

/** How a process ends: its machine goes on (`kill`), or its machine loses power and what was not synced (`power`). */
export type CrashKind = 'kill' | 'power'

/** One life of a process, from its start to its end. Whatever belongs to a life that is over does nothing any more. */
export class Incarnation {
  readonly host: Host
  readonly pid: number
  isAlive = true
  readonly connections = new Set<SimulatedConnection>()
  /** What forgets the attempts to connect that are under way. */
  readonly pendingConnects = new Set<() => void>()
  readonly ports: Platform

  constructor(host: Host, pid: number) {
    this.host = host
    this.pid = pid
    const { world } = host
    const prng = world.prng.fork(`process ${pid}`)
    const system: System = {
      pid,
      processIdentity: (other) => (host.current?.pid === other ? `incarnation ${other}` : undefined),
      residentMemory: () => 1 << 26,
      fileDescriptors: () => ({ open: 1, max: 100_000 }),
      environment: () => [['host.name', host.name]],
    }
    const say =
      (level: keyof Logger) =>
      (facts: object, sentence: string): void => {
        if (this.isAlive) world.logged(this, level, facts, sentence)
      }
    this.ports = {
      clock: new SimulatedClock(world, this),
      random: prng,
      network: new ProcessNetwork(world.network, this),
      disk: new SimulatedDisk(world, this, host.disk),
      compression: uncompressed,
      logger: { error: say('error'), warn: say('warn'), info: say('info'), debug: say('debug') },
      system,
    }
  }

  /** Does something in this process after a time of the world, if it still lives then. */
  later(delayMs: number, kind: string, action: () => void): ScheduledEvent {
    return this.host.world.schedule(delayMs, this, kind, action)
  }
}

/** A machine with a name, an address, a disk that lasts, and at most one process at a time. */
export class Host {
  readonly world: SimulatedWorld
  readonly name: string
  readonly address: string
  readonly disk: DiskImage
  /** How its clock differs from the world's time. */
  readonly clockSkew: ClockSkew = { offsetMs: 0, rate: 1, rateSetAtMs: 0, monotonicAtMs: 1000 }
  /** Whether the machine runs: it answers to connections although its process may not. */
  isPowered = true
  current: Incarnation | undefined
  isPaused = false
  /** What has come while the process stood still. */
  readonly deferredEvents: ScheduledEvent[] = []
  /** Processes that ran here. */
  startCount = 0

  constructor(world: SimulatedWorld, name: string, address: string, platter: DiskImage) {
    this.world = world
    this.name = name
    this.address = address
    this.disk = platter
  }

  /** Starts a process: gives the world as it sees it. */
  start(): Incarnation {
    invariant(this.current === undefined, 'A host runs one process at a time.', { host: this.name })
    this.isPowered = true
    this.isPaused = false
    this.startCount++
    this.current = new Incarnation(this, this.world.nextPid())
    this.world.trace(this.current, 'start', '')
    return this.current
  }

  /** Ends the process at once. Nothing that it has begun goes on. */
  crash(kind: CrashKind): void {
    const ended = this.current
    if (ended === undefined) {
      if (kind === 'power' && this.startCount > 0) this.#losePower()
      return
    }
    this.world.trace(ended, 'crash', kind)
    ended.isAlive = false
    this.current = undefined
    this.isPaused = false
    this.deferredEvents.length = 0
    if (kind === 'power') this.isPowered = false
    this.world.network.processEnded(ended, kind)
    this.disk.crash(kind)
  }

  /** A machine on which nothing runs any more loses power: with it goes what the last process has not synced. */
  #losePower(): void {
    this.isPowered = false
    this.disk.crash('power')
  }

  /** Stops the process where it is. Its clock goes on, and what happens to it waits. */
  pause(): void {
    if (this.current === undefined || this.isPaused) return
    this.world.trace(this.current, 'pause', '')
    this.isPaused = true
  }

  /** Lets the process go on with all that has come meanwhile. */
  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    if (this.current !== undefined) this.world.trace(this.current, 'resume', '')
    for (const held of this.deferredEvents.splice(0)) {
      if (held.action === undefined) continue
      // What goes on first may cancel what was held with it.
      this.world.schedule(0, held.owner, held.kind, () => {
        const { action } = held
        held.action = undefined
        action?.()
      })
    }
  }
}

const uncompressed: Platform['compression'] = {
  gzip: () => {
    throw new Error('The simulated world brings no compression')
  },
  gunzip: () => {
    throw new Error('The simulated world brings no compression')
  },
}
