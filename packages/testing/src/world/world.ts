import { invariant, type LogLevel } from '@zabra/runtime'
import { nodeClock } from '@zabra/runtime/node'
import { Prng } from './prng.ts'
import { DiskImage } from './disk-image.ts'
import { EventQueue } from './event-queue.ts'
import { PACKET, SimulatedNetwork } from './network.ts'
import { Host, type HostWorld } from './process.ts'
import type { ProcessState, ScheduledEvent } from './types.ts'

/** An entry of the trace of a run. */
export interface TraceEvent {
  readonly at: number
  readonly host: string
  readonly event: string
  readonly detail: string
}

/** A line that a process logged. */
export interface LogLine {
  readonly at: number
  readonly host: string
  readonly level: LogLevel
  readonly facts: object
  readonly sentence: string
}

/** More events than this at one moment indicate a loop in which no time passes. */
const MAX_EVENTS_AT_ONE_TIME = 200_000
/** Events between two turns of the real event loop, so that signals and output are handled. */
const EVENTS_PER_TURN = 20_000

/**
 * A deterministic world driven by one queue of events: time is virtual, random numbers come from a seed, disks and
 * networks are simulated. The same seed gives the same run, identified by `hash`.
 */
export class SimulatedWorld implements HostWorld {
  readonly seed: number
  readonly prng: Prng
  readonly network: SimulatedNetwork
  readonly hosts: Host[] = []
  /** World time, in milliseconds. */
  now = 0
  /** Events processed so far. */
  eventCount = 0
  /** Hash over all events so far. */
  hash = 0x811c9dc5
  /** Called with each trace event. */
  onTrace: ((note: TraceEvent) => void) | undefined
  /** Called with each line that a process logs. */
  onLog: ((line: LogLine) => void) | undefined
  /** Called with errors thrown by events; without it they end the run. */
  onError: ((error: unknown, owner: ProcessState | undefined) => void) | undefined
  readonly #queue = new EventQueue()
  #afterPromises: { readonly owner: ProcessState; readonly action: () => void }[] = []
  #pids = 0
  #moment = 0
  #eventsAtMoment = 0
  #running = false

  constructor(seed: number) {
    this.seed = seed
    this.prng = new Prng(seed)
    this.network = new SimulatedNetwork(this)
  }

  /**
   * Adds a machine. Servers and clients resolve it by its name or its address. `address` is another machine's for a program
   * that has, or pretends to have, the same one.
   */
  addHost(name: string, address?: string): Host {
    const index = this.hosts.length + 1
    const host = new Host(
      this,
      name,
      address ?? `10.0.${index >> 8}.${index & 255}`,
      new DiskImage(this.prng.fork(`disk ${name}`)),
    )
    this.hosts.push(host)
    return host
  }

  nextPid(): number {
    return ++this.#pids
  }

  /** Schedules an event after a delay. An event with an owner is dropped if that process has ended by then. */
  schedule(
    delayMs: number,
    owner: ProcessState | undefined,
    kind: string,
    action: () => void,
  ): ScheduledEvent {
    return this.#queue.add(this.now + delayMs, owner, kind, action)
  }

  /** Schedules an event at an exact world time. Events at one time run in the order in which they were scheduled. */
  scheduleAt(
    time: number,
    owner: ProcessState | undefined,
    kind: string,
    action: () => void,
  ): ScheduledEvent {
    return this.#queue.add(Math.max(time, this.now), owner, kind, action)
  }

  afterPromises(owner: ProcessState, action: () => void): void {
    this.#afterPromises.push({ owner, action })
  }

  /** Mixes a number into the hash. */
  mixIntoHash(value: number): void {
    this.hash = Math.imul(this.hash ^ (value | 0), 0x01000193)
  }

  trace(owner: ProcessState | undefined, event: string, detail: string): void {
    for (let i = 0; i < event.length; i++) this.mixIntoHash(event.charCodeAt(i))
    this.onTrace?.({ at: this.now, host: owner?.host.name ?? 'world', event, detail })
  }

