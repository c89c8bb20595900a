import type { ClockSkew } from './clock-skew.ts'
import type { DiskImage } from './disk-image.ts'
import type { Prng } from './prng.ts'

/** An event in the queue. */
export interface ScheduledEvent {
  readonly at: number
  readonly order: number
  /** The process that the event belongs to; undefined for events of the world, such as packets in flight. */
  readonly owner: ProcessState | undefined
  readonly kind: string
  /** Undefined once the event is cancelled. */
  action: (() => void) | undefined
}

/** The state of a machine, as the parts of the world use it. */
export interface HostState {
  readonly name: string
  readonly address: string
  readonly disk: DiskImage
  readonly clockSkew: ClockSkew
  readonly isPowered: boolean
  readonly isPaused: boolean
  readonly deferredEvents: ScheduledEvent[]
}

/** The state of a process, as the parts of the world use it. */
export interface ProcessState {
  readonly host: HostState
  readonly pid: number
  readonly isAlive: boolean
  readonly pendingConnects: Set<() => void>
  schedule(delayMs: number, kind: string, action: () => void): ScheduledEvent
}

/** The event queue of the world, with its time, randomness and hash. */
export interface Scheduler {
  readonly now: number
  readonly prng: Prng
  schedule(delayMs: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent
  scheduleAt(time: number, owner: ProcessState | undefined, kind: string, action: () => void): ScheduledEvent
  afterPromises(owner: ProcessState, action: () => void): void
  mixIntoHash(value: number): void
}
