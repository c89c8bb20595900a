import type { LogLevel, Platform, System } from '@zabra/runtime'
import { invariant } from '@zabra/runtime'
import { SimulatedClock } from './clock.ts'
import type { ClockSkew } from './clock-skew.ts'
import type { CrashKind, DiskImage } from './disk-image.ts'
import { SimulatedDisk } from './disk.ts'
import { ProcessNetwork, type SimulatedNetwork } from './network.ts'
import type { HostState, ProcessState, ScheduledEvent, Scheduler } from './types.ts'

/** The world as its hosts use it. */
export interface HostWorld extends Scheduler {
  readonly network: SimulatedNetwork
  /** Returns an unused process id. */
  nextPid(): number
  /** Adds an entry to the trace. */
  trace(owner: ProcessState | undefined, event: string, detail: string): void
  /** Handles a line that a process logs. */
  logged(owner: ProcessState, level: LogLevel, facts: object, sentence: string): void
}

/** One run of a process. Whatever belongs to an incarnation that has ended does nothing any more. */
export class Incarnation implements ProcessState {
  readonly host: Host
  readonly pid: number
  isAlive = true
  /** Cancel functions of connection attempts in progress. */
  readonly pendingConnects = new Set<() => void>()
  readonly platform: Platform

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
    const log =
      (level: LogLevel) =>
      (facts: object, sentence: string): void => {
        if (this.isAlive) world.logged(this, level, facts, sentence)
      }
    this.platform = {
      clock: new SimulatedClock(world, this),
      random: prng,
      network: new ProcessNetwork(world.network, this),
      disk: new SimulatedDisk(world, this, host.disk),
      compression: uncompressed,
      logger: { error: log('error'), warn: log('warn'), info: log('info'), debug: log('debug') },
      system,
    }
  }

  /** Schedules an event for this process; it is dropped if the process has ended by then. */
  schedule(delayMs: number, kind: string, action: () => void): ScheduledEvent {
    return this.host.world.schedule(delayMs, this, kind, action)
  }
}

/** A machine with a name, an address, a persistent disk, and at most one process at a time. */
export class Host implements HostState {
  readonly world: HostWorld
  readonly name: string
  readonly address: string
  readonly disk: DiskImage
  /** How its clocks differ from world time. */
  readonly clockSkew: ClockSkew = { offsetMs: 0, rate: 1, rateSetAtMs: 0, monotonicAtMs: 1000 }
  /** Whether the machine has power: its system answers connection attempts even without a process. */
  isPowered = true
  current: Incarnation | undefined
  isPaused = false
  /** Events that came due while the process was paused. */
  readonly deferredEvents: ScheduledEvent[] = []
  /** Number of processes started on this host. */
  startCount = 0

  constructor(world: HostWorld, name: string, address: string, disk: DiskImage) {
    this.world = world
    this.name = name
    this.address = address
    this.disk = disk
  }

  /** Starts a process and returns its incarnation, with the platform it runs on. */
  start(): Incarnation {
    invariant(this.current === undefined, 'A host runs one process at a time.', { host: this.name })
    this.isPowered = true
    this.isPaused = false
    this.startCount++
    this.current = new Incarnation(this, this.world.nextPid())
    this.world.trace(this.current, 'start', '')
    return this.current
  }

  /** Ends the process at once. None of its pending events run. */
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

  /** Cuts the power of a machine without a process: unsynced writes of its last process are lost. */
  #losePower(): void {
    this.isPowered = false
    this.disk.crash('power')
  }

  /** Pauses the process. Its clock continues and its events are deferred. */
  pause(): void {
    if (this.current === undefined || this.isPaused) return
    this.world.trace(this.current, 'pause', '')
    this.isPaused = true
  }

  /** Resumes the process and runs its deferred events. */
  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    if (this.current !== undefined) this.world.trace(this.current, 'resume', '')
    for (const held of this.deferredEvents.splice(0)) {
      if (held.action === undefined) continue
      // An event that runs earlier may cancel a deferred one.
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
    throw new Error('The simulated world has no compression')
  },
  gunzip: () => {
    throw new Error('The simulated world has no compression')
  },
}