  logged(owner: ProcessState, level: LogLevel, facts: object, sentence: string): void {
    this.mixIntoHash(sentence.length)
    this.onLog?.({ at: this.now, host: owner.host.name, level, facts, sentence })
  }

  /**
   * Runs events until `done` returns true, at the latest until `untilMs`. Resolves to whether `done` returned true. All
   * promises settle between two events, so that nothing depends on real time.
   */
  run(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    invariant(!this.#running, 'The world runs for one caller at a time.')
    this.#running = true
    return new Promise((resolve, reject) => {
      const finish = (isDone: boolean): void => {
        this.#running = false
        resolve(isDone)
      }
      const turn = (): void => {
        try {
          if (this.#runAfterPromises()) return afterAllPromises(turn)
          if (done()) return finish(true)
          const next = this.#queue.peek
          if (next === undefined || next.at > untilMs) {
            this.now = Math.max(this.now, untilMs)
            return finish(false)
          }
          let settlesPromises = this.#dispatch(this.#queue.pop()!)
          while (!settlesPromises && this.eventCount % EVENTS_PER_TURN !== 0 && !done()) {
            const following = this.#queue.peek
            if (following === undefined || following.at > untilMs) break
            settlesPromises = this.#dispatch(this.#queue.pop()!)
          }
        } catch (error) {
          this.#running = false
          return reject(error instanceof Error ? error : new Error(String(error)))
        }
        if (this.eventCount % EVENTS_PER_TURN === 0) nodeClock.immediate(turn)
        else afterAllPromises(turn)
      }
      afterAllPromises(turn)
    })
  }

  /** Runs until a promise of this world settles. Rejects when it has not settled within `withinMs`. */
  async runUntilSettled<T>(promise: Promise<T>, withinMs: number): Promise<T> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    promise.then(settle, settle)
    if (await this.run(this.now + withinMs, () => isSettled)) return promise
    throw new Error(`Expected the promise to settle within ${withinMs} ms of world time; it is still pending`)
  }

  /**
   * Runs an event, unless it was cancelled. Returns whether it may settle promises: a packet that arrives runs no code of a
   * process, and the event after it need not wait.
   */
  #dispatch(event: ScheduledEvent): boolean {
    const { at, owner, kind, action } = event
    if (action === undefined) return false
    if (owner !== undefined) {
      if (!owner.isAlive) return false
      if (owner.host.isPaused) {
        owner.host.deferredEvents.push(event)
        return false
      }
    }
    this.now = at
    this.eventCount++
    this.#checkProgress(at, kind)
    this.mixIntoHash((at * 1000) | 0)
    this.mixIntoHash(owner === undefined ? 0 : owner.pid)
    event.action = undefined
    this.#invoke(owner, action)
    return kind !== PACKET
  }

  /** Runs actions that wait for promises to settle. Returns whether there were any. */
  #runAfterPromises(): boolean {
    if (this.#afterPromises.length === 0) return false
    const actions = this.#afterPromises
    this.#afterPromises = []
    for (const { owner, action } of actions) if (owner.isAlive) this.#invoke(owner, action)
    return true
  }

  #invoke(owner: ProcessState | undefined, action: () => void): void {
    if (this.onError === undefined) return action()
    try {
      action()
    } catch (error) {
      this.onError(error, owner)
    }
  }

  #checkProgress(at: number, kind: string): void {
    if (at !== this.#moment) {
      this.#moment = at
      this.#eventsAtMoment = 0
    } else if (++this.#eventsAtMoment > MAX_EVENTS_AT_ONE_TIME) {
      throw new Error(
        `Expected time to pass; ${MAX_EVENTS_AT_ONE_TIME} events occurred at ${at} ms, the last of kind "${kind}"`,
      )
    }
  }
}

const settled = Promise.resolve()

/**
 * Runs an action once all promises have settled. It is queued from within a microtask, because an after-promises action
 * queued outside of one would run before them. A reaction of a settled promise costs less than `queueMicrotask`.
 */
function afterAllPromises(action: () => void): void {
  void settled.then(() => nodeClock.afterMicrotasks(action))
}
